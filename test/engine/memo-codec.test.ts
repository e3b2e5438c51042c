// The memo of a store in a file: damaged rows are never used, and with a codec nothing can be guessed from its keys.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { aesGcm, createEngine, rekey, workflow } from "reprise";
import { memoKey } from "../../src/kernel/index.ts";
import { createFolder } from "./world.ts";

const KEYS = { one: Buffer.alloc(32, 1), two: Buffer.alloc(32, 2) };
const codec = aesGcm({ keys: KEYS, current: "one" });
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

let calls = 0;
const pins = workflow("pins", (ctx, pin: string) =>
  ctx.run("check", pin, (_op, given) => ((calls += 1), `checked ${given}`), { pure: "1" }),
);

/** Runs `pins` in a process of its own, as far as the store can tell; returns how often the function was called. */
async function callsFor(store: string, pin: string, options: { codec?: typeof codec } = {}): Promise<number> {
  const before = calls;
  await using engine = await createEngine({ store, definitions: [pins], logger: SILENT, ...options });
  expect(await (await engine.start(pins, pin)).result()).toBe(`checked ${pin}`);
  return calls - before;
}

interface Row {
  readonly memo: string;
  readonly value: Uint8Array;
}

function rowsIn(path: string): readonly Row[] {
  const db = new DatabaseSync(path);
  const rows = db.prepare("select memo, value from memo order by run").all() as unknown as Row[];
  db.close();
  return rows;
}

function change(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

const keyOf = (pin: string): string =>
  memoKey({ kind: "operation", name: "check", of: "pins", pure: "1", input: JSON.stringify(pin) });

test("a result is reused by the next process, and a damaged one never", async () => {
  using folder = createFolder();
  const path = folder.file("m.db");
  const store = `sqlite:${path}`;
  expect(await callsFor(store, "1234")).toBe(1);
  expect(await callsFor(store, "1234")).toBe(0);
  expect(rowsIn(path).map(({ memo }) => memo)).toEqual([keyOf("1234")]);
  for (const damage of [
    "cast(replace(cast(value as text), '1234', '4321') as blob)",
    'cast(replace(cast(value as text), \'{"key":"\', \'{"key":"0\') as blob)',
    "cast('{}' as blob)",
    "x'00ff'",
    "cast('' as blob)",
  ]) {
    const [intact] = rowsIn(path);
    change(path, `update memo set value = ${damage}`);
    expect(await callsFor(store, "1234")).toBe(1);
    // Off: no more rows, however often the step is executed.
    expect(rowsIn(path)).toHaveLength(1);
    change(path, `update memo set value = x'${Buffer.from(intact!.value).toString("hex")}'`);
  }
  expect(await callsFor(store, "1234")).toBe(0);
});

test("with a codec, a result is reused, and no key or value tells its input", async () => {
  using folder = createFolder();
  const path = folder.file("m.db");
  const store = `sqlite:${path}`;
  expect(await callsFor(store, "1234", { codec })).toBe(1);
  expect(await callsFor(store, "1234", { codec })).toBe(0);
  const [row] = rowsIn(path);
  const guesses = Array.from({ length: 10_000 }, (_, n) => keyOf(String(n).padStart(4, "0")));
  expect(guesses).not.toContain(row!.memo);
  expect(Buffer.from(row!.value).includes("1234")).toBe(false);
});

test("results from before the codec are forgotten, because inputs could be guessed from their keys", async () => {
  using folder = createFolder();
  const path = folder.file("m.db");
  const store = `sqlite:${path}`;
  await callsFor(store, "1234");
  expect(await callsFor(store, "1234", { codec })).toBe(1);
  expect(rowsIn(path).map(({ memo }) => memo)).not.toContain(keyOf("1234"));
  expect(rowsIn(path)).toHaveLength(1);
});

test("rekeying keeps the memo", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("m.db")}`;
  await callsFor(store, "1234", { codec });
  await rekey({ store, codec: aesGcm({ keys: KEYS, current: "two" }) });
  expect(await callsFor(store, "1234", { codec: aesGcm({ keys: { two: KEYS.two }, current: "two" }) })).toBe(0);
});

test("without its secret nothing is reused, and nothing fails", async () => {
  using folder = createFolder();
  const path = folder.file("m.db");
  const store = `sqlite:${path}`;
  await callsFor(store, "1234", { codec });
  change(path, "update meta set value = 'AQID' where key = 'memo secret'");
  expect(await callsFor(store, "1234", { codec })).toBe(1);
  expect(await callsFor(store, "1234", { codec })).toBe(1);
  expect(rowsIn(path)).toHaveLength(1);
});
