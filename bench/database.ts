// The database a measurement runs on, and the raw limit of what was written to it.

/** Where a database stands before a measurement. */
export interface Position {
  /** Of the journal on SQLite; of the runs elsewhere. */
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

/** One measurement of the raw limit: so many journal rows to a transaction, so many rows in all. */
export interface RawPlan {
  readonly batchSize: number;
  readonly maxRows: number;
}

export interface BenchDatabase {
  readonly kind: "sqlite" | "postgres" | "mysql";
  readonly url: string;
  /** On the same disk. */
  readonly folder: string;
  /** Of the server's processes, if there is a server. */
  usage(): { readonly cpuMs: number; readonly peakRssMb: number };
  position(): Promise<Position>;
  /** In journal rows per second; `plans` is told how many rows there are. */
  measureRaw(since: Position, plans: (rows: number) => readonly RawPlan[]): Promise<readonly number[]>;
  /** Also while the process ends: at once. */
  remove(): void;
}

/** As long as the tokens of a worker. */
export const TOKEN = "0123456789ab-0001";
