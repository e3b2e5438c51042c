// Texts that payloads share, and large payloads, in every store: how much is stored, what a codec sees, what deletion leaves.

import { describe, expect, test } from "vitest";
import { aesGcm, decode } from "../../src/base/index.ts";
import type { RowSession } from "../../src/stores/rows/rows.ts";
import type { RowOf } from "../../src/stores/rows/tables.ts";
import { rekey } from "../../src/stores/rules/rekey.ts";
import { describeOn } from "../servers/index.ts";
import { mysql, postgres, simulated, sqlite, type TestStore } from "./row-sessions.ts";
import { entryRow } from "./rows.ts";

const keys = { one: Buffer.alloc(32, 1), two: Buffer.alloc(32, 2) };
const OLD = aesGcm({ keys, current: "one" });
const NEW = aesGcm({ keys, current: "two" });

const ENTRY = ["seq", "data"] as const;
const CONTENT = ["run", "content", "size", "data"] as const;

function words(seed: string, length: number): string {
  let text = "";
  for (let at = 0; text.length < length; at += 1) text += `${seed} ${(at * 104_729) % 999_983} `;
  return text.slice(0, length);
}

function entry(run: number, seq: number, data: string): RowOf<"journal"> {
  return entryRow(run, seq, data) as unknown as RowOf<"journal">;
}

/** Each in a transaction of its own. */
async function write(session: RowSession, run: number, payloads: readonly string[], from = 1): Promise<void> {
  for (const [index, data] of payloads.entries())
    await session.transact("Writing", ({ rows }) => rows.insert("journal", entry(run, from + index, data)));
}

async function read(session: RowSession, run: number): Promise<readonly string[]> {
  const rows = await session.read("Reading", (rows) => rows.select("journal", [run], ENTRY));
  return rows.map(({ data }) => data);
}

async function contentsOf(session: RowSession, run: number) {
  return session.stored.read("Reading", (rows) => rows.select("run_contents", [run], CONTENT));
}

/** Characters in the rows of a run. */
async function storedLength(session: RowSession, run: number): Promise<number> {
  const entries = await read(session.stored, run);
  const texts = (await contentsOf(session, run)).map(({ data }) => data ?? "");
  return [...entries, ...texts].reduce((sum, { length }) => sum + length, 0);
}

/** A step of an agent: the whole list of messages as input, the answer as output. */
function turns(count: number, length: number): readonly string[] {
  const messages: object[] = [];
  return Array.from({ length: count }, (_, turn) => {
    messages.push({ content: [{ text: words(`user ${turn}`, length), type: "text" }], role: "user" });
    const content = [{ text: words(`answer ${turn}`, length), type: "text" }];
    const data = JSON.stringify({
      index: turn,
      input: { model: "m", prompt: messages, tools: [] },
      output: { content },
    });
    messages.push({ content, role: "assistant" });
    return data;
  });
}

function contentTests(create: () => Promise<TestStore>): void {
  test("100 turns of an agent with 2 KB in each direction take little more than their texts", async () => {
    await using store = await create();
    await using opened = await store.open();
    const payloads = turns(100, 2_000);
    expect(payloads.join("").length).toBeGreaterThan(20_000_000);
    await write(opened.session, 1, payloads);
    expect(await storedLength(opened.session, 1)).toBeLessThan(620_000);
    expect((await read(opened.session, 1)).every((data, index) => data === payloads[index])).toBe(true);
    await using other = await store.open();
    expect((await read(other.session, 1)).every((data, index) => data === payloads[index])).toBe(true);
  });

  test("a process that takes over a run shares the texts of the process before", async () => {
    await using store = await create();
    const payloads = turns(30, 2_000);
    for (const [index, data] of payloads.entries()) {
      if (index > 3 && index < 27) continue;
      await using opened = await store.open();
      // As a replay does.
      await read(opened.session, 1);
      await write(opened.session, 1, index === 3 ? payloads.slice(3, 27) : [data], index + 1);
    }
    await using opened = await store.open();
    expect(await storedLength(opened.session, 1)).toBeLessThan(220_000);
    expect((await read(opened.session, 1)).every((data, index) => data === payloads[index])).toBe(true);
  });

  test("a payload below the threshold, and one that repeats nothing, stays in its row", async () => {
    await using store = await create();
    await using opened = await store.open();
    const payloads = [...Array<string>(3).fill(JSON.stringify("x".repeat(4_000))), JSON.stringify(words("w", 60_000))];
    await write(opened.session, 1, payloads);
    expect(await read(opened.session.stored, 1)).toEqual(payloads);
    expect(await contentsOf(opened.session, 1)).toEqual([]);
  });

  test("a large payload leaves its row", async () => {
    await using store = await create();
    await using opened = await store.open();
    const data = JSON.stringify({
      list: Array.from({ length: 20_000 }, (_, at) => ({ at })),
      text: words("w", 2_500_000),
    });
    await write(opened.session, 1, [data]);
    const [stored = ""] = await read(opened.session.stored, 1);
    expect(stored.length).toBeLessThan(1_000);
    expect((await contentsOf(opened.session, 1)).map(({ size }) => size).every((size) => size <= 1_000_000)).toBe(true);
    expect((await read(opened.session, 1))[0] === data).toBe(true);
  });

  test("a transaction that is rolled back leaves no content that a later one relies on", async () => {
    await using store = await create();
    await using opened = await store.open();
    const [one = "", two = ""] = turns(60, 2_000).slice(-2);
    const failing = opened.session.transact("Writing", ({ rows }) => {
      rows.insert("journal", entry(1, 1, one));
      throw new TypeError("stop");
    });
    await expect(failing).rejects.toThrow();
    expect(await contentsOf(opened.session, 1)).toEqual([]);
    await write(opened.session, 1, [two]);
    expect((await read(opened.session, 1))[0] === two).toBe(true);
  });

  test("two processes may add the same content at the same time", async () => {
    await using store = await create();
    await using one = await store.open();
    await using two = await store.open();
    const data = JSON.stringify(words("same", 100_000));
    await Promise.all([write(one.session, 1, [data], 1), write(two.session, 1, [data], 2)]);
    expect(await read(one.session, 1)).toEqual([data, data]);
    expect((await contentsOf(one.session, 1)).length).toBe(1);
  });

  test("with a codec, contents are encoded, their keys tell nothing about them, and a rekey rewrites each once", async () => {
    await using store = await create();
    const payloads = turns(20, 2_000);
    {
      await using opened = await store.open(OLD);
      await write(opened.session, 1, payloads);
      await write(opened.session, 2, payloads);
    }
    await using opened = await store.open(NEW);
    const before = [...(await contentsOf(opened.session, 1)), ...(await contentsOf(opened.session, 2))];
    const texts = before.filter(({ data }) => data?.startsWith("\u0003") === true);
    // The same texts in two runs, and no two keys are equal.
    expect(new Set(before.map(({ content }) => content)).size).toBe(before.length);
    expect(texts.length).toBeGreaterThan(30);
    const rekeyed = await rekey(opened.session, opened.cipher);
    expect(rekeyed).toEqual({ payloads: 40 + before.length, unreadable: 0 });
    const after = [...(await contentsOf(opened.session, 1)), ...(await contentsOf(opened.session, 2))];
    expect(after).toEqual(before);
    await using only = await store.open(aesGcm({ keys: { two: keys.two }, current: "two" }));
    expect((await read(only.session, 2)).every((data, index) => data === payloads[index])).toBe(true);
  });

  test("a missing or damaged content makes its payloads unreadable, and says which", async () => {
    await using store = await create();
    await using opened = await store.open();
    const [one, two] = [JSON.stringify(words("one", 70_000)), JSON.stringify(words("two", 70_000))];
    await write(opened.session, 1, [one, two, '"small"']);
    const [first, second] = (await contentsOf(opened.session, 1)).toSorted((a, b) => (a.data! < b.data! ? -1 : 1));
    await opened.session.stored.transact("Damaging", ({ rows }) => {
      rows.drop("run_contents", [1, first!.content]);
      rows.set("run_contents", [1, second!.content], { data: second!.data!.replace("two", "too") });
    });
    const [missing = "", damaged = "", small] = await read(opened.session, 1);
    expect(() => decode(missing)).toThrow(expect.objectContaining({ code: "PAYLOAD_MISSING" }));
    expect(() => decode(missing)).toThrow(`The content ${first!.content} of run number 1 is not in the store.`);
    expect(() => decode(damaged)).toThrow(expect.objectContaining({ code: "PAYLOAD_DAMAGED" }));
    expect(small).toBe('"small"');
  });
}

describe("contents on SQLite", () => contentTests(sqlite));
describe("contents on a simulated server", () => contentTests(simulated));
describeOn("postgres", "contents on PostgreSQL", () => contentTests(postgres));
describeOn("mysql", "contents on MariaDB", () => contentTests(mysql));
