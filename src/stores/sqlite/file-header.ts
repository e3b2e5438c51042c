// File header: checks that a file is complete before SQLite opens it.
//
// file-header.W1. A file in WAL mode without tables and without a log was separated from its log, which holds all its data. It is
//   refused: SQLite would open it as an empty store. A file that is being created looks like that for a moment, so it is read
//   up to `MAX_READS` times.
// file-header.W2. A file that this process has open is not read: closing any descriptor of a file releases all locks of the process
//   on it (POSIX), SQLite's included.

import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { RepriseError } from "../../base/index.ts";
import { identityOf, readHeader, ROLLBACK_JOURNAL, type FileIdentity, type Header } from "./store-file.ts";
import { sleep, type RetryOptions } from "./retry-busy.ts";

/** file-header.W1. How often, and how long apart, a file is read before it is refused: 2 s in all. */
const MAX_READS = 40;
const READ_AGAIN_MS = 50;

/** Undefined when the file is empty, or when this process has it open and has read it before (file-header.W2). */
export async function readCompleteHeader(options: RetryOptions, path: string): Promise<Header | undefined> {
  for (let reads = 1; ; reads += 1) {
    if (isOpenHere(path)) return undefined;
    const header = readHeader(path);
    const error = header && missingPart(path, header);
    if (error === undefined) return header;
    if (reads === MAX_READS) throw error;
    await sleep(options, READ_AGAIN_MS);
  }
}

function missingPart(path: string, { isWal, hasTables, missingBytes }: Header): RepriseError | undefined {
  const isTruncated = missingBytes > 0;
  const isEmptied = isWal && !hasTables;
  if (!isTruncated && !isEmptied) return undefined;
  // The log may hold the missing pages, or a transaction may be running.
  if (existsSync(`${path}-wal`) || existsSync(path + ROLLBACK_JOURNAL)) return undefined;
  const copies = "Copy a store with `reprise backup`, and put a copy in place with `reprise restore`.";
  if (isTruncated)
    return new RepriseError(
      "STORE_CORRUPT",
      `${path} is truncated: ${missingBytes} bytes are missing at its end. It was copied only in part, or while a process wrote to it. Nothing was changed. Use a complete copy. ${copies}`,
      { details: { path, missingBytes } },
    );
  return new RepriseError(
    "STORE_LOG_MISSING",
    `${path} was copied or moved without its log ${path}-wal, which holds its data. Nothing was changed. Put the log next to the file while no process uses it. If the file never held data, delete it. ${copies}`,
    { details: { path, log: `${path}-wal` } },
  );
}

interface Opened {
  readonly db: WeakRef<DatabaseSync>;
  readonly file: FileIdentity;
}

const opened = new Set<Opened>();

/** file-header.W2. Until the connection is closed. Threads and second copies of this module have their own list. */
export function trackOpen(db: DatabaseSync, file: FileIdentity): void {
  opened.add({ db: new WeakRef(db), file });
}

function isOpenHere(path: string): boolean {
  const file = identityOf(path);
  for (const one of opened) if (one.db.deref()?.isOpen !== true) opened.delete(one);
  return [...opened].some((one) => one.file.ino === file?.ino && one.file.dev === file.dev);
}
