// Directory lock: who replaces or removes a file of a directory holds it.
//
// directory-lock.K1. The lock is one that the operating system drops when its process ends, however it ends: a crash leaves no stale
//   lock behind. Node can take such a lock only through SQLite: `begin immediate` on an empty database, which is never written.

import { DatabaseSync } from "node:sqlite";
import { RepriseError } from "../base/index.ts";
import type { CarrierPorts } from "./carrier.ts";
import { pause } from "./waiting.ts";

const SQLITE_BUSY = 5;
const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 50;

/** Runs `act` while no other process and no other call holds the lock. */
export async function withDirectoryLock<T>(
  file: string,
  ports: CarrierPorts,
  giveUpMs: number,
  act: () => Promise<T>,
): Promise<T> {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    const giveUpAt = ports.clock.monotonic() + giveUpMs;
    for (let waitMs = FIRST_PAUSE_MS; !tryLock(database); waitMs = Math.min(2 * waitMs, LONGEST_PAUSE_MS)) {
      if (ports.clock.monotonic() > giveUpAt) throw stuck(file, giveUpMs);
      await pause(ports, waitMs);
    }
    return await act();
  } finally {
    // Also rolls back, which drops the lock.
    database.close();
  }
}

function tryLock(database: DatabaseSync): boolean {
  try {
    database.exec("begin immediate");
    return true;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return false;
    throw error;
  }
}

function stuck(file: string, ms: number): RepriseError {
  return new RepriseError(
    "CARRIER_UNREACHABLE",
    `Another process holds the lock ${file} for more than ${ms} ms. Find it with \`fuser ${file}\`, then repeat the command.`,
    { details: { file } },
  );
}
