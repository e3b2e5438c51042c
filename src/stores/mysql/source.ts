// mysql(url): names a store without opening it.

import { systemTimers } from "../../base/index.ts";
import type { Database } from "../../kernel/index.ts";
import type { StoreSource } from "../store-source.ts";
import { addressOf } from "./address.ts";
import type { MysqlHandle } from "./user-handle.ts";

function openMysql(url: string): StoreSource {
  // An invalid URL is reported here, not when the store is opened.
  addressOf(String(url));
  return {
    "~open": async (options) => {
      const { openRemoteStore, openedFor } = await import("../remote/remote-store.ts");
      const { openMysqlBackend } = await import("./backend.ts");
      const { random } = options;
      return openRemoteStore(openMysqlBackend({ url, random, ...openedFor(options), timers: systemTimers }), options);
    },
  };
}

/**
 * Names a MySQL or MariaDB database as a store. Passed to `ctx.tx`, it gives the function a MySQL handle.
 *
 * @example
 * ```ts
 * import { createEngine, workflow } from "reprise";
 * import { mysql } from "reprise/mysql";
 * const count = workflow("count", async (ctx) =>
 *   ctx.tx("count", mysql, async (db) => {
 *     await db.query("insert into visits values (?)", [ctx.runId]);
 *     const { rows } = await db.query<{ n: number }>("select count(*) as n from visits");
 *     return Number(rows[0]?.n);
 *   }),
 * );
 * const store = mysql("mysql://shop:secret@localhost/shop");
 * await using engine = await createEngine({ store, definitions: [count] });
 * ```
 */
export const mysql: ((url: string) => StoreSource) & Database<MysqlHandle, false> = Object.assign(openMysql, {
  "~kind": "mysql",
} as const);
