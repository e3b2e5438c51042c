// The user's handle on Reprise's transaction (`ctx.tx` on PostgreSQL).

import { createEngine, workflow } from "reprise";
import { postgres } from "reprise/postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ConnectionError, type Backend, type Connection } from "../../../src/stores/remote/backend.ts";
import { openPostgresBackend } from "../../../src/stores/postgres/backend.ts";
import type { PostgresHandle } from "../../../src/stores/postgres/user-handle.ts";
import { runQuery } from "../../servers/run-query.ts";
import { describeOn, freshDatabase, type FreshDatabase } from "../../servers/index.ts";
import { entryRow } from "../rows.ts";

async function handleOf(connection: Connection): Promise<{ readonly db: PostgresHandle; close(): void }> {
  const handle = await connection.userHandle();
  return { db: handle.db as PostgresHandle, close: () => handle.close() };
}

describeOn("postgres", "user SQL on PostgreSQL", () => {
  let database: FreshDatabase;
  let backend: Backend;
  let last = 0;
  beforeAll(async () => {
    database = await freshDatabase("postgres");
    backend = await openPostgresBackend({ url: database.url });
    await database.run("create table visits (id int primary key, name text)");
    await database.run("create table guests (id int primary key references visits deferrable initially deferred)");
  });
  afterAll(() => database[Symbol.asyncDispose]());

  const visits = (): Promise<readonly unknown[]> => runQuery(database.url, "select id from visits order by id");

  test("commits with Reprise's rows or not at all", async () => {
    const connection = await backend.connect();
    const { db, close } = await handleOf(connection);
    const { rows, rowCount } = await db.query<{ id: number }>("insert into visits values ($1, $2) returning id", [
      1,
      "a",
    ]);
    expect([rows, rowCount]).toEqual([[{ id: 1 }], 1]);
    close();
    expect(
      await connection.commit((last += 1), 0, [{ change: "insert", table: "journal", rows: [entryRow(1, 1)] }]),
    ).toBe("committed");
    const again = await handleOf(connection);
    await again.db.query("insert into visits values (2, 'b')");
    again.close();
    expect(
      await connection.commit((last += 1), 0, [{ change: "insert", table: "journal", rows: [entryRow(1, 1)] }]),
    ).toBe("conflict");
    const third = await handleOf(connection);
    await third.db.query("insert into visits values (3, 'c')");
    third.close();
    await connection.rollback();
    expect(await visits()).toEqual([1]);
    await connection.close();
  });

  test("can be used only while its function runs", async () => {
    const connection = await backend.connect();
    const { db, close } = await handleOf(connection);
    // Not awaited: the function returned before it started.
    const late = db.query("insert into visits values (10, 'late')");
    close();
    await expect(db.query("select 1")).rejects.toMatchObject({ code: "USAGE" });
    expect(await connection.commit((last += 1), 0, [])).toBe("committed");
    await expect(late).rejects.toMatchObject({ code: "USAGE" });
    await connection.close();
  });

  test("refuses SQL that ends the transaction, outlives it or uses Reprise's tables, and several statements in one call", async () => {
    const connection = await backend.connect();
    const { db, close } = await handleOf(connection);
    for (const sql of ["commit", "set role postgres", "select * from reprise.runs"])
      await expect(db.query(sql)).rejects.toMatchObject({ code: "USAGE" });
    await db.query("insert into visits values (20, 'x')");
    await db.query("savepoint here");
    await expect(db.query("select 1; select 2")).rejects.toMatchObject({ code: "42601" });
    await db.query("rollback to here");
    await expect(db.query("do $$ begin commit; end $$")).rejects.toMatchObject({ code: "2D000" });
    await db.query("rollback to here");
    close();
    expect(await connection.commit((last += 1), 0, [])).toBe("committed");
    expect(await visits()).toContain(20);
    await connection.close();
  });

  test("reports a failed statement whose error the function caught", async () => {
    const connection = await backend.connect();
    const { db, close } = await handleOf(connection);
    await db.query("insert into visits values (30, 'x')");
    await expect(db.query("select 1 / 0")).rejects.toMatchObject({ code: "22012" });
    close();
    await expect(connection.commit((last += 1), 0, [])).rejects.toMatchObject({ code: "USAGE" });
    expect(await visits()).not.toContain(30);
    expect(await connection.commit((last += 1), 0, [])).toBe("committed");
    await connection.close();
  });

  test.each([
    ["awaits nothing", (db: PostgresHandle): void => void db.query("insert into visits values (40, 'x')")],
    [
      "catches the error of its last statement",
      (db: PostgresHandle) => db.query("select 1 / 0").catch(() => undefined),
    ],
  ])("a function that %s fails its run, once", async (_what, call) => {
    let calls = 0;
    const visit = workflow("visit", async (ctx) => {
      await ctx.tx("visit", postgres, async (db) => {
        calls += 1;
        await call(db);
      });
    });
    await using engine = await createEngine({ store: `${database.url}?schema=engine`, definitions: [visit] });
    const run = await engine.start(visit);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED", cause: { code: "USAGE" } });
    expect(calls).toBe(1);
    expect(await visits()).not.toContain(40);
  });

  test("an error of COMMIT is the user's own error", async () => {
    const connection = await backend.connect();
    const { db, close } = await handleOf(connection);
    await db.query("insert into guests values (99)");
    close();
    await expect(connection.commit((last += 1), 0, [])).rejects.toMatchObject({ code: "23503", table: "guests" });
    expect(await connection.commit((last += 1), 0, [])).toBe("committed");
    await connection.close();
  });

  test("leaves nothing on the connection", async () => {
    const connection = await backend.connect();
    const first = await handleOf(connection);
    await first.db.query(
      "select set_config('statement_timeout', '12345', false), set_config('search_path', 'reprise', false)",
    );
    await first.db.query("select pg_advisory_lock(42)");
    await first.db.query("select 1 as a into temporary leftover");
    first.close();
    expect(await connection.commit((last += 1), 0, [])).toBe("committed");
    const second = await handleOf(connection);
    const { rows } = await second.db.query(
      `select current_setting('statement_timeout') as timeout, current_setting('search_path') as path,
        to_regclass('leftover') as leftover,
        (select count(*)::int from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()) as locks`,
    );
    expect(rows).toEqual([{ timeout: "15s", path: '"$user", public', leftover: null, locks: 0 }]);
    second.close();
    await connection.rollback();
    await connection.close();
  });

  test("a connection that breaks under it is lost, and nothing is committed", async () => {
    const connection = await backend.connect();
    const { db, close } = await handleOf(connection);
    await db.query("insert into visits values (50, 'x')");
    await expect(db.query("select pg_terminate_backend(pg_backend_pid())")).rejects.toBeInstanceOf(ConnectionError);
    close();
    expect(connection.isUsable).toBe(false);
    await expect(connection.commit((last += 1), 0, [])).rejects.toMatchObject({ reason: "lost" });
    await connection.rollback();
    expect(await visits()).not.toContain(50);
  });
});
