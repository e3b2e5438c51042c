// User SQL in Reprise's transaction, on MariaDB: what it may do, and what is detected.

import { createEngine, workflow } from "reprise";
import { mysql } from "reprise/mysql";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Connection } from "../../../src/stores/remote/backend.ts";
import type { MysqlHandle } from "../../../src/stores/mysql/user-handle.ts";
import { describeOn } from "../../servers/index.ts";
import { createMysqlFixture, type MysqlFixture } from "./fixture.ts";
import { runRow } from "../rows.ts";

describeOn("mysql", "user SQL on MariaDB", () => {
  let world: MysqlFixture;
  let connection: Connection;
  beforeAll(async () => {
    world = await createMysqlFixture({ timeouts: { lockMs: 1_000 } });
    await (await world.backend.connect()).close();
    await world.database.run(
      "create table orders (id int auto_increment primary key, name varchar(100) character set utf8mb4 unique) engine=innodb",
      "create procedure commits() begin insert into orders (name) values ('hidden'); commit; insert into orders (name) values ('after'); end",
    );
  });
  afterAll(() => world[Symbol.asyncDispose]());
  beforeEach(async () => void (connection = await world.backend.connect()));
  afterEach(async () => {
    connection.destroy();
    await world.database.run("delete from orders", "delete from reprise_runs");
  });

  async function begin(): Promise<MysqlHandle> {
    return (await connection.userHandle()).db as MysqlHandle;
  }

  async function names(): Promise<readonly unknown[]> {
    const raw = await world.raw();
    const [rows] = await raw.query("select name from orders order by id");
    raw.destroy();
    return (rows as unknown as unknown[][]).map(([name]) => name);
  }

  const insertRun = (run: number) => [{ change: "insert", table: "runs", rows: [runRow(run)] }] as const;

  test("commits with Reprise's rows or not at all", async () => {
    const db = await begin();
    const written = await db.query("insert into orders (name) values (?), (?)", ["it's", "two"]);
    expect(written).toMatchObject({ rows: [], affectedRows: 2 });
    expect(written.insertId).toBeGreaterThan(0);
    expect((await db.query("select name from orders order by id")).rows).toEqual([{ name: "it's" }, { name: "two" }]);
    expect(await names()).toEqual([]);
    expect(await connection.commit(1, 1, insertRun(1))).toBe("committed");
    expect(await names()).toEqual(["it's", "two"]);

    const second = await begin();
    await second.query("insert into orders (name) values ('three')");
    // The run exists already.
    expect(await connection.commit(2, 1, insertRun(1))).toBe("conflict");
    expect(await names()).toEqual(["it's", "two"]);

    const third = await begin();
    await third.query("insert into orders (name) values ('four')");
    await connection.rollback();
    expect(await names()).toEqual(["it's", "two"]);
    // The connection is reset: a single statement autocommits.
    expect(await world.backend.reserve(connection, "runs", 1, 0)).toBeGreaterThan(0);
    expect(await connection.commit(3, 1, insertRun(2))).toBe("committed");
  });

  test.each([
    "commit",
    " COMMIT ;",
    "/* x */ rollback",
    "-- x\nbegin",
    "# x\nstart transaction",
    "set autocommit = 1",
    "select 1; commit",
    "select ';'; commit",
    "create table t (a int)",
    "alter table orders add b int",
    "truncate orders",
    "drop table orders",
    "lock tables orders write",
    "use mysql",
    "/*! commit */",
    "select 1 /*M! ; commit */",
    "select * from reprise_runs",
    "insert into `reprise_journal` values (1)",
    "select * from REPRISE_queue",
    "release savepoint reprise_tx",
    "prepare s from 'commit'",
  ])("%s is refused", async (sql) => {
    const db = await begin();
    await db.query("insert into orders (name) values ('kept')");
    await expect(db.query(sql)).rejects.toMatchObject({ code: "USAGE" });
    expect(await connection.commit(1, 1, insertRun(1))).toBe("committed");
    expect(await names()).toEqual(["kept"]);
  });

  test.each([
    "select 'commit; drop table x' as a",
    'select "a;b" as a',
    "select 1 as a -- ; commit",
    "(select 1 as a)",
    "select 1 as a;",
    "with x as (select 1 as a) select * from x",
    "savepoint s",
    "update orders set name = 'it''s; commit' where id = -1",
  ])("%s is not", async (sql) => {
    const db = await begin();
    await db.query(sql);
    await connection.rollback();
  });

  test("the user's own savepoint rolls back a part", async () => {
    const db = await begin();
    await db.query("insert into orders (name) values ('a')");
    await db.query("savepoint mine");
    await db.query("insert into orders (name) values ('b')");
    await db.query("rollback to savepoint mine");
    expect(await connection.commit(1, 1, [])).toBe("committed");
    expect(await names()).toEqual(["a"]);
  });

  test("a failed statement is undone; the rest of the transaction continues", async () => {
    const db = await begin();
    await db.query("insert into orders (name) values ('a')");
    await expect(db.query("insert into orders (name) values ('b'), ('a')")).rejects.toMatchObject({ errno: 1062 });
    expect(await connection.commit(1, 1, [])).toBe("committed");
    expect(await names()).toEqual(["a"]);
  });

  test("a lock timeout ends the transaction, even if the function catches the error", async () => {
    await world.database.run("insert into orders (id, name) values (1, 'held')");
    const raw = await world.raw();
    await raw.query("begin; select * from orders where id = 1 for update");
    const db = await begin();
    await db.query("insert into orders (name) values ('half')");
    await expect(db.query("update orders set name = 'x' where id = 1")).rejects.toMatchObject({ errno: 1205 });
    await expect(db.query("select 1")).rejects.toMatchObject({ code: "USAGE" });
    expect(await connection.commit(1, 1, insertRun(1))).toBe("retry");
    raw.destroy();
    expect(await names()).toEqual(["held"]);
    expect(await connection.commit(1, 1, insertRun(1))).toBe("committed");
  });

  test("a procedure that commits is detected, and nothing of Reprise is committed with it", async () => {
    const db = await begin();
    await db.query("call commits()");
    await expect(connection.commit(1, 1, insertRun(1))).rejects.toMatchObject({ code: "USAGE" });
    // What it did before the commit stays; what came after is undone.
    expect(await names()).toEqual(["hidden"]);
    expect((await connection.read([{ kind: "count", table: "runs", where: [] }]))[0]).toEqual([{ count: 0 }]);
    expect(await connection.commit(2, 1, insertRun(1))).toBe("committed");
  });

  test.each([
    [
      "awaits nothing",
      [],
      (db: MysqlHandle): void => void db.query("insert into orders (name) values ('not awaited')"),
    ],
    ["calls a procedure that commits", ["hidden"], (db: MysqlHandle) => db.query("call commits()")],
  ] as const)("a function that %s fails its run, once", async (_what, left, call) => {
    let calls = 0;
    const order = workflow("order", async (ctx) => {
      await ctx.tx("order", mysql, async (db) => {
        calls += 1;
        await call(db);
      });
    });
    await using engine = await createEngine({ store: world.database.url, definitions: [order] });
    const run = await engine.start(order);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED", cause: { code: "USAGE" } });
    expect(calls).toBe(1);
    expect(await names()).toEqual(left);
  });

  test("cannot be used after its function has returned", async () => {
    const handle = await connection.userHandle();
    const db = handle.db as MysqlHandle;
    const late = db.query("insert into orders (name) values ('not awaited')");
    handle.close();
    await expect(late).rejects.toMatchObject({ code: "USAGE" });
    await expect(db.query("select 1")).rejects.toMatchObject({ code: "USAGE" });
    expect(await connection.commit(1, 1, [])).toBe("committed");
    await expect(db.query("select 1")).rejects.toMatchObject({ code: "USAGE" });
  });
});
