// Read-only file: opens a file to read, so that nothing is written: no page, no log, no index of a log.
//
// read-only-file.V1. Without a log next to the file, no process writes to it. SQLite then reads it as `immutable`: it takes no lock
//   and creates no log, so the file can be read in a folder, or on a disk, that cannot be written.
// read-only-file.V2. What was read from such a file counts only if the file is unchanged afterwards and still has no log. Otherwise a
//   process has opened the store in the meantime: the file is opened again, and the read is repeated.
// read-only-file.V3. With a log, SQLite reads the log through its index, which the process that writes keeps. If none does, as after
//   a crash, SQLite makes the index again. On a full disk it cannot: then the index is made in memory.

import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { RepriseError, shellWord } from "../../base/index.ts";
import { errcodeOf, IOERR_SHMSIZE, isReadOnly } from "./errors.ts";
import { BUSY_SLICE_MS } from "./retry-busy.ts";

/** A file that no process wrote to when it was opened (read-only-file.V1). */
export interface FrozenFile {
  readonly path: string;
  readonly state: string;
}

export interface OpenedToRead {
  readonly db: DatabaseSync;
  /** Undefined when other processes may write. */
  readonly frozen: FrozenFile | undefined;
}

export function openToRead(path: string): OpenedToRead {
  const state = frozenState(path);
  if (state !== undefined) return { db: openUrl(path, "immutable"), frozen: { path, state } };
  const db = openUrl(path);
  if (!lacksIndex(db)) return { db, frozen: undefined };
  db.close();
  // Not at once: a connection of this process that opens the store to write later would share the index, and could not write it.
  return { db: openUrl(path, "readonly_shm"), frozen: undefined };
}

function openUrl(path: string, parameter?: "immutable" | "readonly_shm"): DatabaseSync {
  const url = pathToFileURL(path);
  if (parameter !== undefined) url.searchParams.set(parameter, "1");
  return new DatabaseSync(url, { readOnly: true, timeout: BUSY_SLICE_MS });
}

/** read-only-file.V3. Other errors come again with the first statement, where they are handled. */
function lacksIndex(db: DatabaseSync): boolean {
  try {
    db.prepare("select 1 from sqlite_schema").get();
    return false;
  } catch (error) {
    return errcodeOf(error) === IOERR_SHMSIZE;
  }
}

/** read-only-file.V2 */
export function isUnchanged({ path, state }: FrozenFile): boolean {
  return frozenState(path) === state;
}

/** Undefined when there is a log, or no file. An empty log without an index was left by a process that wrote nothing. */
function frozenState(path: string): string | undefined {
  const log = sizeOf(`${path}-wal`);
  if (log !== undefined && (log > 0n || sizeOf(`${path}-shm`) !== undefined)) return undefined;
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat && [stat.dev, stat.ino, stat.size, stat.mtimeNs].join();
}

function sizeOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.size;
}

/** read-only-file.V3. A log whose index is missing can be read only in a folder where SQLite can create the index. */
export function explainUnreadableLog(error: unknown, path: string): unknown {
  if (!isReadOnly(error)) return error;
  return new RepriseError(
    "STORE_READ_ONLY",
    `${path} has a log, ${path}-wal, that no process has copied into the file, and the folder cannot be written. Copy both files to a folder that can be written (\`cp ${shellWord(path)} ${shellWord(`${path}-wal`)} <folder>\`) and name the copy.`,
    { cause: error, details: { path } },
  );
}
