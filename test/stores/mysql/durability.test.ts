// Servers whose settings could lose commits or change the meaning of statements.

import { afterAll, beforeAll, expect, test } from "vitest";
import { systemRandom, systemTimers } from "../../../src/base/index.ts";
import { openMysqlBackend } from "../../../src/stores/mysql/backend.ts";
import { describeOn, freshDatabase, startServer, type FreshDatabase, type TestServer } from "../../servers/index.ts";
import { queueRow } from "../rows.ts";

describeOn("mysql", "required settings of MariaDB", () => {
  let server: TestServer;
  let database: FreshDatabase;
  beforeAll(async () => {
    server = await startServer("mysql", { settings: { "log-bin": "binlog", "sync-binlog": 1, "server-id": 1 } });
    database = await freshDatabase(server);
  }, 120_000);
  afterAll(() => server[Symbol.asyncDispose]());

  async function connect(durability: "full" | "relaxed" = "full"): Promise<string> {
    const backend = openMysqlBackend({ url: database.url, random: systemRandom, timers: systemTimers, durability });
    const connection = await backend.connect();
    const { durability: said } = await backend.info(connection);
    await connection.close();
    return said;
  }

  test("a server with production settings is accepted, also with a synchronized binary log", async () => {
    expect(await connect()).toBe("full");
  });

  test.each([
    ["innodb_flush_log_at_trx_commit", "2", "1"],
    ["innodb_flush_log_at_trx_commit", "0", "1"],
    ["sync_binlog", "0", "1"],
  ])("%s = %s is refused unless durability is relaxed", async (setting, unsafe, safe) => {
    await server.run(`set global ${setting} = ${unsafe}`);
    try {
      await expect(connect()).rejects.toMatchObject({
        code: "STORE_UNSAFE_DURABILITY",
        details: { setting, expected: safe, found: unsafe },
      });
      expect(await connect("relaxed")).toBe("relaxed");
    } finally {
      await server.run(`set global ${setting} = ${safe}`);
    }
  });

  test("settings of the server do not change the meaning of statements", async () => {
    await server.run(
      "set global sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'",
      "set global tx_isolation = 'SERIALIZABLE'",
      "set global time_zone = '+05:30'",
      "set global completion_type = 'CHAIN'",
      "set global autocommit = 0",
    );
    const backend = openMysqlBackend({
      url: database.url,
      random: systemRandom,
      timers: systemTimers,
      durability: "full",
    });
    const connection = await backend.connect();
    const name = 'a\\ "b" || c\\\'';
    const row = queueRow(name);
    expect(await connection.commit(1, 1, [{ change: "insert", table: "queues", rows: [row] }])).toBe("committed");
    const other = await backend.connect();
    const [found] = await other.read([{ kind: "select", table: "queues", where: [], lock: "none" }]);
    expect(found).toEqual([row]);
    expect(Math.abs((await backend.serverTime(connection)) - Date.now())).toBeLessThan(3_600_000);
    await connection.close();
    await other.close();
  });

  test("a packet limit that is too small for a payload, and a statement-based log, are refused", async () => {
    await server.run("set global max_allowed_packet = 1048576");
    await expect(connect()).rejects.toMatchObject({ code: "STORE_LOCATION" });
    await server.run("set global max_allowed_packet = 16777216", "set global binlog_format = 'STATEMENT'");
    await expect(connect()).rejects.toMatchObject({ code: "STORE_LOCATION" });
    await server.run("set global binlog_format = 'MIXED'");
    expect(await connect()).toBe("full");
  });
});
