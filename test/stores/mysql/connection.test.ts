// Transactions on MariaDB with concurrent transactions and broken connections.

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ConnectionError, type Connection, type WireRow } from "../../../src/stores/remote/backend.ts";
import type { Query } from "../../../src/stores/remote/query.ts";
import { mysqlConnection } from "../../../src/stores/mysql/connection.ts";
import { describeOn } from "../../servers/index.ts";
import { createMysqlFixture, type MysqlFixture } from "./fixture.ts";
import { itemRow, queueRow, runRow } from "../rows.ts";

const NASTY = "it's \\ \" \n \r \t \u0001 \u007f \u2028 é \u{1F600} \\' /* ; */ -- # ` %";
const byRun = (lock: "none" | "update", ...runs: number[]): Query => ({
  kind: "lookup",
  table: "runs",
  columns: ["run"],
  keys: runs.map((run) => [run]),
  lock,
});

const HASTY = { timeouts: { lockMs: 1_000 } };

describeOn("mysql", "connections to MariaDB", () => {
  let world: MysqlFixture;
  let one: Connection;
  let other: Connection;
  beforeAll(async () => void (world = await createMysqlFixture({ timeouts: { lockMs: 25_000 } })));
  afterAll(() => world[Symbol.asyncDispose]());
  beforeEach(async () => {
    one = await world.backend.connect();
    other = await world.backend.connect();
  });
  afterEach(async () => {
    one.destroy();
    other.destroy();
    await world.database.run(...["runs", "queue", "queues"].map((table) => `delete from reprise_${table}`));
  });

  const insertRuns = (connection: Connection, batch: number, ...rows: WireRow[]) =>
    connection.commit(batch, 1, [{ change: "insert", table: "runs", rows }]);

  async function runsOf(connection: Connection): Promise<readonly WireRow[]> {
    const [rows] = await connection.read([
      { kind: "select", table: "runs", where: [], order: [["run", "asc"]], lock: "none" },
    ]);
    return rows!;
  }

  test("ids that are equal in a collation are different runs", async () => {
    const ids = ["run-a", "run-A", "run-a ", "run-á", "run-a\u0301", "RUN-A", "run-ａ", NASTY];
    expect(await insertRuns(one, 1, ...ids.map((id, at) => runRow(at + 1, { id })))).toBe("committed");
    expect((await runsOf(one)).map(({ id }) => id)).toEqual(ids);
    for (const id of ids) {
      const [found] = await one.read([{ kind: "lookup", table: "runs", columns: ["id"], keys: [[id]], lock: "none" }]);
      expect(found!.map((row) => row["id"])).toEqual([id]);
    }
    expect(await insertRuns(one, 2, runRow(9, { id: "run-a " }))).toBe("conflict");
  });

  test("texts are ordered by bytes", async () => {
    const names = ["Z", "a", "a ", "b", "ä", "\uFFFD", "\u{1F600}"];
    const rows = names.toReversed().map((name) => queueRow(name));
    await one.commit(1, 1, [{ change: "insert", table: "queues", rows }]);
    const [found] = await one.read([
      { kind: "select", table: "queues", where: [], order: [["name", "asc"]], lock: "none" },
    ]);
    expect(found!.map(({ name }) => name)).toEqual(names);
    const [after] = await one.read([
      {
        kind: "select",
        table: "queues",
        where: [{ column: "name", is: ">", value: "a" }],
        order: [["name", "asc"]],
        lock: "none",
      },
    ]);
    expect(after!.map(({ name }) => name)).toEqual(names.slice(2));
  });

  test("any text and any bytes are read as they were inserted or updated", async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
    await insertRuns(one, 1, runRow(1, { evidence: bytes, chain: NASTY }), runRow(2, { evidence: NASTY }), runRow(3));
    const columns = ["runtime", "evidence", "turn_token", "created_at"];
    const rows = [
      { run: 1, runtime: NASTY, evidence: NASTY, turn_token: NASTY, created_at: Number.MAX_SAFE_INTEGER },
      { run: 2, runtime: "", evidence: null, turn_token: null, created_at: -1 },
      { run: 3, runtime: "r".repeat(70_000), evidence: "", turn_token: "", created_at: 0 },
    ];
    const before = await runsOf(one);
    expect(Buffer.from(before[0]!["evidence"] as Uint8Array).equals(bytes)).toBe(true);
    expect(before[0]!["chain"]).toBe(NASTY);
    expect(await one.commit(2, 1, [{ change: "update", table: "runs", columns, rows }])).toBe("committed");
    expect(
      (await runsOf(one)).map(({ run, runtime, evidence, turn_token, created_at }) => ({
        run,
        runtime,
        evidence: evidence === null ? null : Buffer.from(evidence as Uint8Array).toString(),
        turn_token,
        created_at,
      })),
    ).toEqual(rows);
    await one.commit(3, 1, [
      {
        change: "update",
        table: "runs",
        columns: ["evidence"],
        rows: [
          { run: 1, evidence: bytes },
          { run: 2, evidence: NASTY },
          { run: 3, evidence: null },
        ],
      },
    ]);
    const after = await runsOf(one);
    expect(Buffer.from(after[0]!["evidence"] as Uint8Array).equals(bytes)).toBe(true);
    expect(Buffer.from(after[1]!["evidence"] as Uint8Array).toString()).toBe(NASTY);
    expect(after[2]!["evidence"]).toBeNull();
  });

  test("a lock timeout rolls back the whole transaction, not only its statement", async () => {
    one = await world.open(HASTY).connect();
    await insertRuns(one, 1, runRow(1), runRow(2));
    await other.query([byRun("update", 2)]);
    // The server itself would keep the insert: 1205 undoes only the statement that waited.
    const outcome = await one.commit(2, 1, [
      { change: "insert", table: "runs", rows: [runRow(3)] },
      {
        change: "update",
        table: "runs",
        columns: ["head"],
        rows: [
          { run: 1, head: 7 },
          { run: 2, head: 7 },
        ],
      },
    ]);
    expect(outcome).toBe("retry");
    await other.rollback();
    expect((await runsOf(one)).map(({ run, head }) => [run, head])).toEqual([
      [1, 1],
      [2, 1],
    ]);
    expect(await insertRuns(one, 3, runRow(3))).toBe("committed");
  });

  test("a query for a locked row fails with `retry`, and the connection stays usable", async () => {
    one = await world.open(HASTY).connect();
    await insertRuns(one, 1, runRow(1), runRow(2));
    await other.query([byRun("update", 2)]);
    await expect(one.query([byRun("update", 1), byRun("update", 2)])).rejects.toMatchObject({ reason: "retry" });
    // Its locks are released.
    await other.query([byRun("update", 1)]);
    await other.rollback();
    expect((await one.query([byRun("update", 1, 2)]))[0]).toHaveLength(2);
    await one.rollback();
  });

  test("in a deadlock one transaction gets retry", async () => {
    await insertRuns(one, 1, runRow(1), runRow(2));
    await one.query([byRun("update", 1)]);
    await other.query([byRun("update", 2)]);
    const move = (connection: Connection, run: number) =>
      connection.commit(2, 1, [{ change: "update", table: "runs", columns: ["head"], rows: [{ run, head: 7 }] }]);
    const outcomes = await Promise.all([move(one, 2), move(other, 1)]);
    expect(outcomes.toSorted()).toEqual(["committed", "retry"]);
  });

  test("runs found by id are locked in the order of their numbers", async () => {
    // Ids in reverse order: locking in the order of the index would lock run 2 first.
    await insertRuns(one, 1, runRow(1, { id: "z" }), runRow(2, { id: "a" }));
    const third = await world.backend.connect();
    await other.query([byRun("update", 1)]);
    const waiting = one.query([
      { kind: "lookup", table: "runs", columns: ["id"], keys: [["a"], ["z"]], lock: "update" },
    ]);
    await waitsForLock(world, one);
    // Run 2 is not locked: the transaction still waits for run 1.
    expect((await third.query([{ ...byRun("none", 2), lock: "skip" } as Query]))[0]).toHaveLength(1);
    await third.rollback();
    await other.rollback();
    expect((await waiting)[0]!.map(({ run }) => run)).toEqual([1, 2]);
    await one.rollback();
    await third.close();
  });

  test("a claim skips locked rows and never waits", async () => {
    await one.commit(1, 1, [
      {
        change: "insert",
        table: "queue",
        rows: [1, 2, 3, 4].map((run) => itemRow(run, "T", { priority: run === 3 ? 9 : 0 })),
      },
    ]);
    const claim: Query = {
      kind: "select",
      table: "queue",
      where: [
        { column: "state", is: "=", value: 1 },
        { column: "queue", is: "null" },
        { column: "name", is: "=", value: "charge" },
      ],
      order: [
        ["priority", "desc"],
        ["available_at", "asc"],
        ["run", "asc"],
        ["item", "asc"],
      ],
      limit: 2,
      lock: "skip",
    };
    const [first] = await one.query([claim]);
    const [second] = await other.query([claim]);
    expect(first!.map(({ run }) => run)).toEqual([3, 1]);
    expect(second!.map(({ run }) => run)).toEqual([2, 4]);
    // An empty poll does not block inserts into the queue.
    const third = await world.backend.connect();
    expect((await third.query([claim]))[0]).toEqual([]);
    const fourth = await world.backend.connect();
    expect(await fourth.commit(1, 1, [{ change: "insert", table: "queue", rows: [itemRow(5, "T")] }])).toBe(
      "committed",
    );
    for (const connection of [one, other, third, fourth]) await connection.rollback();
    await third.close();
    await fourth.close();
  });

  test("a query after a lock was granted sees everything committed before", async () => {
    await insertRuns(one, 1, runRow(1));
    await one.query([byRun("none", 1)]);
    await other.query([byRun("update", 1)]);
    const waiting = one.query([
      byRun("update", 1),
      { kind: "lookup", table: "queue", columns: ["run"], keys: [[1]], lock: "none" },
    ]);
    await waitsForLock(world, one);
    await other.commit(1, 1, [{ change: "insert", table: "queue", rows: [itemRow(1, "a")] }]);
    expect((await waiting)[1]).toHaveLength(1);
    await one.rollback();
  });

  test("a batch larger than a packet is committed completely or not at all", async () => {
    const evidence = "x'\\".repeat(250_000);
    const rows = Array.from({ length: 12 }, (_, at) => runRow(at + 1, { evidence }));
    expect(await insertRuns(one, 1, ...rows)).toBe("committed");
    const again = rows.map((row, at) => ({ ...row, run: at + 100, id: at === 11 ? "run-1" : `more-${at}` }));
    expect(await insertRuns(one, 2, ...again)).toBe("conflict");
    expect(await runsOf(one)).toHaveLength(12);
    await expect(insertRuns(one, 3, runRow(50, { evidence: "y".repeat(17_000_000) }))).rejects.toMatchObject({
      code: "PAYLOAD_TOO_LARGE",
    });
    expect(await insertRuns(one, 4, runRow(50))).toBe("committed");
  });

  test("a name too long for its index is refused, and nothing of its batch is committed", async () => {
    const rows = [itemRow(1, "short"), itemRow(1, "n".repeat(1_200))];
    await expect(one.commit(1, 1, [{ change: "insert", table: "queue", rows }])).rejects.toMatchObject({
      code: "BAD_NAME",
    });
    expect((await one.read([{ kind: "count", table: "queue", where: [] }]))[0]).toEqual([{ count: 0 }]);
  });

  test("a killed connection is lost, and so is one that is idle in a transaction for too long", async () => {
    const raw = await world.raw();
    await one.query([byRun("update", 1)]);
    await raw.query(`kill ${mysqlConnection(one).threadId}`);
    await expect(one.query([byRun("none", 1)])).rejects.toMatchObject({ reason: "lost" });
    expect(one.isUsable).toBe(false);
    const brief = world.open({ timeouts: { idleInTransactionMs: 1_000 } });
    const idle = await brief.connect();
    await idle.query([byRun("update", 1)]);
    await expect.poll(() => idle.isUsable).toBe(false);
    await expect(idle.commit(1, 1, [])).rejects.toBeInstanceOf(ConnectionError);
  });

  test("a commit without a response is found by its number once it has ended", async () => {
    const raw = await world.raw();
    await insertRuns(one, 1, runRow(1));
    // It has locked the stamp and waits for run 1.
    await raw.query("begin; select * from reprise_runs where run = 1 for update");
    const commit = one.commit(2, 1, [
      { change: "update", table: "runs", columns: ["head"], rows: [{ run: 1, head: 2 }] },
    ]);
    const outcome = commit.catch((error: unknown) => error);
    await waitsForLock(world, one);
    one.destroy();
    const last = await world.backend.lastBatch(other, one.writer);
    expect(last).toBe(1);
    expect(await outcome).toMatchObject({ reason: "lost" });
    await raw.query("commit");
    expect((await runsOf(other))[0]!["head"]).toBe(1);
    // A second call returns the same.
    expect(await world.backend.lastBatch(other, one.writer)).toBe(1);
  });

  test("lastBatch waits for the commit in flight", async () => {
    // From another process, which cannot kill that connection.
    const otherBackend = world.open();
    const far = await otherBackend.connect();
    const raw = await world.raw();
    await raw.query("begin; update reprise_writers set batch = 5 where writer = ?", [one.writer]);
    let answer: number | undefined;
    const asked = otherBackend.lastBatch(far, one.writer).then((batch) => (answer = batch));
    await waitsForLock(world, far);
    expect(answer).toBeUndefined();
    await raw.query("commit");
    expect(await asked).toBe(5);
    await far.close();
  });

  test("after lastBatch, no later batch of that writer is committed", async () => {
    const otherBackend = world.open();
    const far = await otherBackend.connect();
    await insertRuns(one, 1, runRow(1));
    expect(await otherBackend.lastBatch(far, one.writer)).toBe(1);
    expect(await insertRuns(one, 2, runRow(2))).toBe("conflict");
    expect(one.isUsable).toBe(false);
    expect(await runsOf(far)).toHaveLength(1);
    await far.close();
  });

  test("a destroyed connection leaves nothing on the server, not even a waiting statement", async () => {
    await insertRuns(one, 1, runRow(1), runRow(2));
    const raw = await world.raw();
    await raw.query("begin; select * from reprise_runs where run = 2 for update");
    await one.query([byRun("update", 1)]);
    const waiting = expect(one.query([byRun("update", 2)])).rejects.toMatchObject({ reason: "lost" });
    await waitsForLock(world, one);
    one.destroy();
    await waiting;
    // The server reads nothing while it waits, so it does not detect the closed connection.
    const free: Query = { kind: "lookup", table: "runs", columns: ["run"], keys: [[1]], lock: "skip" };
    await expect.poll(async () => (await other.query([free]))[0]!.length).toBe(1);
    await other.rollback();
    raw.destroy();
  });

  test("a snapshot stays the same for any number of queries, and locks nothing", async () => {
    await insertRuns(one, 1, runRow(1));
    await mysqlConnection(one).snapshot();
    const count: Query = { kind: "count", table: "runs", where: [] };
    expect(await one.query([count])).toEqual([[{ count: 1 }]]);
    expect(await insertRuns(other, 1, runRow(2))).toBe("committed");
    expect(await one.query([count])).toEqual([[{ count: 1 }]]);
    await one.rollback();
    expect(await one.read([count])).toEqual([[{ count: 2 }]]);
  });
});

/**
 * Waits until the server reports that this connection waits for a lock. The server refreshes that report only when it was not
 * read for 100 ms: reading more often returns the same report forever.
 */
async function waitsForLock(world: MysqlFixture, connection: Connection): Promise<void> {
  const raw = await world.raw();
  const isWaiting = async (): Promise<boolean> => {
    const [rows] = await raw.query(
      "select count(*) from information_schema.innodb_trx where trx_mysql_thread_id = ? and trx_state = 'LOCK WAIT'",
      [mysqlConnection(connection).threadId],
    );
    return Number((rows as unknown as number[][])[0]?.[0]) > 0;
  };
  await expect.poll(isWaiting, { interval: 200 }).toBe(true);
  raw.destroy();
}
