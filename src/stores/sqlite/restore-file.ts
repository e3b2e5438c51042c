// Restore file: replaces a store's file with a copy of a backup.
//
// restore-file.R1. The backup is only read. Its copy is made next to the store's file, and is migrated and checked there.
// restore-file.R2. The store's file does not change before the copy is complete and no process uses the file (file-in-use.U2). Then
//   one rename replaces it.
// restore-file.R3. The copy starts a new history: leases and tokens in the backup are released, the incarnation changes, and a row
//   in `meta` records the restore.

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
import { historyRow, QueueItemState, INCARNATION_KEY, newIncarnation, type OnProgress } from "../../kernel/index.ts";
import { listHolders, listWorkers, releaseWorker } from "../rules/worker-leases.ts";
import { backUpFile } from "./back-up.ts";
import { checkStore } from "./check-store.ts";
import { storeErrorOf } from "./errors.ts";
import { lockExclusively, refuseInUse } from "./file-in-use.ts";
import { COMPANIONS, identityOf, readHeader, ROLLBACK_JOURNAL } from "./store-file.ts";
import { BUSY_SLICE_MS, type RetryOptions } from "./retry-busy.ts";
import { APPLICATION_ID, SCHEMA_VERSION } from "./schema.ts";
import { SqliteSession, type SqliteTx } from "./sqlite-session.ts";
import { checkSchemaVersion, notReprise, pragma, refuseNewer } from "./version.ts";
import { readCompleteHeader } from "./file-header.ts";

const COUNTS = `select (select count(*) from runs indexed by runs_held where turn_worker is not null) as turns,
  (select count(*) from queue indexed by queue_leased where state = ${QueueItemState.leased}) as items, (select count(*) from runs) as runs`;

const SIDE_FILES = [...COMPANIONS, ROLLBACK_JOURNAL];

export interface RestoreOptions extends RetryOptions {
  /** The store's file. It may not exist yet. */
  readonly path: string;
  readonly backup: string;
  readonly codec?: PayloadCodec | undefined;
  readonly onCopied?: OnProgress;
  readonly onChecked?: OnProgress;
}

/** How many leases the restore released in the copy. */
export interface Released {
  readonly workers: number;
  readonly turns: number;
  readonly items: number;
}

/** The facts about a copy that is ready to replace the file. */
export interface PreparedRestore {
  readonly schema: { readonly from: number; readonly to: number };
  readonly runs: number;
  readonly released: Released;
  /** The time of the last commit in the backup. */
  readonly lastCommitAt: EpochMs;
  /** The file that it replaces; undefined when there is none. */
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
    // Follow a link: other processes may use the file by its own path.
    this.#path = existsSync(path) ? realpathSync(path) : path;
    this.#copy = `${this.#path}.restoring-${options.random.token().slice(0, 8)}`;
  }

  /** restore-file.R1. Copies and checks the backup. The store's file does not change. */
  async prepare(): Promise<PreparedRestore> {
    const options = this.#options;
    const backup = resolve(options.backup);
    try {
      const from = await schemaOfBackup(options, backup, this.#path);
      const replaces = await this.#target();
      await backUpFile(options, urlOfBackup(backup), this.#copy, options.onCopied);
      return { schema: { from, to: SCHEMA_VERSION }, replaces, ...(await this.#prepareCopy(backup)) };
    } catch (error) {
      this.discard();
      throw this.#withBackupName(storeErrorOf(error, `Reading ${backup}`), backup);
    }
  }

  /** An error about the copy is an error about the backup. */
  #withBackupName(error: RepriseError, backup: string): RepriseError {
    if (!error.message.includes(this.#copy)) return error;
    const message = error.message.replaceAll(this.#copy, backup).replace(/^Backing up to /, "Reading ");
    return new RepriseError(error.code, `${message} ${this.#path} was not changed.`, { cause: error });
  }

  /** restore-file.R2. Returns the path of the replaced file when `keep` is set. */
  async replace(keep: boolean): Promise<string | undefined> {
    const { clock } = this.#options;
    const target = await this.#target();
    if (target === undefined) {
      this.#placeNew();
      return undefined;
    }
    const old = await lockExclusively(this.#options, this.#path);
    try {
      // No await from here on: neither other code nor a signal handler can interrupt the replacement.
      copyPermissions(this.#copy, this.#path);
      for (const suffix of SIDE_FILES) rmSync(this.#path + suffix, { force: true });
      const kept = keep ? freeName(this.#path, clock.now()) : undefined;
      // On Windows an open file cannot be renamed.
      if (process.platform === "win32") old.close();
      if (kept !== undefined) linkOrRename(this.#path, kept);
      renameSync(this.#copy, this.#path);
      this.#isDone = true;
      syncFolder(this.#path);
      return kept;
    } finally {
      if (old.isOpen) old.close();
    }
  }

  /** Removes the copy. Also called when the process ends. */
  discard(): void {
    if (this.#isDone) return;
    for (const suffix of ["", ...SIDE_FILES]) rmSync(this.#copy + suffix, { force: true });
  }

  async #target(): Promise<PreparedRestore["replaces"]> {
    const stat = statSync(this.#path, { throwIfNoEntry: false });
    if (stat === undefined) return undefined;
    if (!stat.isFile())
      throw new RepriseError(
        "BAD_STORE_URL",
        `${this.#path} is not a regular file. Pass the path of the store's file.`,
      );
    if (stat.size === 0) return { bytes: 0 };
    refuseForeign(this.#path);
    await refuseInUse(this.#options, this.#path);
    return { bytes: stat.size };
  }

  /** restore-file.R3 */
  async #prepareCopy(backup: string): Promise<Pick<PreparedRestore, "runs" | "released" | "lastCommitAt">> {
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
          `${backup} is damaged and was not restored: ${problem.invariant}${problem.run === undefined ? "" : `, run ${problem.run}`}: ${problem.message}${more.length === 0 ? "" : ` (and ${more.length} more problems)`} Nothing was changed. Use another backup. \`reprise doctor --store sqlite:${backup}\` lists all problems.`,
          { details: { backup, problems: more.length + 1 } },
        );
      ({ released, runs } = await session.transact("Releasing leases", (tx) => releaseAll(tx, session.connection.db)));
    } finally {
      await session.close();
    }
    this.#recordRestore(backup, lastCommitAt);
    for (const suffix of SIDE_FILES)
      if (existsSync(this.#copy + suffix))
        throw new RepriseError(
          "STORE_IO",
          `SQLite could not copy ${this.#copy}${suffix} into its file. ${this.#path} was not changed. Check the disk, then run the command again.`,
        );
    sync(this.#copy);
    return { runs, released, lastCommitAt };
  }

  #recordRestore(backup: string, lastCommitAt: EpochMs): void {
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

  /** For a path without a file. Does not overwrite a file that another process created in the meantime. */
  #placeNew(): void {
    for (const suffix of SIDE_FILES) rmSync(this.#path + suffix, { force: true });
    try {
      linkSync(this.#copy, this.#path);
      rmSync(this.#copy);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST")
        throw new RepriseError(
          "STORE_BUSY",
          `Another process created ${this.#path} during the restore. Nothing was changed. Stop that process, then run the command again.`,
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
    throw new RepriseError("BAD_OPTIONS", `${backup} is not a file. Pass a file that \`reprise backup\` made.`);
  const [own, other] = [identityOf(path), identityOf(backup)];
  if (own !== undefined && own.ino === other?.ino && own.dev === other.dev)
    throw new RepriseError("BAD_OPTIONS", `${backup} is the store itself. Pass a backup of it.`);
  const header = await readCompleteHeader(options, backup);
  if (header === undefined) throw new RepriseError("STORE_NOT_REPRISE", `${backup} is empty. Use another backup.`);
  if (header.applicationId !== 0 && header.applicationId !== APPLICATION_ID) throw notReprise(backup);
  refuseNewer(header.userVersion, backup);
  // Reads the log next to the backup, too.
  return withReadOnly(urlOfBackup(backup), (db) => {
    checkSchemaVersion(db, backup);
    const version = Number(pragma(db, "user_version"));
    if (version === 0) throw notReprise(backup);
    return version;
  });
}

/** Without a log next to the backup, SQLite must not create one: the backup may be on a read-only disk. */
function urlOfBackup(backup: string): URL {
  const url = pathToFileURL(backup);
  if (!existsSync(`${backup}-wal`)) url.searchParams.set("immutable", "1");
  return url;
}

/** Refuses a database of another program. A newer schema and damage are accepted: a restore goes back from both. */
function refuseForeign(path: string): void {
  const header = readHeader(path);
  if (header === undefined || header.applicationId === APPLICATION_ID) return;
  if (header.applicationId !== 0) throw notReprise(path);
  withReadOnly(path, (db) => {
    try {
      checkSchemaVersion(db, path);
    } catch (error) {
      if (error instanceof RepriseError && error.code === "STORE_NOT_REPRISE") throw error;
    }
  });
}

function highestMark(path: string): EpochMs {
  return withReadOnly(
    path,
    (db) => (db.prepare("select max(mark) as mark from writers").get() as { mark: number | null }).mark ?? 0,
  );
}

function withReadOnly<T>(source: string | URL, read: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(source, { readOnly: true, timeout: BUSY_SLICE_MS });
  try {
    return read(db);
  } finally {
    db.close();
  }
}

/** restore-file.R3. The workers in the backup do not exist any more. Releasing their work counts no takeover. */
function releaseAll(tx: SqliteTx, db: DatabaseSync): { readonly released: Released; readonly runs: number } {
  const { sql, rows, now } = tx;
  const workers = listWorkers(rows).map(({ worker }) => worker);
  const holders = listHolders(rows);
  const { turns, items, runs } = db.prepare(COUNTS).get() as { turns: number; items: number; runs: number };
  for (const worker of new Set([...workers, ...holders])) releaseWorker(tx, worker);
  // The store's time continues from the highest mark. The rows of the old writers are not needed.
  const { mark } = sql.highestMark.get() as { mark: number };
  sql.saveMark.run(mark);
  sql.deleteOldWriters.run(now);
  return { released: { workers: workers.length, turns, items }, runs };
}

/** Gives the copy the mode and the owner of the file that it replaces. */
function copyPermissions(copy: string, path: string): void {
  const { mode, uid, gid } = statSync(path);
  chmodSync(copy, mode & 0o777);
  const own = statSync(copy);
  if (own.uid === uid && own.gid === gid) return;
  try {
    chownSync(copy, uid, gid);
  } catch (error) {
    throw new RepriseError(
      "STORE_IO",
      `${path} belongs to user ${uid} and group ${gid}, and this process cannot give the restored file to them. Nothing was changed. Run the command as that user.`,
      { cause: error },
    );
  }
}

function freeName(path: string, now: EpochMs): string {
  const time = new Date(now).toISOString().replaceAll(/[:.]/g, "-");
  const name = `${path}.before-restore-${time}`;
  for (let n = 2; ; n += 1) {
    const free = n === 2 ? name : `${name}-${n}`;
    if (!existsSync(free)) return free;
  }
}

/** Links the file, so that there is a store at `path` at any time. */
function linkOrRename(path: string, kept: string): void {
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
