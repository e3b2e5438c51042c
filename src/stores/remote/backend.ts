// Backend: the port that a database behind a network implements. Everything above it is the same for every database.
//
// remote.L1. Lock order: runs by number, then queues by name, then everything else. A transaction that changes a row of a run
//   holds the lock of that run's row. Only claims lock items without it, and they never wait (`skip`).
// remote.L2. READ COMMITTED: a query sent after a lock was granted sees everything committed before.
// remote.L3. `commit` stamps the writer's row with the batch number in the same transaction. A commit whose outcome is unknown
//   is resolved by that number, by locking the row, which waits for a transaction still in flight (rules.A8).
// remote.L4. After any error the transaction is rolled back before the caller decides what to do (rules.A9).
// remote.L5. A server that was replaced by a promoted one is refused where that can be detected: its commits are lost.

import type { EpochMs } from "../../base/index.ts";
import type { Query } from "./query.ts";
import type { TableName } from "../rows/tables.ts";

/** A value on the wire: payloads may be bytes. A string in a payload column means its UTF-8 bytes. */
export type WireValue = number | string | Uint8Array | null;
/** By column name. In rows read from the database, payloads are bytes. */
export type WireRow = Record<string, WireValue>;

/** The rows of a query, in order: table rows, counts as `{ count }`, distinct combinations as rows of their columns. */
export type QueryResult = readonly WireRow[];

/**
 * A bulk change of one table. The changes of a commit are applied in their order: a row may be deleted and inserted again. A row to
 * insert has all columns. To update or delete a row that does not exist is no error, unless there are expected values. `expect`
 * names columns whose values in `old` must still be in the database: if one row differs, the whole transaction is rolled back and
 * the outcome is `conflict`.
 */
export type Change =
  | { readonly change: "insert"; readonly table: TableName; readonly rows: readonly WireRow[] }
  | {
      readonly change: "update";
      readonly table: TableName;
      /** The columns that are set; key columns never are. */
      readonly columns: readonly string[];
      /** They contain the key columns and `columns`; other columns are ignored. */
      readonly rows: readonly WireRow[];
      readonly expect?: readonly string[];
      /** They contain the columns of `expect`, in the order of `rows`; other columns are ignored. */
      readonly old?: readonly WireRow[];
    }
  | {
      readonly change: "delete";
      readonly table: TableName;
      /** They contain the key columns; other columns are ignored. */
      readonly rows: readonly WireRow[];
      readonly expect?: readonly string[];
      readonly old?: readonly WireRow[];
    };

/**
 * The outcome of a commit. In all cases but `committed` nothing was written, and the transaction has ended. `conflict`: a row
 * differs from what was expected, a unique key exists, or, without a `HistoryCheck`, the writer's row is missing or fenced; read
 * again before a retry. `retry`: a deadlock or the like; a retry may succeed. `rolled_back`: the check does not hold, or the
 * writer's row is missing or fenced: the database lacks a commit that it acknowledged before (remote.Y1).
 */
export type CommitOutcome = "committed" | "conflict" | "retry" | "rolled_back";

/** A batch of a writer that the database acknowledged. */
export interface Acknowledged {
  readonly writer: string;
  readonly batch: number;
}

/** remote.Y1. What must still be in the database. */
export interface HistoryCheck {
  /** The last acknowledged batch of this connection. */
  readonly previous: number;
  /** Rows of other connections in `writers`: their batches must be at least these. */
  readonly others: readonly Acknowledged[];
  /** Undefined: not checked. */
  readonly incarnation: string | undefined;
}

/** Thrown by `query` when the database aborts the transaction, and by any call when the connection is lost. */
export class ConnectionError extends Error {
  /** `retry`: rolled back, a retry may succeed. `lost`: after COMMIT was sent, the outcome is unknown. */
  readonly reason: "retry" | "lost";
  constructor(reason: "retry" | "lost", options?: ErrorOptions) {
    super(reason === "retry" ? "the database aborted the transaction" : "the connection is lost", options);
    this.reason = reason;
  }
}

export interface UserTransaction {
  readonly db: unknown;
  /** The database aborted the transaction (deadlock, lock timeout): the function is called again, whatever it returned. */
  readonly shouldRetry?: boolean;
  /** Rejects when the function sends no statement for too long. */
  readonly idleTimeout?: Promise<never>;
  /** Call it when the function has returned. Throws when the transaction cannot be committed. */
  ended?(): Promise<void>;
  close(): void;
}

/** One connection to the database. It runs one transaction, and one call, at a time. */
export interface Connection {
  /** False once it cannot be used any more; the pool then opens another. */
  readonly isUsable: boolean;
  /** The key of this connection's row in `writers`. */
  readonly writer: string;
  /** Identifies the server and its last start: a different text is another server, or the same one after a restart. */
  readonly server: string;
  /** Sends several queries in one round trip. The first call begins the transaction. Changes are sent with `commit`. */
  query(queries: readonly Query[]): Promise<readonly QueryResult[]>;
  /** Reads outside a transaction, one snapshot for all queries; locks nothing. */
  read(queries: readonly Query[]): Promise<readonly QueryResult[]>;
  /**
   * remote.L3. Writes, stamps and commits in as few round trips as the database can; begins a transaction if none is open.
   * `check` is verified together with the stamp.
   */
  commit(batch: number, mark: EpochMs, changes: readonly Change[], check?: HistoryCheck): Promise<CommitOutcome>;
  /**
   * Begins a read-only transaction: its queries, without locks, see one snapshot. `rollback` ends it. Without it, `doctor` and
   * `backup` read all tables in one call of `read`, into memory.
   */
  snapshot?(): Promise<void>;
  /** Ends a transaction that wrote nothing. */
  rollback(): Promise<void>;
  /**
   * Begins a transaction and returns the user's handle on it (`ctx.tx`), which refuses COMMIT and Reprise's own tables. The next
   * `commit` or `rollback` of the connection ends it.
   */
  userHandle(): Promise<UserTransaction>;
  /** Closes the connection at once, rejects its pending call (`lost`) and, where the database allows it, ends its statement on the server. */
  destroy(): void;
  close(): Promise<void>;
}

export interface BackendInfo {
  /** Without the password. */
  readonly location: string;
  readonly server: string;
  readonly bytes: number;
  readonly durability: "full" | "relaxed";
  /** The number of the last migration of the tables. */
  readonly schemaVersion: number;
}

/** How a backend is opened. */
export interface BackendUse {
  readonly durability: "full" | "relaxed";
  /** False: an older schema is refused instead of migrated. */
  readonly migrate: boolean;
  /** opened-to-read.V1. Sessions are read-only and have no row in `writers`. */
  readonly readOnly: boolean;
}

export interface Backend {
  /** As `ctx.tx` and `reprise doctor` name it: "postgres". */
  readonly kind: string;
  /**
   * Opens a connection and commits its own row in `writers` (remote.L3), unless it is opened to read. Rows of closed connections are
   * deleted above the port.
   */
  connect(): Promise<Connection>;
  /**
   * remote.L3. Over another connection: the last committed batch of a writer, once nothing of it is in flight any more. It fences the
   * writer, for example by a negative `mark`: a later commit of it must fail. The row keeps its batch. 0: there is no such row.
   */
  lastBatch(connection: Connection, writer: string): Promise<number>;
  /** Reserves the next `count` numbers of a counter, above `floor`, in its own transaction; returns the first. */
  reserve(connection: Connection, counter: string, count: number, floor: number): Promise<number>;
  /** The server's time in milliseconds, over a connection without an open transaction. */
  serverTime(connection: Connection): Promise<number>;
  /** Notifies other processes that work may be ready. A hint: they poll anyway. */
  notify?(connection: Connection, text: string): Promise<void>;
  /** Calls back when another process notifies; with an empty text when a notification may have been missed. */
  listen?(onNotify: (text: string) => void): Promise<{ close(): Promise<void> }>;
  info(connection: Connection): Promise<BackendInfo>;
  close(): Promise<void>;
}
