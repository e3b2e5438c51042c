// LangGraph threads on a remote store: two processes on a simulated server store, read and remove checkpoints at the same time
// (threads.H1 to threads.H3). threads.test.ts tests the port on SQLite.

import { expect, test } from "vitest";
import { drawInt, systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import {
  threadsOf,
  type NewChannel,
  type NewThreadCheckpoint,
  type Serialized,
  type Threads,
} from "../../src/stores/index.ts";
import { openRemoteStore } from "../../src/stores/remote/remote-store.ts";
import type { TableName, WireRow } from "../../src/stores/remote/index.ts";
import { openSimBackend, PERFECT_WIRE, type SimCall, type SimServer } from "../simulation/store/sim-backend.ts";

const SEEDS = Number(process.env["REPRISE_SEEDS"] ?? 20);

const text = (value: string): Serialized => ({ type: "json", bytes: new TextEncoder().encode(value) });
const read = ({ bytes }: Serialized): string => new TextDecoder().decode(bytes);
const key = (id: string, thread = "ann") => ({ thread, namespace: "", id });

function fresh(channel: string, version: number, value: string, isOld = false): NewChannel {
  return { channel, version, payload: text(value), isOld };
}

function checkpoint(id: string, parts: Partial<NewThreadCheckpoint> = {}): NewThreadCheckpoint {
  return { ...key(id), parent: undefined, body: text(`"${id}"`), metadata: text("{}"), channels: [], ...parts };
}

interface World extends AsyncDisposable {
  readonly processes: readonly Threads[];
  readonly calls: SimCall[];
  rows(table: TableName): readonly WireRow[];
}

/** `wait`: how many turns of the event loop a call takes. */
async function openWorld(wait: () => number = () => 0): Promise<World> {
  const server: SimServer = openSimBackend({ now: () => systemClock.now() }).server;
  const calls: SimCall[] = [];
  const wire = {
    ...PERFECT_WIRE,
    async pass(call: SimCall, place: string): Promise<void> {
      if (place === "before") calls.push(call);
      for (let left = wait(); left > 0; left--) await new Promise<void>((resolve) => void setImmediate(resolve));
    },
  };
  const ports = { clock: systemClock, timers: systemTimers, random: systemRandom };
  const stores = await Promise.all(
    [1, 2].map(() => openRemoteStore(server.backend(wire), { ...ports, durability: "full" })),
  );
  return {
    processes: stores.map((store) => threadsOf(store)),
    calls,
    rows: (table) => [...server.database.table(table).all()],
    async [Symbol.asyncDispose]() {
      for (const store of stores) await store.close();
    },
  };
}

test("a stored checkpoint never changes, and equal values are stored once", async () => {
  await using world = await openWorld();
  const [one, two] = world.processes as [Threads, Threads];
  expect(await one.put(checkpoint("1", { channels: [fresh("a", 1, "left"), fresh("b", 1, "b")] }))).toEqual({
    status: "stored",
  });
  const [, b] = (await two.findChannels(key("1")))!;
  expect(await two.put(checkpoint("1", { body: text("other") }))).toEqual({ status: "kept" });
  await two.put(checkpoint("2", { parent: "1", channels: [fresh("a", 1, "right"), b!] }));
  await two.put(checkpoint("3", { channels: [fresh("a", 1, "left", true), fresh("c", 1, "never", true)] }));
  const valuesOf = async (id: string) =>
    (await one.find(key(id)))!.channels.map(({ channel, payload }) => [channel, read(payload)]);
  expect(await valuesOf("1")).toEqual([
    ["a", "left"],
    ["b", "b"],
  ]);
  expect(await valuesOf("2")).toEqual([
    ["a", "right"],
    ["b", "b"],
  ]);
  expect(await valuesOf("3")).toEqual([["a", "left"]]);
  expect(world.rows("langgraph_values")).toHaveLength(3 * 2 + 3);
  expect((await one.find({ ...key(""), id: undefined }))?.id).toBe("3");
});

test("the pages of a list return every checkpoint once", async () => {
  await using world = await openWorld();
  const [threads] = world.processes as [Threads];
  for (const thread of ["a", "b"])
    for (const namespace of ["", "sub"])
      for (const id of ["1", "2"]) await threads.put(checkpoint(id, { thread, namespace }));
  for (const [filter, count] of [
    [{}, 8],
    [{ namespace: "sub" }, 4],
    [{ thread: "a" }, 4],
    [{ thread: "a", namespace: "sub" }, 2],
  ] as const) {
    const seen: string[] = [];
    for (let after: { id: string; number: number } | undefined; ;) {
      const [listed] = await threads.list({ ...filter, after, limit: 1 });
      if (listed === undefined) break;
      seen.push(listed.id);
      after = listed;
    }
    expect(seen).toEqual([..."2".repeat(count / 2), ..."1".repeat(count / 2)]);
    expect(await threads.list({ ...filter, after: { id: "2", number: Infinity }, limit: 20 })).toHaveLength(count);
    expect(await threads.list({ ...filter, after: { id: "2", number: 0 }, limit: 20 })).toHaveLength(count / 2);
  }
});

test("a write is stored once, unless it replaces", async () => {
  await using world = await openWorld();
  const [threads] = world.processes as [Threads];
  const note = (task: string, position: number, value: string, replaces = false, channel = "animals") => {
    return { task, position, channel, payload: text(value), replaces };
  };
  await threads.putWrites(key("1"), [note("b", 0, "1"), note("b", 1, "2")]);
  await threads.putWrites(key("1"), [note("b", 0, "other"), note("a", -4, "3", true)]);
  await threads.putWrites(key("1"), [note("a", -4, "4", true, "plants")]);
  const writes = await threads.readWrites(key("1"));
  expect(writes.map(({ task, position, channel, payload }) => [task, position, channel, read(payload)])).toEqual([
    ["a", -4, "plants", "4"],
    ["b", 0, "animals", "1"],
    ["b", 1, "animals", "2"],
  ]);
});

test("a checkpoint is stored in one round trip and a commit, found in two, and its thread removed in three and a commit", async () => {
  await using world = await openWorld();
  const [threads] = world.processes as [Threads];
  await threads.put(checkpoint("1", { channels: [fresh("a", 1, "1"), fresh("b", 1, "2")] }));
  const channels = (await threads.findChannels(key("1")))!;
  const callsOf = async (act: () => Promise<unknown>): Promise<SimCall[]> => {
    world.calls.length = 0;
    await act();
    // Numbers are reserved in blocks.
    return world.calls.filter((call) => call !== "small");
  };
  const second = checkpoint("2", { channels: [...channels, fresh("c", 1, "3")] });
  expect(await callsOf(() => threads.put(second))).toEqual(["query", "commit"]);
  expect(await callsOf(() => threads.find(key("2")))).toEqual(["read", "read"]);
  expect(await callsOf(() => threads.list({ limit: 10 }))).toEqual(["read", "read"]);
  expect(await callsOf(() => threads.remove("ann"))).toEqual(["read", "query", "query", "commit"]);
  for (const table of ["langgraph_checkpoints", "langgraph_values", "langgraph_writes"] as const)
    expect(world.rows(table)).toEqual([]);
});

for (let seed = 1; seed <= SEEDS; seed++) {
  test(`no checkpoint loses its values and no value its checkpoint while threads are removed, seed ${seed}`, async () => {
    let index = 0;
    const draw = (max: number): number => drawInt(BigInt(seed), "threads", index++, max);
    await using world = await openWorld(() => draw(3));
    const outcomes = new Set<string>();
    const act = async (threads: Threads, thread: string, id: string): Promise<void> => {
      const kind = draw(10);
      if (kind === 0) return threads.remove(thread);
      if (kind < 3) {
        const found = await threads.find({ thread, namespace: "", id: undefined });
        if (found !== undefined) expect(read(found.body)).toBe(`"${found.id}"`);
        return;
      }
      const before = await threads.find({ thread, namespace: "", id: undefined });
      const named = before && (await threads.findChannels(before));
      const channels = [...(named ?? []).slice(0, draw(3)), fresh(`c${draw(3)}`, draw(2), `v${draw(2)}`)];
      outcomes.add((await threads.put(checkpoint(id, { thread, parent: before?.id, channels }))).status);
    };
    for (let round = 0; round < 12; round++) {
      await Promise.all(
        Array.from({ length: 6 }, (_, at) =>
          act(world.processes[draw(2)]!, draw(4) === 0 ? "bob" : "ann", `${round}-${draw(2) === 0 ? 0 : at}`),
        ),
      );
      const values = new Map(world.rows("langgraph_values").map((row) => [row["value"], row["thread"]]));
      const used = new Set<unknown>();
      for (const row of world.rows("langgraph_checkpoints")) {
        const channels = JSON.parse(String(row["channels"])) as [string, unknown, number][];
        for (const value of [row["body"], row["metadata"], ...channels.map(([, , number]) => number)]) {
          expect(values.get(value), `value ${String(value)} of ${String(row["id"])}`).toBe(row["thread"]);
          used.add(value);
        }
      }
      expect([...values.keys()].filter((value) => !used.has(value))).toEqual([]);
    }
    expect(outcomes).toContain("stored");
  });
}
