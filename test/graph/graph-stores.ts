// Graph stores: a store file that a test can open with an engine and with SQL.

import { DatabaseSync } from "node:sqlite";
import type { StoreSource } from "reprise";
import { createFolder, storeAround, type AnyStore, type AnyWrite } from "../engine/world.ts";

export interface GraphStores {
  readonly source: StoreSource;
  readonly store: AnyStore;
  readonly path: string;
  /** SQL beside the store, on a connection of its own. */
  sql<T = Record<string, unknown>>(text: string): T[];
  [Symbol.dispose](): void;
}

type Around = (writes: readonly AnyWrite[], apply: () => Promise<readonly unknown[]>) => Promise<readonly unknown[]>;

export function openStores(around: Around = (_writes, apply) => apply()): GraphStores {
  const folder = createFolder();
  const path = folder.file("graph.db");
  const source = storeAround(around, path);
  return {
    source,
    path,
    get store() {
      return source.store;
    },
    sql<T>(text: string) {
      const db = new DatabaseSync(path);
      try {
        return db.prepare(text).all() as T[];
      } finally {
        db.close();
      }
    },
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}
