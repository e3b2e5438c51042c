// The simulated database itself: what it must do, and which anomalies its weaker modes must show.

import { expect, test } from "vitest";
import { ConnectionError, type Connection } from "../../../src/stores/remote/backend.ts";
import type { Lookup, Select } from "../../../src/stores/remote/query.ts";
import { queueRow } from "../../stores/rows.ts";
import { PERFECT_WIRE, SimServer, type SimFate, type SimWire } from "./sim-backend.ts";

const server = (isolation: "serial" | "rc" | "rr" = "rc"): SimServer => new SimServer(isolation, () => 0);

const lookup = (name: string, lock: Lookup["lock"] = "update"): Lookup<"queues"> => ({
  kind: "lookup",
  table: "queues",
  columns: ["name"],
  keys: [[name]],
  lock,
});
const all = (lock: Select["lock"] = "none", limit?: number): Select<"queues"> => ({
  kind: "select",
  table: "queues",
  where: [],
  order: [["name", "asc"]],
  ...(limit === undefined ? {} : { limit }),
  lock,
});

async function insert(connection: Connection, names: readonly string[], batch = 1): Promise<string> {
  return await connection.commit(batch, 0, [
    { change: "insert", table: "queues", rows: names.map((name) => queueRow(name)) },
  ]);
}

async function pause(connection: Connection, name: string, batch: number): Promise<string> {
  return await connection.commit(batch, 0, [
    { change: "update", table: "queues", columns: ["paused"], rows: [{ name, paused: 1 }] },
  ]);
}

async function namesOf(connection: Connection): Promise<unknown[]> {
  const [rows] = await connection.read([all()]);
  return rows!.map((row) => row["name"]);
}

/** Whether a promise settles without timers. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = (): void => void (settled = true);
  void promise.then(settle, settle);
  await new Promise((resolve) => setImmediate(resolve));
  return settled;
}

test("rows are returned in byte order, and payloads as bytes", async () => {
  const connection = await server().backend().connect();
  await insert(connection, ["b", "a", "Z", "é", "\u{1f600}", "\uffee"]);
  expect(await namesOf(connection)).toEqual(["Z", "a", "b", "é", "\uffee", "\u{1f600}"]);
  await connection.commit(2, 0, [
    { change: "insert", table: "inbox", rows: [{ run: 1, arrival: 1, type: "T", target: "t", data: "ä" }] },
  ]);
  const [rows] = await connection.read([{ kind: "select", table: "inbox", where: [], lock: "none" }]);
  expect(rows![0]!["data"]).toEqual(Buffer.from("ä"));
});

test("a duplicate unique key and a row that differs from what is expected commit nothing", async () => {
  const connection = await server().backend().connect();
  expect(await insert(connection, ["a"])).toBe("committed");
  expect(await insert(connection, ["b", "a"])).toBe("conflict");
  expect(await namesOf(connection)).toEqual(["a"]);
  const expecting = (paused: number): Promise<string> =>
    connection.commit(2, 0, [
      { change: "insert", table: "queues", rows: [queueRow(`with ${paused}`)] },
      {
        change: "update",
        table: "queues",
        columns: ["paused"],
        rows: [{ name: "a", paused: 7 }],
        expect: ["paused"],
        old: [{ name: "a", paused }],
      },
    ]);
  expect(await expecting(1)).toBe("conflict");
  expect(await expecting(0)).toBe("committed");
  expect(await namesOf(connection)).toEqual(["a", "with 0"]);
});

test("a locking read waits for the transaction that holds the row, then sees the newest version", async () => {
  const backend = server().backend();
  const [one, two, three] = [await backend.connect(), await backend.connect(), await backend.connect()];
  await insert(one, ["a", "b"]);
  await one.query([lookup("a")]);
  const waiting = two.query([lookup("a")]);
  expect(await isSettled(waiting)).toBe(false);
  const [skipped] = await three.query([all("skip")]);
  expect(skipped!.map((row) => row["name"])).toEqual(["b"]);
  await three.rollback();
  await pause(one, "a", 2);
  expect((await waiting)[0]![0]!["paused"]).toBe(1);
});

test("a deadlock is broken: one transaction gets retry, the other continues", async () => {
  const backend = server().backend();
  const [one, two] = [await backend.connect(), await backend.connect()];
  await insert(one, ["a", "b"]);
  await one.query([lookup("a")]);
  await two.query([lookup("b")]);
  const waiting = one.query([lookup("b")]);
  await expect(two.query([lookup("a")])).rejects.toMatchObject({ reason: "retry" });
  expect((await waiting)[0]).toHaveLength(1);
  expect(two.isUsable).toBe(true);
});

test("a plain read sees what is committed now; under rr, what was committed at the first read", async () => {
  const seen: Record<string, unknown> = {};
  for (const isolation of ["rc", "rr"] as const) {
    const backend = server(isolation).backend();
    const [one, two] = [await backend.connect(), await backend.connect()];
    await insert(one, ["a"]);
    await one.query([lookup("a", "none")]);
    await pause(two, "a", 1);
    const [plain, current] = await one.query([lookup("a", "none"), lookup("a")]);
    seen[isolation] = [plain![0]!["paused"], current![0]!["paused"]];
  }
  expect(seen).toEqual({ rc: [1, 1], rr: [0, 1] });
});

test("serial runs one transaction at a time", async () => {
  const backend = server("serial").backend();
  const [one, two] = [await backend.connect(), await backend.connect()];
  await insert(one, ["a", "b"]);
  await one.query([lookup("a")]);
  const waiting = two.query([lookup("b")]);
  expect(await isSettled(waiting)).toBe(false);
  await one.rollback();
  expect((await waiting)[0]).toHaveLength(1);
});

test("a commit whose response is lost is found by its number, and cannot be applied after that lookup", async () => {
  const world = server();
  const arrives: (() => void)[] = [];
  const wireWith = (fate: SimFate): SimWire => ({
    ...PERFECT_WIRE,
    fate: () => fate,
    late: () => new Promise((resolve) => arrives.push(resolve)),
  });
  const sure = world.backend();
  const asking = await sure.connect();
  const found: unknown[] = [];
  for (const fate of ["lost-before", "lost-after", "late"] as const) {
    const connection = await world.backend(wireWith(fate)).connect();
    const lost = await insert(connection, [fate], 5).catch((error: unknown) => error);
    expect(lost).toBeInstanceOf(ConnectionError);
    expect(connection.isUsable).toBe(false);
    found.push([
      fate,
      await sure.lastBatch(asking, connection.writer),
      await sure.lastBatch(asking, connection.writer),
    ]);
  }
  for (const arrive of arrives) arrive();
  await new Promise((resolve) => setImmediate(resolve));
  expect(found).toEqual([
    ["lost-before", 0, 0],
    ["lost-after", 5, 5],
    ["late", 0, 0],
  ]);
  expect(await namesOf(asking)).toEqual(["lost-after"]);
});

test("a killed process gets no response, and its locks are released", async () => {
  const world = server();
  const dying = world.backend();
  const [one, two] = [await dying.connect(), await world.backend().connect()];
  await insert(one, ["a"]);
  await one.query([lookup("a")]);
  const waiting = two.query([lookup("a")]);
  dying.kill();
  expect((await waiting)[0]).toHaveLength(1);
  expect(await isSettled(one.rollback())).toBe(false);
});

test("numbers are reserved once", async () => {
  const backend = server().backend();
  const connection = await backend.connect();
  expect([await backend.reserve(connection, "runs", 3, 0), await backend.reserve(connection, "runs", 1, 0)]).toEqual([
    1, 4,
  ]);
});
