// postgres(url): names a store without opening it.

import type { Database } from "../../kernel/index.ts";
import type { StoreSource } from "../store-source.ts";
import { addressOf } from "./address.ts";
import type { PostgresHandle } from "./user-handle.ts";

function openPostgres(url: string): StoreSource {
  // An invalid URL is reported here, not when the store is opened.
  addressOf(String(url));
  return {
    "~open": async (options) => {
      const { openRemoteStore, openedFor } = await import("../remote/remote-store.ts");
      const { openPostgresBackend } = await import("./backend.ts");
      const { random } = options;
      return openRemoteStore(await openPostgresBackend({ url, random, ...openedFor(options) }), options);
    },
  };
}

/**
 * Names a PostgreSQL database as a store. Passed to `ctx.tx`, it gives the function a PostgreSQL handle.
 *
 * @example
 * ```ts
 * import { createEngine, workflow } from "reprise";
 * import { postgres } from "reprise/postgres";
 * const count = workflow("count", async (ctx) =>
 *   ctx.tx("count", postgres, async (db) => {
 *     await db.query("insert into visits values ($1)", [ctx.runId]);
 *     const { rows } = await db.query<{ n: string }>("select count(*) as n from visits");
 *     return Number(rows[0]?.n);
 *   }),
 * );
 * const store = postgres("postgres://shop:secret@localhost/shop");
 * await using engine = await createEngine({ store, definitions: [count] });
 * ```
 */
export const postgres: ((url: string) => StoreSource) & Database<PostgresHandle, false> = Object.assign(openPostgres, {
  "~kind": "postgres",
} as const);
