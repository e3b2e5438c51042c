// Transactions: `ctx.tx`. Each is a separate commit that starts with the user's SQL (database.U1, database.U3).
//
// The pump runs it after the batch that makes the run's earlier entries durable. Entries added since then join its commit.

import { decode, RepriseError } from "../base/index.ts";
import { emit, isObserved, type TurnWrite } from "../kernel/index.ts";
import { callInStep, entryData, type OperationRequest } from "../workflow/index.ts";
import type { HotRun } from "./hot-run.ts";
import type { PartsOf } from "./worker-parts.ts";
import { failOperation, operationFields, type OperationParts } from "./run-operation.ts";

/** User SQL that waits for its transaction. */
export interface PendingTransaction {
  readonly request: OperationRequest;
  readonly attempt: number;
}

type UsedParts = OperationParts & PartsOf<"events">;

export class Transactions {
  readonly #parts: UsedParts;
  /** Errors of COMMIT, by run and command: the run that got one was evicted, and its replay records the failure. */
  readonly #refused = new Map<string, unknown>();

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  /** Runs the run's oldest pending transaction. */
  async next(run: HotRun): Promise<void> {
    const waiting = run.takeTransaction();
    if (waiting === undefined) return;
    const { store, log, runs, events } = this.#parts;
    const { request, attempt } = waiting;
    const { command, name } = request;
    const step = `${run.record.run} ${command}`;
    const span = run.journal.begin("run", name, { command, attempt: attempt + 1 });
    const startedAt = store.now();
    const fields = operationFields(request, attempt, startedAt, span);
    const { execution } = fields;
    if (isObserved())
      emit({ event: "attempt.started", run: run.record.id, step: command, name, attempt: attempt + 1, execution });
    if (this.#refused.has(step)) {
      failOperation(this.#parts, run, request, fields, this.#refused.get(step));
      this.#refused.delete(step);
      return;
    }
    const ended = (outcome: "completed" | "failed"): void => {
      if (!isObserved()) return;
      const { id, definition } = run.record;
      const tookMs = Math.max(0, store.now() - startedAt);
      const what = { run: id, definition, step: command, name, kind: "operation", attempt: attempt + 1 } as const;
      emit({ event: "attempt.ended", ...what, outcome, tookMs });
    };
    let write: TurnWrite | undefined;
    try {
      const outcome = await store.transact(
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
      if (outcome.status !== "threw") {
        events.wrote(write!, outcome);
        return events.committed(run, write!, outcome);
      }
      if (write === undefined) {
        span?.finish({ error: outcome.error });
        ended("failed");
        return failOperation(this.#parts, run, request, fields, outcome.error);
      }
      if (!(outcome.error instanceof CommitNotRepeatableError)) this.#refused.set(step, outcome.error);
      runs.evict(run);
    } catch (error) {
      log.report(error);
      runs.evict(run);
    }
  }
}

/** The store repeats the function when COMMIT failed; its new result cannot replace the one the run already holds. */
class CommitNotRepeatableError extends RepriseError {
  constructor() {
    super("STORE_IO", "The database did not commit a transaction; the worker replays the run and repeats it.");
  }
}
