// Prune: deletes whole families of runs (rules.C8): all runs with one root have ended before a given time, none of their messages
// is undelivered, and no fork of them remains. Newest first, because a fork has a higher number than the run it was forked from.
//
// prune.E1. Families are selected without locks; then their runs are locked, checked again and deleted. No run can join a family
//   all of whose runs have ended: that needs the turn of one of them, and the lock of its row.

import type { EpochMs } from "../../base/index.ts";
import type { PruneOptions, RunNumber } from "../../kernel/index.ts";
import { deleteRun, sweepLeftovers } from "../rules/sweep.ts";
import type { Reader } from "./reader.ts";
import { equal, lookup } from "./reads.ts";
import type { TransactionRunner, TransactionWork } from "./runner.ts";
import type { RowOf } from "../rows/tables.ts";
import { rulesWork } from "./rules-work.ts";
import type { WorkingSet } from "./working-set.ts";

/** Runs per read and per transaction. */
const WINDOW = 500;
const WHAT = "Pruning";

type RunRow = RowOf<"runs">;

export async function prune(
  runner: TransactionRunner,
  reader: Reader,
  highest: RunNumber,
  endedBefore: EpochMs,
  { dryRun = false, onProgress }: PruneOptions,
): Promise<{ readonly runs: number }> {
  let runs = 0;
  const ids = new Set<string>();
  // In a dry run: the forks that would be deleted already.
  const gone = new Set<RunNumber>();
  for (let upTo = highest + 1, from: RunNumber; upTo > 0; upTo = from) {
    const window = await runsBelow(reader, upTo);
    from = window.length < WINDOW ? 0 : window.at(-1)!.run;
    const families = await oldFamilies(reader, window, endedBefore);
    if (dryRun) runs += await countDeletable(reader, families, gone);
    else if (families.length > 0)
      for (const { id } of await runner.run(deleteFamilies(families, endedBefore))) {
        runs += 1;
        ids.add(id);
      }
    onProgress?.(highest - from, highest);
  }
  if (dryRun) return { runs };
  // Rows are deleted after their runs: a kill in between leaves leftovers, which a later sweep finds.
  while (await runner.run(rulesWork(WHAT, sweepLeftovers)));
  await deleteStartKeys(runner, reader, [...ids]);
  return { runs };
}

type Family = readonly RunRow[];

/** Newest first. */
function runsBelow(reader: Reader, upTo: RunNumber): Promise<readonly RunRow[]> {
  return reader.rows(WHAT, {
    kind: "select",
    table: "runs",
    where: [{ column: "run", is: "<", value: upTo }],
    order: [["run", "desc"]],
    limit: WINDOW,
    lock: "none",
  });
}

/** Newest first; forks are checked when the family is deleted. */
async function oldFamilies(
  reader: Reader,
  window: readonly RunRow[],
  endedBefore: EpochMs,
): Promise<readonly Family[]> {
  const roots = window.filter((row) => row.root === row.run && hasEndedBefore(row, endedBefore)).map(({ run }) => run);
  if (roots.length === 0) return [];
  const members = await reader.rows(WHAT, lookup("runs", ["root"], keysOf(roots)));
  const families = Map.groupBy(members, ({ root }) => root);
  const old = roots
    .map((root) => families.get(root) ?? [])
    .filter((family) => family.length > 0 && family.every((row) => hasEndedBefore(row, endedBefore)));
  if (old.length === 0) return [];
  const sending = await reader.rows(WHAT, lookup("outbox", ["line"], keysOf(old.flat().map(({ run }) => run))));
  const lines = new Set(sending.map(({ line }) => line));
  return old.filter((family) => !family.some(({ run }) => lines.has(run)));
}

function keysOf(runs: readonly RunNumber[]): readonly (readonly [RunNumber])[] {
  return runs.map((run) => [run] as const);
}

/** The number of runs that would be deleted, if the runs in `gone` were deleted. */
async function countDeletable(reader: Reader, families: readonly Family[], gone: Set<RunNumber>): Promise<number> {
  if (families.length === 0) return 0;
  const numbers = families.flat().map(({ run }) => run);
  const forks = await reader.rows(WHAT, lookup("forks", ["origin"], keysOf(numbers)));
  let runs = 0;
  for (const family of families) {
    const stays = family.some(({ run }) => forks.some((fork) => fork.origin === run && !gone.has(fork.run)));
    if (stays) continue;
    runs += family.length;
    for (const { run } of family) gone.add(run);
  }
  return runs;
}

/** Whether the run ended before the given time. An `expected` run that was never started counts from its creation. */
function hasEndedBefore({ ended_at: endedAt, status, created_at: createdAt }: RunRow, endedBefore: EpochMs): boolean {
  const over = endedAt ?? (status === "expected" ? createdAt : undefined);
  return over !== undefined && over < endedBefore;
}

/** prune.E1. Returns the deleted runs. */
function deleteFamilies(families: readonly Family[], endedBefore: EpochMs): TransactionWork<Family> {
  return rulesWork(WHAT, (tx, ws) => {
    const numbers = families.flat().map(({ run }) => run);
    ws.require(() => ws.prefetchRows("runs", "update", keysOf(numbers.toSorted((a, b) => a - b))));
    const deleted: RunRow[] = [];
    for (const family of families) {
      if (!family.every(({ run }) => mayDelete(ws, run, endedBefore))) continue;
      for (const row of family) deleteRun(tx, row.run);
      deleted.push(...family);
    }
    return deleted;
  });
}

function mayDelete(ws: WorkingSet, run: RunNumber, endedBefore: EpochMs): boolean {
  const row = ws.get("runs", "update", run);
  if (row === undefined || !hasEndedBefore(row, endedBefore)) return false;
  return ws.select(only("outbox", "line", run)).length === 0 && ws.select(only("forks", "origin", run)).length === 0;
}

function only<T extends "outbox" | "forks">(table: T, column: string, value: number) {
  return { kind: "select", table, where: [equal(column, value)], lock: "none" } as const;
}

/** Deletes the start keys of deleted runs. */
async function deleteStartKeys(runner: TransactionRunner, reader: Reader, ids: readonly string[]): Promise<void> {
  for (let from = 0; from < ids.length; from += WINDOW) {
    const some = ids.slice(from, from + WINDOW).map((id) => [id]);
    const [keys = [], runs = []] = await reader.read(WHAT, [
      lookup("start_keys", ["id"], some),
      lookup("runs", ["id"], some),
    ]);
    const there = new Set(runs.map((row) => row["id"]));
    const gone = (keys as unknown as RowOf<"start_keys">[]).filter(({ id }) => !there.has(id));
    if (gone.length > 0) await runner.run(rulesWork(WHAT, (_tx, ws) => removeStartKeys(ws, gone)));
  }
}

/** Only keys that still name the same run, which was not started again. */
function removeStartKeys(ws: WorkingSet, gone: readonly RowOf<"start_keys">[]): void {
  for (const { id } of gone) ws.findBy("runs", ["id"], [id], "update");
  ws.require(() =>
    ws.prefetchRows(
      "start_keys",
      "update",
      gone.map(({ definition, kind, key }) => [definition, kind, key]),
    ),
  );
  for (const { definition, kind, key, id } of gone) {
    const row = ws.get("start_keys", "update", definition, kind, key);
    if (row?.id === id && ws.findBy("runs", ["id"], [id], "update").length === 0) ws.remove("start_keys", row);
  }
}
