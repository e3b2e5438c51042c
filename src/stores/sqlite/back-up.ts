// Back up: a consistent copy of a store while workers run. The target must not exist.

import { backup, DatabaseSync } from "node:sqlite";
import { closeSync, openSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { RepriseError } from "../../base/index.ts";
import type { OnProgress } from "../../kernel/index.ts";
import { storeErrorOf } from "./errors.ts";
import { MEMORY } from "./store-file.ts";
import { isUnchanged, openToRead } from "./read-only-file.ts";
import { BUSY_SLICE_MS, withRetry, type RetryOptions } from "./retry-busy.ts";
import type { SqliteSession } from "./sqlite-session.ts";
import { pragma } from "./version.ts";

export async function backUp(session: SqliteSession, path: string, onProgress?: OnProgress): Promise<void> {
  const target = resolve(path);
  await intoNewFile(target, async () => {
    await session.read("Backing up", () => undefined);
    if (session.options.path === MEMORY) await copy(session.connection.db, target, onProgress);
    else if (session.options.readOnly === true) await copyAsRead(session.options, target, onProgress);
    else await copySnapshot(session.options, session.options.path, target, onProgress);
  });
}

/** A connection that only reads would leave the log and the index that it creates (read-only-file.V1, read-only-file.V2). */
async function copyAsRead(
  options: RetryOptions & { readonly path: string },
  target: string,
  onProgress: OnProgress | undefined,
): Promise<void> {
  const { db, frozen } = openToRead(options.path);
  await copyFrom(db, options, target, onProgress);
  if (frozen !== undefined && !isUnchanged(frozen)) await copyAsRead(options, target, onProgress);
}

/** Copies a file that this process has not opened, with any schema: before a migration. */
export async function backUpFile(
  options: RetryOptions,
  path: string | URL,
  to: string,
  onProgress?: OnProgress,
): Promise<void> {
  const target = resolve(to);
  await intoNewFile(target, () => copySnapshot(options, path, target, onProgress));
}

async function intoNewFile(target: string, work: () => Promise<void>): Promise<void> {
  createNewFile(target);
  try {
    await work();
  } catch (error) {
    rmSync(target, { force: true });
    throw storeErrorOf(error, `Backing up to ${target}`);
  }
}

export function createNewFile(target: string): void {
  try {
    closeSync(openSync(target, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST")
      throw new RepriseError("BAD_OPTIONS", `${target} exists. Name a file for the backup that does not exist.`, {
        cause: error,
      });
    throw new RepriseError(
      "STORE_IO",
      `Cannot create ${target} (${(error as NodeJS.ErrnoException).code}). Check the path and the permissions of its folder.`,
      { cause: error },
    );
  }
}

/** 4 MB at a time. */
const BACKUP_PAGES = 1_000;

async function copy(db: DatabaseSync, target: string, onProgress: OnProgress | undefined): Promise<void> {
  await backup(db, target, {
    rate: BACKUP_PAGES,
    progress: ({ totalPages, remainingPages }) => onProgress?.(totalPages - remainingPages, totalPages),
  });
}

/**
 * Uses a separate connection with an open read transaction. So the copy is a snapshot, it does not restart whenever another
 * process writes (under load it would never end), and it does not block the store's connection.
 */
async function copySnapshot(
  options: RetryOptions,
  path: string | URL,
  target: string,
  onProgress?: OnProgress,
): Promise<void> {
  const db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_SLICE_MS });
  await copyFrom(db, options, target, onProgress);
}

async function copyFrom(
  db: DatabaseSync,
  options: RetryOptions,
  target: string,
  onProgress: OnProgress | undefined,
): Promise<void> {
  try {
    await withRetry(options, `Backing up to ${target}`, () => {
      if (!db.isTransaction) db.exec("begin");
      pragma(db, "user_version");
    });
    await copy(db, target, onProgress);
  } finally {
    db.close();
  }
}
