// Open: from a path to a connection that keeps its promises, or a refusal.
//
// O1. A file that is not ours, or newer than we are, is refused before anything is written to it.
// O2. Durability is set and read back on every open; SQLite ignores a pragma it cannot honour without a word.
// O3. The file that was opened is the one that has the name when everything is set: a `reprise restore` may put another one
//     there while this process waits for its lock.

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
import { BUSY_SLICE_MS, withRetry, type RetryOptions } from "./retry-busy.ts";
import { saveCodecProbe, openSqlitePayloadCipher, type SqlitePayloadCipher } from "./sqlite-payload-cipher.ts";
import { APPLICATION_ID } from "./schema.ts";
import { prepareStatements, type Statements } from "./statements.ts";
import { UserSql } from "./sqlite-user-sql.ts";
import { checkSchemaVersion, notReprise, pragma, refuseNewer } from "./version.ts";
import { trackOpen, readCompleteHeader } from "./file-header.ts";

export type Durability = "full" | "relaxed";

export interface SqliteConnection {
  readonly db: DatabaseSync;
  readonly sql: Statements;
  readonly userSql: UserSql;
  /** Undefined when payloads are kept as they are. */
  readonly cipher: SqlitePayloadCipher | undefined;
  /** Undefined in memory. */
  readonly files: OpenFiles | undefined;
}

export interface ConnectOptions extends RetryOptions {
  readonly path: string;
  readonly durability: Durability;
  readonly migrate: boolean;
  readonly codec?: PayloadCodec | undefined;
  /** Open also without the codec the payloads were written with; they can be neither read nor written then. */
  readonly locked?: boolean | undefined;
}

/** How often a file that was replaced while it was being opened is opened again. */
const MAX_OPENS = 10;

export async function connectSqlite(options: ConnectOptions): Promise<SqliteConnection> {
  const { path } = options;
  if (path === MEMORY) return (await openDatabase(options, undefined))!;
  for (let opens = 1; opens <= MAX_OPENS; opens += 1) {
    if (options.migrate) prepareFile(path);
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

/** Undefined when the name leads to another file meanwhile (O3). `file` is undefined in memory. */
async function openDatabase(
  options: ConnectOptions,
  file: FileIdentity | undefined,
): Promise<SqliteConnection | undefined> {
  const { path } = options;
  const what = `Opening ${path}`;
  const hasMoved = (): boolean => file !== undefined && !isStill(file);
  const db = await withRetry(options, what, () => new DatabaseSync(path, { timeout: BUSY_SLICE_MS }));
  try {
    if (file !== undefined) trackOpen(db, file);
    const moved = await withRetry(options, what, () => {
      // Before the first statement, too: it would read the log that lies there now into a file it does not belong to.
      if (hasMoved()) return true;
      checkSchemaVersion(db, path);
      return hasMoved();
    });
    if (moved) return closed(db);
    await withRetry(options, what, () => setPragmas(db, file === undefined, options.durability));
    await migrate(db, options);
    await withRetry(options, what, () => checkSchemaVersion(db, path));
    const cipher = await withRetry(options, what, () =>
      openSqlitePayloadCipher(db, path, options.codec, options.locked === true),
    );
    if (cipher !== undefined) {
      cipher.register(db);
      if (options.migrate && cipher.isUnlocked) await withRetry(options, what, () => saveCodecProbe(db, cipher));
    }
    const sql = await withRetry(options, what, () => prepareStatements(db, cipher));
    if (hasMoved()) return closed(db);
    return { db, sql, userSql: new UserSql(db), cipher: cipher, files: file && openFilesOf(file) };
  } catch (error) {
    if (file !== undefined && options.migrate) leaveEmpty(db);
    closed(db);
    throw error;
  }
}

function closed(db: DatabaseSync): undefined {
  db.close();
}

/** A file that got no tables must not look like one that has lost its log (W1): closing removes the log. */
function leaveEmpty(db: DatabaseSync): void {
  try {
    if (Number(pragma(db, "user_version")) === 0) db.exec("pragma journal_mode = delete");
  } catch {
    // Another process has it open, whose log stays; or the disk fails, and the first error says so.
  }
}

/** O1. Looks at the bytes first, and opens for reading only when they do not settle it. */
async function refuseForeign(options: ConnectOptions): Promise<void> {
  const { path } = options;
  const header = await readCompleteHeader(options, path);
  if (header === undefined) return;
  if (header.applicationId === APPLICATION_ID) return refuseNewer(header.userVersion, path);
  if (header.applicationId !== 0) throw notReprise(path);
  // Ours while another process makes it, its first transaction still in the WAL; otherwise somebody else's.
  await withRetry(options, `Reading ${path}`, () => {
    const db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_SLICE_MS });
    try {
      checkSchemaVersion(db, path);
    } finally {
      db.close();
    }
  });
}

const SYNCHRONOUS = { full: 2, relaxed: 1 } as const;

/**
 * Pages in the log before it is copied into the file: 16 MB. Keys of checkpoints are hashes, each stands on a page of its
 * own, and what is changed again before the copy is copied once. (Measured, chains of graph nodes on a quiet machine, rows
 * per second of a bare loop: 26,000 at SQLite's 1,000 pages, 45,000 at 4,000, 55,000 at 10,000. Journals alone do not care.)
 */
const COPY_AT_PAGES = 4_000;

/** O2 */
function setPragmas(db: DatabaseSync, inMemory: boolean, durability: Durability): void {
  const wanted: [name: string, value: string | number][] = [
    ["journal_mode", inMemory ? "memory" : "wal"],
    ["synchronous", SYNCHRONOUS[durability]],
    ["foreign_keys", 1],
    // Only macOS has a weaker fsync than the one that counts; elsewhere these change nothing.
    ["fullfsync", durability === "full" ? 1 : 0],
    ["checkpoint_fullfsync", durability === "full" ? 1 : 0],
  ];
  db.exec(`pragma wal_autocheckpoint = ${COPY_AT_PAGES}`);
  for (const [name, value] of wanted) {
    db.exec(`pragma ${name} = ${value}`);
    const found = pragma(db, name);
    if (found !== value)
      throw new RepriseError(
        "STORE_UNSAFE_DURABILITY",
        `Expected ${name} = ${value}, the database says ${String(found)}: commits would not survive a power cut. Move the file to a file system that supports it.`,
        { details: { pragma: name, expected: value, found } },
      );
  }
}
