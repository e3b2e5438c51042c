// Store source: a store that is not opened yet. `sqlite(path)` makes one, and `createEngine({ store })` opens it.

import { inspect } from "node:util";
import {
  checkOptionNames,
  RepriseError,
  type Clock,
  type PayloadCodec,
  type Random,
  type Timers,
} from "../base/index.ts";
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
  /**
   * Open the store to read: nothing is created, migrated or written, and a write is refused. A file that cannot be written will do,
   * and so will a standby of a server.
   */
  readonly readOnly?: boolean;
  /** Where large payloads are stored: the address of a folder or a bucket; default: where the store says, or in the store. */
  readonly contents?: string | undefined;
  /** The clock of a store on a server: the server's, or `clock` (for tests with virtual time). */
  readonly time?: "server" | "given";
}

/** A store to open, made by `sqlite(path)`, `postgres(url)` or `mysql(url)`. */
export interface StoreSource {
  readonly "~open": (options: OpenOptions) => Promise<Store>;
}

/** Options of `sqlite(path, options)`. */
export interface SqliteOptions {
  /** Create the folder of the file if it is missing; otherwise a missing folder is refused. */
  readonly mkdir?: boolean;
}

function openSqlite(path: string, options: SqliteOptions = {}): StoreSource {
  checkOptionNames(options, ["mkdir"], "sqlite(path, options)");
  const { mkdir = false } = options;
  if (typeof mkdir !== "boolean")
    throw new RepriseError("BAD_OPTIONS", `sqlite(path, { mkdir }): expected true or false, got ${inspect(mkdir)}.`);
  if (typeof path !== "string" || path === "")
    throw new RepriseError(
      "BAD_STORE_URL",
      `sqlite(path): expected the path of a file or ":memory:", got ${inspect(path)}. Write, for example, sqlite("shop.db").`,
    );
  return {
    "~open": async (given) => {
      const { openSqliteStore } = await import("./sqlite/sqlite-store.ts");
      return openSqliteStore({ path, mkdir, ...given });
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
export const sqlite: ((path: string, options?: SqliteOptions) => StoreSource) & Database<SqliteHandle, true> =
  Object.assign(openSqlite, {
    "~kind": "sqlite",
  } as const);
