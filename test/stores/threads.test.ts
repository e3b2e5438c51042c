// The port of the LangGraph checkpointer, on SQLite: thread-store.T1 to thread-store.T5.

import { mkdtempSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { aesGcm, systemClock, systemRandom, systemTimers, type PayloadCodec } from "../../src/base/index.ts";
import type { Store } from "../../src/kernel/index.ts";
import {
  threadsOf,
  type NewChannel,
  type NewThreadCheckpoint,
  type Serialized,
  type Threads,
  type ThreadWrite,
} from "../../src/stores/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";

const folder = mkdtempSync(join(tmpdir(), "reprise-threads-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const keys = { one: new Uint8Array(32).fill(1), two: new Uint8Array(32).fill(2) };
let files = 0;

interface World extends AsyncDisposable {
  readonly path: string;
  readonly store: Store;
  readonly threads: Threads;
}

async function openWorld(codec?: PayloadCodec, path = join(folder, `${++files}.db`)): Promise<World> {
  const ports = { clock: systemClock, timers: systemTimers, random: systemRandom };
  const store = await openSqliteStore({ path, ...ports, codec });
  return { path, store, threads: threadsOf(store), [Symbol.asyncDispose]: () => store.close() };
}

const text = (value: string): Serialized => ({ type: "json", bytes: new TextEncoder().encode(value) });
const key = (id: string, thread = "ann") => ({ thread, namespace: "", id });

function fresh(channel: string, version: number | undefined, value: string, isOld = false): NewChannel {
  return { channel, version, payload: text(value), isOld };
}

function checkpoint(id: string, parts: Partial<NewThreadCheckpoint> = {}): NewThreadCheckpoint {
  return { ...key(id), parent: undefined, body: text(`"${id}"`), metadata: text("{}"), channels: [], ...parts };
}

function note(task: string, position: number, value: string, replaces = false): ThreadWrite {
  return { task, position, channel: "animals", payload: text(value), replaces };
}

async function valuesOf(threads: Threads, id: string): Promise<Record<string, string>> {
  const found = await threads.find(key(id));
  return Object.fromEntries(found!.channels.map(({ channel, payload }) => [channel, read(payload)]));
}

function read({ bytes }: Serialized): string {
  return new TextDecoder().decode(bytes);
}

function count(path: string, table: string): number {
  const db = new DatabaseSync(path, { readOnly: true });
  const { rows } = db.prepare(`select count(*) as rows from ${table}`).get() as { rows: number };
  db.close();
  return rows;
}

function damage(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

test("a second checkpoint with the id of a stored one changes nothing", async () => {
  await using world = await openWorld();
  const { threads, path } = world;
  expect(await threads.put(checkpoint("1", { channels: [fresh("a", 1, "1")] }))).toEqual({ status: "stored" });
  const first = await threads.find(key("1"));
  const second = checkpoint("1", { parent: "0", body: text("2"), metadata: text("2"), channels: [fresh("a", 2, "2")] });
  expect(await threads.put(second)).toEqual({ status: "kept" });
  expect(await threads.find(key("1"))).toEqual(first);
  expect(count(path, "langgraph_values")).toBe(3);
});

test("checkpoints with the same value share it, and forks with the same versions keep their own values", async () => {
  await using world = await openWorld();
  const { threads, path } = world;
  await threads.put(checkpoint("1", { channels: [fresh("a", 1, '"left"'), fresh("b", 1, '"b"')] }));
  const [, b] = (await threads.findChannels(key("1")))!;
  await threads.put(checkpoint("2", { parent: "1", channels: [fresh("a", 1, '"right"'), b!] }));
  // Marked as old and without a parent: the value decides which of the two it is.
  await threads.put(checkpoint("3", { channels: [fresh("a", 1, '"left"', true), fresh("b", 1, '"b"', true)] }));
  await threads.put(checkpoint("4", { channels: [fresh("a", 1, '"right"', true), fresh("c", 1, '"never"', true)] }));
  expect(await valuesOf(threads, "1")).toEqual({ a: '"left"', b: '"b"' });
  expect(await valuesOf(threads, "2")).toEqual({ a: '"right"', b: '"b"' });
  expect(await valuesOf(threads, "3")).toEqual({ a: '"left"', b: '"b"' });
  expect(await valuesOf(threads, "4")).toEqual({ a: '"right"' });
  expect(count(path, "langgraph_values")).toBe(4 * 2 + 3);
});

test("the newest checkpoint of a namespace is found without an id, also with other namespaces", async () => {
  await using world = await openWorld();
  const { threads } = world;
  for (const id of ["2", "3", "1"]) await threads.put(checkpoint(id));
  await threads.put(checkpoint("9", { namespace: "sub" }));
  await threads.put(checkpoint("8", { thread: "bob" }));
  expect((await threads.find({ ...key(""), id: undefined }))?.id).toBe("3");
  const idsOf = async (page: Omit<Parameters<Threads["list"]>[0], "limit">) =>
    (await threads.list({ ...page, limit: 10 })).map(({ id }) => id);
  expect(await idsOf({})).toEqual(["9", "8", "3", "2", "1"]);
  expect(await idsOf({ namespace: "sub" })).toEqual(["9"]);
  expect(await idsOf({ thread: "ann" })).toEqual(["9", "3", "2", "1"]);
  expect(await idsOf({ thread: "ann", after: { id: "3", number: 0 } })).toEqual(["2", "1"]);
  expect(await idsOf({ thread: "ann", namespace: "", after: { id: "3", number: 0 } })).toEqual(["2", "1"]);
  expect(await threads.list({ limit: 2 })).toHaveLength(2);
});

test("the pages of a list return every checkpoint once, also when threads share ids", async () => {
  await using world = await openWorld();
  const { threads } = world;
  for (const thread of ["a", "b", "c"]) for (const id of ["1", "2"]) await threads.put(checkpoint(id, { thread }));
  const seen: string[] = [];
  for (let after: { id: string; number: number } | undefined; ;) {
    const [listed] = await threads.list({ after, limit: 1 });
    if (listed === undefined) break;
    seen.push(`${listed.thread}${listed.id}`);
    after = listed;
  }
  expect(seen).toEqual(["c2", "b2", "a2", "c1", "b1", "a1"]);
});

test("a write is stored once, unless it replaces", async () => {
  await using world = await openWorld();
  const { threads } = world;
  await threads.putWrites(key("1"), [note("b", 0, "1"), note("b", 1, "2")]);
  await threads.putWrites(key("1"), [note("b", 0, "other"), note("a", -4, "3", true)]);
  await threads.putWrites(key("1"), [note("a", -4, "4", true)]);
  const writes = await threads.readWrites(key("1"));
  expect(writes.map(({ task, position, payload }) => [task, position, read(payload)])).toEqual([
    ["a", -4, "4"],
    ["b", 0, "1"],
    ["b", 1, "2"],
  ]);
});

test("a removed thread leaves no rows, and other threads keep theirs", async () => {
  await using world = await openWorld();
  const { threads, path } = world;
  for (const thread of ["ann", "bob"]) {
    await threads.put(checkpoint("1", { thread, channels: [fresh("a", 1, "1")] }));
    await threads.putWrites(key("1", thread), [note("t", 0, "1")]);
  }
  const named = await threads.findChannels(key("1"));
  await threads.remove("ann");
  expect(await threads.find(key("1"))).toBeUndefined();
  expect(await threads.find(key("1", "bob"))).toBeDefined();
  for (const [table, rows] of [
    ["langgraph_checkpoints", 1],
    ["langgraph_values", 3],
    ["langgraph_writes", 1],
  ] as const)
    expect(count(path, table), table).toBe(rows);
  // A client that read its values before cannot refer to them any more.
  expect(await threads.put(checkpoint("2", { channels: named! }))).toEqual({ status: "gone" });
  expect(await threads.find(key("2"))).toBeUndefined();
});

test("a checkpoint is read as one snapshot, also while another connection removes its thread", async () => {
  let interrupt = (): void => undefined;
  const codec: PayloadCodec = {
    name: "interrupting",
    encode: (value) => Buffer.from(value),
    decode(bytes) {
      interrupt();
      return Buffer.from(bytes).toString();
    },
  };
  await using world = await openWorld(codec);
  await world.threads.put(checkpoint("1", { channels: [fresh("a", 1, "1")] }));
  await world.threads.putWrites(key("1"), [note("t", 0, "1")]);
  interrupt = () => {
    interrupt = () => undefined;
    damage(world.path, "delete from langgraph_checkpoints; delete from langgraph_values; delete from langgraph_writes");
  };
  const found = await world.threads.find(key("1"));
  expect(found?.channels).toHaveLength(1);
  expect(found?.writes).toHaveLength(1);
  expect(await world.threads.find(key("1"))).toBeUndefined();
});

describe.each([
  ["as they are", undefined],
  ["encrypted", aesGcm({ keys, current: "one" })],
])("payloads %s", (_how, codec) => {
  const all = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  const payloads: readonly Serialized[] = [
    text('{"a":"ä 🐟"}'),
    text(""),
    text("\u0001 like sealed bytes"),
    text("a\0b"),
    text("\ufeffmark"),
    { type: "bytes", bytes: all },
    { type: "bytes", bytes: all.subarray(200, 210) },
  ];

  test("are returned byte for byte", async () => {
    await using world = await openWorld(codec);
    const { threads } = world;
    const channels = payloads.map((payload, n) => ({ channel: `c${n}`, version: 1, payload, isOld: false }));
    await threads.put(checkpoint("1", { body: payloads[5]!, metadata: payloads[3]!, channels }));
    const writes = payloads.map((payload, position) => ({ ...note("t", position, ""), payload }));
    await threads.putWrites(key("1"), writes);
    const found = (await threads.find(key("1")))!;
    expect(found.body).toEqual(payloads[5]);
    expect(found.metadata).toEqual(payloads[3]);
    expect(found.channels.map(({ payload }) => payload)).toEqual(payloads);
    expect(found.writes.map(({ payload }) => payload)).toEqual(payloads);
  });
});

test("with a codec the file holds no plain payload, and two payloads cannot be swapped", async () => {
  const secret = "the-whole-secret";
  await using world = await openWorld(aesGcm({ keys, current: "one" }));
  const { threads, path, store } = world;
  await threads.put(checkpoint("1", { body: text(secret), channels: [fresh("a", 1, secret), fresh("b", 1, "b")] }));
  await threads.putWrites(key("1"), [note("t", 0, secret), note("t", 1, "1")]);
  await store.backup(`${path}.copy`);
  const db = new DatabaseSync(`${path}.copy`);
  const rows = db.prepare("select data from langgraph_values union all select data from langgraph_writes").all();
  db.close();
  expect(rows).toHaveLength(6);
  for (const { data } of rows) expect(Buffer.from(data as Uint8Array).includes(secret)).toBe(false);
  damage(
    path,
    "update langgraph_values set data = (select data from langgraph_values where value = 2) where value = 1",
  );
  await expect(threads.find(key("1"))).rejects.toMatchObject({ code: "PAYLOAD_UNREADABLE" });
});

test("a write that replaces one of another channel can be read with a codec", async () => {
  await using world = await openWorld(aesGcm({ keys, current: "one" }));
  const { threads } = world;
  await threads.putWrites(key("1"), [note("t", -1, "1", true)]);
  await threads.putWrites(key("1"), [{ ...note("t", -1, "2", true), channel: "plants" }]);
  const [write] = await threads.readWrites(key("1"));
  expect([write?.channel, read(write!.payload)]).toEqual(["plants", "2"]);
});

test("after a rekey threads need only the new key", async () => {
  const path = join(folder, `${++files}.db`);
  {
    await using old = await openWorld(aesGcm({ keys, current: "one" }), path);
    await old.threads.put(checkpoint("1", { channels: [fresh("a", 1, "1")] }));
    await old.threads.putWrites(key("1"), [note("t", 0, "1")]);
  }
  {
    await using both = await openWorld(aesGcm({ keys, current: "two" }), path);
    expect(await both.store.rekey()).toEqual({ payloads: 4, unreadable: 0 });
  }
  await using world = await openWorld(aesGcm({ keys: { two: keys.two }, current: "two" }), path);
  expect(await valuesOf(world.threads, "1")).toEqual({ a: "1" });
  expect(await world.threads.readWrites(key("1"))).toHaveLength(1);
});

test.each([
  ["update langgraph_checkpoints set body = 99", "its body is missing"],
  ["update langgraph_checkpoints set metadata = 99", "its metadata is missing"],
  ["update langgraph_checkpoints set channels = 'x'", "its list of channels cannot be read"],
  ["delete from langgraph_values where place like '%channel%'", "the value of its channel a is missing"],
  ["update langgraph_values set thread = 'bob' where value = 1", "the value of its channel a is missing"],
])("check reports what a thread lost: %s", async (sql, fault) => {
  await using world = await openWorld();
  await world.threads.put(checkpoint("1", { channels: [fresh("a", 1, "1")] }));
  expect(await world.store.check()).toEqual([]);
  damage(world.path, sql);
  expect((await world.store.check()).map(({ message }) => message)).toEqual([`Thread ann, checkpoint 1: ${fault}.`]);
});
