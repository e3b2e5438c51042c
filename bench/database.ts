// Database: the database of a measurement, and the raw limit for its rows.

/** The state of a database before a measurement. */
export interface Position {
  /** The last journal row on SQLite; the last run on other stores. */
  readonly lastRow: number;
  readonly bytes: number;
}

type AnyRow = Readonly<Record<string, unknown>>;

export type JournalRow<Row = AnyRow> = Row & {
  readonly run: number;
  readonly seq: number;
  readonly type: string;
  readonly command: string;
  readonly at: number;
};

/** Everything a workload wrote, in memory. */
export interface Written<Row = AnyRow> {
  readonly journal: readonly JournalRow<Row>[];
  readonly runs: ReadonlyMap<number, Row>;
  /** By run and entry. */
  readonly checkpoints: ReadonlyMap<number, ReadonlyMap<number, Row>>;
  /** By run and the entry that caused them. */
  readonly arrivals: ReadonlyMap<number, ReadonlyMap<number, readonly Row[]>>;
}

/** One measurement of the raw limit: journal rows per transaction, and rows in total. */
export interface RawPlan {
  readonly batchSize: number;
  readonly maxRows: number;
}

export interface BenchDatabase {
  readonly kind: "sqlite" | "postgres" | "mysql";
  readonly url: string;
  /** A folder on the same disk. */
  readonly folder: string;
  /** The usage of the server's processes, if there is a server. */
  usage(): { readonly cpuMs: number; readonly peakRssMb: number };
  position(): Promise<Position>;
  /** In journal rows per second; `plans` gets the number of rows. */
  measureRaw(since: Position, plans: (rows: number) => readonly RawPlan[]): Promise<readonly number[]>;
  /** Synchronous: also called while the process ends. */
  remove(): void;
}

/** As long as a worker's token. */
export const TOKEN = "0123456789ab-0001";
