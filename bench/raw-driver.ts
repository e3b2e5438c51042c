// RawDriver: plain access to a server, for the raw limit.

export type Row = Readonly<Record<string, unknown>>;
export type Table = "runs" | "journal" | "queue" | "checkpoints" | "arrivals" | "readiness";
export const RAW_TABLES: readonly Table[] = ["runs", "journal", "queue", "checkpoints", "arrivals", "readiness"];

/** One action of a transaction; all actions are sent before the first response is awaited. */
export type Action =
  | { readonly insert: Table; readonly rows: readonly Row[] }
  /** Sets `columns` of rows with their key. */
  | { readonly update: Table; readonly columns: readonly string[]; readonly rows: readonly Row[] }
  | { readonly remove: Table; readonly rows: readonly Row[] };

/** A driver for one kind of server. */
export interface RawDriver {
  bytes(): Promise<number>;
  /** Rows of Reprise's tables, in this order. */
  read(table: Table, afterRun: number, order: string): Promise<Row[]>;
  /** Creates empty copies of the tables, with their indexes, and drops the previous ones. */
  copyTables(): Promise<void>;
  transact(actions: readonly Action[]): Promise<void>;
  close(): Promise<void>;
}
