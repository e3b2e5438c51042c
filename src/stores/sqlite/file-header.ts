// Whole file: what the bytes of a file say before SQLite opens it.
//
// W1. A file in WAL mode without tables and without a log beside it has lost the log: everything was still in there. A store
//     in it would begin empty, so it is refused. A file in the making looks like that for a moment: `LOOKS` times.
// W2. The file is not read while this process has it open: closing any descriptor of a file takes all the locks away that
//     the process has on it (POSIX), SQLite's among them.

import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { RepriseError } from "../../base/index.ts";
import { identityOf, readHeader, ROLLBACK_JOURNAL, type FileIdentity, type Header } from "./store-file.ts";
import { sleep, type RetryOptions } from "./retry-busy.ts";

/** How often, and how long apart, a file is looked at before it is refused (W1): 2 s. */
const LOOKS = 40;
const LOOK_AGAIN_MS = 50;

/** Undefined when the file is empty, or when this process has it open and has looked before (W2). */
export async function readCompleteHeader(waiting: RetryOptions, path: string): Promise<Header | undefined> {
  for (let looks = 1; ; looks += 1) {
    if (isOpenHere(path)) return undefined;
    const header = readHeader(path);
    const trouble = header && missingPart(path, header);
    if (trouble === undefined) return header;
    if (looks === LOOKS) throw trouble;
    await sleep(waiting, LOOK_AGAIN_MS);
  }
}

function missingPart(path: string, { isWal, hasTables, missingBytes }: Header): RepriseError | undefined {
  const isTruncated = missingBytes > 0;
  const isEmptied = isWal && !hasTables;
  if (!isTruncated && !isEmptied) return undefined;
  // The log may hold what is missing, and a transaction may be under way.
  if (existsSync(`${path}-wal`) || existsSync(path + ROLLBACK_JOURNAL)) return undefined;
  const copies = "Make copies of a store with `reprise backup`, and bring one back with `reprise restore`.";
  if (isTruncated)
    return new RepriseError(
      "STORE_CORRUPT",
      `${path} ends ${missingBytes} bytes too early: it was copied only in part, or copied while it was written. Nothing was changed. Use a complete copy. ${copies}`,
      { details: { path, missingBytes } },
    );
  return new RepriseError(
    "STORE_LOG_MISSING",
    `${path} was copied or moved without its log ${path}-wal, which holds everything that was written to it. Nothing was changed. Put the log beside the file while no process uses it. If nothing was ever stored in the file, remove it and start again. ${copies}`,
    { details: { path, log: `${path}-wal` } },
  );
}

interface Opened {
  readonly db: WeakRef<DatabaseSync>;
  readonly file: FileIdentity;
}

const opened = new Set<Opened>();

/** W2. Until the connection is closed. Threads and second copies of this module keep a list of their own. */
export function trackOpen(db: DatabaseSync, file: FileIdentity): void {
  opened.add({ db: new WeakRef(db), file });
}

function isOpenHere(path: string): boolean {
  const file = identityOf(path);
  for (const one of opened) if (one.db.deref()?.isOpen !== true) opened.delete(one);
  return [...opened].some((one) => one.file.ino === file?.ino && one.file.dev === file.dev);
}
