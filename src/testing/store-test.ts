// What the store cases need, from any store that can be opened twice.

import { join } from "node:path";
import { systemRandom, systemTimers } from "../base/index.ts";
import type { Store } from "../kernel/index.ts";
import { sqlite, type StoreSource } from "../stores/index.ts";
import type { StoreTest, UserSql } from "./store-cases.ts";
import { createVirtualTime } from "./virtual-clock.ts";

/** Options of `createStoreTest`. */
export interface StoreTestOptions {
  /** Empty, and reached by every `~open` of it. */
  readonly source: StoreSource;
  /** A table `notes (text)` of the user's, with the handle `ctx.tx` gives there. */
  readonly userSql: UserSql;
  /** Where backups may be written. */
  readonly folder: string;
}

/**
 * Makes what store cases need to be tried on a store; its time is virtual. One for each case.
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
  // Real timers: waiting for another connection's lock is not a thing the cases have time pass for.
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
