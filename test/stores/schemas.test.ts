// The schemas of SQLite, PostgreSQL and MySQL match the description of tables and indexes in src/stores/rows (tables.T1,
// indexes.X2). Every difference that a schema may have is listed here.

import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { isInOrder, pickIndex } from "../../src/stores/mysql/pick-index.ts";
import { INDEXES as MYSQL_INDEXES } from "../../src/stores/mysql/schema-indexes.ts";
import { MIGRATIONS as MYSQL, PREFIX } from "../../src/stores/mysql/schema.ts";
import { translate } from "../../src/stores/mysql/translate.ts";
import { MIGRATIONS as POSTGRES } from "../../src/stores/postgres/schema.ts";
import { selectQuery } from "../../src/stores/remote/path-query.ts";
import { INDEXES, pathInfo, UNHAPPY, type AnyFilter, type Path, type Test } from "../../src/stores/rows/indexes.ts";
import { columnsOf, columnType, keyColumns, TABLES, type TableName } from "../../src/stores/rows/tables.ts";
import { createSchema } from "../../src/stores/sqlite/migrate.ts";
import { storedColumns } from "../../src/stores/sqlite/row-sql.ts";
import { conditionsIn, parseSchema, type ParsedIndex, type ParsedSchema, type ParsedTable } from "./parse-schema.ts";

const TABLE_NAMES = Object.keys(TABLES) as TableName[];
const INDEX_NAMES = Object.keys(INDEXES) as (keyof typeof INDEXES)[];

/** A column of the description, as `name type`, with a question mark if it may be null. */
function describedColumns(table: TableName, columns: readonly string[]): string[] {
  const described = TABLES[table].columns as Readonly<Record<string, { type: string; nullable: boolean }>>;
  return columns.map((name) => `${name} ${described[name]!.type}${described[name]!.nullable ? "?" : ""}`);
}

function parsedColumns({ columns }: ParsedTable, types: Readonly<Record<string, string>>): string[] {
  return columns.map(({ name, type, nullable }) => `${name} ${types[type] ?? type}${nullable ? "?" : ""}`);
}

// ── indexes ──

const literal = (value: unknown): string => (typeof value === "string" ? `'${value}'` : String(value));

function conditionOf(column: string, test: Test): string {
  if (test === null) return `${column} is null`;
  if (typeof test !== "object") return `${column} = ${literal(test)}`;
  if ("not" in test) return test.not === null ? `${column} is not null` : `${column} <> ${literal(test.not)}`;
  if ("in" in test) return `${column} in (${test.in.map(literal).join(", ")})`;
  if ("above" in test) return `${column} > ${literal(test.above)}`;
  throw new Error(`no schema has such a condition: ${JSON.stringify(test)}`);
}

function describedConditions(name: Path): string[] {
  const { where, apart } = pathInfo(name);
  const conditions = Object.entries((where ?? {}) as AnyFilter).map(([column, one]) => conditionOf(column, one));
  return apart === undefined ? conditions : [...conditions, `${apart[0]} <> ${apart[1]}`];
}

/** One is the start of the other; the rest are columns of the key, or those that the schema may have more. */
function expectSameColumns(name: keyof typeof INDEXES, found: readonly string[], more: readonly string[] = []): void {
  const { table, columns } = INDEXES[name];
  const common = Math.min(columns.length, found.length);
  expect(found.slice(0, common), name).toEqual(columns.slice(0, common));
  const rest = [...columns.slice(common), ...found.slice(common)];
  const allowed = [...keyColumns(table), ...more];
  expect(
    rest.filter((column) => !allowed.includes(column)),
    `${name} ends with the key`,
  ).toEqual([]);
}

/** The number of busy items is counted by state in the index itself. */
const MORE_COLUMNS: Partial<Record<keyof typeof INDEXES, readonly string[]>> = { queue_busy: ["state"] };

/** All suspects are in the index; a claim skips those whose turn a worker holds. */
const SUSPECT = ["turn_due = 2"];

function expectSameIndex(
  name: keyof typeof INDEXES,
  found: ParsedIndex | undefined,
  conditions: readonly string[] = describedConditions(name),
): void {
  expect(found, `${name} exists`).toBeDefined();
  expect(found!.table).toBe(INDEXES[name].table);
  expect(found!.unique, `${name} is unique`).toBe("unique" in INDEXES[name]);
  expectSameColumns(name, found!.columns, MORE_COLUMNS[name]);
  expect([...found!.where].sort(), `the condition of ${name}`).toEqual([...conditions].sort());
}

// ── the schemas ──

describe("SQLite", () => {
  const schema = readSqlite();
  const types = { INTEGER: "int", TEXT: "text", BLOB: "payload" };

  test("all tables exist except counters, and no others", () => {
    const expected = TABLE_NAMES.filter((table) => table !== "counters");
    expect([...schema.tables.keys()].sort()).toEqual(expected.sort());
  });

  for (const table of TABLE_NAMES) {
    if (table === "counters") continue;
    test(`${table} has the described columns in order, and the primary key`, () => {
      const found = schema.tables.get(table)!;
      // `tags.position` is the rowid (row-sql.ts).
      expect(parsedColumns(found, types)).toEqual(describedColumns(table, storedColumns(table)));
      expect(found.key).toEqual(keyColumns(table));
    });
  }

  /** Unique constraints, whose indexes SQLite names itself. */
  const unnamed: Partial<Record<Path, string>> = {
    runs_by_id: "runs(id,generation)",
    langgraph_checkpoints_key: "langgraph_checkpoints(thread,namespace,id)",
  };
  const other: Partial<Record<Path, readonly string[]>> = { runs_suspect: SUSPECT };

  test.each(INDEX_NAMES)("the index %s has the described columns and condition", (name) => {
    expectSameIndex(name, schema.indexes.get(unnamed[name] ?? name), other[name]);
  });

  test("no index is undescribed", () => {
    const known = INDEX_NAMES.map((name) => unnamed[name] ?? name);
    expect([...schema.indexes.keys()].sort()).toEqual(known.sort());
  });
});

/** SQLite describes its schema itself. */
function readSqlite(): ParsedSchema {
  const db = new DatabaseSync(":memory:");
  createSchema(db);
  const all = (sql: string, ...values: string[]): Record<string, unknown>[] => db.prepare(sql).all(...values);
  const tables = new Map<string, ParsedTable>();
  const indexes = new Map<string, ParsedIndex>();
  for (const { name, sql } of all(
    "select name, sql from sqlite_master where type = 'table' and name not like 'sqlite%'",
  )) {
    const table = String(name);
    expect(String(sql), `${table} is strict`).toMatch(/\bstrict\b/);
    const columns = all("select * from pragma_table_info(?)", table);
    const key = columns.filter(({ pk }) => Number(pk) > 0).sort((a, b) => Number(a["pk"]) - Number(b["pk"]));
    tables.set(table, {
      columns: columns.map((column) => ({
        name: String(column["name"]),
        type: String(column["type"]).toUpperCase(),
        // A key of a rowid table that is an integer, and every key without a rowid, is never null.
        nullable: column["notnull"] === 0 && column["pk"] === 0,
      })),
      key: key.map((column) => String(column["name"])),
    });
    for (const index of all("select * from pragma_index_list(?)", table)) {
      if (index["origin"] === "pk") continue;
      const name = String(index["name"]);
      const parts = all("select * from pragma_index_xinfo(?)", name).filter(({ key: isKey }) => isKey === 1);
      const names = parts.map((part) => `${part["desc"] === 1 ? "-" : ""}${String(part["name"])}`);
      const text = all("select sql from sqlite_master where name = ?", name)[0]?.["sql"];
      indexes.set(index["origin"] === "u" ? `${table}(${names.join()})` : name, {
        table,
        columns: names,
        unique: index["unique"] === 1,
        where: conditionsIn(/ where ([\s\S]*)$/.exec(String(text))?.[1]),
      });
    }
  }
  db.close();
  return { tables, indexes };
}

describe("PostgreSQL", () => {
  const schema = parseSchema(POSTGRES.join("\n"));
  const types = { bigint: "int", text: "text", bytea: "payload" };

  test("all tables exist, and no others", () => {
    expect([...schema.tables.keys()].sort()).toEqual([...TABLE_NAMES].sort());
  });

  // Columns of fixed width come first (postgres/schema.ts).
  test.each(TABLE_NAMES)("%s has the described columns in any order, and the primary key", (table) => {
    const found = schema.tables.get(table)!;
    expect(parsedColumns(found, types).sort()).toEqual(describedColumns(table, columnsOf(table)).sort());
    expect(found.key).toEqual(keyColumns(table));
  });

  const unnamed: Partial<Record<Path, string>> = {
    runs_by_id: "runs(id,generation)",
    langgraph_checkpoints_key: "langgraph_checkpoints(thread,namespace,id)",
  };
  /** The conditions of `OPT_IN` are always true. `runs_by_root` also has the roots themselves. */
  const other: Partial<Record<Path, readonly string[]>> = {
    runs_suspect: SUSPECT,
    runs_by_root: [],
    runs_by_definition: ["run > 0"],
    begun_until: ["count >= 0"],
    tags_by_tag: ["position >= 0"],
    run_promises_by_name: ["seq >= 0"],
    memo_by_key: ["seq >= 0"],
  };

  test.each(INDEX_NAMES)("the index %s has the described columns and condition", (name) => {
    expectSameIndex(name, schema.indexes.get(unnamed[name] ?? name), other[name]);
  });

  test("no index is undescribed", () => {
    const known = INDEX_NAMES.map((name) => unnamed[name] ?? name);
    expect([...schema.indexes.keys()].sort()).toEqual(known.sort());
  });
});

describe("MySQL", () => {
  const schema = parseSchema(MYSQL.flat().join(";\n"));

  test("all tables exist, and no others", () => {
    expect([...schema.tables.keys()].sort()).toEqual(TABLE_NAMES.map((table) => `${PREFIX}${table}`).sort());
  });

  test.each(TABLE_NAMES)("%s has the described columns in order, and the primary key", (table) => {
    const found = schema.tables.get(`${PREFIX}${table}`)!;
    expect(found.key).toEqual(keyColumns(table));
    expect(found.columns.map(({ name }) => name)).toEqual(columnsOf(table));
    for (const { name, type, nullable } of found.columns) {
      const described = columnType(table, name);
      // mysql.M1
      const expected = { int: /^bigint$/, text: /^(varbinary\(\d+\)|longblob)$/, payload: /^longblob$/ }[described];
      expect(type, `${table}.${name}`).toMatch(expected);
      expect(nullable, `${table}.${name} may be null`).toBe(
        (TABLES[table].columns as Readonly<Record<string, { nullable: boolean }>>)[name]!.nullable,
      );
    }
  });

  const uniqueNames = INDEX_NAMES.filter((name) => "unique" in INDEXES[name]);
  test("exactly the unique paths have a unique index", () => {
    const found = [...schema.indexes].filter(([, { unique }]) => unique);
    expect(found.map(([name]) => name).sort()).toEqual([...uniqueNames].sort());
    for (const [name, { columns }] of found) expect(columns).toEqual(INDEXES[name as "runs_by_id"].columns);
  });

  /** The prefixes, by length, for which the server sorts the rows: no rule reads many rows in this order. */
  const sorted: Partial<Record<Path, readonly number[]>> = {
    runs_unhappy: [0],
    queue_busy: [0, 1, 2],
    queue_later: [0],
    outbox_leased: [0],
  };
  const paths: readonly Path[] = [...TABLE_NAMES, ...INDEX_NAMES];

  /** MySQL filters the rows of one definition or run: there are few. */
  const filtered: readonly Path[] = [
    "schedules_due",
    "schedules_in_line",
    "checkpoints_label",
    "checkpoints_whole",
    "chunks_by_step",
  ];

  test.each(INDEX_NAMES.filter((name) => "where" in INDEXES[name] && !filtered.includes(name)))(
    "the index for %s starts with a column of its condition (mysql.M2)",
    (name) => {
      const info = pathInfo(name);
      const query = selectQuery(info, [], {}, "none");
      const { where, order } = translate(info.table, query.where, query.order ?? []);
      const [first] = MYSQL_INDEXES.get(info.table)!.find(
        (index) => index.name === pickIndex(info.table, where, order),
      )!.columns;
      expect(where.map(({ column }) => column)).toContain(first);
    },
  );

  test.each(paths)("an index serves every prefix of the path %s and has its rows in order", (name) => {
    const info = pathInfo(name);
    const inOrder: number[] = [];
    for (let length = 0; length <= info.columns.length; length++) {
      const prefix = info.columns.slice(0, length).map((column) => exampleOf(info.table, column.name));
      const query = selectQuery(info, prefix, {}, "none");
      const { where, order } = translate(info.table, query.where, query.order ?? []);
      const index = pickIndex(info.table, where, order);
      expect(index, `an index for a prefix of ${length}`).toBeDefined();
      if (isInOrder(info.table, index, where, order)) inOrder.push(length);
    }
    const expected = Array.from({ length: info.columns.length + 1 }, (_, length) => length);
    expect(inOrder).toEqual(expected.filter((length) => sorted[name]?.includes(length) !== true));
  });
});

/** A value that the conditions of the table's indexes allow. */
function exampleOf(table: TableName, column: string): number | string {
  if (columnType(table, column) === "int") return 1;
  return column === "status" ? "failed" : column === "kind" ? "task" : "a";
}

test("the statuses in published migrations never change", () => {
  expect(UNHAPPY).toEqual(["paused", "blocked", "determinism_violation", "failed"]);
});
