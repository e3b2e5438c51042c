// Care: pruning, and what an operator wants to know.

import type { EpochMs } from "../../base/index.ts";
import type { PruneOptions, RunNumber, RunStatus, StoreInfo } from "../../kernel/index.ts";
import { outboxInfo } from "../rules/outbox.ts";
import { yieldToEventLoop } from "./retry-busy.ts";
import { codecNames } from "./sqlite-payload-cipher.ts";
import { listWorkers } from "../rules/worker-leases.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import type { SqliteSession, SqliteTx } from "./sqlite-session.ts";
import type { Statements } from "./statements.ts";
import { deleteRun, sweepLeftovers } from "../rules/sweep.ts";
import { pragma } from "./version.ts";

/** How many runs one transaction, and one count, looks at: some milliseconds. */
const PRUNE_WINDOW = 500;
const COUNT_WINDOW = 20_000;

/**
 * C8. Families go as a whole: everything with one root has ended, and ended before `endedBefore`, and no fork of any of it
 * stays (FK4). From the newest on: a fork has a higher number than the run it comes from, and goes before it.
 */
export async function prune(
  session: SqliteSession,
  endedBefore: EpochMs,
  { dryRun = false, onProgress }: PruneOptions,
): Promise<{ readonly runs: number }> {
  let runs = 0;
  const highest = await highestRun(session);
  // In a dry run, the forks that would be gone by now.
  const gone = new Set<RunNumber>();
  for (let upTo = highest + 1, from: RunNumber; upTo > 0; upTo = from) {
    from = await session.read("Pruning", (sql) => numberOf(sql.runsBelow.get(upTo, PRUNE_WINDOW - 1)) ?? 0);
    const old = await session.read("Pruning", (sql) => sql.oldFamilies.all(from, upTo, endedBefore));
    if (old.length > 0) {
      const roots = (old as unknown as { root: number }[]).map(({ root }) => root);
      runs += dryRun
        ? await session.read("Pruning", (sql) => roots.reduce((sum, root) => sum + familyOf(sql, root, gone).length, 0))
        : await session.transact("Pruning", (tx) => pruneFamilies(tx, roots, endedBefore));
    }
    onProgress?.(highest - from, highest);
    await yieldToEventLoop(session.options);
  }
  if (dryRun) return { runs };
  // Rows go after the runs they belong to: a kill in between leaves leftovers, which are found again.
  while (await session.transact("Pruning", sweepLeftovers)) await yieldToEventLoop(session.options);
  if (runs > 0) await session.transact("Pruning", ({ sql }) => void sql.deleteOrphanedStartKeys.run());
  return { runs };
}

function pruneFamilies(tx: SqliteTx, roots: readonly RunNumber[], endedBefore: EpochMs): number {
  const { sql } = tx;
  let runs = 0;
  for (const root of roots) {
    // Looked at again under the lock: a child may have been started since.
    if (sql.isFamilyActive.get(root, endedBefore) !== undefined) continue;
    for (const run of familyOf(sql, root)) {
      deleteRun(tx, run);
      runs += 1;
    }
  }
  return runs;
}

/** Nothing while a fork of it stays. `gone`: forks that are to be taken for pruned; this one becomes one of them. */
function familyOf(sql: Statements, root: RunNumber, gone?: Set<RunNumber>): readonly RunNumber[] {
  const numbers = (rows: unknown): RunNumber[] => (rows as { run: RunNumber }[]).map(({ run }) => run);
  if (numbers(sql.forksOfFamily.all(root)).some((fork) => gone?.has(fork) !== true)) return [];
  // A fork has no parent.
  if (gone !== undefined && sql.isFork.get(root) !== undefined) gone.add(root);
  return numbers(sql.family.all(root));
}

function numberOf(row: unknown): RunNumber | undefined {
  return (row as { run: RunNumber } | undefined)?.run;
}

async function highestRun(session: SqliteSession): Promise<RunNumber> {
  return session.read("Looking at runs", (sql) => (sql.highestRun.get() as { run: number }).run);
}

export async function describe(session: SqliteSession): Promise<StoreInfo> {
  const { path, durability } = session.options;
  const runs: Partial<Record<RunStatus, number>> = {};
  const highest = await highestRun(session);
  for (let from = 0, upTo: RunNumber; from <= highest; from = upTo) {
    upTo = await session.read("Counting runs", (sql) => numberOf(sql.runsFrom.get(from, COUNT_WINDOW)) ?? highest + 1);
    const counts = await session.read("Counting runs", (sql) => sql.countStatuses.all(from, upTo));
    for (const { status, count } of counts as unknown as { status: RunStatus; count: number }[])
      runs[status] = (runs[status] ?? 0) + count;
    await yieldToEventLoop(session.options);
  }
  return session.read("Describing the store", (sql) => {
    const { db } = session.connection;
    const items = sql.countItems.get() as { ready: number; leased: number; delayed: number };
    return {
      kind: "sqlite",
      location: path,
      schemaVersion: SCHEMA_VERSION,
      durability,
      bytes: Number(pragma(db, "page_count")) * Number(pragma(db, "page_size")),
      codecs: codecNames(db),
      runs,
      workers: listWorkers(sql),
      items: { ...items },
      outbox: outboxInfo(sql),
    };
  });
}
