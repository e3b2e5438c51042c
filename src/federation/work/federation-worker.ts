// FederationWorker: claims the tasks of this site that its peers execute, under an ordinary lease, and commits what they return.
//
// federation-worker.F1. It claims tasks whose label is in `work`, and nothing else: no runs, no nodes of flows, no messages.
// federation-worker.F2. Lease, heartbeat, takeover, retries, backoff and commits are those of any worker of the store. A run never leaves
//   its home; only calls of functions do.

import { hostname } from "node:os";
import { RepriseError, type Clock, type Random, type Timers } from "../../base/index.ts";
import {
  isTask,
  Labels,
  taskBody,
  type AnyTask,
  type Definition,
  type Logger,
  type Store,
} from "../../kernel/index.ts";
import { Registry } from "../../process/index.ts";
import type { VerifyingKey } from "../../receipts/index.ts";
import { Worker } from "../../worker/index.ts";
import { Guard } from "../../workflow/index.ts";
import { OfferBook, type DivergentStep } from "./offer-book.ts";
import type { WorkTarget } from "./offer-job.ts";
import { checkStepStatement, type ExecutedStep } from "./step-statement.ts";

/** Keeps what peers say about steps beside the runs: late results, and results that differ. */
export interface StepKeeper {
  keepLate(peer: string, envelope: string, executed: ExecutedStep, result: string | undefined): Promise<void> | void;
  addDivergence(divergent: DivergentStep): void;
}

export interface FederationWorkerOptions {
  /** Opened for this worker alone: two pollers of one open store would miss changes. */
  readonly store: Store;
  /** Those of the engine: the tasks of the labels in `work` must be among them. */
  readonly definitions: readonly (Definition | AnyTask)[];
  readonly work: ReadonlyMap<string, WorkTarget>;
  /** The keys of a peer; undefined: this site does not check the signatures of its statements. */
  keysOf(peer: string): readonly VerifyingKey[] | undefined;
  readonly keeper: StepKeeper;
  readonly runtime: string;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  /** How many tasks are offered at once. */
  readonly concurrency?: number;
  readonly leaseMs?: number;
  /** Without a renewal for so long, a peer loses an offer. */
  readonly offerLeaseMs?: number;
}

const CONCURRENCY = 256;
const LEASE_MS = 10_000;
const nothing = (): void => {};

export class FederationWorker {
  readonly book: OfferBook;
  readonly #worker: Worker;

  constructor(options: FederationWorkerOptions) {
    const { store, work, clock, timers, random, logger, leaseMs = LEASE_MS } = options;
    const report = (error: unknown): void => logger.error(`Work at other sites: ${String(error)}`);
    this.book = new OfferBook({
      work,
      leaseMs: options.offerLeaseMs ?? LEASE_MS,
      clock,
      timers,
      random,
      checkStatement: (peer, envelope) => checkedStatement(peer, envelope, options.keysOf(peer)),
      keepLate: async (peer, envelope, executed, result) => {
        if ((await store.findRun(executed.run)) === undefined) return;
        logger.warn(
          `${peer} returned ${executed.step.command} of run ${executed.run} too late; its statement is kept and the run is unchanged.`,
          { run: executed.run, peer },
        );
        await options.keeper.keepLate(peer, envelope, executed, result);
      },
      onDivergence: (divergent) => options.keeper.addDivergence(divergent),
      report,
    });
    this.#worker = new Worker({
      store,
      timers,
      random,
      registry: new Registry(offeredTasks(options.definitions, work)),
      name: `federation/${hostname()}/${process.pid}`,
      host: hostname(),
      pid: process.pid,
      works: true,
      concurrency: options.concurrency ?? CONCURRENCY,
      queues: undefined,
      labels: Labels.of([...work.keys()]),
      leaseMs,
      heartbeats: true,
      polls: true,
      determinism: "per-type",
      guard: new Guard("off", nothing),
      runtime: options.runtime,
      remote: this.book,
      log: (level, message, data) => logger[level]?.(message, data),
      onEnded: nothing,
      onCommitted: nothing,
      onUnheld: nothing,
      onChanged: () => 0,
    });
  }

  start(): Promise<void> {
    return this.#worker.start();
  }

  /** Offers nothing new, waits for what is executed until the grace period ends, and returns the rest to the queue. */
  async stop(graceMs = 0): Promise<void> {
    await this.#worker.drain(graceMs);
    this.#worker.close();
    this.book.close();
  }
}

/** federation-worker.F1 */
function offeredTasks(
  definitions: readonly (Definition | AnyTask)[],
  work: ReadonlyMap<string, WorkTarget>,
): readonly AnyTask[] {
  const tasks = definitions.filter((one): one is AnyTask => isTask(one) && work.has(taskBody(one).label ?? ""));
  for (const label of work.keys())
    if (!tasks.some((one) => taskBody(one).label === label))
      throw new RepriseError(
        "BAD_OPTIONS",
        `work.${label}: no task of \`definitions\` has the label ${label}, so there is nothing to offer. Pass task("name", { label: "${label}" }, …) in \`definitions\`, or remove the label from \`work\`.`,
      );
  return tasks;
}

function checkedStatement(peer: string, envelope: string, keys: readonly VerifyingKey[] | undefined): ExecutedStep {
  const check = checkStepStatement(envelope, keys);
  if (check.status === "valid") return check.executed;
  throw new RepriseError("RESULT_REFUSED", `The statement that ${peer} sent is refused: ${check.reason}.`);
}
