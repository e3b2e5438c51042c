// Engine: a client with a worker, which executes the runs of its definitions.

import { checkOptionNames, toMs } from "../base/index.ts";
import { versionOf, type Registry } from "../process/index.ts";
import type { Definition, Store, RetentionMs } from "../kernel/index.ts";
import { Worker, type WorkerOptions, RetentionRunner } from "../worker/index.ts";
import { checkSignal } from "./abort.ts";
import type { CloseOptions, Engine } from "./api.ts";
import type { EvaluateOptions } from "./evaluation.ts";
import { ClientCore, nameOf, type ClientParts } from "./client-core.ts";
import { workerPortOf, type WorkerEvents } from "./worker-port.ts";

/** Everything an engine is made of; `createEngine` and the test kit fill it in. */
export interface EngineParts
  extends Omit<ClientParts, "kind">, Omit<WorkerOptions, keyof WorkerEvents | keyof ClientParts> {
  /** Of definitions that declare none. */
  readonly retention?: RetentionMs | undefined;
}

const DRAIN_MS = 30_000;

export class EngineCore extends ClientCore implements Engine {
  readonly worker: Worker;
  readonly #parts: EngineParts;
  readonly #retention: RetentionRunner;

  constructor(parts: EngineParts) {
    let worker!: Worker;
    let retention!: RetentionRunner;
    super({ ...parts, kind: "engine" }, (events) => {
      const policies = parts.registry.retentions(parts.retention);
      const report = (error: unknown): void => events.log("error", `Retention: ${String(error)}`, {});
      retention = new RetentionRunner({ ...parts, policies, report });
      const onEnded: WorkerEvents["onEnded"] = (record, status, last) => {
        retention.onEnded(record.definition, status);
        events.onEnded(record, status, last);
      };
      worker = new Worker({ ...parts, ...events, onEnded });
      return workerPortOf(worker, events);
    });
    this.worker = worker;
    this.#retention = retention;
    this.#parts = parts;
  }

  override async begin(): Promise<void> {
    await super.begin();
    if (!this.#parts.works) return;
    // Of a copy, nothing is deleted.
    if (this.#parts.isCopy === true) return;
    await this.#warnOfUnknownVersions();
    this.#retention.start();
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

  evaluate: Engine["evaluate"] = async (what: Definition | string, options: EvaluateOptions): Promise<any> => {
    const { registry, store, random } = this.#parts;
    const body = registry.getWorkflow(nameOf(what, "evaluate(definition, { runs })"), versionOf(what));
    const { evaluate } = await import("./evaluate.ts");
    return evaluate({ client: this, store, newId: () => random.id() }, body, options);
  };

  async drain(options: CloseOptions = {}): Promise<void> {
    checkOptionNames(options, ["grace", "signal"], "drain");
    const graceMs = options.grace === undefined ? DRAIN_MS : toMs(options.grace, "drain: grace");
    this.#retention.stop();
    await this.drainOnce(graceMs, checkSignal(options.signal, "drain"));
  }

  override close(options: CloseOptions = {}): Promise<void> {
    const closing = super.close(options);
    this.#retention.stop();
    return closing;
  }

  override crash(): void {
    this.#retention.stop();
    super.crash();
  }
}
