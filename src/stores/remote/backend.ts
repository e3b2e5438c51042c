// Backend: the port a database behind a network keeps. Everything above it is the same for all of them.
//
// L1. Lock order: runs by number, then queues by name, then everything else. Whoever changes a row of a run holds that run's
//     row. Only claims take items without it, and they never wait (`skip`).
// L2. READ COMMITTED: what is asked after a lock was granted sees everything that was committed before.
// L3. `commit` stamps the writer's row with the batch's number in the same transaction. A commit whose outcome is not known
//     is looked up by that number, by locking the row, which waits for whatever is still under way (A8).
// L4. After any error the transaction is rolled back before anybody decides anything (A9).
// L5. A server that another one has taken the place of is refused where that can be told: what it acknowledges is lost.

import type { EpochMs } from "../../base/index.ts";
import type { Question } from "./query.ts";
import type { TableName } from "./tables.ts";

/** As it travels: payloads may be bytes. A text for a payload column stands for its UTF-8 bytes. */
export type WireValue = number | string | Uint8Array | null;
/** By column name; a row that comes has payloads as bytes. */
export type WireRow = Record<string, WireValue>;

/** The answer to a question, in order: rows, counts as `{ count }`, combinations as rows of the asked columns. */
export type Answer = readonly WireRow[];

/**
 * What changes in one table. `expect` names columns whose values, in `old`, must still be those in the database: if a single
 * row is not as expected, nothing at all is committed and the outcome is `moved`.
 */
export type Change =
  | { readonly change: "insert"; readonly table: TableName; readonly rows: readonly WireRow[] }
  | {
      readonly change: "update";
      readonly table: TableName;
      /** The columns that are set; key columns never are. */
      readonly columns: readonly string[];
      /** With key columns and `columns`; there may be others. */
      readonly rows: readonly WireRow[];
      readonly expect?: readonly string[];
      /** With the columns of `expect`, and perhaps others, in the order of `rows`. */
      readonly old?: readonly WireRow[];
    }
  | {
      readonly change: "delete";
      readonly table: TableName;
      /** With key columns; there may be others. */
      readonly rows: readonly WireRow[];
      readonly expect?: readonly string[];
      readonly old?: readonly WireRow[];
    };

/**
 * What became of a commit. `moved`: something was not as expected, or already there (a unique key): nothing was written, and
 * whoever wants to try again looks first. `again`: a deadlock or the like: nothing was written, trying again may help.
 * `rolled-back`: the database lacks what it had acknowledged before (history.ts, Y1): nothing was written.
 */
export type CommitOutcome = "committed" | "moved" | "again" | "rolled-back";

/** A batch of a writer that was acknowledged. */
export interface Acknowledged {
  readonly writer: string;
  readonly batch: number;
}

/** Y1. What must still be in the database. */
export interface HistoryCheck {
  /** The last batch of this link that was acknowledged. */
  readonly previous: number;
  /** Lines of other links: at least these. */
  readonly others: readonly Acknowledged[];
  /** Undefined: whatever it is. */
  readonly incarnation: string | undefined;
}

/** Thrown by `ask` when the database had to give up, and by any call when the connection is gone. */
export class LinkError extends Error {
  /** `again`: rolled back, trying again may help. `lost`: the connection is gone; after `commit` was sent nobody knows. */
  readonly reason: "again" | "lost";
  constructor(reason: "again" | "lost", options?: ErrorOptions) {
    super(reason === "again" ? "the database gave up the transaction" : "the connection is gone", options);
    this.reason = reason;
  }
}

export interface UserTransaction {
  readonly db: unknown;
  /** The database had to give up (a deadlock, a lock waited for too long): whatever the function made of it is done again. */
  readonly gaveUp?: boolean;
  /** Rejects when the function asks for nothing for too long. */
  readonly silence?: Promise<never>;
  /** The function has answered; throws when that cannot be committed. */
  ended?(): Promise<void>;
  close(): void;
}

/** One connection. One transaction at a time; calls are never made at the same time. */
export interface Link {
  /** False once it is of no more use; the pool then makes another. */
  readonly isUsable: boolean;
  /** The line in `writers` that is this link's own. */
  readonly writer: string;
  /** The server it leads to, as long as that has not been restarted: another text is another server, or another history. */
  readonly server: string;
  /** Asks several questions in one round trip. The first of a transaction begins it. */
  ask(questions: readonly Question[]): Promise<readonly Answer[]>;
  /** Outside of any transaction, one snapshot for all questions; locks nothing. */
  read(questions: readonly Question[]): Promise<readonly Answer[]>;
  /**
   * L3. Writes, stamps and commits, beginning a transaction if there is none, in as few round trips as the database can.
   * `check`: with the stamp, in the same statement.
   */
  commit(batch: number, mark: EpochMs, changes: readonly Change[], check?: HistoryCheck): Promise<CommitOutcome>;
  /** Begins a transaction that only reads: whatever is asked in it, without a lock, is of one moment. `rollback` ends it. */
  snapshot?(): Promise<void>;
  /** Ends a transaction that wrote nothing. */
  rollback(): Promise<void>;
  /** The user's handle on this transaction (`ctx.tx`); begins it. It refuses to end it, and our own tables. */
  userHandle(): Promise<UserTransaction>;
  /** Never back into the pool; what it was doing is ended in the database as well where that can be asked for. */
  destroy(): void;
  close(): Promise<void>;
}

export interface BackendInfo {
  /** Shown to people: no password. */
  readonly location: string;
  readonly server: string;
  readonly bytes: number;
  readonly durability: "full" | "relaxed";
}

export interface Backend {
  readonly kind: "postgres" | "mysql" | "simulated";
  /** Opens a link with a line of its own in `writers`, committed before it is answered (L3). */
  connect(): Promise<Link>;
  /** L3. Over another link: the last batch of a writer that is in, once nothing of it is under way any more. */
  lastBatch(link: Link, writer: string): Promise<number>;
  /** The next `count` numbers of a counter above `floor`, in a transaction of their own: the first of them. */
  reserve(link: Link, counter: string, count: number, floor: number): Promise<number>;
  /** The server's time, in milliseconds; asked now and then, over any link outside a transaction. */
  serverTime(link: Link): Promise<number>;
  /** Tells other processes that something has become due; a hint, never the truth. */
  notify?(link: Link, text: string): Promise<void>;
  /** Calls back when another process has notified; with an empty text when something may have been missed. */
  listen?(heard: (text: string) => void): Promise<{ close(): Promise<void> }>;
  info(link: Link): Promise<BackendInfo>;
  close(): Promise<void>;
}
