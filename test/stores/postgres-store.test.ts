// Every promise of a store, on a real PostgreSQL.

import { afterAll, beforeAll, test } from "vitest";
import { openPostgresBackend } from "../../src/stores/postgres/backend.ts";
import { TABLES } from "../../src/stores/remote/tables.ts";
import type { PostgresHandle } from "../../src/stores/postgres/user-handle.ts";
import { storeCases, type UserSql } from "../../src/testing/store-cases.ts";
import { createVirtualTime } from "../../src/testing/virtual-clock.ts";
import { describeOn, freshDatabase, type FreshDatabase } from "../servers/index.ts";
import { createRemoteWorld } from "./remote-world.ts";

const userSql: UserSql = {
  create: (db) => (db as PostgresHandle).query("create table notes (text text not null)"),
  insert: (db, text) => (db as PostgresHandle).query("insert into notes values ($1)", [text]),
  texts: async (db) => {
    const { rows } = await (db as PostgresHandle).query<{ text: string }>("select text from notes");
    return rows.map(({ text }) => text);
  },
};

describeOn("postgres", "a store on PostgreSQL", () => {
  let database: FreshDatabase;
  beforeAll(async () => {
    database = await freshDatabase("postgres");
    const backend = await openPostgresBackend({ url: database.url });
    await (await backend.connect()).close();
    await backend.close();
  });
  afterAll(() => database[Symbol.asyncDispose]());

  for (const { name, run } of storeCases)
    test(name, { timeout: 60_000 }, async () => {
      const { url } = database;
      // Making the tables takes longer than a case.
      const emptied = Object.keys(TABLES).filter((table) => table !== "meta");
      await database.run(
        `truncate ${emptied.map((table) => `reprise."${table}"`).join(", ")}`,
        "drop table if exists notes",
      );
      await using world = createRemoteWorld(createVirtualTime(), userSql, () => openPostgresBackend({ url }), {});
      await run(world);
    });
});
