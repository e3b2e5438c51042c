// User transaction: user SQL, then the turn's fence and entries, then COMMIT (database.U1 to database.U3).

import { RepriseError } from "../../base/index.ts";
import type { TransactOutcome, TurnWrite } from "../../kernel/index.ts";
import { isConstraint, isDatabaseFailure } from "./errors.ts";
import { RollbackWith, type SqliteSession } from "./sqlite-session.ts";
import { applyTurn } from "../rules/commit-turn.ts";

export async function transact(
  session: SqliteSession,
  call: (db: unknown) => unknown,
  write: (result: unknown) => TurnWrite | undefined,
): Promise<TransactOutcome> {
  let isApplied = false;
  const { epoch } = session;
  try {
    return await session.transact<TransactOutcome>("Running ctx.tx", (tx) => {
      isApplied = false;
      if (session.epoch !== epoch) throw new RollbackWith({ status: "lease_lost" });
      const turn = attempted(() => write(session.connection.userSql.call(call)));
      if (turn === undefined) throw new RollbackWith({ status: "unwanted" });
      const outcome = applyTurn(tx, turn);
      if (outcome.status !== "committed") throw new RollbackWith(outcome);
      isApplied = true;
      return outcome;
    });
  } catch (error) {
    // COMMIT checks deferred constraints of the user's tables.
    if (isApplied && error instanceof RepriseError && isConstraint(error.cause))
      return { status: "threw", error: error.cause };
    throw error;
  }
}

/** An error of the user's function is the function's failure, unless the database failed. */
function attempted(act: () => TurnWrite | undefined): TurnWrite | undefined {
  try {
    return act();
  } catch (error) {
    if (isDatabaseFailure(error)) throw error;
    throw new RollbackWith({ status: "threw", error });
  }
}
