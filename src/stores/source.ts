// StoreSource: a store named but not opened. What `sqlite(path)` gives and `createEngine({ store })` takes.

import { inspect } from "node:util";
import { RepriseError, type Clock, type PayloadCodec, type Random, type Timers } from "../base/index.ts";
import type { Database, Store } from "../kernel/index.ts";
import type { SqliteHandle } from "./sqlite/user-sql.ts";

export interface OpenOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly durability: "full" | "relaxed";
  /** What payloads are written and read with. */
  readonly codec?: PayloadCodec | undefined;
  /** Open also without the codec the payloads were written with; they can be neither read nor written then. */
  readonly locked?: boolean;
  /** False: refuse a store whose schema is not the newest, instead of bringing it up to date. */
  readonly migrate?: boolean;
  /** Whose time counts where there is a server: its own, or that of `clock` (tests, whose time is virtual). */
  readonly time?: "server" | "given";
}

/** A database to open; made by `sqlite(path)`. */
export interface StoreSource {
  readonly "~open": (options: OpenOptions) => Promise<Store>;
}

function openSqlite(path: string): StoreSource {
  if (typeof path !== "string" || path === "")
    throw new RepriseError("BAD_STORE_URL", `sqlite: expected the path of a file or ":memory:", got ${inspect(path)}.`);
  return {
    "~open": async (options) => {
      const { openSqliteStore } = await import("./sqlite/sqlite-store.ts");
      return openSqliteStore({ path, ...options });
    },
  };
}

/**
 * Names a SQLite file, or `:memory:`; for `ctx.tx`, says that its function takes a handle on SQLite.
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
