// Engine: a client with a worker, which executes the runs of its definitions.

import { checkOptionNames, toMs, type Duration } from "../base/index.ts";
import type { Registry } from "../process/index.ts";
import type { Store } from "../kernel/index.ts";
import { Worker, type WorkerOptions } from "../worker/index.ts";
import type { Engine } from "./api.ts";
import { ClientCore, type ClientParts } from "./client-core.ts";
import { workerPortOf, type WorkerEvents } from "./worker-port.ts";

/** Everything an engine is made of; `createEngine` and the test kit fill it in. */
export interface EngineParts
  extends Omit<ClientParts, "kind">, Omit<WorkerOptions, keyof WorkerEvents | keyof ClientParts> {}

const DRAIN_MS = 30_000;

export class EngineCore extends ClientCore implements Engine {
  readonly worker: Worker;
  readonly #parts: EngineParts;

  constructor(parts: EngineParts) {
    let worker!: Worker;
    super({ ...parts, kind: "engine" }, (events) => {
      worker = new Worker({ ...parts, ...events });
      return workerPortOf(worker);
    });
    this.worker = worker;
    this.#parts = parts;
  }

  override async begin(): Promise<void> {
    await super.begin();
    if (this.#parts.works) await this.#warnOfUnknownVersions();
  }

  /** Live runs of a version that this process lacks may wait for a worker that never starts. */
  async #warnOfUnknownVersions(): Promise<void> {
    const { registry, store, logger }: { registry: Registry; store: Store; logger: EngineParts["logger"] } =
      this.#parts;
    for (const { name, version, live } of await store.countVersions()) {
      if (registry.findWorkflow(name) === undefined || registry.findWorkflow(name, version) !== undefined) continue;
      const runs = live === 1 ? "1 live run of" : `${live} live runs of`;
      logger.warn(
        `${runs} ${name} ${live === 1 ? "is" : "are"} pinned to version ${version}, which is not registered here. Add it to \`definitions\` beside the newer one, or let another worker finish ${live === 1 ? "it" : "them"}.`,
        { definition: name, version, live },
      );
    }
  }

  async drain(options: { grace?: Duration } = {}): Promise<void> {
    checkOptionNames(options, ["grace"], "drain");
    await this.drainOnce(options.grace === undefined ? DRAIN_MS : toMs(options.grace, "drain: grace"));
  }
}
