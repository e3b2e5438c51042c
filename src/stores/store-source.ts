// Store source: a store that is not opened yet. `sqlite(path)` makes one, and `createEngine({ store })` opens it.

import { inspect } from "node:util";
import { RepriseError, type Clock, type PayloadCodec, type Random, type Timers } from "../base/index.ts";
import type { Database, Store } from "../kernel/index.ts";
import type { SqliteHandle } from "./sqlite/sqlite-user-sql.ts";

export interface OpenOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly durability: "full" | "relaxed";
  /** Encodes and decodes payloads. */
  readonly codec?: PayloadCodec | undefined;
  /** Open the store without the codec its payloads were written with. Payloads can then be neither read nor written. */
  readonly locked?: boolean;
  /** False: refuse a store with an older schema instead of migrating it. */
  readonly migrate?: boolean;
  /** The clock of a store on a server: the server's, or `clock` (for tests with virtual time). */
  readonly time?: "server" | "given";
}

/** A store to open, made by `sqlite(path)`, `postgres(url)` or `mysql(url)`. */
export interface StoreSource {
  readonly "~open": (options: OpenOptions) => Promise<Store>;
}

function openSqlite(path: string): StoreSource {
  if (typeof path !== "string" || path === "")
    throw new RepriseError(
      "BAD_STORE_URL",
      `sqlite(path): expected the path of a file or ":memory:", got ${inspect(path)}. Write, for example, sqlite("shop.db").`,
    );
  return {
    "~open": async (options) => {
      const { openSqliteStore } = await import("./sqlite/sqlite-store.ts");
      return openSqliteStore({ path, ...options });
    },
  };
}

/**
 * A store in a SQLite file, or in memory with `":memory:"`. As an argument of `ctx.tx` it says that the function uses SQLite.
 *
 * @example
 * ```ts
 * import { createEngine, workflow } from "reprise";
 * import { sqlite } from "reprise/sqlite";
 * const count = workflow("count", async (ctx) =>
 *   ctx.tx("count", sqlite, (db) => {
 *     db.exec("create table if not exists visits (at text)");
 *     db.prepare("insert into visits values (?)").run(ctx.runId);
 *     return Number(db.prepare("select count(*) as n from visits").get()?.["n"]);
 *   }),
 * );
 * await using engine = await createEngine({ store: sqlite(":memory:"), definitions: [count] });
 * ```
 */
export const sqlite: ((path: string) => StoreSource) & Database<SqliteHandle, true> = Object.assign(openSqlite, {
  "~kind": "sqlite",
} as const);
