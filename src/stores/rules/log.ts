// Log: the rows of the records of a federated store, and of the runs whose end has no record yet (kernel/log.ts).
//
// rules-log.F1. A note changes only under the lock of its run, as everything that belongs to a run does. So a sweep, a `sequence` and
//   the deletion of a run see the same notes.
// rules-log.F2. The number of a record is its primary key: of two transactions that append to a log of the same size one fails, is
//   repeated, and finds that the log has grown.

import type { EpochMs } from "../../base/index.ts";
import {
  FEDERATED_KEY,
  federatedSince,
  type EndedRun,
  type LogRow,
  type ReleaseOutcome,
  type ReleaseWrite,
  type RunNumber,
  type RunRecord,
  type SequenceOutcome,
  type SequenceWrite,
  type SweptRuns,
} from "../../kernel/index.ts";
import type { Part, Rows, RowSession } from "../rows/rows.ts";
import { recordOf, RUN_COLUMNS } from "./run-rows.ts";
import type { Tx } from "./transaction.ts";

const META = ["value"] as const;
const PEEK = { peek: true } as const;

/** Since when the store is federated; undefined: it is not. */
export function readFederatedSince(rows: Rows): EpochMs | undefined {
  return federatedSince(rows.select("meta", [FEDERATED_KEY], META, PEEK)[0]?.value);
}

export function isFederated(rows: Rows): boolean {
  return readFederatedSince(rows) !== undefined;
}

export function setFederated(session: RowSession, on: boolean): Promise<void> {
  return session.transact("Switching federation", ({ rows, now }) => {
    if (on) rows.add("meta", { key: FEDERATED_KEY, value: String(now) });
    else rows.remove("meta", [FEDERATED_KEY]);
  });
}

// ── notes (log.L2) ──

/** Notes a run that ends. A retry has taken the note of its last end away, unless a process of an earlier version retried it. */
export function noteEnd(tx: Tx, run: RunNumber, head: number): void {
  if (tx.isFederated === true) putNote(tx.rows, { run, at: tx.now, head, adopted: 0 });
}

interface NewNote {
  readonly run: RunNumber;
  readonly at: EpochMs;
  readonly head: number;
  readonly adopted: number;
}

function putNote(rows: Rows, { run, at, head, adopted }: NewNote): void {
  if (!rows.add("ended_runs", { run, at, head, adopted, n: null }))
    rows.set("ended_runs", [run], { at, head, adopted, n: null });
}

/** log.L6 */
export function dropNote({ rows }: Tx, run: RunNumber): void {
  rows.drop("ended_runs", [run]);
}

const NOTED = ["run", "adopted"] as const;
/** Less than every time: with a bound, every database walks the index. */
const NO_TIME = -1;

export function listEnded(rows: Rows, limit: number): readonly EndedRun[] {
  return rows
    .select("ended_runs_noted", [], NOTED, { after: NO_TIME, limit })
    .map(({ run, adopted }) => ({ adopted, row: rows.get("runs", [run], RUN_COLUMNS) }))
    .flatMap(({ adopted, row }) => {
      // A live run was retried by a process of an earlier version: its next end replaces the note.
      if (row === undefined || row.ended_at === null) return [];
      return [{ record: recordOf(rows, row), adopted: adopted === 1 }];
    });
}

export function readRuns(rows: Rows, runs: readonly RunNumber[]): readonly (RunRecord | undefined)[] {
  return runs
    .map((run) => rows.get("runs", [run], RUN_COLUMNS))
    .map((row) => (row === undefined ? undefined : recordOf(rows, row)));
}

// ── the log ──

const RECORD = ["n", "rec", "run", "head"] as const;
const SIZE = ["n"] as const;
/** With a bound, every database walks the primary key. */
const LAST = { after: 0, backwards: true } as const;

export function readLog(rows: Rows, after: number, limit: number): readonly LogRow[] {
  return rows
    .select("run_log", [], RECORD, { after, limit })
    .map(({ n, rec, run, head }) => ({ n, rec, run: run ?? undefined, head: head ?? undefined }));
}

export function readLogSize(rows: Rows): number {
  return rows.first("run_log", [], SIZE, LAST)?.n ?? 0;
}

const NOTE = ["head", "n"] as const;

/** log.L3 */
export function applySequence({ rows }: Tx, { expect, records, done }: SequenceWrite): SequenceOutcome {
  lockRuns(
    rows,
    done.map(({ run }) => run),
  );
  const size = readLogSize(rows);
  const notes = done.map(({ run }) => rows.get("ended_runs", [run], NOTE));
  const isNoted = done.every(({ head }, at) => isNotedUpTo(notes[at], head));
  if (!rows.isGuess && (size !== expect || !isNoted)) return { status: "stale", size };
  const numbers = new Map<RunNumber, number>();
  for (const [index, { rec, run = null, head = null }] of records.entries()) {
    const n = expect + index + 1;
    rows.insert("run_log", { n, rec, run, head });
    if (run !== null) numbers.set(run, n);
  }
  for (const { run, keep } of done)
    if (keep) rows.set("ended_runs", [run], { n: numbers.get(run) ?? expect + records.length });
    else rows.drop("ended_runs", [run]);
  return { status: "committed", size: expect + records.length };
}

/** A note with fewer entries is of an end before: a process of an earlier version retried the run. */
function isNotedUpTo(note: Part<"ended_runs", "head" | "n"> | undefined, head: number): boolean {
  return note !== undefined && note.n === null && note.head <= head;
}

/** rules-log.F1. What follows is read under the locks. */
function lockRuns(rows: Rows, runs: readonly RunNumber[]): void {
  for (const run of runs.toSorted((a, b) => a - b)) rows.own("runs", [run]);
  rows.barrier();
}

export function applyRelease({ rows }: Tx, { runs }: ReleaseWrite): ReleaseOutcome {
  lockRuns(rows, runs);
  const pinned = runs
    .map((run) => ({ run, note: rows.get("ended_runs", [run], NOTE) }))
    .filter(({ note }) => note !== undefined && note.n !== null);
  for (const { run } of pinned) rows.drop("ended_runs", [run]);
  return { status: "committed", released: pinned.length };
}

// ── the sweep (log.L5) ──

const SWEEPING = "Looking for runs without a record";
const ENDED = ["run", "head", "ended_at"] as const;
const HEAD = ["head"] as const;

type Ended = Part<"runs", (typeof ENDED)[number]>;

export async function noteEnded(session: RowSession, after: RunNumber, limit: number): Promise<SweptRuns> {
  const { since, found, next } = await session.read(SWEEPING, (rows) => {
    const page = rows.select("runs", [], ENDED, { after, limit });
    const ended = page.filter(({ ended_at: endedAt }) => endedAt !== null);
    return {
      since: readFederatedSince(rows),
      found: withoutRecord(rows, ended),
      next: page.length < limit ? undefined : page.at(-1)?.run,
    };
  });
  if (since === undefined) return { noted: 0, next: undefined };
  if (found.length === 0) return { noted: 0, next };
  const noted = await session.transact(SWEEPING, ({ rows }) => {
    lockRuns(
      rows,
      found.map(({ run }) => run),
    );
    // A run may have been retried, sequenced or deleted since it was read.
    const same = found.map(({ run, head, ended_at }) => rows.is("runs", [run], { head, ended_at }));
    const missing = withoutRecord(
      rows,
      found.filter((_, at) => same[at]),
    );
    for (const { run, head, ended_at: at } of missing)
      if (at !== null) putNote(rows, { run, at, head, adopted: at < since ? 1 : 0 });
    return missing.length;
  });
  return { noted, next };
}

/** Those of these ended runs whose last end is neither noted nor in the log. */
function withoutRecord(rows: Rows, ended: readonly Ended[]): readonly Ended[] {
  const known = ended.map(({ run }) => ({
    note: rows.get("ended_runs", [run], HEAD),
    records: rows.select("run_log_by_run", [run], HEAD),
  }));
  return ended.filter(({ head }, at) => {
    const { note, records } = known[at]!;
    return (note?.head ?? 0) < head && !records.some((record) => (record.head ?? 0) >= head);
  });
}
