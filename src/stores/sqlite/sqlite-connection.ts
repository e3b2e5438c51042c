// SQLite connection: opens a file with the durability it promises, or refuses the file.
//
// sqlite-connection.O1. A file of another program, or with a newer schema, is refused before anything is written to it.
// sqlite-connection.O2. Durability is set and read back on every open: SQLite ignores a pragma it does not support, without an error.
// sqlite-connection.O3. When the connection is ready, its file is still the one at the path: `reprise restore` may replace the file
//   while this process waits for the lock.
// sqlite-connection.O4. A file that is opened to read is not changed in any way (read-only-file.ts).

import { DatabaseSync } from "node:sqlite";
import { RepriseError, type PayloadCodec } from "../../base/index.ts";
import {
  identityOf,
  isStill,
  MEMORY,
  openFilesOf,
  prepareFile,
  type FileIdentity,
  type OpenFiles,
} from "./store-file.ts";
import { migrate } from "./migrate.ts";
import { explainUnreadableLog, openToRead, type FrozenFile, type OpenedToRead } from "./read-only-file.ts";
import { BUSY_SLICE_MS, withRetry, type RetryOptions } from "./retry-busy.ts";
import { saveCodecProbe, openSqlitePayloadCipher, type SqlitePayloadCipher } from "./sqlite-payload-cipher.ts";
import { Contents } from "../contents/run-contents.ts";
import { APPLICATION_ID } from "./schema.ts";
import { prepareStatements, type Statements } from "./statements.ts";
import { JoinedInputs } from "./joined-inputs.ts";
import { SqliteRows } from "./sqlite-rows.ts";
import { NeededContents } from "./needed-contents.ts";
import { UserSql } from "./sqlite-user-sql.ts";
import { checkSchemaVersion, notReprise, pragma, refuseNewer } from "./version.ts";
import { trackOpen, readCompleteHeader } from "./file-header.ts";

export type Durability = "full" | "relaxed";

export interface SqliteConnection {
  readonly db: DatabaseSync;
  readonly sql: Statements;
  readonly rows: SqliteRows;
  /** With references in place of the payloads that have contents. */
  readonly storedRows: SqliteRows;
  readonly contents: Contents;
  readonly needed: NeededContents;
  readonly inputs: JoinedInputs;
  readonly userSql: UserSql;
  /** Undefined when payloads are stored as they are. */
  readonly cipher: SqlitePayloadCipher | undefined;
  /** Undefined in memory. */
  readonly files: OpenFiles | undefined;
  /** Set when the file is opened to read and no process writes to it (read-only-file.V2). */
  readonly frozen: FrozenFile | undefined;
}

export interface ConnectOptions extends RetryOptions {
  readonly path: string;
  readonly durability: Durability;
  readonly migrate: boolean;
  /** sqlite-connection.O4 */
  readonly readOnly?: boolean | undefined;
  /** Create the folder of the file if it is missing. */
  readonly mkdir?: boolean | undefined;
  readonly codec?: PayloadCodec | undefined;
  /** Open the file without the codec its payloads were written with. Payloads can then be neither read nor written. */
  readonly locked?: boolean | undefined;
  /** Those of the connection that this one replaces. */
  readonly contents?: Contents | undefined;
  /** The caller puts runs into a mirror (mirror.ts). Any other caller's writes to a mirror are refused. */
  readonly writesMirror?: boolean | undefined;
}

/** How often a file is opened again when it was replaced in the meantime. */
const MAX_OPENS = 10;

export async function connectSqlite(options: ConnectOptions): Promise<SqliteConnection> {
  const { path } = options;
  if (path === MEMORY) return (await openDatabase(options, undefined))!;
  for (let opens = 1; opens <= MAX_OPENS; opens += 1) {
    if (options.migrate) prepareFile(path, options.mkdir === true);
    await refuseForeign(options);
    const file = identityOf(path);
    const connection = file && (await openDatabase(options, file));
    if (connection !== undefined) return connection;
  }
  throw new RepriseError(
    "STORE_REPLACED",
    `${path} was replaced ${MAX_OPENS} times while it was being opened. Stop the program that replaces it.`,
    { details: { path } },
  );
}

/** sqlite-connection.O3. Undefined when the path leads to another file now. `file` is undefined in memory. */
async function openDatabase(
  options: ConnectOptions,
  file: FileIdentity | undefined,
): Promise<SqliteConnection | undefined> {
  const { path } = options;
  const what = `Opening ${path}`;
  const hasMoved = (): boolean => file !== undefined && !isStill(file);
  const toRead = options.readOnly === true && file !== undefined;
  const { db, frozen } = await withRetry(options, what, () => (toRead ? openToRead(path) : openToWrite(path)));
  try {
    if (file !== undefined) trackOpen(db, file);
    const moved = await withRetry(options, what, () => {
      // Also before the first statement: it would apply the log of the new file to the old one.
      if (hasMoved()) return true;
      try {
        checkSchemaVersion(db, path);
      } catch (error) {
        throw toRead ? explainUnreadableLog(error, path) : error;
      }
      return hasMoved();
    });
    if (moved) return closed(db);
    if (!toRead) await withRetry(options, what, () => setPragmas(db, file === undefined, options.durability));
    await migrate(db, options);
    await withRetry(options, what, () => checkSchemaVersion(db, path));
    const cipher = await withRetry(options, what, () =>
      openSqlitePayloadCipher(db, path, options.codec, options.locked === true),
    );
    if (cipher !== undefined) {
      cipher.register(db);
      if (options.migrate && cipher.isUnlocked) await withRetry(options, what, () => saveCodecProbe(db, cipher));
    }
    const sql = await withRetry(options, what, () => prepareStatements(db));
    if (hasMoved()) return closed(db);
    const contents = options.contents ?? new Contents(options.random, cipher !== undefined);
    const needed = new NeededContents();
    const rows = new SqliteRows(db, cipher !== undefined, contents, needed);
    return {
      db,
      sql,
      rows,
      storedRows: new SqliteRows(db, cipher !== undefined),
      contents,
      needed,
      inputs: new JoinedInputs(db, cipher !== undefined, rows),
      userSql: new UserSql(db),
      cipher: cipher,
      files: file && openFilesOf(file),
      frozen,
    };
  } catch (error) {
    if (file !== undefined && options.migrate) leaveEmpty(db);
    closed(db);
    throw error;
  }
}

function openToWrite(path: string): OpenedToRead {
  return { db: new DatabaseSync(path, { timeout: BUSY_SLICE_MS }), frozen: undefined };
}

function closed(db: DatabaseSync): undefined {
  db.close();
}

/** A file without tables must not look like one without its log (file-header.W1). */
function leaveEmpty(db: DatabaseSync): void {
  try {
    if (Number(pragma(db, "user_version")) === 0) db.exec("pragma journal_mode = delete");
  } catch {
    // Another process has the file open and keeps its log; or the disk fails, which the first error reports.
  }
}

/** sqlite-connection.O1. Reads the header first, and opens the file only when the header does not decide. */
async function refuseForeign(options: ConnectOptions): Promise<void> {
  const { path } = options;
  const header = await readCompleteHeader(options, path);
  if (header === undefined) return;
  if (header.applicationId === APPLICATION_ID) return refuseNewer(header.userVersion, path);
  if (header.applicationId !== 0) throw notReprise(path);
  // Another process may be creating the store, with its first transaction still in the WAL.
  await withRetry(options, `Reading ${path}`, () => {
    const { db } = openToRead(path);
    try {
      checkSchemaVersion(db, path);
    } finally {
      db.close();
    }
  });
}

const SYNCHRONOUS = { full: 2, relaxed: 1 } as const;

/**
 * Pages in the log before SQLite copies it into the file: 16 MB. The keys of checkpoints are hashes, so each is on another page, and
 * a page that changes several times before the copy is copied once. (Measured with chains of graph nodes on a quiet machine, in
 * rows per second of a bare loop: 26,000 with SQLite's default of 1,000 pages, 45,000 with 4,000, 55,000 with 10,000. With
 * journals alone there is no difference.)
 */
const COPY_AT_PAGES = 4_000;

/**
 * The most memory for pages of the file, instead of SQLite's 2 MB. A commit of some hundred steps of graphs changes as many pages of
 * the index by key; what does not fit is written to the log before the commit, and read again. (Measured with 300,000 steps of a chain:
 * 4.5 reads and 6.5 writes per step with 2 MB, 2.3 and 4.8 with 4 MB, 1.9 and 4.8 with 8 MB, 1.5 and 4.8 with 16 MB.)
 */
const CACHE_KIB = 8_192;

/** sqlite-connection.O2 */
function setPragmas(db: DatabaseSync, inMemory: boolean, durability: Durability): void {
  const wanted: [name: string, value: string | number][] = [
    ["journal_mode", inMemory ? "memory" : "wal"],
    ["synchronous", SYNCHRONOUS[durability]],
    ["foreign_keys", 1],
    // On macOS fsync does not flush the disk's cache; elsewhere these have no effect.
    ["fullfsync", durability === "full" ? 1 : 0],
    ["checkpoint_fullfsync", durability === "full" ? 1 : 0],
  ];
  db.exec(`pragma wal_autocheckpoint = ${COPY_AT_PAGES}`);
  db.exec(`pragma cache_size = -${CACHE_KIB}`);
  for (const [name, value] of wanted) {
    db.exec(`pragma ${name} = ${value}`);
    const found = pragma(db, name);
    if (found !== value)
      throw new RepriseError(
        "STORE_UNSAFE_DURABILITY",
        `SQLite reports ${name} = ${String(found)} instead of ${value}: commits would not survive a power failure. Move the file to a file system that supports it.`,
        { details: { pragma: name, expected: value, found } },
      );
  }
}
