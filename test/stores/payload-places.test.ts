// The codec knows every payload by the same run, field and place in every database and in every version: a store written by
// an earlier version, or copied from another database, stays readable.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { CODEC_MARK, decode, type PayloadCodec } from "../../src/base/index.ts";
import { PayloadCipher } from "../../src/stores/payload-cipher.ts";
import { decodePayloads, encodePayloads } from "../../src/stores/remote/encode-payloads.ts";
import type { AnyRows, Key } from "../../src/stores/rows/rows.ts";
import { columnsOf, keyColumns, PAYLOADS, TABLES, type AnyRow, type TableName } from "../../src/stores/rows/tables.ts";
import { MIGRATIONS } from "../../src/stores/sqlite/schema.ts";
import { SqlitePayloadCipher } from "../../src/stores/sqlite/sqlite-payload-cipher.ts";
import { SqliteRows } from "../../src/stores/sqlite/sqlite-rows.ts";

/** Writes the context in plain text before the payload, and refuses to decode it with another context. */
const LABELS: PayloadCodec = {
  name: "labels",
  encode: (text, { run, field, place }) => Buffer.from(`${run}|${field}|${place}|${text}`),
  decode: (bytes, { run, field, place }) => {
    const label = `${run}|${field}|${place}|`;
    const found = Buffer.from(bytes).toString();
    if (!found.startsWith(label)) throw new Error(`expected ${label}, got ${found}`);
    return found.slice(label.length);
  },
};

interface Case {
  readonly table: TableName;
  /** The columns of the payload's place; the others do not matter. */
  readonly row: AnyRow;
  /** What the codec has authenticated since its first version: never change it. */
  readonly context: string;
}

const ODD = "\u00e4\u{1f600}'\"\\/\n\u0001";
const ODD_JSON = String.raw`ä😀'\"\\/\n\u0001`;

const CASES: readonly Case[] = [
  {
    table: "runs",
    row: { run: 7, id: "r", root: 7, status: "paused" },
    context: "7|evidence|0",
  },
  {
    table: "journal",
    row: { run: 7, seq: 3 },
    context: "7|journal|3",
  },
  {
    table: "run_contents",
    row: { run: 7, content: "Zm9v", size: 5 },
    context: "7|content|Zm9v",
  },
  {
    table: "inbox",
    row: { run: 7, arrival: 12 },
    context: "7|inbox|12",
  },
  {
    table: "once",
    row: { run: 7, target: ODD },
    context: `7|settled|${ODD}`,
  },
  {
    table: "queue",
    row: { run: 7, item: `Task(${ODD})`, kind: "task" },
    context: `7|failures|Task(${ODD})`,
  },
  {
    table: "run_attempts",
    row: { run: 7, step: `Task(${ODD})`, at: 8, execution: 2 },
    context: `7|attempt|["Task(${ODD_JSON})",8,2]`,
  },
  {
    table: "chunks",
    row: { run: 7, stream: `a/${ODD}`, position: 4 },
    context: `7|chunk|a/${ODD}/4`,
  },
  {
    table: "memo",
    row: { run: 7, seq: 4, memo: "16ab" },
    context: "7|memo|4/16ab",
  },
  {
    table: "checkpoints",
    row: { run: 7, step: 5 },
    context: "7|checkpoint|5",
  },
  {
    table: "schedules",
    row: { name: ODD, overlap: "skip", catch_up: "none" },
    context: `0|schedule|${ODD}`,
  },
  {
    table: "keyed_answers",
    row: { request: "16ab" },
    context: "0|answer|16ab",
  },
  {
    table: "langgraph_values",
    row: { value: 9, thread: "3", place: ODD },
    context: `0|langgraph|[9,"3","${ODD_JSON}"]`,
  },
  {
    table: "langgraph_writes",
    row: { thread: "3", namespace: "", id: "i", task: ODD, position: -2, channel: "7" },
    context: `0|langgraph_write|["3","","i","${ODD_JSON}",-2,"7"]`,
  },
];

const BIG = 4_503_599_627_370_497;

interface World {
  readonly db: DatabaseSync;
  readonly rows: AnyRows & { insert(table: TableName, row: AnyRow): void } & Pick<SqliteRows, "change" | "add">;
}

function openWorld(codec: PayloadCodec | undefined = LABELS, isOpen = true): World {
  const db = new DatabaseSync(":memory:", { enableForeignKeyConstraints: false });
  for (const migration of MIGRATIONS) db.exec(migration);
  const cipher = codec && new SqlitePayloadCipher(codec, isOpen);
  cipher?.register(db);
  return { db, rows: new SqliteRows(db, cipher !== undefined) };
}

/** A complete row. */
function rowOf({ table, row }: Case, payload: string | null): AnyRow {
  const all: AnyRow = {};
  for (const column of columnsOf(table)) {
    const shape: { type: string; nullable: boolean } = TABLES[table].columns[column as never];
    all[column] = row[column] ?? (shape.nullable ? null : shape.type === "int" ? 0 : "x");
  }
  all[PAYLOADS[table]!.column] = payload;
  return all;
}

function keyOf({ table, row }: Case): Key {
  return keyColumns(table).map((column) => row[column] as number | string);
}

/** The bytes in the database. */
function bytesIn({ db }: World, { table }: Case): unknown {
  const row = db.prepare(`select "${PAYLOADS[table]!.column}" as bytes from ${table}`).get();
  const bytes = row?.["bytes"];
  return bytes instanceof Uint8Array ? Buffer.from(bytes).toString() : bytes;
}

const mark = String.fromCharCode(CODEC_MARK);

function readRow({ rows }: World, one: Case): unknown {
  return rows.get(one.table, keyOf(one), [PAYLOADS[one.table]!.column])?.[PAYLOADS[one.table]!.column];
}

test("every table with payloads has a case", () => {
  expect(CASES.map(({ table }) => table).toSorted()).toEqual(Object.keys(PAYLOADS).toSorted());
});

test.each(CASES)("$table: an inserted, set, changed or added payload is encoded with its literal context", (one) => {
  const world = openWorld();
  const { table } = one;
  const { column } = PAYLOADS[table]!;
  const expectText = (text: string): void => {
    expect(bytesIn(world, one)).toBe(`${mark}${one.context}|${text}`);
    expect(readRow(world, one)).toBe(text);
    expect(world.rows.select(table, [], [column], { also: { [column]: { not: null } } })).toEqual([{ [column]: text }]);
  };
  world.rows.insert(table, rowOf(one, '"inserted"'));
  expectText('"inserted"');
  world.rows.set(table, keyOf(one), { [column]: '"set"' });
  expectText('"set"');
  expect(world.rows.change(table, keyOf(one), { [column]: '"changed"' } as never)).toBe(true);
  expectText('"changed"');
  world.db.exec(`delete from ${table}`);
  expect(world.rows.add(table, rowOf(one, '"added"') as never)).toBe(true);
  expectText('"added"');
  expect(world.rows.add(table, rowOf(one, '"taken"') as never)).toBe(false);
  expectText('"added"');
});

test.each(CASES)("$table: a payload with its literal context, or from before the codec, is readable", (one) => {
  const world = openWorld();
  world.rows.insert(one.table, rowOf(one, '"?"'));
  const write = world.db.prepare(`update ${one.table} set "${PAYLOADS[one.table]!.column}" = ?`);
  for (const bytes of [`${mark}${one.context}|"there"`, '"there"']) {
    write.run(Buffer.from(bytes));
    expect(readRow(world, one)).toBe('"there"');
  }
  write.run(Buffer.from(`${mark}8|other|0|"there"`));
  expect(() => decode(String(readRow(world, one)))).toThrow(expect.objectContaining({ code: "PAYLOAD_UNREADABLE" }));
});

test.each(CASES)("$table: a remote store encodes the payload with the same context", (one) => {
  const cipher = new PayloadCipher(LABELS, true);
  const { column } = PAYLOADS[one.table]!;
  const rows = [rowOf(one, '"there"')];
  const bytes = Buffer.from(`${mark}${one.context}|"there"`);
  for (const change of [
    { change: "insert", table: one.table, rows },
    { change: "update", table: one.table, columns: [column], rows },
  ] as const) {
    const [encoded] = encodePayloads(cipher, [change]);
    expect(encoded).toMatchObject({ rows: [{ [column]: bytes }] });
  }
  expect(decodePayloads(cipher, one.table, [{ ...rowOf(one, null), [column]: bytes }])).toEqual(rows);
});

test("large numbers have no exponent and no decimal point in a context", () => {
  const world = openWorld();
  const rows: readonly (readonly [TableName, AnyRow, string])[] = [
    ["journal", { run: BIG, seq: BIG }, `${BIG}|journal|${BIG}`],
    ["chunks", { run: BIG, stream: "s", position: BIG }, `${BIG}|chunk|s/${BIG}`],
    ["langgraph_values", { value: BIG, thread: "t", place: "p" }, `0|langgraph|[${BIG},"t","p"]`],
  ];
  for (const [table, row, context] of rows) {
    const one: Case = { table, row, context };
    world.rows.insert(table, rowOf(one, "1"));
    expect(bytesIn(world, one)).toBe(`${mark}${context}|1`);
    world.rows.set(table, keyOf(one), { [PAYLOADS[table]!.column]: "2" });
    expect(bytesIn(world, one)).toBe(`${mark}${context}|2`);
    expect(readRow(world, one)).toBe("2");
  }
});

test("null is stored as null, with a codec and without", () => {
  const nullable = CASES.filter(({ table }) => ["runs", "queue", "checkpoints", "schedules"].includes(table));
  for (const world of [openWorld(), openWorld(undefined)])
    for (const one of nullable) {
      const { column } = PAYLOADS[one.table]!;
      world.rows.insert(one.table, rowOf(one, null));
      expect([bytesIn(world, one), readRow(world, one)]).toEqual([null, null]);
      world.rows.set(one.table, keyOf(one), { [column]: "1" });
      expect(readRow(world, one)).toBe("1");
      world.rows.set(one.table, keyOf(one), { [column]: null });
      expect([bytesIn(world, one), readRow(world, one)]).toEqual([null, null]);
    }
});

test("a write that moves to another channel is encoded with the new channel", () => {
  const world = openWorld();
  const one = CASES.find(({ table }) => table === "langgraph_writes")!;
  world.rows.insert(one.table, rowOf(one, '"old"'));
  world.rows.set(one.table, keyOf(one), { channel: "8", type: "t", data: '"new"' });
  expect(bytesIn(world, one)).toBe(`${mark}${one.context.replace('"7"]', '"8"]')}|"new"`);
  expect(readRow(world, one)).toBe('"new"');
  expect(() => world.rows.set(one.table, keyOf(one), { channel: "9" })).toThrow("without being encoded again");
});

test("without the codec, payloads are neither written nor read, and other columns are", () => {
  const refuse = (): never => {
    throw new Error("no key");
  };
  for (const one of CASES) {
    const world = openWorld({ name: "locked", encode: refuse, decode: refuse }, false);
    const { table } = one;
    const { column } = PAYLOADS[table]!;
    expect(() => world.rows.insert(table, rowOf(one, "1"))).toThrow("no key");
    expect(bytesIn(world, one)).toBe(undefined);
    const keys = keyColumns(table);
    const bytes = Buffer.from(`${mark}x`);
    const values = columnsOf(table).map((name) => (name === column ? bytes : rowOf(one, null)[name]!));
    world.db.prepare(`insert into ${table} values (${values.map(() => "?").join(", ")})`).run(...values);
    expect(Object.values(world.rows.get(table, keyOf(one), keys)!)).toEqual(keyOf(one));
    expect(() => decode(String(readRow(world, one)))).toThrow("no key");
    expect(() => world.rows.set(table, keyOf(one), { [column]: "1" })).toThrow("no key");
    expect(bytesIn(world, one)).toBe(`${mark}x`);
  }
});
