// Families: finds and deletes whole families of ended runs, for prune, retention and the deletion of one run.
//
// families.E1. A family (rules.C8) is deleted only as a whole: all runs with one root have ended before the given time, all of their
//   messages are delivered, no fork of them stays (fork.F4), and none of them is noted or pinned for the log (log.L4).
// families.E2. Families are found without locks. The transaction that deletes them checks each row again: a run that has changed, by
//   a retry or by its start, keeps its family. No run can join a family all of whose runs have ended.
// families.E3. The rows of a run are deleted after the run. A kill in between leaves leftovers, which the next sweep finds.
// families.E4. A transaction deletes a bounded number of runs. So a wide family takes several, its root in the last one; each
//   checks that the root has not changed. A kill in between leaves a smaller family of ended runs, which the next batch deletes.

import type { EpochMs } from "../../base/index.ts";
import type { RunNumber } from "../../kernel/index.ts";
import type { Part, Rows, RowSession } from "../rows/rows.ts";
import { isReporting } from "./run-events.ts";
import { isFederated } from "./run-log.ts";
import { deleteRun, sweepLeftovers } from "./sweep.ts";
import type { Tx } from "./transaction.ts";

/** How many runs one transaction deletes. */
const MAX_RUNS = 500;

const NUMBER = ["run"] as const;
const LINE = ["line"] as const;
const NOTE = ["n"] as const;
export const MEMBER = ["run", "root", "id", "status", "head", "created_at", "ended_at"] as const;
export type Member = Part<"runs", (typeof MEMBER)[number]>;

export interface Family {
  readonly root: Member;
  /** All runs with this root, which comes first. */
  readonly members: readonly Member[];
  /** Members with messages that are not delivered. */
  readonly sending: readonly Member[];
  /** Forks of its members. */
  readonly forks: readonly { readonly run: RunNumber; readonly origin: Member }[];
  readonly isFork: boolean;
  /** log.L4. Members that the log keeps. */
  readonly logged: readonly { readonly member: Member; readonly isPinned: boolean }[];
  /** True: it is deleted whatever the log keeps. */
  readonly isForgotten?: true;
}

/** The families of these runs; with `endedBefore`, only those all of whose runs ended before. Newest first. */
export function readFamilies(
  rows: Rows,
  now: EpochMs,
  runs: readonly Member[],
  endedBefore?: EpochMs,
): readonly Family[] {
  const isOver = (row: Member): boolean => endedBefore === undefined || hasEndedBefore(row, endedBefore);
  const known = new Map(runs.map((row) => [row.run, row]));
  const keepsLogged = isFederated(rows);
  return [...new Set(runs.map(({ root }) => root))]
    .toSorted((a, b) => b - a)
    .map((run) => ({
      root: known.get(run) ?? rows.get("runs", [run], MEMBER),
      others: rows.select("runs_by_root", [run], MEMBER),
    }))
    .flatMap(({ root, others }) => (root === undefined ? [] : [{ root, members: [root, ...others] }]))
    .filter(({ members }) => members.every(isOver))
    .map(({ root, members }) => ({
      root,
      members,
      sends: members.map(({ run }) => isSending(rows, run, now)),
      notes: members.map(({ run }) => (keepsLogged ? rows.get("ended_runs", [run], NOTE) : undefined)),
      forks: members.flatMap((origin) => forksOf(rows, origin.run).map((run) => ({ run, origin }))),
      // A fork has no parent: it is the root of its family.
      isFork: rows.get("forks", [root.run], NUMBER) !== undefined,
    }))
    .map(({ sends, notes, ...family }) => ({
      ...family,
      sending: family.members.filter((_, at) => sends[at]),
      logged: family.members.flatMap((member, at) => {
        const note = notes[at];
        return note === undefined ? [] : [{ member, isPinned: note.n !== null }];
      }),
    }));
}

/** An expected run that is never started counts as ended when its row was created. */
export function hasEndedBefore(
  { ended_at: endedAt, status, created_at: createdAt }: Member,
  endedBefore: EpochMs,
): boolean {
  const over = endedAt ?? (status === "expected" ? createdAt : undefined);
  return over !== undefined && over < endedBefore;
}

/** run-event.E4. Of the events, only those that are still tried. */
function isSending(rows: Rows, run: RunNumber, now: EpochMs): boolean {
  const messages = rows.select("outbox", [run], LINE, { peek: true });
  const reports = isReporting(rows, run, now);
  return messages.length > 0 || reports;
}

function forksOf(rows: Rows, run: RunNumber): readonly RunNumber[] {
  return rows.select("forks_by_origin", [run], NUMBER).map((fork) => fork.run);
}

/** Whether nothing keeps the family. `gone`: forks that were deleted since it was read. */
export function isFree({ sending, forks, logged, isForgotten }: Family, gone: ReadonlySet<RunNumber>): boolean {
  if (logged.length > 0 && isForgotten !== true) return false;
  return sending.length === 0 && forks.every(({ run }) => gone.has(run));
}

/** families.E4. Newest first: a fork has a higher number than its origin, and is deleted before it. Returns how many runs. */
export async function deleteFamilies(
  session: RowSession,
  what: string,
  families: readonly Family[],
  gone: Set<RunNumber>,
  pause: () => Promise<void>,
): Promise<number> {
  let runs = 0;
  for (const batch of batchesOf(families.filter((family) => isFree(family, noteFork(family, gone))))) {
    runs += await session.transact(what, (tx) => deleteBatch(tx, batch));
    await pause();
  }
  return runs;
}

/** The forks that are gone, with this family if it is one and is deleted. */
function noteFork(family: Family, gone: Set<RunNumber>): ReadonlySet<RunNumber> {
  if (family.isFork && isFree(family, gone)) gone.add(family.root.run);
  return gone;
}

/** Members that one transaction deletes, each with all others of its part or not at all. */
interface FamilyPart {
  readonly root: Member;
  readonly members: readonly Member[];
  readonly isForgotten: boolean;
}

function* batchesOf(families: readonly Family[]): Generator<readonly FamilyPart[]> {
  let batch: FamilyPart[] = [];
  let size = 0;
  for (const { root, members, isForgotten = false } of families) {
    if (size + members.length > MAX_RUNS && size > 0) {
      yield batch;
      [batch, size] = [[], 0];
    }
    // families.E4
    let left = members;
    for (; left.length > MAX_RUNS; left = left.slice(0, 1 - MAX_RUNS))
      yield [{ root, members: left.slice(1 - MAX_RUNS), isForgotten }];
    batch.push({ root, members: left, isForgotten });
    size += left.length;
  }
  if (size > 0) yield batch;
}

/** families.E2 */
function deleteBatch(tx: Tx, parts: readonly FamilyPart[]): number {
  let runs = 0;
  const keepsLogged = isFederated(tx.rows);
  for (const { root, members, isForgotten } of parts) {
    const checks = [
      isUnchanged(tx.rows, root),
      ...members.map((member) => isDeletable(tx, member, keepsLogged && !isForgotten)),
    ];
    if (checks.includes(false)) continue;
    for (const { run } of members) deleteRun(tx, run);
    runs += members.length;
  }
  return runs;
}

function isUnchanged(rows: Rows, { run, status, head, ended_at }: Member): boolean {
  return rows.is("runs", [run], { status, head, ended_at });
}

function isDeletable({ rows, now }: Tx, member: Member, keepsLogged: boolean): boolean {
  const isSame = isUnchanged(rows, member);
  const isIdle = !isSending(rows, member.run, now);
  const isLogged = keepsLogged && rows.get("ended_runs", [member.run], NOTE) !== undefined;
  return forksOf(rows, member.run).length === 0 && isSame && isIdle && !isLogged;
}

/** families.E3 */
export async function sweepAll(session: RowSession, what: string, pause: () => Promise<void>): Promise<void> {
  while (await session.transact(what, sweepLeftovers)) await pause();
}
