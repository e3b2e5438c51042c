// Restore: puts a backup in the place of a store's file.
//
// R1. The backup is only read. What takes the place is a copy beside the file, opened, brought up to date and checked there.
// R2. Nothing of the file changes before the copy is whole and nobody uses the file (file-users.ts); then one rename does it.
// R3. The copy is a new history: leases and tokens of the time of the backup are released, the incarnation is another, and a
//     row in `meta` says what happened.

import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { RepriseError, type EpochMs, type PayloadCodec } from "../../base/index.ts";
import { historyRow, INCARNATION_KEY, newIncarnation, type OnProgress } from "../../kernel/index.ts";
import { releaseWorker } from "../rules/worker-leases.ts";
import { backUpFile } from "./back-up.ts";
import { checkStore } from "./check-store.ts";
import { storeErrorOf } from "./errors.ts";
import { lockExclusively, refuseInUse } from "./file-in-use.ts";
import { COMPANIONS, identityOf, readHeader, ROLLBACK_JOURNAL } from "./store-file.ts";
import { BUSY_SLICE_MS, type RetryOptions } from "./retry-busy.ts";
import { ITEM } from "./row-state-sql.ts";
import { APPLICATION_ID, SCHEMA_VERSION } from "./schema.ts";
import { SqliteSession, type SqliteTx } from "./sqlite-session.ts";
import { checkSchemaVersion, notReprise, pragma, refuseNewer } from "./version.ts";
import { readCompleteHeader } from "./file-header.ts";

const COUNTS = `select (select count(*) from runs indexed by runs_held where turn_worker is not null) as turns,
  (select count(*) from queue indexed by queue_leased where ${ITEM.leased}) as items, (select count(*) from runs) as runs`;

const BESIDE = [...COMPANIONS, ROLLBACK_JOURNAL];

export interface RestoreOptions extends RetryOptions {
  /** The store's file; it need not exist. */
  readonly path: string;
  readonly backup: string;
  readonly codec?: PayloadCodec | undefined;
  readonly onCopied?: OnProgress;
  readonly onChecked?: OnProgress;
}

/** What was released in the copy. */
export interface Released {
  readonly workers: number;
  readonly turns: number;
  readonly items: number;
}

/** What is known about the copy, which is ready. */
export interface PreparedRestore {
  readonly schema: { readonly from: number; readonly to: number };
  readonly runs: number;
  readonly released: Released;
  /** The last time that is in the backup. */
  readonly lastCommitAt: EpochMs;
  /** Of the file whose place it takes; undefined when there is none. */
  readonly replaces: { readonly bytes: number } | undefined;
}

/** One restore: `prepare`, then `replace` or `discard`. */
export class FileRestore {
  readonly #options: RestoreOptions;
  readonly #path: string;
  readonly #copy: string;
  #isDone = false;

  constructor(options: RestoreOptions) {
    this.#options = options;
    const path = resolve(options.path);
    // Behind a link lies the file that everybody else may name by its own path.
    this.#path = existsSync(path) ? realpathSync(path) : path;
    this.#copy = `${this.#path}.restoring-${options.random.token().slice(0, 8)}`;
  }

  /** R1. Copies and checks the backup; the file stays as it is. */
  async prepare(): Promise<PreparedRestore> {
    const options = this.#options;
    const backup = resolve(options.backup);
    try {
      const from = await schemaOfBackup(options, backup, this.#path);
      const replaces = await this.#target();
      await backUpFile(options, urlOfBackup(backup), this.#copy, options.onCopied);
      return { schema: { from, to: SCHEMA_VERSION }, replaces, ...(await this.#ready(backup)) };
    } catch (error) {
      this.discard();
      throw this.#namingBackup(storeErrorOf(error, `Reading ${backup}`), backup);
    }
  }

  /** What is wrong with the copy is wrong with the backup. */
  #namingBackup(error: RepriseError, backup: string): RepriseError {
    if (!error.message.includes(this.#copy)) return error;
    const message = error.message.replaceAll(this.#copy, backup).replace(/^Backing up to /, "Reading ");
    return new RepriseError(error.code, `${message} ${this.#path} was not changed.`, { cause: error });
  }

  /** R2. Answers where the file is kept that was there before. */
  async replace(keep: boolean): Promise<string | undefined> {
    const { clock } = this.#options;
    const target = await this.#target();
    if (target === undefined) {
      this.#placeNew();
      return undefined;
    }
    const old = await lockExclusively(this.#options, this.#path);
    try {
      // From here on without an await: nothing comes between, no signal either.
      likeBefore(this.#copy, this.#path);
      for (const suffix of BESIDE) rmSync(this.#path + suffix, { force: true });
      const kept = keep ? keptName(this.#path, clock.now()) : undefined;
      // Windows renames no file that is open.
      if (process.platform === "win32") old.close();
      if (kept !== undefined) keepAs(this.#path, kept);
      renameSync(this.#copy, this.#path);
      this.#isDone = true;
      syncFolder(this.#path);
      return kept;
    } finally {
      if (old.isOpen) old.close();
    }
  }

  /** Also at the end of the process, whatever happened: the copy is all there is to remove. */
  discard(): void {
    if (this.#isDone) return;
    for (const suffix of ["", ...BESIDE]) rmSync(this.#copy + suffix, { force: true });
  }

  async #target(): Promise<PreparedRestore["replaces"]> {
    const stat = statSync(this.#path, { throwIfNoEntry: false });
    if (stat === undefined) return undefined;
    if (!stat.isFile()) throw new RepriseError("BAD_STORE_URL", `${this.#path} is not a file.`);
    if (stat.size === 0) return { bytes: 0 };
    refuseForeign(this.#path);
    await refuseInUse(this.#options, this.#path);
    return { bytes: stat.size };
  }

  /** R3 */
  async #ready(backup: string): Promise<Pick<PreparedRestore, "runs" | "released" | "lastCommitAt">> {
    const { codec, onChecked } = this.#options;
    const lastCommitAt = highestMark(this.#copy);
    const session = await SqliteSession.open({
      ...this.#options,
      path: this.#copy,
      durability: "full",
      migrate: true,
      codec,
      locked: true,
    });
    let released: Released;
    let runs: number;
    try {
      const [problem, ...more] = await checkStore(session, onChecked);
      if (problem !== undefined)
        throw new RepriseError(
          "STORE_CORRUPT",
          `${backup} is damaged, and was not restored: ${problem.invariant}${problem.run === undefined ? "" : `, run ${problem.run}`}: ${problem.message}${more.length === 0 ? "" : ` (and ${more.length} more)`}. Nothing was changed. \`reprise doctor --store sqlite:${backup}\` names everything; use another backup.`,
          { details: { backup, problems: more.length + 1 } },
        );
      ({ released, runs } = await session.transact("Releasing what was held", (tx) =>
        releaseAll(tx, session.connection.db),
      ));
    } finally {
      await session.close();
    }
    this.#mark(backup, lastCommitAt);
    for (const suffix of BESIDE)
      if (existsSync(this.#copy + suffix))
        throw new RepriseError("STORE_IO", `${this.#copy}${suffix} could not be copied into its file; check the disk.`);
    sync(this.#copy);
    return { runs, released, lastCommitAt };
  }

  #mark(backup: string, lastCommitAt: EpochMs): void {
    const { clock, random } = this.#options;
    const at = Math.max(clock.now(), lastCommitAt);
    const detail = `from ${backup}, whose last commit was at ${new Date(lastCommitAt).toISOString()}`;
    const rows = [
      historyRow({ at, kind: "restored", detail }),
      { key: INCARNATION_KEY, value: newIncarnation(random, at) },
    ];
    const db = new DatabaseSync(this.#copy);
    try {
      db.exec("pragma synchronous = full; begin immediate");
      const put = db.prepare(
        "insert into meta (key, value) values (?, ?) on conflict (key) do update set value = excluded.value",
      );
      for (const { key, value } of rows) put.run(key, value);
      db.exec("commit");
    } finally {
      db.close();
    }
  }

  /** Where nothing is, and nothing that has come meanwhile is overwritten. */
  #placeNew(): void {
    for (const suffix of BESIDE) rmSync(this.#path + suffix, { force: true });
    try {
      linkSync(this.#copy, this.#path);
      rmSync(this.#copy);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST")
        throw new RepriseError(
          "STORE_BUSY",
          `${this.#path} was made by another process meanwhile. Nothing was changed.`,
        );
      // A file system without links.
      renameSync(this.#copy, this.#path);
    }
    this.#isDone = true;
    syncFolder(this.#path);
  }
}

async function schemaOfBackup(options: RestoreOptions, backup: string, path: string): Promise<number> {
  const stat = statSync(backup, { throwIfNoEntry: false });
  if (stat === undefined || !stat.isFile())
    throw new RepriseError("BAD_OPTIONS", `There is no backup at ${backup}; name a file that \`reprise backup\` made.`);
  const [own, other] = [identityOf(path), identityOf(backup)];
  if (own !== undefined && own.ino === other?.ino && own.dev === other.dev)
    throw new RepriseError("BAD_OPTIONS", `${backup} is the store itself; name a backup of it.`);
  const header = await readCompleteHeader(options, backup);
  if (header === undefined) throw new RepriseError("STORE_NOT_REPRISE", `${backup} is empty; name another backup.`);
  if (header.applicationId !== 0 && header.applicationId !== APPLICATION_ID) throw notReprise(backup);
  refuseNewer(header.userVersion, backup);
  // What is still in a log beside it counts, too.
  return reading(urlOfBackup(backup), (db) => {
    checkSchemaVersion(db, backup);
    const version = Number(pragma(db, "user_version"));
    if (version === 0) throw notReprise(backup);
    return version;
  });
}

/** Without a log beside it nothing is made there either: a backup may lie where nothing can be written. */
function urlOfBackup(backup: string): URL {
  const url = pathToFileURL(backup);
  if (!existsSync(`${backup}-wal`)) url.searchParams.set("immutable", "1");
  return url;
}

/** A newer schema is no reason: going back to the version before is what a backup is for. Nor is damage. */
function refuseForeign(path: string): void {
  const header = readHeader(path);
  if (header === undefined || header.applicationId === APPLICATION_ID) return;
  if (header.applicationId !== 0) throw notReprise(path);
  reading(path, (db) => {
    try {
      checkSchemaVersion(db, path);
    } catch (error) {
      if (error instanceof RepriseError && error.code === "STORE_NOT_REPRISE") throw error;
    }
  });
}

function highestMark(path: string): EpochMs {
  return reading(
    path,
    (db) => (db.prepare("select max(mark) as mark from writers").get() as { mark: number | null }).mark ?? 0,
  );
}

function reading<T>(source: string | URL, read: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(source, { readOnly: true, timeout: BUSY_SLICE_MS });
  try {
    return read(db);
  } finally {
    db.close();
  }
}

/** R3. Nobody of that time is there any more: that is no takeover. */
function releaseAll(tx: SqliteTx, db: DatabaseSync): { readonly released: Released; readonly runs: number } {
  const { sql, now } = tx;
  const values = (rows: unknown[], column: string): number[] =>
    (rows as Record<string, number>[]).map((row) => row[column]!);
  const workers = values(sql.workers.all(), "worker");
  const holders = [sql.turnHolders, sql.itemHolders, sql.outgoingHolders].flatMap((one) => values(one.all(), "value"));
  const { turns, items, runs } = db.prepare(COUNTS).get() as { turns: number; items: number; runs: number };
  for (const worker of new Set([...workers, ...holders])) releaseWorker(tx, worker);
  // Time goes on from the highest mark; the lines of processes of that time mean nothing.
  const { mark } = sql.highestMark.get() as { mark: number };
  sql.saveMark.run(mark);
  sql.deleteOldWriters.run(now);
  return { released: { workers: workers.length, turns, items }, runs };
}

/** Whoever could use the file can use what takes its place. */
function likeBefore(copy: string, path: string): void {
  const { mode, uid, gid } = statSync(path);
  chmodSync(copy, mode & 0o777);
  const own = statSync(copy);
  if (own.uid === uid && own.gid === gid) return;
  try {
    chownSync(copy, uid, gid);
  } catch (error) {
    throw new RepriseError(
      "STORE_IO",
      `${path} belongs to user ${uid} and group ${gid}, which the restored file cannot be given to. Nothing was changed. Restore as that user.`,
      { cause: error },
    );
  }
}

function keptName(path: string, now: EpochMs): string {
  const time = new Date(now).toISOString().replaceAll(/[:.]/g, "-");
  const name = `${path}.before-restore-${time}`;
  for (let n = 2; ; n += 1) {
    const free = n === 2 ? name : `${name}-${n}`;
    if (!existsSync(free)) return free;
  }
}

/** Under both names for a moment: there is a store at `path` at any time. */
function keepAs(path: string, kept: string): void {
  try {
    linkSync(path, kept);
  } catch {
    renameSync(path, kept);
  }
}

function sync(path: string): void {
  const file = openSync(path, "r+");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function syncFolder(path: string): void {
  if (process.platform === "win32") return;
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
