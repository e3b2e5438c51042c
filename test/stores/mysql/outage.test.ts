// A MariaDB that does not respond, or was killed.

import { createConnection, type Connection } from "mysql2/promise";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemRandom, systemTimers } from "../../../src/base/index.ts";
import type { Backend } from "../../../src/stores/remote/backend.ts";
import { openMysqlBackend } from "../../../src/stores/mysql/backend.ts";
import { mysqlConnection } from "../../../src/stores/mysql/connection.ts";
import { describeOn, freshDatabase, startServer, type FreshDatabase, type TestServer } from "../../servers/index.ts";
import { runRow } from "../rows.ts";

describeOn("mysql", "outages of MariaDB", () => {
  let server: TestServer;
  let database: FreshDatabase;
  beforeAll(async () => {
    server = await startServer("mysql");
    database = await freshDatabase(server);
  }, 120_000);
  afterAll(() => server[Symbol.asyncDispose]());

  const open = (answerMs = 30_000): Backend =>
    openMysqlBackend({
      url: database.url,
      random: systemRandom,
      timers: systemTimers,
      durability: "full",
      timeouts: { answerMs, connectMs: answerMs },
    });

  test("a connection with the number of a lost one, on a restarted server, is not killed", async () => {
    const backend = open();
    for (let n = 0; n < 40; n += 1) await server.run("select 1");
    const lost = mysqlConnection(await backend.connect());
    await server.kill();
    await server.start();
    const strangers: Connection[] = [];
    do strangers.push(await createConnection(database.url));
    while (strangers.at(-1)!.threadId < lost.threadId);
    expect(strangers.at(-1)!.threadId).toBe(lost.threadId);
    const connection = await backend.connect();
    expect(await backend.lastBatch(connection, lost.writer)).toBe(0);
    for (const stranger of strangers) {
      await stranger.query("select 1");
      stranger.destroy();
    }
    await connection.close();
  });

  test("a commit without a response in time is unknown, and is resolved later", async () => {
    const backend = open(2_000);
    const connection = await backend.connect();
    server.signal("SIGSTOP");
    // Its bytes are in the server's buffer, and will be read when it resumes.
    const commit = connection.commit(1, 1, [{ change: "insert", table: "runs", rows: [runRow(1)] }]);
    await expect(commit).rejects.toMatchObject({ reason: "lost" });
    expect(connection.isUsable).toBe(false);
    await expect(backend.connect()).rejects.toMatchObject({ reason: "lost" });
    server.signal("SIGCONT");
    const patient = open();
    const other = await patient.connect();
    const batch = await patient.lastBatch(other, connection.writer);
    const [rows] = await other.read([{ kind: "count", table: "runs", where: [] }]);
    // Either way, the result is true and stays true.
    expect(rows).toEqual([{ count: batch }]);
    await other.close();
    const third = await patient.connect();
    expect(await third.read([{ kind: "count", table: "runs", where: [] }])).toEqual([rows]);
    expect(await patient.lastBatch(third, connection.writer)).toBe(batch);
    await third.close();
  });

  test("committed rows exist after a killed server has restarted, and new connections are opened", async () => {
    const backend = open();
    const connection = await backend.connect();
    expect(await connection.commit(1, 1, [{ change: "insert", table: "runs", rows: [runRow(7)] }])).toBe("committed");
    await connection.query([{ kind: "lookup", table: "runs", columns: ["run"], keys: [[7]], lock: "update" }]);
    await server.kill();
    await expect(connection.commit(2, 1, [])).rejects.toMatchObject({ reason: "lost" });
    await expect(backend.connect()).rejects.toMatchObject({ reason: "lost" });
    await server.start();
    const again = await backend.connect();
    expect(await backend.lastBatch(again, connection.writer)).toBe(1);
    const [rows] = await again.query([
      { kind: "lookup", table: "runs", columns: ["run"], keys: [[7]], lock: "update" },
    ]);
    expect(rows).toHaveLength(1);
    await again.rollback();
    await again.close();
  });
});
