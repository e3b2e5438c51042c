// Prune: deletes ended runs with everything that belongs to them.

import type { EpochMs } from "../../base/index.ts";
import type { PruneOptions, RunNumber } from "../../kernel/index.ts";
import { deleteRun, sweepLeftovers } from "../rules/sweep.ts";
import { yieldToEventLoop } from "./retry-busy.ts";
import type { SqliteSession, SqliteTx } from "./sqlite-session.ts";
import type { Statements } from "./statements.ts";

/** How many runs one transaction checks: some milliseconds. */
const PRUNE_WINDOW = 500;

/**
 * rules.C8. Deletes whole families: every run with the same root has ended before `endedBefore`, and no fork of one of them stays
 * (fork.F4). Starts with the newest: a fork has a higher number than its origin, and is deleted before it.
 */
export async function prune(
  session: SqliteSession,
  endedBefore: EpochMs,
  { dryRun = false, onProgress }: PruneOptions,
): Promise<{ readonly runs: number }> {
  let runs = 0;
  const highest = await highestRun(session);
  // In a dry run: the forks that would be deleted by now.
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
  // The rows of a run are deleted after the run: a kill in between leaves leftovers, which the next sweep finds.
  while (await session.transact("Pruning", sweepLeftovers)) await yieldToEventLoop(session.options);
  if (runs > 0) await session.transact("Pruning", ({ sql }) => void sql.deleteOrphanedStartKeys.run());
  return { runs };
}

function pruneFamilies(tx: SqliteTx, roots: readonly RunNumber[], endedBefore: EpochMs): number {
  const { sql } = tx;
  let runs = 0;
  for (const root of roots) {
    // Checked again under the lock: a child may have been started since.
    if (sql.isFamilyActive.get(root, endedBefore) !== undefined) continue;
    for (const run of familyOf(sql, root)) {
      deleteRun(tx, run);
      runs += 1;
    }
  }
  return runs;
}

/** Empty while a fork of the family stays. `gone`: forks that count as deleted; a root that is a fork is added to them. */
function familyOf(sql: Statements, root: RunNumber, gone?: Set<RunNumber>): readonly RunNumber[] {
  const numbers = (rows: unknown): RunNumber[] => (rows as { run: RunNumber }[]).map(({ run }) => run);
  if (numbers(sql.forksOfFamily.all(root)).some((fork) => gone?.has(fork) !== true)) return [];
  // A fork has no parent.
  if (gone !== undefined && sql.isFork.get(root) !== undefined) gone.add(root);
  return numbers(sql.family.all(root));
}

export function numberOf(row: unknown): RunNumber | undefined {
  return (row as { run: RunNumber } | undefined)?.run;
}

export async function highestRun(session: SqliteSession): Promise<RunNumber> {
  return session.read("Reading the highest run", (sql) => (sql.highestRun.get() as { run: number }).run);
}
