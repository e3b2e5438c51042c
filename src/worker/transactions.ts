// Transactions: `ctx.tx`. Each is a commit of its own that begins with the user's SQL (U1–U3).
//
// The pump runs one after the batch that makes the run's earlier entries durable. What came in since goes with it.

import { decode, RepriseError } from "../base/index.ts";
import { emit, isObserved, type Store, type TurnOutcome, type TurnWrite } from "../kernel/index.ts";
import { callInStep, entryData, type OperationAsk } from "../workflow/index.ts";
import type { HotRun } from "./hot-run.ts";
import { failOperation, type OperationHost } from "./operations.ts";

/** User SQL that waits for its transaction. */
export interface WaitingTransaction {
  readonly ask: OperationAsk;
  readonly attempt: number;
}

export interface TransactionsHost {
  readonly store: Store;
  readonly operations: OperationHost;
  committed(run: HotRun, write: TurnWrite, outcome: TurnOutcome): void;
  /** What is in memory is ahead of the store, or nobody can say: the run is loaded anew. */
  giveUp(run: HotRun): void;
  report(error: unknown): void;
}

export class Transactions {
  readonly #host: TransactionsHost;
  /** What COMMIT refused, by run and command: known too late to be recorded by the run that was given up for it. */
  readonly #refused = new Map<string, unknown>();

  constructor(host: TransactionsHost) {
    this.#host = host;
  }

  /** Runs the transaction a run has waited longest with. */
  async next(run: HotRun): Promise<void> {
    const waiting = run.takeTransaction();
    if (waiting === undefined) return;
    const { ask, attempt } = waiting;
    const { command, name, index, input } = ask;
    const step = `${run.record.run} ${command}`;
    const fields = { index, name, input, attempt, startedAt: this.#host.operations.now() };
    if (isObserved()) emit({ event: "attempt.started", run: run.record.id, step: command, name, attempt });
    if (this.#refused.has(step)) {
      failOperation(this.#host.operations, run, ask, fields, this.#refused.get(step));
      this.#refused.delete(step);
      return;
    }
    let write: TurnWrite | undefined;
    try {
      const outcome = await this.#host.store.transact(
        (db) => callInStep(name, () => (ask.call as (db: unknown) => unknown)(db)),
        (value) => {
          // Already in the run's memory, and what followed stands on it.
          if (write !== undefined) throw new Repeated();
          const result = entryData.encodeNamed(`The result of transaction ${name}`, value, run.execution.limits);
          const data = { result: result === undefined ? undefined : decode(result) };
          const text = entryData.operationCompletedData(fields, result);
          run.operationEnded(ask, "OperationCompleted", text, data, fields.startedAt);
          write = run.takeWrite();
          return write;
        },
      );
      if (outcome.status === "unwanted") return;
      if (outcome.status !== "threw") return this.#host.committed(run, write!, outcome);
      if (write === undefined) return failOperation(this.#host.operations, run, ask, fields, outcome.error);
      if (!(outcome.error instanceof Repeated)) this.#refused.set(step, outcome.error);
      this.#host.giveUp(run);
    } catch (error) {
      this.#host.report(error);
      this.#host.giveUp(run);
    }
  }
}

/** A COMMIT that did not happen cannot be repeated with what the function answers now. */
class Repeated extends RepriseError {
  constructor() {
    super("STORE_IO", "The commit of a transaction did not happen; it is begun anew.");
  }
}
