// Database: the user's own SQL, in the transaction that appends its entry.
//
// U1. User SQL and the turn's commit are one transaction: both are in, or neither is.
// U2. A fence that does not hold, a function that throws and a commit nobody wants any more roll the user's SQL back.
// U3. Never shared: no other run's commit is in that transaction.

import type { TurnOutcome } from "./commit.ts";

/** A kind of database that takes user SQL: `sqlite` from `reprise/sqlite`. `Sync`: its function must not be async. */
export interface Database<Db, Sync extends boolean = boolean> {
  readonly "~kind": string;
  readonly "~db"?: Db;
  readonly "~sync"?: Sync;
}

/** The answer of a function that may not be async is not a promise. */
export type SyncResult<T, Sync> = Sync extends true
  ? T extends PromiseLike<unknown>
    ? "not async: on SQLite the function of ctx.tx runs between BEGIN and COMMIT and cannot wait"
    : unknown
  : unknown;

export type TransactOutcome =
  | TurnOutcome
  /** U2. Rolled back; also when COMMIT refused what the function did. */
  | { readonly status: "threw"; readonly error: unknown }
  | { readonly status: "unwanted" };
