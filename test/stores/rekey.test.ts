// A rekey encodes every payload once, in transactions of bounded size, in every store.

import { describe, expect, test } from "vitest";
import { aesGcm } from "../../src/base/index.ts";
import type { Rows, RowSession, Tx } from "../../src/stores/rows/rows.ts";
import type { RowOf } from "../../src/stores/rows/tables.ts";
import { rekey } from "../../src/stores/rules/rekey.ts";
import { describeOn } from "../servers/index.ts";
import { mysql, postgres, simulated, sqlite, type TestStore } from "./row-sessions.ts";

const keys = { one: Buffer.alloc(32, 1), two: Buffer.alloc(32, 2) };
const OLD = aesGcm({ keys, current: "one" });
const NEW = aesGcm({ keys, current: "two" });
const ONLY_NEW = aesGcm({ keys: { two: keys.two }, current: "two" });

const CHUNK = ["run", "stream", "position", "data"] as const;
const WRITE = ["thread", "namespace", "id", "task", "position", "data"] as const;

function chunk(run: number, stream: string, position: number, data: string): RowOf<"chunks"> {
  return { run, stream, position, data, step: null, execution: null, reset: null };
}

function write(task: string, position: number): RowOf<"langgraph_writes"> {
  const place = { thread: "t", namespace: "", id: "i", task, position };
  return { ...place, channel: "c", type: "t", form: "f", data: `"${task} ${position}"` };
}

/** Counts the transactions of a session, and the texts that each of them sets. */
function counted(session: RowSession, texts: number[][]): RowSession {
  return {
    get stored() {
      return counted(session.stored, texts);
    },
    read: (what, body) => session.read(what, body),
    async transact<T>(what: string, body: (tx: Tx) => T): Promise<T> {
      let lengths: number[] = [];
      const result = await session.transact(what, (tx) => {
        lengths = [];
        const rows = new Proxy(tx.rows, {
          get(target, name) {
            if (name === "set")
              return (...given: Parameters<Rows["set"]>) => {
                lengths.push(...Object.values(given[2]).map((value) => String(value).length));
                target.set(...given);
              };
            const value: unknown = Reflect.get(target, name, target);
            return typeof value === "function" ? (value.bind(target) as unknown) : value;
          },
        });
        return body({ ...tx, rows });
      });
      texts.push(lengths);
      return result;
    },
  };
}

function rekeyTests(create: () => Promise<TestStore>): void {
  test("every row of a composite key is rewritten once, and only the new key is needed", async () => {
    await using store = await create();
    const { open } = store;
    const chunks: RowOf<"chunks">[] = [];
    for (const run of [1, 2, 3])
      for (const stream of ["", "a", "a/b", "ö"])
        for (let position = 1; position <= 40; position += 1)
          chunks.push(chunk(run, stream, position, `"${position}"`));
    const writes = ["a", "b", "ü"].flatMap((task) => [-2, -1, 0, 1, 30].map((position) => write(task, position)));
    {
      await using old = await open(OLD);
      await old.session.transact("Writing", ({ rows }) => {
        for (const row of chunks) rows.insert("chunks", row);
        for (const row of writes) rows.insert("langgraph_writes", row);
      });
    }
    {
      await using both = await open(NEW);
      const texts: number[][] = [];
      const seen: [number, number][] = [];
      const rekeyed = await rekey(counted(both.session, texts), both.cipher, (...progress) => seen.push(progress));
      expect(rekeyed).toEqual({ payloads: 495, unreadable: 0 });
      expect(texts.flat()).toHaveLength(495);
      expect(seen.at(-1)).toEqual([495, 495]);
      expect(seen.map(([done]) => done)).toEqual(seen.map(([done]) => done).toSorted((a, b) => a - b));
    }
    await using after = await open(ONLY_NEW);
    const [foundChunks, foundWrites] = await after.session.read("Reading", (rows) => [
      rows.select("chunks", [], CHUNK),
      rows.select("langgraph_writes", [], WRITE),
    ]);
    expect(foundChunks.map(({ run, stream, position, data }) => chunk(run, stream, position, data))).toEqual(chunks);
    expect(foundWrites.map(({ data }) => data)).toEqual(writes.map(({ data }) => data));
  });

  test("a transaction of a rekey writes about four megabytes, or one payload", async () => {
    await using store = await create();
    const { open } = store;
    await using opened = await open(NEW);
    const million = `"${"x".repeat(1_000_000)}"`;
    const data = [...Array<string>(30).fill(million), ...Array<string>(30).fill('"x"'), million.repeat(6), '"x"'];
    // Otherwise the store would keep the repeated text once.
    await opened.session.stored.transact("Writing", ({ rows }) => {
      for (const [index, text] of data.entries()) rows.insert("chunks", chunk(1, "s", index, text));
    });
    const texts: number[][] = [];
    expect(await rekey(counted(opened.session, texts), opened.cipher)).toEqual({ payloads: 62, unreadable: 0 });
    const lengths = texts.map((some) => some.reduce((sum, length) => sum + length, 0));
    for (const [index, length] of lengths.entries())
      expect(texts[index]!.length === 1 || length <= 4_000_000).toBe(true);
    expect(lengths.filter((length) => length > 0).length).toBeLessThan(20);
  });
}

describe("rekey on SQLite", () => rekeyTests(sqlite));
describe("rekey on a simulated server", () => rekeyTests(simulated));
describeOn("postgres", "rekey on PostgreSQL", () => rekeyTests(postgres));
describeOn("mysql", "rekey on MariaDB", () => rekeyTests(mysql));
