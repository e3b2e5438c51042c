import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  emptyCheckpoint,
  MemorySaver,
  RESUME,
  TASKS,
  uuid6,
  type Checkpoint,
  type CheckpointMetadata,
  type CheckpointTuple,
} from "@langchain/langgraph-checkpoint";
import { aesGcm, createEngine, workflow } from "reprise";
import { RepriseSaver } from "reprise/langgraph";
import { sqlite } from "reprise/sqlite";
import { createTestEngine } from "reprise/testing";
import { afterAll, expect, test } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "reprise-saver-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const metadata: CheckpointMetadata = { source: "loop", step: 0, parents: {} };
const thread = (id: string) => ({ configurable: { thread_id: id } });

function checkpoint(values: Record<string, unknown>, versions?: Record<string, number>): Checkpoint {
  const channel_versions = versions ?? Object.fromEntries(Object.keys(values).map((channel) => [channel, 1]));
  return { ...emptyCheckpoint(), id: uuid6(0), channel_values: values, channel_versions };
}

const inMemory = (): RepriseSaver => new RepriseSaver({ store: "sqlite::memory:" });

async function listed(found: AsyncGenerator<CheckpointTuple>): Promise<readonly CheckpointTuple[]> {
  const tuples: CheckpointTuple[] = [];
  for await (const tuple of found) tuples.push(tuple);
  return tuples;
}

test("a checkpoint that is put again with other data stays unchanged, and the answer is the same", async () => {
  await using saver = inMemory();
  const first = checkpoint({ a: "first" });
  const config = await saver.put(thread("ann"), first, metadata, { a: 1 });
  const before = await saver.getTuple(config);
  const again = { ...first, channel_values: { a: "second" }, channel_versions: { a: 2 } };
  // As LangGraph does at the end of a run that has not moved: the checkpoint as its own parent.
  expect(await saver.put(config, again, { ...metadata, step: 7 }, { a: 2 })).toEqual(config);
  expect(await saver.getTuple(config)).toEqual(before);
  expect(before?.parentConfig).toBeUndefined();
});

test("two forks that give a channel the same version keep their own values", async () => {
  await using saver = inMemory();
  const root = await saver.put(thread("ann"), checkpoint({ a: "root", b: "kept" }), metadata, { a: 1, b: 1 });
  const [left, right] = await Promise.all(
    ["left", "right"].map((a) => saver.put(root, checkpoint({ a, b: "kept" }, { a: 2, b: 1 }), metadata, { a: 2 })),
  );
  expect((await saver.get(left!))?.channel_values).toEqual({ a: "left", b: "kept" });
  expect((await saver.get(right!))?.channel_values).toEqual({ a: "right", b: "kept" });
  // A copy beside the left one, as LangGraph makes it: no version is new, and the parent has another one.
  const copy = await saver.put(root, checkpoint({ a: "left", b: "kept" }, { a: 2, b: 1 }), metadata, {});
  expect((await saver.get(copy))?.channel_values).toEqual({ a: "left", b: "kept" });
});

test("the storage of a put depends on the changes, not on the size of the state", async () => {
  const path = join(folder, "delta.db");
  const emptyPath = join(folder, "empty.db");
  const empty = new RepriseSaver({ store: sqlite(emptyPath), durability: "relaxed" });
  expect(await empty.get(thread("ann"))).toBeUndefined();
  await empty.close();
  await using saver = new RepriseSaver({ store: sqlite(path), durability: "relaxed" });
  const history = "x".repeat(200_000);
  let config = await saver.put(thread("ann"), checkpoint({ history, n: 0 }), metadata, { history: 1, n: 1 });
  for (let n = 1; n <= 50; n += 1)
    config = await saver.put(config, checkpoint({ history, n }, { history: 1, n: n + 1 }), metadata, { n: n + 1 });
  expect((await saver.get(config))?.channel_values).toEqual({ history, n: 50 });
  await saver.close();
  expect(statSync(path).size - statSync(emptyPath).size).toBeLessThan(2 * history.length);
});

test("a value that every checkpoint puts as new, as when copying from another saver, is stored once", async () => {
  const path = join(folder, "moved.db");
  await using saver = new RepriseSaver({ store: sqlite(path), durability: "relaxed" });
  const history = "x".repeat(200_000);
  let config: Parameters<typeof saver.put>[0] = thread("ann");
  for (let n = 1; n <= 20; n += 1)
    config = await saver.put(config, checkpoint({ history, n }, { history: 1, n }), metadata, { history: 1, n });
  await saver.close();
  expect(statSync(path).size).toBeLessThan(2 * history.length + 200_000);
});

test("a value without a version, such as an unwritten default, is stored", async () => {
  await using saver = inMemory();
  const config = await saver.put(thread("ann"), checkpoint({ a: 1, b: [] }, { a: 1 }), metadata, { a: 1 });
  const next = await saver.put(config, checkpoint({ a: 1, b: [7] }, { a: 1 }), metadata, {});
  expect((await saver.get(config))?.channel_values).toEqual({ a: 1, b: [] });
  expect((await saver.get(next))?.channel_values).toEqual({ a: 1, b: [7] });
});

test("a value that the parent has is not serialized, and a new one is stored as given", async () => {
  const { serde } = new MemorySaver();
  const serialized: unknown[] = [];
  await using saver = new RepriseSaver({
    store: "sqlite::memory:",
    serde: {
      dumpsTyped(value: unknown) {
        serialized.push(value);
        return serde.dumpsTyped(value);
      },
      loadsTyped: (type, data) => serde.loadsTyped(type, data),
    },
  });
  const config = await saver.put(thread("ann"), checkpoint({ a: "old", b: "b" }), metadata, { a: 1, b: 1 });
  serialized.length = 0;
  const next = await saver.put(config, checkpoint({ a: "new", b: "b" }), metadata, { a: 1 });
  expect(serialized).toContain("new");
  expect(serialized).not.toContain("b");
  expect((await saver.get(next))?.channel_values).toEqual({ a: "new", b: "b" });
});

test("a checkpoint whose parent is not in the store writes all its values", async () => {
  await using saver = inMemory();
  const config = { configurable: { thread_id: "ann", checkpoint_id: uuid6(0) } };
  const next = await saver.put(config, checkpoint({ a: 1, b: 2 }), metadata, {});
  expect((await saver.get(next))?.channel_values).toEqual({ a: 1, b: 2 });
});

test("values, names and bytes are read back unchanged", async () => {
  await using saver = inMemory();
  const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  const values = { bytes, map: new Map([["a", new Set([1])]]), ["__proto__"]: "own", text: "ä 🐟 \u0000" };
  const config = await saver.put(thread("__proto__"), checkpoint(values), { ...metadata, by: "Ann" } as never, {
    ...checkpoint(values).channel_versions,
    ["__proto__"]: 1,
  });
  const found = await saver.getTuple(config);
  expect(found?.checkpoint.channel_values).toEqual(values);
  expect(found?.checkpoint.channel_values["bytes"]).toBeInstanceOf(Uint8Array);
  expect(found?.checkpoint.channel_values["bytes"]).not.toBeInstanceOf(Buffer);
  expect(found?.metadata).toEqual({ ...metadata, by: "Ann" });
});

test("a task's writes are stored once; only LangGraph's control writes are replaced", async () => {
  await using saver = inMemory();
  const config = await saver.put(thread("ann"), checkpoint({}), metadata, {});
  await saver.putWrites(
    config,
    [
      ["a", 1],
      [TASKS, { node: "b" }],
    ],
    "task",
  );
  await saver.putWrites(
    config,
    [
      ["a", 2],
      [RESUME, ["yes"]],
    ],
    "task",
  );
  await saver.putWrites(config, [[RESUME, ["yes", "no"]]], "task");
  expect((await saver.getTuple(config))?.pendingWrites).toEqual([
    ["task", RESUME, ["yes", "no"]],
    ["task", "a", 1],
    ["task", TASKS, { node: "b" }],
  ]);
});

test("writes can arrive before their checkpoint, because LangGraph sends both concurrently", async () => {
  await using saver = inMemory();
  const late = checkpoint({});
  await saver.putWrites({ configurable: { thread_id: "ann", checkpoint_id: late.id } }, [["a", 1]], "task");
  const config = await saver.put(thread("ann"), late, metadata, {});
  expect((await saver.getTuple(config))?.pendingWrites).toEqual([["task", "a", 1]]);
});

test("a filter compares metadata by value, and a list continues over many pages", async () => {
  await using saver = inMemory();
  for (let step = 0; step < 120; step += 1)
    await saver.put(thread("ann"), checkpoint({}), { ...metadata, step, parents: { "": `p${step % 2}` } }, {});
  const odd = await listed(saver.list(thread("ann"), { filter: { parents: { "": "p1" } } }));
  expect(odd.map((tuple) => tuple.metadata?.step)).toEqual(Array.from({ length: 60 }, (_, n) => 119 - 2 * n));
  const two = await listed(saver.list(thread("ann"), { filter: { source: "loop" }, before: odd[0]!.config, limit: 2 }));
  expect(two.map((tuple) => tuple.metadata?.step)).toEqual([118, 117]);
  expect(await listed(saver.list(odd[3]!.config))).toEqual([odd[3]]);
  expect(await listed(saver.list({ configurable: { checkpoint_id: odd[3]!.checkpoint.id } }))).toEqual([odd[3]]);
  expect(await listed(saver.list(thread("ann"), { limit: 0 }))).toEqual([]);
});

test("a thread removed between two puts is stored whole by the second", async () => {
  await using saver = inMemory();
  const config = await saver.put(thread("ann"), checkpoint({ a: 1, b: 1 }), metadata, { a: 1, b: 1 });
  await saver.deleteThread("ann");
  const next = await saver.put(config, checkpoint({ a: 1, b: 2 }, { a: 1, b: 2 }), metadata, { b: 2 });
  expect((await saver.get(next))?.channel_values).toEqual({ a: 1, b: 2 });
});

test("a saver on an engine shares its store, and closing one does not close the other", async () => {
  const hello = workflow("hello", async (_ctx, name: string) => `Hello, ${name}`);
  const codec = aesGcm({ keys: { one: new Uint8Array(32) }, current: "one" });
  const path = join(folder, "shared.db");
  await using engine = await createEngine({ store: `sqlite:${path}`, definitions: [hello], codec });
  const saver = new RepriseSaver({ store: engine });
  const config = await saver.put(thread("ann"), checkpoint({ a: 1 }), metadata, { a: 1 });
  await saver.close();
  const run = await engine.start(hello, "Ada");
  expect(await run.result()).toBe("Hello, Ada");
  await using other = new RepriseSaver({ store: `sqlite:${path}`, codec });
  expect((await other.get(config))?.channel_values).toEqual({ a: 1 });
  await using locked = new RepriseSaver({ store: `sqlite:${path}` });
  await expect(locked.get(config)).rejects.toMatchObject({ code: "PAYLOAD_KEY_MISSING" });
});

test("a saver works on a test engine", async () => {
  await using engine = await createTestEngine({ definitions: [] });
  const saver = new RepriseSaver({ store: engine });
  const config = await saver.put(thread("ann"), checkpoint({ a: 1 }), metadata, { a: 1 });
  await engine.crash();
  expect((await saver.get(config))?.channel_values).toEqual({ a: 1 });
});

test("a closed saver rejects calls, and a saver whose store could not be opened tries again", async () => {
  const saver = inMemory();
  await saver.close();
  await saver.close();
  await expect(saver.getTuple(thread("ann"))).rejects.toMatchObject({ code: "USAGE" });
  const missing = new RepriseSaver({ store: `sqlite:${folder}` });
  for (let n = 0; n < 2; n += 1)
    await expect(missing.getTuple(thread("ann"))).rejects.toMatchObject({ code: expect.stringMatching(/^STORE_/) });
  await missing.close();
});

test.each([
  [() => new RepriseSaver(undefined as never), "BAD_OPTIONS"],
  [() => new RepriseSaver({ store: "sqlite::memory:", path: "x" } as never), "BAD_OPTIONS"],
  [() => new RepriseSaver({ store: "postgress://x" }), "BAD_STORE_URL"],
  [() => new RepriseSaver({ store: {} as never }), "BAD_OPTIONS"],
  [() => new RepriseSaver({ store: "sqlite::memory:", codec: {} as never }), "BAD_OPTIONS"],
  [() => new RepriseSaver({ store: "sqlite::memory:", durability: "none" as never }), "BAD_OPTIONS"],
])("the constructor rejects a wrong option (%#)", (make, code) => {
  expect(make).toThrow(expect.objectContaining({ code }));
});

test("a codec together with an engine is rejected", async () => {
  await using engine = await createTestEngine({ definitions: [] });
  const codec = aesGcm({ keys: { one: new Uint8Array(32) }, current: "one" });
  expect(() => new RepriseSaver({ store: engine, codec })).toThrow(expect.objectContaining({ code: "BAD_OPTIONS" }));
});

test.each([
  ["nothing", {}],
  ["no thread", { configurable: {} }],
  ["a number", { configurable: { thread_id: 7 } }],
  ["an empty name", { configurable: { thread_id: "" } }],
  ["half a character", { configurable: { thread_id: "\ud800" } }],
  ["a zero", { configurable: { thread_id: "a\0b" } }],
  ["a number as namespace", { configurable: { thread_id: "ann", checkpoint_ns: 1 } }],
])("a config without a valid thread is rejected before anything is written: %s", async (_, config) => {
  await using saver = inMemory();
  await expect(saver.put(config, checkpoint({}), metadata, {})).rejects.toMatchObject({ code: "BAD_THREAD" });
  await expect(saver.putWrites(config, [], "task")).rejects.toMatchObject({ code: "BAD_THREAD" });
  expect(await listed(saver.list({}))).toEqual([]);
});

test("writes without a checkpoint, and a removal without a thread, are rejected", async () => {
  await using saver = inMemory();
  await expect(saver.putWrites(thread("ann"), [], "task")).rejects.toMatchObject({ code: "BAD_THREAD" });
  await expect(saver.deleteThread(undefined as never)).rejects.toMatchObject({ code: "BAD_THREAD" });
});
