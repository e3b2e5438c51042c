// Migrations on MariaDB: races, kills, tables of other programs, and other versions.

import { expect, test } from "vitest";
import type { Connection } from "mysql2/promise";
import { lockName } from "../../../src/stores/mysql/migrate.ts";
import { MIGRATIONS, SCHEMA_VERSION } from "../../../src/stores/mysql/schema.ts";
import { openRemoteStore } from "../../../src/stores/remote/remote-store.ts";
import { TABLES } from "../../../src/stores/rows/tables.ts";
import { describeOn } from "../../servers/index.ts";
import { queueRow } from "../rows.ts";
import { startBefore, takesBudgets, type Dialect } from "../takes-budgets.ts";
import { REAL, takesKeys } from "../takes-keys.ts";
import { createMysqlFixture } from "./fixture.ts";

const STATEMENTS = MIGRATIONS.flat();
const TABLE_COUNT = Object.keys(TABLES).length;

async function tablesOf(raw: Connection): Promise<readonly string[]> {
  const [rows] = await raw.query(
    "select table_name from information_schema.tables where table_schema = database() and table_type = 'BASE TABLE'",
  );
  return (rows as unknown as string[][]).map(([name]) => name!).toSorted();
}

describeOn("mysql", "the schema on MariaDB", () => {
  test("any number of processes may migrate an empty database at the same time", async () => {
    await using world = await createMysqlFixture();
    const backends = Array.from({ length: 5 }, () => world.open());
    const pool = await Promise.all(backends.map((backend) => backend.connect()));
    for (const connection of pool) expect(await connection.commit(1, 1, [])).toBe("committed");
    expect(await tablesOf(await world.raw())).toHaveLength(TABLE_COUNT);
    for (const connection of pool) await connection.close();
  });

  test("a migration that was killed after any of its statements is completed by the next process", async () => {
    await using world = await createMysqlFixture();
    const raw = await world.raw();
    const { length } = STATEMENTS;
    for (const done of [0, 9, 18, length - 1, length]) {
      await raw.query("set foreign_key_checks = 0");
      for (const table of await tablesOf(raw)) await raw.query(`drop table \`${table}\``);
      for (const statement of STATEMENTS.slice(0, done)) await raw.query(statement);
      const connection = await world.open().connect();
      expect(await connection.commit(1, 1, [])).toBe("committed");
      await connection.close();
      expect(await tablesOf(raw)).toHaveLength(TABLE_COUNT);
      const [version] = await raw.query("select cast(value as char) from reprise_meta where `key` = 'schema'");
      expect(version).toEqual([[String(SCHEMA_VERSION)]]);
    }
  }, 120_000);

  test("a store of schema 1 is migrated with its rows, and a process of the version before goes on writing", async () => {
    await using world = await createMysqlFixture();
    const insert = "insert into reprise_queues (name, declared, limits, paused) values";
    await world.database.run(
      ...MIGRATIONS[0]!,
      "insert into reprise_meta values ('application', 'reprise'), ('schema', '1')",
      `${insert} ('mail', '{}', '{}', 1)`,
    );
    const connection = await world.backend.connect();
    await world.database.run(`${insert} ('old', '{}', '{}', 0)`);
    const [found] = await connection.read([{ kind: "select", table: "queues", where: [], lock: "none" }]);
    expect(found).toEqual([queueRow("mail", { paused: 1 }), queueRow("old")]);
    await connection.close();
  });

  test("a store of the schema before keyed answers keeps its rows, and takes keys beside a process of the version before", async () => {
    await using world = await createMysqlFixture();
    const before = MIGRATIONS.findIndex((migration) => migration.some((sql) => sql.includes("reprise_keyed_answers")));
    const insert = "insert into reprise_queues (name, declared, limits, paused) values";
    await world.database.run(
      ...MIGRATIONS.slice(0, before).flat(),
      `insert into reprise_meta values ('application', 'reprise'), ('schema', '${before}')`,
      `${insert} ('mail', '{}', '{}', 1)`,
    );
    const store = await openRemoteStore(world.backend, REAL);
    await takesKeys(store, () => world.database.run(`${insert} ('old', '{}', '{}', 0)`));
    await store.close();
  });

  test("a store of the schema before contents and budgets keeps its runs, and takes both beside a process of the version before", async () => {
    await using world = await createMysqlFixture();
    const before = MIGRATIONS.findIndex((migration) => migration.some((sql) => sql.includes("reprise_run_contents")));
    const dialect: Dialect = { table: (name) => `reprise_${name}`, quote: "`", bytes: (hex) => `x'${hex}'` };
    await world.database.run(
      ...MIGRATIONS.slice(0, before).flat(),
      `insert into reprise_meta values ('application', 'reprise'), ('schema', '${before}')`,
      ...startBefore(dialect, 1),
    );
    const store = await openRemoteStore(world.backend, REAL);
    await takesBudgets(store, () => world.database.run(...startBefore(dialect, 2)));
    await store.close();
  });

  test("a process that dies with the lock releases it for the next one", async () => {
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

  test("an older schema is migrated only if migrate is true", async () => {
    await using world = await createMysqlFixture();
    await expect(world.open({ migrate: false }).connect()).rejects.toMatchObject({ code: "STORE_OLDER_SCHEMA" });
    expect(await tablesOf(await world.raw())).toEqual([]);
    await (await world.backend.connect()).close();
    const connection = await world.open({ migrate: false }).connect();
    await connection.close();
  });

  test("a table of another program with one of Reprise's names is refused and not changed", async () => {
    await using world = await createMysqlFixture();
    await world.database.run("create table reprise_runs (a int)", "create table orders (a int)");
    await expect(world.open().connect()).rejects.toMatchObject({
      code: "STORE_NOT_REPRISE",
      details: { table: "reprise_runs" },
    });
    expect(await tablesOf(await world.raw())).toEqual(["orders", "reprise_runs"]);
  });

  test("tables of other programs with other names are allowed", async () => {
    await using world = await createMysqlFixture();
    await world.database.run("create table orders (a int)", "create table reprise_notes (a int)");
    await (await world.backend.connect()).close();
  });

  test("wrong addresses are errors at once, an unreachable server is retried", async () => {
    await using world = await createMysqlFixture();
    const withChange = (change: (url: URL) => void): string => {
      const url = new URL(world.database.url);
      change(url);
      return url.href;
    };
    const noDatabase = withChange((url) => (url.pathname = "/no_such_database"));
    await expect(world.open({ url: noDatabase }).connect()).rejects.toMatchObject({ code: "STORE_IO" });
    const unknownUser = withChange((url) => (url.username = "unknown-user"));
    await expect(world.open({ url: unknownUser }).connect()).rejects.toMatchObject({ code: "STORE_IO" });
    const unreachable = withChange((url) => (url.port = "1"));
    await expect(world.open({ url: unreachable }).connect()).rejects.toMatchObject({ reason: "lost" });
  });
});
