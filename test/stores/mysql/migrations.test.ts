// Making and finding the schema on MariaDB: races, kills, strangers, and other versions.

import { expect, test } from "vitest";
import type { Connection } from "mysql2/promise";
import { lockName } from "../../../src/stores/mysql/migrate.ts";
import { MIGRATIONS, SCHEMA_VERSION } from "../../../src/stores/mysql/schema.ts";
import { describeOn } from "../../servers/index.ts";
import { createMysqlFixture } from "./fixture.ts";

async function tablesOf(raw: Connection): Promise<readonly string[]> {
  const [rows] = await raw.query("select table_name from information_schema.tables where table_schema = database()");
  return (rows as unknown as string[][]).map(([name]) => name!).toSorted();
}

describeOn("mysql", "the schema on MariaDB", () => {
  test("any number of starters may race for an empty database", async () => {
    await using world = await createMysqlFixture();
    const backends = Array.from({ length: 5 }, () => world.open());
    const pool = await Promise.all(backends.map((backend) => backend.connect()));
    for (const connection of pool) expect(await connection.commit(1, 1, [])).toBe("committed");
    expect(await tablesOf(await world.raw())).toHaveLength(MIGRATIONS.flat().length);
    for (const connection of pool) await connection.close();
  });

  test("a migration that was killed behind any of its statements is brought to its end by the next starter", async () => {
    await using world = await createMysqlFixture();
    const raw = await world.raw();
    const statements = MIGRATIONS.flat();
    for (let done = 0; done <= statements.length; done += 9) {
      await raw.query("set foreign_key_checks = 0");
      for (const table of await tablesOf(raw)) await raw.query(`drop table \`${table}\``);
      for (const statement of statements.slice(0, done)) await raw.query(statement);
      const connection = await world.open().connect();
      expect(await connection.commit(1, 1, [])).toBe("committed");
      await connection.close();
      expect(await tablesOf(raw)).toHaveLength(statements.length);
      const [version] = await raw.query("select cast(value as char) from reprise_meta where `key` = 'schema'");
      expect(version).toEqual([[String(SCHEMA_VERSION)]]);
    }
  }, 120_000);

  test("whoever holds the lock and dies lets the next one in", async () => {
    await using world = await createMysqlFixture();
    const holder = await world.raw();
    await holder.query("select get_lock(?, 0)", [lockName(world.database.name)]);
    const waiting = world.open().connect();
    const raw = await world.raw();
    await expect
      .poll(async () => {
        const [rows] = await raw.query(
          "select count(*) from information_schema.processlist where state = 'User lock' and db = database()",
        );
        return Number((rows as unknown as number[][])[0]?.[0]);
      })
      .toBeGreaterThan(0);
    expect(await tablesOf(raw)).toEqual([]);
    holder.destroy();
    await (await waiting).close();
  });

  test("a newer schema is refused before anything is changed", async () => {
    await using world = await createMysqlFixture();
    await (await world.backend.connect()).close();
    await world.database.run("update reprise_meta set value = '999' where `key` = 'schema'");
    await expect(world.open().connect()).rejects.toMatchObject({
      code: "STORE_NEWER_SCHEMA",
      details: { found: 999, known: SCHEMA_VERSION },
    });
  });

  test("an older schema is brought up to date only by who may", async () => {
    await using world = await createMysqlFixture();
    await expect(world.open({ migrate: false }).connect()).rejects.toMatchObject({ code: "STORE_OLDER_SCHEMA" });
    expect(await tablesOf(await world.raw())).toEqual([]);
    await (await world.backend.connect()).close();
    const connection = await world.open({ migrate: false }).connect();
    await connection.close();
  });

  test("a table of another program under one of our names is refused, and left alone", async () => {
    await using world = await createMysqlFixture();
    await world.database.run("create table reprise_runs (a int)", "create table orders (a int)");
    await expect(world.open().connect()).rejects.toMatchObject({
      code: "STORE_NOT_REPRISE",
      details: { table: "reprise_runs" },
    });
    expect(await tablesOf(await world.raw())).toEqual(["orders", "reprise_runs"]);
  });

  test("tables of other programs beside ours are no obstacle", async () => {
    await using world = await createMysqlFixture();
    await world.database.run("create table orders (a int)", "create table reprise_notes (a int)");
    await (await world.backend.connect()).close();
  });

  test("wrong addresses are refused for good, a server that is away is not", async () => {
    await using world = await createMysqlFixture();
    const elsewhere = (change: (url: URL) => void): string => {
      const url = new URL(world.database.url);
      change(url);
      return url.href;
    };
    const noDatabase = elsewhere((url) => (url.pathname = "/no_such_database"));
    await expect(world.open({ url: noDatabase }).connect()).rejects.toMatchObject({ code: "STORE_IO" });
    const noEntry = elsewhere((url) => (url.username = "nobody-we-know"));
    await expect(world.open({ url: noEntry }).connect()).rejects.toMatchObject({ code: "STORE_IO" });
    const away = elsewhere((url) => (url.port = "1"));
    await expect(world.open({ url: away }).connect()).rejects.toMatchObject({ reason: "lost" });
  });
});
