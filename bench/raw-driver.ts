// Speaker: what the raw limit is measured with on a server.

export type Row = Readonly<Record<string, unknown>>;
export type Table = "runs" | "journal" | "queue" | "checkpoints" | "arrivals" | "readiness";
export const RAW_TABLES: readonly Table[] = ["runs", "journal", "queue", "checkpoints", "arrivals", "readiness"];

/** Something to be done in a transaction; all of it is sent before anything is waited for. */
export type Action =
  | { readonly insert: Table; readonly rows: readonly Row[] }
  /** Sets `columns` of rows with their key. */
  | { readonly update: Table; readonly columns: readonly string[]; readonly rows: readonly Row[] }
  | { readonly remove: Table; readonly rows: readonly Row[] };

/** What a server is spoken to with. */
export interface RawDriver {
  bytes(): Promise<number>;
  /** Of our own tables, in this order. */
  read(table: Table, afterRun: number, order: string): Promise<Row[]>;
  /** Empty copies of the tables, with their indexes; those of the last time are gone. */
  copyTables(): Promise<void>;
  transact(actions: readonly Action[]): Promise<void>;
  close(): Promise<void>;
}
