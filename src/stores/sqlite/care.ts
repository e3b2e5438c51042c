// Care: pruning, backups, and what an operator wants to know.

import { backup, DatabaseSync } from "node:sqlite";
import { closeSync, openSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { RepriseError, type EpochMs } from "../../base/index.ts";
import type { RunNumber, Status, StoreInfo, WorkerInfo } from "../../kernel/index.ts";
import { storeErrorOf } from "./errors.ts";
import { MEMORY } from "./location.ts";
import { breathe, BUSY_SLICE_MS, patiently } from "./patience.ts";
import { codecNames } from "./payload-border.ts";
import { plain } from "./rows.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import type { Session, Tx } from "./session.ts";
import { sweepLeftovers } from "./sweep.ts";
import { pragma } from "./version.ts";

/** How many run numbers one transaction, and one count, looks at: some milliseconds. */
const PRUNE_WINDOW = 500;
const COUNT_WINDOW = 20_000;

/** C8. Families go as a whole: everything with one root has ended, and ended before `endedBefore`. */
export async function prune(session: Session, endedBefore: EpochMs): Promise<{ readonly runs: number }> {
  let runs = 0;
  const highest = await highestRun(session);
  for (let from = 0; from <= highest; from += PRUNE_WINDOW) {
    const old = await session.read("Pruning", (sql) => sql.oldFamilies.all(from, from + PRUNE_WINDOW, endedBefore));
    if (old.length > 0) {
      const roots = (old as unknown as { root: number }[]).map(({ root }) => root);
      runs += await session.transact("Pruning", (tx) => pruneFamilies(tx, roots, endedBefore));
    }
    await breathe(session.options);
  }
  // Rows go after the runs they belong to: a kill in between leaves leftovers, which are found again.
  while (await session.transact("Pruning", sweepLeftovers)) await breathe(session.options);
  return { runs };
}

function pruneFamilies({ sql }: Tx, roots: readonly RunNumber[], endedBefore: EpochMs): number {
  let runs = 0;
  // Numbers are never used again, also when the newest run goes.
  sql.keepHighestRun.run((sql.highestRun.get() as { run: number }).run);
  for (const root of roots) {
    // Looked at again under the lock: a child may have been started since.
    if (sql.familyLives.get(root, endedBefore) !== undefined) continue;
    for (const { run } of sql.family.all(root) as unknown as { run: number }[]) {
      sql.insertLeftover.run(run);
      sql.dropTags.run(run);
      sql.dropRun.run(run);
      runs += 1;
    }
  }
  return runs;
}

async function highestRun(session: Session): Promise<RunNumber> {
  return session.read("Looking at runs", (sql) => (sql.highestRun.get() as { run: number }).run);
}

/** A consistent copy while work goes on; the target must not exist. */
export async function backUp(session: Session, path: string): Promise<void> {
  const target = resolve(path);
  try {
    closeSync(openSync(target, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST")
      throw new RepriseError("BAD_OPTIONS", `${target} exists already; name a new file for the backup.`, {
        cause: error,
      });
    throw new RepriseError("STORE_IO", `Cannot create ${target}: check the path and its permissions.`, {
      cause: error,
    });
  }
  try {
    await session.read("Backing up", () => undefined);
    if (session.options.path === MEMORY) await backup(session.connection.db, target, { rate: BACKUP_PAGES });
    else await copySnapshot(session, target);
  } catch (error) {
    rmSync(target, { force: true });
    throw storeErrorOf(error, `Backing up to ${target}`);
  }
}

/** 4 MB at a time. */
const BACKUP_PAGES = 1_000;

/**
 * Through a connection of its own with an open read transaction: the copy is one moment, it does not begin anew whenever
 * another process writes (under load it would never end), and it never holds up our own connection.
 */
async function copySnapshot(session: Session, target: string): Promise<void> {
  const db = new DatabaseSync(session.options.path, { readOnly: true, timeout: BUSY_SLICE_MS });
  try {
    await patiently(session.options, `Backing up to ${target}`, () => {
      if (!db.isTransaction) db.exec("begin");
      pragma(db, "user_version");
    });
    await backup(db, target, { rate: BACKUP_PAGES });
  } finally {
    db.close();
  }
}

export async function describe(session: Session): Promise<StoreInfo> {
  const { path, durability } = session.options;
  const runs: Partial<Record<Status, number>> = {};
  const highest = await highestRun(session);
  for (let from = 0; from <= highest; from += COUNT_WINDOW) {
    const counts = await session.read("Counting runs", (sql) => sql.countStatuses.all(from, from + COUNT_WINDOW));
    for (const { status, count } of counts as unknown as { status: Status; count: number }[])
      runs[status] = (runs[status] ?? 0) + count;
    await breathe(session.options);
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
      workers: plain<WorkerInfo>(sql.workers.all()),
      items: { ...items },
    };
  });
}
