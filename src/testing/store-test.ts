// Store test: the environment of a store case, for any store that can be opened twice.

import { join } from "node:path";
import { systemRandom, systemTimers } from "../base/index.ts";
import type { Store } from "../kernel/index.ts";
import { sqlite, type StoreSource } from "../stores/index.ts";
import type { StoreTest, UserSql } from "./store-cases.ts";
import { createVirtualTime } from "./virtual-clock.ts";

/** Options of `createStoreTest`. */
export interface StoreTestOptions {
  /** An empty store. Every `~open` opens the same one. */
  readonly source: StoreSource;
  /** A user's table `notes (text)`, used through the handle that `ctx.tx` passes. */
  readonly userSql: UserSql;
  /** The folder for backups. */
  readonly folder: string;
}

/**
 * Creates the environment that a store case needs, with virtual time. Create one per case.
 *
 * @example
 * ```ts
 * import type { StoreSource } from "reprise";
 * import { createStoreTest, storeCases, type UserSql } from "reprise/testing";
 * async function tryAll(source: () => Promise<StoreSource>, userSql: UserSql, folder: string) {
 *   for (const { run } of storeCases) await run(createStoreTest({ source: await source(), userSql, folder }));
 * }
 * ```
 */
export function createStoreTest({ source, userSql, folder }: StoreTestOptions): StoreTest {
  const time = createVirtualTime();
  // Real timers: a store that waits for another connection's lock waits in real time.
  const ports = { clock: time.clock, timers: systemTimers, random: systemRandom, durability: "full" } as const;
  const open = (): Promise<Store> => source["~open"]({ ...ports, time: "given" });
  return {
    clock: {
      advance: (ms) => time.advanceTo(time.now() + ms),
      setBack: (ms) => time.setWall(time.now() - ms),
    },
    userSql,
    open,
    openAgain: open,
    backupPath: () => join(folder, `backup-${systemRandom.token()}.db`),
    openBackup: (path) => sqlite(path)["~open"](ports),
  };
}
