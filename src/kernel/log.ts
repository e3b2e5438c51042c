// Log: the records of a federated store about its own runs, and the runs whose end has no record yet.
//
// log.L1. Records are numbered densely from 1. A record is appended, and never changed or deleted, also when its run is deleted.
// log.L2. The commit that ends a run of a federated store notes the run. A `sequence` write appends the record of that end and
//   takes the note away in one transaction.
// log.L3. `sequence` is void unless the log has exactly `expect` records and every run in `done` is still noted with that end. So
//   several sequencers, and one that tries again, neither lose, double nor reorder a record.
// log.L4. While the store is federated, prune, retention and the deletion of a run keep a run that is noted or pinned.
// log.L5. A process knows after its next heartbeat that the store is federated. A sweep notes the runs that ended meanwhile, and those
//   that ended before (`adopted`).
// log.L6. An end that a retry undoes before it is sequenced has no record: the record of the next end covers its entries.

import type { EpochMs } from "../base/index.ts";
import type { RunNumber, RunRecord } from "./run.ts";

/** A record to append. */
export interface NewLogRecord {
  /** Its text, at most 65,535 bytes. The store does not look into it. */
  readonly rec: string;
  /** The run that it is about; absent: none. */
  readonly run?: RunNumber | undefined;
  /** With the record of a run's end: the number of entries that the run had then. */
  readonly head?: number | undefined;
}

export interface LogRow extends NewLogRecord {
  readonly n: number;
}

/** A run that ended and is not in the log yet. */
export interface EndedRun {
  readonly record: RunRecord;
  /** It ended before the store was federated, and was found later. */
  readonly adopted: boolean;
}

/** log.L3. A run whose end `records` contains. */
export interface SequencedRun {
  readonly run: RunNumber;
  /** The number of entries that the run had at that end. */
  readonly head: number;
  /** True: the run is pinned until `release`. */
  readonly keep: boolean;
}

/** Appends records to the log (log.L2). */
export interface SequenceWrite {
  readonly write: "sequence";
  /** The number of records that the log has. */
  readonly expect: number;
  readonly records: readonly NewLogRecord[];
  readonly done: readonly SequencedRun[];
}
export type SequenceOutcome =
  | { readonly status: "committed"; readonly size: number }
  /** log.L3. `size`: the number of records that the log has. */
  | { readonly status: "stale"; readonly size: number };

/** Drops the pins of these runs. Runs that are noted stay noted. */
export interface ReleaseWrite {
  readonly write: "release";
  readonly runs: readonly RunNumber[];
}
export interface ReleaseOutcome {
  readonly status: "committed";
  readonly released: number;
}

/** One page of a sweep (log.L5). */
export interface SweptRuns {
  /** How many runs were noted. */
  readonly noted: number;
  /** The next page starts after this run; undefined: this was the last one. */
  readonly next: RunNumber | undefined;
}

/** The key in `meta` of a federated store; the value is the time since when. */
export const FEDERATED_KEY = "federated";

/** The time in that value. */
export function federatedSince(value: string | undefined): EpochMs | undefined {
  return value === undefined ? undefined : Number(value);
}
