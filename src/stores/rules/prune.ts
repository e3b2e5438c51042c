// Prune: deletes ended runs with everything that belongs to them, some at a time.
//
// prune.E1. It deletes whole families (rules.C8): all runs with one root have ended before the given time, all of their messages are
//   delivered, and no fork of them stays (fork.F4). It starts with the newest: a fork has a higher number than its origin, and is
//   deleted before it.
// prune.E2. Families are found without locks. The transaction that deletes them checks each row again: a run that has changed, by
//   a retry or by its start, keeps its family. No run can join a family all of whose runs have ended.
// prune.E3. The rows of a run are deleted after the run. A kill in between leaves leftovers, which the next sweep finds.

import type { EpochMs } from "../../base/index.ts";
import type { PruneOptions, RunNumber } from "../../kernel/index.ts";
import type { Part, Rows, RowSession } from "../rows/rows.ts";
import type { Tx } from "./transaction.ts";
import { deleteRun, sweepLeftovers } from "./sweep.ts";

const WHAT = "Pruning";
/** How many runs, or start keys, are read at once: some milliseconds. */
const WINDOW = 500;

/** `pause` lets other tasks of the event loop run. */
export async function prune(
  session: RowSession,
  endedBefore: EpochMs,
  { dryRun = false, onProgress }: PruneOptions,
  pause: () => Promise<void> = async () => {},
): Promise<{ readonly runs: number }> {
  let runs = 0;
  const highest = await session.read(WHAT, highestRun);
  // In a dry run: the forks that would be deleted by now.
  const gone = new Set<RunNumber>();
  for (let upTo = highest + 1; upTo > 0;) {
    const { from, families } = await session.read(WHAT, (rows) => readWindow(rows, upTo, endedBefore));
    if (families.length > 0)
      runs += dryRun
        ? countDeletable(families, gone)
        : await session.transact(WHAT, (tx) => deleteFamilies(tx, families));
    upTo = from;
    onProgress?.(highest - from, highest);
    await pause();
  }
  if (dryRun) return { runs };
  // prune.E3
  while (await session.transact(WHAT, sweepLeftovers)) await pause();
  if (runs > 0) await deleteStartKeys(session, pause);
  return { runs };
}

const NUMBER = ["run"] as const;
const LINE = ["line"] as const;
const MEMBER = ["run", "root", "status", "head", "created_at", "ended_at"] as const;
type Member = Part<"runs", (typeof MEMBER)[number]>;

interface Family {
  readonly root: RunNumber;
  readonly members: readonly Member[];
  /** Forks of its members. */
  readonly forks: readonly RunNumber[];
  readonly isFork: boolean;
}

function highestRun(rows: Rows): RunNumber {
  return rows.first("runs", [], NUMBER, { backwards: true })?.run ?? 0;
}

/** The next runs below a number, and the families among them that are old enough; forks are checked later. Newest first. */
function readWindow(
  rows: Rows,
  upTo: RunNumber,
  endedBefore: EpochMs,
): { readonly from: RunNumber; readonly families: readonly Family[] } {
  const window = rows.select("runs", [], MEMBER, { before: upTo, backwards: true, limit: WINDOW });
  const isOver = (row: Member): boolean => hasEndedBefore(row, endedBefore);
  const families = window
    .filter((row) => row.root === row.run && isOver(row))
    .map((row) => ({ row, members: [row, ...rows.select("runs_by_root", [row.run], MEMBER)] }))
    .filter(({ members }) => members.every(isOver))
    .map(({ row, members }) => ({
      root: row.run,
      members,
      sends: members.map(({ run }) => isSending(rows, run)).includes(true),
      forks: members.flatMap(({ run }) => forksOf(rows, run)),
      // A fork has no parent: it is the root of its family.
      isFork: rows.get("forks", [row.run], NUMBER) !== undefined,
    }))
    .filter(({ sends }) => !sends);
  return { from: window.length < WINDOW ? 0 : (window.at(-1)?.run ?? 0), families };
}

/** An expected run that is never started counts as ended when its row was created. */
function hasEndedBefore({ ended_at: endedAt, status, created_at: createdAt }: Member, endedBefore: EpochMs): boolean {
  const over = endedAt ?? (status === "expected" ? createdAt : undefined);
  return over !== undefined && over < endedBefore;
}

function isSending(rows: Rows, run: RunNumber): boolean {
  return rows.select("outbox", [run], LINE, { peek: true }).length > 0;
}

function forksOf(rows: Rows, run: RunNumber): readonly RunNumber[] {
  return rows.select("forks_by_origin", [run], NUMBER).map((fork) => fork.run);
}

function countDeletable(families: readonly Family[], gone: Set<RunNumber>): number {
  let runs = 0;
  for (const { root, members, forks, isFork } of families) {
    if (forks.some((fork) => !gone.has(fork))) continue;
    if (isFork) gone.add(root);
    runs += members.length;
  }
  return runs;
}

/** prune.E2 */
function deleteFamilies(tx: Tx, families: readonly Family[]): number {
  let runs = 0;
  for (const { members } of families) {
    const mayDelete = members.map((member) => isDeletable(tx.rows, member)).every(Boolean);
    if (!mayDelete) continue;
    for (const { run } of members) deleteRun(tx, run);
    runs += members.length;
  }
  return runs;
}

function isDeletable(rows: Rows, { run, status, head, ended_at }: Member): boolean {
  const isUnchanged = rows.is("runs", [run], { status, head, ended_at });
  const isIdle = !isSending(rows, run);
  return forksOf(rows, run).length === 0 && isUnchanged && isIdle;
}

// ── start keys ──

const KIND = ["definition", "kind"] as const;
const KEY = ["key", "id"] as const;
type StartKey = Part<"start_keys", (typeof KEY)[number]>;

/** Deletes the start keys whose run does not exist. */
async function deleteStartKeys(session: RowSession, pause: () => Promise<void>): Promise<void> {
  const kinds = await session.read(WHAT, (rows) =>
    rows.distinct("start_keys", [], KIND).map(({ definition, kind }) => [definition, kind] as const),
  );
  for (const [definition, kind] of kinds)
    for (let after: string | undefined = ""; after !== undefined;) {
      const page: KeyPage = await session.read(WHAT, (rows) => readKeys(rows, definition, kind, after));
      if (page.orphans.length > 0)
        await session.transact(WHAT, ({ rows }) => {
          // Only keys that still name the same run, which was not started again.
          for (const { key, id } of page.orphans)
            if (!hasRun(rows, id)) rows.remove("start_keys", [definition, kind, key], { id });
        });
      after = page.next;
      await pause();
    }
}

interface KeyPage {
  readonly orphans: readonly StartKey[];
  /** Undefined: there are no more keys. */
  readonly next: string | undefined;
}

function readKeys(rows: Rows, definition: string, kind: string, after: string | undefined): KeyPage {
  const keys = rows.select("start_keys", [definition, kind], KEY, { after, limit: WINDOW });
  const orphans = keys.filter(({ id }) => !hasRun(rows, id)).map(({ key, id }) => ({ key, id }));
  return { orphans, next: keys.length < WINDOW ? undefined : keys.at(-1)?.key };
}

/** Whether a run has this id: the first generation is deleted with all others. */
function hasRun(rows: Rows, id: string): boolean {
  return rows.first("runs_by_id", [id, 0], NUMBER, { peek: true }) !== undefined;
}
