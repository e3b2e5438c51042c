// createEngine: options checked, store opened, worker started.

import { hostname } from "node:os";
import { checkOptionNames, RepriseError, systemClock, toMs } from "../base/index.ts";
import { Labels, type AnyTask, type Definition, checkRetention } from "../kernel/index.ts";
import { openUnlessAborted } from "./abort.ts";
import type { DefinitionsIn, Engine, EngineOptions, WorkerSettings } from "./api.ts";
import type { EngineCore } from "./engine.ts";
import {
  checkClientOptions,
  checkConcurrency,
  checkLease,
  checkMemory,
  checkMemos,
  checkObject,
  checkOutbox,
  DEFAULT_CONCURRENCY,
  DEFAULT_LEASE_MS,
  defaultDeterminism,
  queueNames,
} from "./engine-options.ts";
import { checkWebhooks } from "./webhook-options.ts";

function checkWorker(worker: unknown = {}): WorkerSettings {
  if (worker === false)
    throw new RepriseError(
      "BAD_OPTIONS",
      "createEngine: worker: false is not supported. To start runs without executing them, use createClient({ store, definitions }).",
    );
  checkObject(worker, "worker: expected an object of settings");
  checkOptionNames(worker as object, ["concurrency", "labels", "lease", "memory", "queues"], "worker");
  return worker as WorkerSettings;
}

/** The engine's code with the worker room behind it: loaded on first use, so that a client never loads it. */
export function loadEngineCore(): Promise<{ readonly EngineCore: typeof EngineCore }> {
  return import("./engine.ts");
}

/**
 * Opens a store and starts a worker that executes the runs of its definitions.
 *
 * @example
 * ```ts
 * import { createEngine, workflow } from "reprise";
 * const hello = workflow("hello", async (ctx, name: string) => ctx.run("greet", () => `Hello, ${name}`));
 * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [hello] });
 * const run = await engine.start(hello, "Ada", { id: "hello-1" });
 * console.log(await run.result());
 * ```
 */
export async function createEngine<const Defs extends Definition | AnyTask>(
  options: EngineOptions<Defs>,
): Promise<Engine<DefinitionsIn<Defs>>> {
  const { source, durability, codec, contents, parts, signal } = checkClientOptions(options, "createEngine", [
    "memos",
    "outbox",
    "retention",
    "worker",
  ]);
  const settings = checkWorker(options.worker);
  const workerParts = {
    name: `${hostname()}/${process.pid}`,
    host: hostname(),
    pid: process.pid,
    outbox: checkOutbox(options.outbox),
    webhooks: checkWebhooks(options.webhooks),
    foreignMemos: checkMemos(options.memos),
    retention: options.retention === undefined ? undefined : checkRetention(options.retention, "createEngine"),
    works: true,
    concurrency: checkConcurrency(settings.concurrency ?? DEFAULT_CONCURRENCY),
    leaseMs: checkLease(settings.lease === undefined ? DEFAULT_LEASE_MS : toMs(settings.lease, "worker.lease")),
    memory: checkMemory(settings.memory),
    queues: queueNames(parts.registry, settings.queues),
    labels: Labels.of(settings.labels),
    heartbeats: true,
    determinism: defaultDeterminism(),
  } as const;
  const { timers, random } = parts;
  const open = async (): Promise<EngineCore> => {
    const { EngineCore: Core } = await loadEngineCore();
    const store = await source["~open"]({ clock: systemClock, timers, random, durability, codec, contents });
    store.announce(workerParts.webhooks);
    const engine = new Core({ ...parts, ...workerParts, store });
    try {
      await engine.begin();
    } catch (error) {
      engine.crash();
      await store.close();
      throw error;
    }
    return engine;
  };
  return (await openUnlessAborted(signal, open)) as unknown as Engine<DefinitionsIn<Defs>>;
}
