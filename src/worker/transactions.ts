// Transactions: `ctx.tx`. Each is a separate commit that starts with the user's SQL (database.U1, database.U3).
//
// The pump runs it after the batch that makes the run's earlier entries durable. Entries added since then join its commit.

import { decode, RepriseError } from "../base/index.ts";
import { emit, isObserved, type Store, type TurnOutcome, type TurnWrite } from "../kernel/index.ts";
import { callInStep, entryData, type OperationRequest } from "../workflow/index.ts";
import type { HotRun } from "./hot-run.ts";
import { failOperation, operationFields, type OperationHost } from "./run-operation.ts";

/** User SQL that waits for its transaction. */
export interface PendingTransaction {
  readonly request: OperationRequest;
  readonly attempt: number;
}

export interface TransactionsHost {
  readonly store: Store;
  readonly operations: OperationHost;
  committed(run: HotRun, write: TurnWrite, outcome: TurnOutcome): void;
  /** The run in memory is ahead of the store, or may be: it must be replayed. */
  evict(run: HotRun): void;
  report(error: unknown): void;
}

export class Transactions {
  readonly #host: TransactionsHost;
  /** Errors of COMMIT, by run and command: the run that got one was evicted, and its replay records the failure. */
  readonly #refused = new Map<string, unknown>();

  constructor(host: TransactionsHost) {
    this.#host = host;
  }

  /** Runs the run's oldest pending transaction. */
  async next(run: HotRun): Promise<void> {
    const waiting = run.takeTransaction();
    if (waiting === undefined) return;
    const { request, attempt } = waiting;
    const { command, name } = request;
    const step = `${run.record.run} ${command}`;
    const span = run.journal.begin("run", name, { command, attempt: attempt + 1 });
    const startedAt = this.#host.operations.now();
    const fields = operationFields(request, attempt, startedAt, span);
    const { execution } = fields;
    if (isObserved())
      emit({ event: "attempt.started", run: run.record.id, step: command, name, attempt: attempt + 1, execution });
    if (this.#refused.has(step)) {
      failOperation(this.#host.operations, run, request, fields, this.#refused.get(step));
      this.#refused.delete(step);
      return;
    }
    const ended = (outcome: "completed" | "failed"): void => {
      if (!isObserved()) return;
      const { id, definition } = run.record;
      const tookMs = Math.max(0, this.#host.operations.now() - startedAt);
      const what = { run: id, definition, step: command, name, kind: "operation", attempt: attempt + 1 } as const;
      emit({ event: "attempt.ended", ...what, outcome, tookMs });
    };
    let write: TurnWrite | undefined;
    try {
      const outcome = await this.#host.store.transact(
        (db) => {
          const call = (): unknown => (request.call as (db: unknown) => unknown)(db);
          return callInStep(name, span === undefined ? call : () => span.call(call));
        },
        (value) => {
          // The run already holds the result of the first call, and entries that follow from it.
          if (write !== undefined) throw new CommitNotRepeatableError();
          const result = entryData.encodeNamed(`The result of transaction ${name}`, value, run.execution.limits);
          const data = { result: result === undefined ? undefined : decode(result) };
          span?.finish();
          ended("completed");
          const text = entryData.operationCompletedData(fields, result);
          run.endOperation(request, "OperationCompleted", text, data, fields);
          write = run.takeWrite();
          return write;
        },
      );
      if (outcome.status === "unwanted") return;
      if (outcome.status !== "threw") return this.#host.committed(run, write!, outcome);
      if (write === undefined) {
        span?.finish({ error: outcome.error });
        ended("failed");
        return failOperation(this.#host.operations, run, request, fields, outcome.error);
      }
      if (!(outcome.error instanceof CommitNotRepeatableError)) this.#refused.set(step, outcome.error);
      this.#host.evict(run);
    } catch (error) {
      this.#host.report(error);
      this.#host.evict(run);
    }
  }
}

/** The store repeats the function when COMMIT failed; its new result cannot replace the one the run already holds. */
class CommitNotRepeatableError extends RepriseError {
  constructor() {
    super("STORE_IO", "The database did not commit a transaction; the worker replays the run and repeats it.");
  }
}
