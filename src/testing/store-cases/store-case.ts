// Store case: one guarantee of the `Store` port, as data.
//
// A case needs no test runner: it throws when the store breaks the guarantee. It gets an empty store and a clock that it can set.
// After the case, `check` of every store that is still open must find no problem.

import assert from "node:assert/strict";
import type { Store } from "../../kernel/index.ts";

/** The clock of the store. Only these two calls move it. */
export interface StoreClock {
  /** Time passes: `now()` of every open store grows by exactly this much. */
  advance(ms: number): void;
  /** The wall clock is set back, as an operator or NTP does; no time passes. */
  setBack(ms: number): void;
}

/** A user's table, used through the handle that `transact` passes. Returns promises when the database does. */
export interface UserSql {
  create(db: unknown): unknown;
  insert(db: unknown, text: string): unknown;
  texts(db: unknown): readonly string[] | Promise<readonly string[]>;
}

/** What a case needs from its caller. */
export interface StoreTest {
  readonly clock: StoreClock;
  readonly userSql: UserSql;
  /** Opens an empty store. Called once per case. */
  open(): Promise<Store>;
  /** Opens another connection to the store of `open`. */
  openAgain(): Promise<Store>;
  /** The path of a backup file that does not exist yet. */
  backupPath(): string;
  openBackup(path: string): Promise<Store>;
}

/** One guarantee of every store, and its test. */
export interface StoreCase {
  /** A sentence that is true for every store. */
  readonly name: string;
  run(t: StoreTest): Promise<void>;
}

/** What the body of a case can use besides its first store. */
export interface CaseTools {
  readonly clock: StoreClock;
  readonly userSql: UserSql;
  openAgain(): Promise<Store>;
  openBackup(path: string): Promise<Store>;
  backupPath(): string;
  close(store: Store): Promise<void>;
}

/** Opens the store, runs the body, then checks and closes everything that is still open. */
export function storeCase(name: string, body: (store: Store, tools: CaseTools) => Promise<void>): StoreCase {
  return {
    name,
    async run(t) {
      const open = new Set<Store>();
      const track = (store: Store): Store => {
        open.add(store);
        return store;
      };
      const tools: CaseTools = {
        clock: t.clock,
        userSql: t.userSql,
        openAgain: async () => track(await t.openAgain()),
        openBackup: async (path) => track(await t.openBackup(path)),
        backupPath: () => t.backupPath(),
        async close(store) {
          open.delete(store);
          await store.close();
        },
      };
      try {
        await body(track(await t.open()), tools);
        for (const store of open)
          assert.deepEqual(await store.check(), [], "check() must find no problem after the case");
      } finally {
        // In reverse order: the first connection may own what the others use.
        for (const store of [...open].reverse()) await store.close();
      }
    },
  };
}
