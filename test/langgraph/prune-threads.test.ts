// Threads without activity are deleted: by `saver.prune`, and by the retention of a saver, on every database.

import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { systemRandom, systemTimers } from "../../src/base/index.ts";
import { storeOf, type StoreSource } from "../../src/stores/index.ts";
import { RepriseSaver } from "../../src/langgraph/index.ts";
import { createVirtualTime } from "../../src/testing/virtual-clock.ts";
import { describeOn, freshDatabase, type FreshDatabase } from "../servers/index.ts";
import { createFolder, rejection } from "../engine/world.ts";

const DAY = 86_400_000;

interface World extends AsyncDisposable {
  readonly saver: RepriseSaver;
  readonly source: StoreSource;
  advance(ms: number): void;
  put(thread: string, id?: string): Promise<void>;
  threads(): Promise<readonly string[]>;
}

function openWorld(url: string, retention?: "30 days"): World {
  const time = createVirtualTime();
  const ports = { clock: time.clock, timers: systemTimers, random: systemRandom, time: "given" } as const;
  const source: StoreSource = { "~open": (options) => storeOf(url)["~open"]({ ...options, ...ports }) };
  const saver = new RepriseSaver({ store: source, retention });
  return {
    saver,
    source,
    advance: (ms) => time.advanceTo(time.now() + ms),
    async put(thread, id = uuid6(0)) {
      const config = { configurable: { thread_id: thread, checkpoint_ns: "" } };
      const checkpoint = { ...emptyCheckpoint(), id, channel_values: { n: id }, channel_versions: { n: 1 } };
      const stored = await saver.put(config, checkpoint, { source: "loop", step: 0, parents: {} }, { n: 1 });
      await saver.putWrites(stored, [["n", 1]], "task");
    },
    async threads() {
      const names = new Set<string>();
      for await (const { config } of saver.list({})) names.add(String(config.configurable?.["thread_id"]));
      return [...names].toSorted();
    },
    [Symbol.asyncDispose]: () => saver.close(),
  };
}

/** `address`: of an empty database. */
function threadTests(address: () => Promise<string>): void {
  test("prune deletes the threads whose newest checkpoint is old, with everything they have", async () => {
    await using world = openWorld(await address());
    const { saver, advance, put, threads } = world;
    for (const thread of ["a", "active", "z"]) await put(thread);
    advance(20 * DAY);
    await put("active");
    await put("young");
    advance(20 * DAY);
    expect(await saver.prune({ olderThan: "30 days", dryRun: true })).toEqual({ threads: 2 });
    expect(await threads()).toEqual(["a", "active", "young", "z"]);
    expect(await saver.prune({ olderThan: "30 days" })).toEqual({ threads: 2 });
    expect(await threads()).toEqual(["active", "young"]);
    expect(await saver.prune({ olderThan: "30 days" })).toEqual({ threads: 0 });
    expect(await saver.getTuple({ configurable: { thread_id: "a" } })).toBeUndefined();
    await put("a");
    const again = await saver.getTuple({ configurable: { thread_id: "a" } });
    expect(again?.pendingWrites).toHaveLength(1);
  });

  test("a checkpoint with a small id that was stored lately keeps its thread", async () => {
    await using world = openWorld(await address());
    await world.put("own ids", "9");
    world.advance(40 * DAY);
    await world.put("own ids", "1");
    expect(await world.saver.prune({ olderThan: "30 days", dryRun: true })).toEqual({ threads: 0 });
    expect(await world.saver.prune({ olderThan: "30 days" })).toEqual({ threads: 0 });
    world.advance(40 * DAY);
    expect(await world.saver.prune({ olderThan: "30 days" })).toEqual({ threads: 1 });
  });

  test("two processes prune the same threads, and each is counted once", async () => {
    const url = await address();
    await using world = openWorld(url);
    for (let n = 0; n < 20; n++) await world.put(`thread-${n}`);
    world.advance(40 * DAY);
    const other = new RepriseSaver({ store: world.source });
    const both = await Promise.all([world.saver, other].map((one) => one.prune({ olderThan: "30 days" })));
    expect(both.reduce((sum, { threads }) => sum + threads, 0)).toBe(20);
    expect(await world.threads()).toEqual([]);
    await other.close();
  });

  test("a saver with a retention deletes old threads while it is used", async () => {
    await using world = openWorld(await address(), "30 days");
    for (const thread of ["a", "b"]) await world.put(thread);
    world.advance(29 * DAY);
    await world.put("c");
    await expect.poll(() => world.threads()).toEqual(["a", "b", "c"]);
    world.advance(2 * DAY);
    await world.put("d");
    await expect.poll(() => world.threads()).toEqual(["c", "d"]);
  });
}

describe("on SQLite", () => {
  const folder = createFolder();
  afterAll(() => folder[Symbol.dispose]());
  let files = 0;
  threadTests(async () => `sqlite:${folder.file(`${++files}.db`)}`);

  test("more threads and checkpoints than one window are all visited", async () => {
    await using world = openWorld("sqlite::memory:");
    for (let n = 0; n < 600; n++) await world.put("long");
    for (let n = 0; n < 600; n++) await world.put(`thread-${n}`);
    world.advance(40 * DAY);
    await world.put("a new one");
    expect(await world.saver.prune({ olderThan: "30 days" })).toEqual({ threads: 601 });
    expect(await world.threads()).toEqual(["a new one"]);
  });

  test("the age of a checkpoint of an earlier version is the time in its id; without one it stays", async () => {
    const path = folder.file("earlier.db");
    await using world = openWorld(`sqlite:${path}`);
    const now = createVirtualTime().now();
    await world.put("old uuid", uuidAt(now - 40 * DAY));
    await world.put("young uuid", uuidAt(now - 20 * DAY));
    await world.put("no uuid", "checkpoint-1");
    expect(await world.saver.prune({ olderThan: "30 days" })).toEqual({ threads: 0 });
    const db = new DatabaseSync(path);
    db.exec("update langgraph_checkpoints set stored_at = null");
    db.close();
    expect(await world.saver.prune({ olderThan: "30 days" })).toEqual({ threads: 1 });
    expect(await world.threads()).toEqual(["no uuid", "young uuid"]);
  });

  test("a retention or an age that makes no sense is refused", async () => {
    for (const retention of ["1 s", "soon", null] as never[])
      expect(() => new RepriseSaver({ store: "sqlite::memory:", retention })).toThrow(
        expect.objectContaining({ code: expect.stringMatching(/BAD_OPTIONS|BAD_DURATION/) }),
      );
    await using saver = new RepriseSaver({ store: "sqlite::memory:" });
    for (const options of [undefined, {}, { olderThan: "x" }, { olderThan: 1, age: 2 }] as never[])
      expect((await rejection(saver.prune(options))).code).toMatch(/BAD_OPTIONS|BAD_DURATION/);
    const aborted = AbortSignal.abort(new Error("stopped"));
    expect(await rejection(saver.prune({ olderThan: 0, signal: aborted }))).toMatchObject({ message: "stopped" });
  });
});

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `on ${kind === "postgres" ? "PostgreSQL" : "MariaDB"}`, () => {
    const databases: FreshDatabase[] = [];
    beforeAll(() => void databases.splice(0));
    afterAll(async () => {
      for (const database of databases) await database[Symbol.asyncDispose]();
    });
    threadTests(async () => {
      const database = await freshDatabase(kind);
      databases.push(database);
      return database.url;
    });
  });

/** A UUID of version 6 with this time. */
function uuidAt(ms: number): string {
  const hex = ((BigInt(ms) + 12_219_292_800_000n) * 10_000n).toString(16).padStart(15, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-6${hex.slice(12)}-8000-000000000000`;
}
