// Every promise of a store, on a real MariaDB.

import { afterAll, beforeAll, test } from "vitest";
import { systemRandom, systemTimers } from "../../src/base/index.ts";
import { TABLES } from "../../src/stores/remote/tables.ts";
import { openMysqlBackend } from "../../src/stores/mysql/backend.ts";
import type { MysqlHandle } from "../../src/stores/mysql/user-handle.ts";
import { storeCases, type UserSql } from "../../src/testing/store-cases.ts";
import { createVirtualTime } from "../../src/testing/virtual-clock.ts";
import { describeOn, freshDatabase, type FreshDatabase } from "../servers/index.ts";
import { createRemoteWorld } from "./remote-world.ts";

const userSql: UserSql = {
  create: () => undefined,
  insert: (db, text) => (db as MysqlHandle).query("insert into notes values (?)", [text]),
  texts: async (db) => {
    const { rows } = await (db as MysqlHandle).query<{ text: string }>("select text from notes");
    return rows.map(({ text }) => text);
  },
};

describeOn("mysql", "a store on MariaDB", () => {
  let database: FreshDatabase;
  const connect = () =>
    openMysqlBackend({ url: database.url, random: systemRandom, timers: systemTimers, durability: "full" });
  beforeAll(async () => {
    database = await freshDatabase("mysql");
    const backend = connect();
    await (await backend.connect()).close();
    await backend.close();
    // Here a table cannot be made inside a transaction.
    await database.run("create table notes (text text not null)");
  });
  afterAll(() => database[Symbol.asyncDispose]());

  for (const { name, run } of storeCases)
    test(name, { timeout: 60_000 }, async () => {
      // Making the tables takes longer than a case.
      const emptied = Object.keys(TABLES).filter((table) => table !== "meta");
      await database.run(...emptied.map((table) => `delete from reprise_${table}`), "delete from notes");
      await using world = createRemoteWorld(createVirtualTime(), userSql, connect, {});
      await run(world);
    });
});
