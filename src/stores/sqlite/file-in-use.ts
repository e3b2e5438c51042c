// File in use: refuses to replace a store's file while a worker or another process uses it.
//
// file-in-use.U1. A worker with a lease is alive, on any machine.
// file-in-use.U2. A process that has the file open holds a shared lock on the file and on the index of its log. So an exclusive lock
//   proves that no other process has the file open.

import { readFileSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { formatMs, RepriseError, type EpochMs } from "../../base/index.ts";
import { workerTag } from "../../kernel/index.ts";
import { isBusy, storeErrorOf } from "./errors.ts";
import { identityOf } from "./store-file.ts";
import { BUSY_SLICE_MS, withRetry, sleep, type RetryOptions } from "./retry-busy.ts";
import { pragma } from "./version.ts";

/** A command that reads the store has the file open for a moment. */
const WAIT_MS = 1_000;
const RETRY_MS = 50;
const MAX_NAMED = 5;

interface Leased {
  readonly worker: number;
  readonly name: string;
  readonly until: EpochMs;
}

/** Refuses while a worker is alive or a process has the file open. Changes nothing. */
export async function refuseInUse(options: RetryOptions, path: string): Promise<void> {
  await refuseWorkers(options, path);
  const locked = await lockWith(options, path, (db) => {
    // file-in-use.U2. The first statement of a connection in this mode takes an exclusive lock.
    db.exec("pragma locking_mode = exclusive");
    pragma(db, "schema_version");
  });
  locked.close();
}

/**
 * Locks the file until the connection is closed. The log is copied into the file and removed with its index: neither may belong
 * to the file that replaces this one, and closing the connection must not touch files that were put there since.
 */
export async function lockExclusively(options: RetryOptions, path: string): Promise<DatabaseSync> {
  await refuseWorkers(options, path);
  return lockWith(options, path, (db) => {
    if (pragma(db, "journal_mode = delete") !== "delete") throw inUse(path);
    db.exec("begin exclusive");
    // A worker may have registered since the first check.
    refuseLeases(options, db, path);
  });
}

/** Uses a separate connection: a connection that has read the file cannot get the exclusive lock. */
async function refuseWorkers(options: RetryOptions, path: string): Promise<void> {
  const db = new DatabaseSync(path, { timeout: BUSY_SLICE_MS });
  try {
    await withRetry(options, `Reading ${path}`, () => refuseLeases(options, db, path));
  } finally {
    db.close();
  }
}

async function lockWith(options: RetryOptions, path: string, lock: (db: DatabaseSync) => void): Promise<DatabaseSync> {
  const start = options.clock.monotonic();
  for (;;) {
    const locks = otherLocks(path);
    const db = new DatabaseSync(path, { timeout: BUSY_SLICE_MS });
    try {
      if (locks.length > 0) throw inUse(path, locks);
      lock(db);
      return db;
    } catch (error) {
      db.close();
      const mayBecomeFree = isBusy(error) || (error instanceof RepriseError && error.details?.["isOpen"] === true);
      if (!mayBecomeFree) throw describedError(error, path);
      if (options.clock.monotonic() - start >= WAIT_MS) throw isBusy(error) ? inUse(path, otherLocks(path)) : error;
    }
    await sleep(options, RETRY_MS);
  }
}

function describedError(error: unknown, path: string): RepriseError {
  const known = storeErrorOf(error, `Locking ${path}`);
  if (known.code !== "STORE_CORRUPT") return known;
  return new RepriseError(
    "STORE_CORRUPT",
    `${path} is damaged and cannot be locked. Stop every process that uses it, move it away together with its -wal and -shm files, and run \`reprise restore\` again.`,
    { cause: error, details: { path } },
  );
}

/** file-in-use.U1 */
function refuseLeases({ clock }: RetryOptions, db: DatabaseSync, path: string): void {
  const { live, now } = readLeases(db, clock.now());
  if (live.length === 0) return;
  const last = live.reduce((latest, { until }) => Math.max(latest, until), 0);
  const named = live
    .slice(0, MAX_NAMED)
    .map(({ name, worker, until }) => `${name} (${workerTag(worker)}) for ${formatMs(until - now)}`);
  const more = live.length > MAX_NAMED ? ` and ${live.length - MAX_NAMED} more` : "";
  throw new RepriseError(
    "STORE_BUSY",
    `${path} is in use: ${live.length === 1 ? "a worker has" : `${live.length} workers have`} a lease on it: ${named.join(", ")}${more}. Nothing was changed. Stop the workers, then run the command again. If they were killed, the last lease expires at ${new Date(last).toISOString()}.`,
    { details: { path, workers: live.map((one) => ({ ...one, until: new Date(one.until).toISOString() })) } },
  );
}

/** By the store's clock. None when the table is damaged or does not exist. */
function readLeases(db: DatabaseSync, wallNow: EpochMs): { readonly live: readonly Leased[]; readonly now: EpochMs } {
  try {
    const { mark } = db.prepare("select max(mark) as mark from writers").get() as { mark: number | null };
    const now = Math.max(wallNow, mark ?? 0);
    const live = db.prepare("select worker, name, until from workers where until > ? order by until desc").all(now);
    return { live: live.map((row) => ({ ...row })) as unknown as Leased[], now };
  } catch (error) {
    if (isBusy(error)) throw error;
    return { live: [], now: wallNow };
  }
}

function inUse(path: string, pids: readonly number[] = []): RepriseError {
  const known = pids.filter((pid) => pid > 0);
  const [first, ...more] = known;
  const several = more.length > 0 ? `processes ${known.join(", ")} have` : `process ${first} has`;
  const users = first === undefined ? "another process has" : several;
  return new RepriseError(
    "STORE_BUSY",
    `${path} is in use: ${users} it open. Nothing was changed. Stop every process that uses it (\`lsof ${path}\` lists them), then run the command again.`,
    { details: { path, isOpen: true, processes: known } },
  );
}

/** file-in-use.U2. Processes with locks on the file or on the index of its log. Only Linux lists them. */
function otherLocks(path: string): readonly number[] {
  if (process.platform !== "linux") return [];
  let lines: readonly string[];
  try {
    lines = readFileSync("/proc/locks", "utf8").split("\n");
  } catch {
    return [];
  }
  const files = new Set([path, `${path}-shm`].flatMap((file) => (identityOf(file) ? [lockedName(file)] : [])));
  const pids = lines.flatMap((line) => {
    // `1: POSIX  ADVISORY  READ 4711 fe:00:9977996 128 128`
    const [, , , , pid, file] = line.trim().split(/\s+/);
    return pid !== undefined && file !== undefined && files.has(file) ? [Number(pid)] : [];
  });
  return [...new Set(pids)].filter((pid) => pid !== process.pid);
}

/** The file as /proc/locks names it: major and minor number in hexadecimal, then the inode. */
function lockedName(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true });
  const major = (dev >> 8n) & 0xfffn;
  const minor = (dev & 0xffn) | ((dev >> 12n) & 0xfff00n);
  const hex = (part: bigint): string => part.toString(16).padStart(2, "0");
  return `${hex(major)}:${hex(minor)}:${ino}`;
}
