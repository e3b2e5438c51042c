// TiDB: refused when the store is opened. npm test has no TiDB server: a MariaDB server that reports TiDB's version stands in for it. With
// REPRISE_TIDB_URL=mysql://root@127.0.0.1:4000/test (an empty database) the same is tested on a real one, with the reasons.

import { createConnection, type Connection, type RowDataPacket } from "mysql2/promise";
import { describe, expect, test } from "vitest";
import { systemRandom, systemTimers } from "../../../src/base/index.ts";
import { openMysqlBackend } from "../../../src/stores/mysql/backend.ts";
import { describeOn, fastFolder, startServer } from "../../servers/index.ts";

async function errorAt(url: string): Promise<Error> {
  const backend = openMysqlBackend({ url, random: systemRandom, timers: systemTimers, durability: "full" });
  return (await backend.connect().catch((error: unknown) => error)) as Error;
}

function expectRefusal(error: Error): void {
  expect(error).toMatchObject({ code: "STORE_LOCATION" });
  expect(error.message).toContain("ignores it and locks nothing");
}

describeOn("mysql", "TiDB", () => {
  test(
    "a server that reports TiDB's version is refused, and nothing is written to it",
    { timeout: 120_000 },
    async () => {
      await using server = await startServer("mysql", {
        under: fastFolder(),
        settings: { version: "8.0.11-TiDB-v8.5.6" },
      });
      await server.run("create database shop");
      expectRefusal(await errorAt(server.urlOf("shop")));
      await expect(server.run("select * from shop.reprise_meta")).rejects.toThrow("doesn't exist");
    },
  );
});

const url = process.env["REPRISE_TIDB_URL"];

describe.skipIf(url === undefined)("a real TiDB server", () => {
  const connect = (): Promise<Connection> => createConnection({ uri: url! });

  test("is refused, and nothing is written to it", async () => {
    expectRefusal(await errorAt(url!));
    const connection = await connect();
    const [tables] = await connection.query<RowDataPacket[]>("show tables like 'reprise%'");
    await connection.end();
    expect(tables).toEqual([]);
  });

  test("still returns a locked row to FOR UPDATE SKIP LOCKED, and still refuses FOR SHARE", async () => {
    const [holder, other] = [await connect(), await connect()];
    try {
      await holder.query("create table locked (id int primary key)");
      await holder.query("insert into locked values (1)");
      for (const connection of [holder, other]) {
        await connection.query("set session transaction isolation level read committed");
        await connection.query("begin");
      }
      await holder.query("select id from locked for update");
      const [rows] = await other.query<RowDataPacket[]>("select id from locked for update skip locked");
      expect(rows).toEqual([{ id: 1 }]);
      await expect(other.query("select id from locked for share")).rejects.toThrow("noop");
      for (const connection of [other, holder]) await connection.query("rollback");
    } finally {
      await holder.query("drop table if exists locked");
      await Promise.all([holder.end(), other.end()]);
    }
  });
});
