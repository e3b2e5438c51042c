// Database: user SQL in the transaction that appends its entry (`ctx.tx`).
//
// database.U1. User SQL and the turn's commit are one transaction: both take effect, or neither.
// database.U2. The store rolls the user's SQL back if the token does not match, the function throws, or the run no longer
//   needs the result.
// database.U3. The transaction contains no commit of another run.

import type { TurnOutcome } from "./commit.ts";

/** A kind of database that runs user SQL, such as `sqlite` from `reprise/sqlite`. `Sync`: the function must not be async. */
export interface Database<Db, Sync extends boolean = boolean> {
  readonly "~kind": string;
  readonly "~db"?: Db;
  readonly "~sync"?: Sync;
}

/** Refuses a promise from a function that must not be async. */
export type SyncResult<T, Sync> = Sync extends true
  ? T extends PromiseLike<unknown>
    ? "not async: on SQLite the function of ctx.tx runs between BEGIN and COMMIT and cannot wait"
    : unknown
  : unknown;

export type TransactOutcome =
  | TurnOutcome
  /** database.U2. Rolled back; also if COMMIT failed because of the user's SQL. */
  | { readonly status: "threw"; readonly error: unknown }
  | { readonly status: "unwanted" };
