// What the store cases need from a store over a backend: here the simulated one, in memory.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemRandom, systemTimers, type PayloadCodec } from "../../src/base/index.ts";
import type { Store } from "../../src/kernel/index.ts";
import type { StoreSource } from "../../src/stores/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { Backend } from "../../src/stores/remote/backend.ts";
import { openRemoteStore } from "../../src/stores/remote/remote-store.ts";
import { openSimBackend, type SimUserHandle } from "../../src/testing/simulation/sim-backend.ts";
import type { Isolation } from "../../src/testing/simulation/sim-database.ts";
import type { StoreTest, UserSql } from "../../src/testing/store-cases.ts";
import { createVirtualTime } from "../../src/testing/virtual-clock.ts";

export interface RemoteWorld extends StoreTest {
  /** Removes the files; for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface RemoteWorldOptions {
  readonly isolation?: Isolation;
  readonly optimistic?: boolean;
  readonly codec?: PayloadCodec;
}

/** A list under one key; the simulated database has no tables of the user's. */
const simUserSql: UserSql = {
  create: (db) => (db as SimUserHandle).put("notes", "[]"),
  insert: async (db, text) => {
    const { get, put } = db as SimUserHandle;
    await put("notes", JSON.stringify([...(JSON.parse((await get("notes")) ?? "[]") as string[]), text]));
  },
  texts: async (db) => JSON.parse((await (db as SimUserHandle).get("notes")) ?? "[]") as string[],
};

export function createSimWorld({ isolation = "rc", ...options }: RemoteWorldOptions = {}): RemoteWorld {
  const time = createVirtualTime();
  const first = openSimBackend({ isolation, now: () => time.now() });
  let opened = 0;
  return createRemoteWorld(time, simUserSql, () => (opened++ === 0 ? first : first.server.backend()), options);
}

/** A simulated database that nobody else has. */
export function simulatedSource(): StoreSource {
  return {
    "~open": (options) => openRemoteStore(openSimBackend({ now: () => options.clock.now() }), options),
  };
}

export function createRemoteWorld(
  time: ReturnType<typeof createVirtualTime>,
  userSql: UserSql,
  connect: () => Backend | Promise<Backend>,
  { optimistic = true, codec }: RemoteWorldOptions,
): RemoteWorld {
  const folder = mkdtempSync(join(tmpdir(), "reprise-store-"));
  // Real timers: waiting for another connection's lock is not a thing the cases have time pass for.
  const ports = { clock: time.clock, timers: systemTimers, random: systemRandom };
  const open = async (): Promise<Store> =>
    openRemoteStore(await connect(), { ...ports, durability: "full", codec, time: "given", optimistic });
  return {
    clock: {
      advance: (ms) => time.advanceTo(time.now() + ms),
      setBack: (ms) => time.setWall(time.now() - ms),
    },
    userSql,
    open,
    openAgain: open,
    backupPath: () => join(folder, "backup.db"),
    openBackup: (path) => openSqliteStore({ path, ...ports, codec }),
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
