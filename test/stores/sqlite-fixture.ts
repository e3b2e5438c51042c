// SQLite fixture: what the store cases need: a new file per case, or a database in memory.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemRandom, systemTimers, type PayloadCodec } from "../../src/base/index.ts";
import type { Store } from "../../src/kernel/index.ts";
import { NOTES } from "../../src/stores/maintenance/notes.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { StoreTest } from "../../src/testing/store-cases.ts";
import { createVirtualTime } from "../../src/testing/virtual-clock.ts";

export interface SqliteFixture extends StoreTest {
  /** Removes the files; for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface SqliteFixtureOptions {
  readonly memory?: boolean;
  readonly durability?: "full" | "relaxed";
  readonly codec?: PayloadCodec;
  /** Wraps every store that a case opens. */
  readonly wrap?: (store: Store, clock: { now(): number }, path: string) => Store;
}

export function createSqliteFixture(options: SqliteFixtureOptions = {}): SqliteFixture {
  const folder = mkdtempSync(join(tmpdir(), "reprise-store-"));
  const time = createVirtualTime();
  const file = options.memory === true ? ":memory:" : join(folder, "store.db");
  const wrap = options.wrap ?? ((store: Store) => store);

  // Real timers: a store that waits for another connection's lock waits in real time.
  async function open(path: string): Promise<Store> {
    const { durability, codec } = options;
    const ports = { clock: time.clock, timers: systemTimers, random: systemRandom };
    const store = await openSqliteStore({ path, ...ports, codec, ...(durability === undefined ? {} : { durability }) });
    return wrap(store, time.clock, path);
  }

  return {
    clock: {
      advance: (ms) => time.advanceTo(time.now() + ms),
      setBack: (ms) => time.setWall(time.now() - ms),
    },
    userSql: NOTES.sqlite,
    open: () => open(file),
    openAgain() {
      if (options.memory === true)
        throw new Error("a database in memory has one connection; skip this case with a reason");
      return open(file);
    },
    backupPath: () => join(folder, "backup.db"),
    openBackup: open,
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
