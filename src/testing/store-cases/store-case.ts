// Store case: one promise of the Store port, as data.
//
// A case knows nothing of a test runner: it throws when the promise is broken. It is handed a fresh, empty store and a
// clock it may set, and whatever it did, every store it leaves behind must be healthy by its own `check`.

import assert from "node:assert/strict";
import type { Store } from "../../kernel/index.ts";

/** The clock the store is judged by. Nothing but these two calls may move it. */
export interface StoreClock {
  /** Time passes: `now()` of every open store grows by exactly this much. */
  advance(ms: number): void;
  /** The wall clock is set back, as an operator or NTP does; no time passes. */
  setBack(ms: number): void;
}

/** A table of the user's, reached with the handle `transact` gives; promises where the database answers with them. */
export interface UserSql {
  create(db: unknown): unknown;
  insert(db: unknown, text: string): unknown;
  texts(db: unknown): readonly string[] | Promise<readonly string[]>;
}

/** What a case needs from the one who runs it. */
export interface StoreTest {
  readonly clock: StoreClock;
  readonly userSql: UserSql;
  /** A fresh, empty store. Called once per case. */
  open(): Promise<Store>;
  /** Another connection to the store `open` answered. */
  openAgain(): Promise<Store>;
  /** Where a backup may be written; nothing is there yet. */
  backupPath(): string;
  openBackup(path: string): Promise<Store>;
}

/** One promise every store keeps, and how it is tried. */
export interface StoreCase {
  /** A sentence that is true of every store. */
  readonly name: string;
  run(t: StoreTest): Promise<void>;
}

/** What the body of a case may use besides its first store. */
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
        for (const store of open) assert.deepEqual(await store.check(), [], "check() finds a problem afterwards");
      } finally {
        // Last opened, first closed: the first connection may own what the others use.
        for (const store of [...open].reverse()) await store.close();
      }
    },
  };
}
