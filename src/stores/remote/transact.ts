// Transact: runs the user's SQL (user-calls.ts), then the turn's fence and entries, then COMMIT, on one `user` connection.

import { RepriseError } from "../../base/index.ts";
import type { TransactOutcome, TurnOutcome, TurnWrite } from "../../kernel/index.ts";
import { ConnectionError } from "./backend.ts";
import { workOn } from "./batches.ts";
import type { History } from "./history.ts";
import type { PooledConnection } from "./connection-pool.ts";
import type { TransactionRunner, TransactionWork } from "./runner.ts";

/** The outcome of an attempt that must not be committed: thrown through the runner, which rolls back. */
class RollBack extends Error {
  readonly outcome: TransactOutcome;
  constructor(outcome: TransactOutcome) {
    super("rolled back");
    this.outcome = outcome;
  }
}

export async function transact(
  runner: TransactionRunner,
  history: History,
  call: (db: unknown) => unknown,
  write: (result: unknown) => TurnWrite | undefined,
): Promise<TransactOutcome> {
  try {
    const { epoch } = history;
    return await runner.runWith("Running ctx.tx", async (on) => {
      if (history.epoch !== epoch) throw new RollBack({ status: "lease_lost" });
      const turn = await callUser(on, call, write);
      if (turn === undefined) throw new RollBack({ status: "unwanted" });
      return turnWork(turn);
    });
  } catch (error) {
    if (error instanceof RollBack) return error.outcome;
    // COMMIT failed because of the user's SQL: a deferred constraint, or SQL that ended the transaction.
    if (!(error instanceof RepriseError) || error.code === "USAGE") return { status: "threw", error };
    throw error;
  }
}

function turnWork(turn: TurnWrite): TransactionWork<TurnOutcome> {
  const work = workOn([turn]);
  return {
    ...work,
    apply: (...given) => {
      const applied = work.apply(...given);
      if ("queries" in applied) return applied;
      const [outcome] = applied.result as readonly TurnOutcome[];
      // A turn that lost its lease must not commit the user's SQL.
      if (outcome!.status !== "committed") throw new RollBack(outcome!);
      return { result: outcome!, nextRun: applied.nextRun };
    },
  };
}

/** An error of the function is its own failure, unless the connection was lost or the database aborted the transaction. */
async function callUser(
  { connection }: PooledConnection,
  call: (db: unknown) => unknown,
  write: (result: unknown) => TurnWrite | undefined,
): Promise<TurnWrite | undefined> {
  const handle = await connection.userHandle();
  try {
    const answer = call(handle.db);
    const result = await (handle.idleTimeout === undefined ? answer : Promise.race([answer, handle.idleTimeout]));
    if (handle.shouldRetry === true) throw new ConnectionError("retry");
    await handle.ended?.();
    return write(result);
  } catch (error) {
    if (error instanceof ConnectionError) throw error;
    // Also when the server has aborted the transaction meanwhile: a second call would only time out again.
    if (error instanceof RepriseError && error.code === "ATTEMPT_TIMEOUT")
      throw new RollBack({ status: "threw", error });
    if (!connection.isUsable) throw new ConnectionError("lost", { cause: error });
    if (handle.shouldRetry === true) throw new ConnectionError("retry", { cause: error });
    throw new RollBack({ status: "threw", error });
  } finally {
    handle.close();
  }
}
