// The plans of all statements that the rules use in the store cases: every read walks its index from the front, and no statement scans
// or sorts a table.

import { DatabaseSync } from "node:sqlite";
import { beforeAll, expect, test } from "vitest";
import { createSqliteFixture } from "./sqlite-fixture.ts";
import { storeCases } from "../../src/testing/store-cases.ts";
import { INDEXES, pathInfo, type IndexName } from "../../src/stores/rows/indexes.ts";
import { distinctSql } from "../../src/stores/sqlite/row-sql.ts";
import { MIGRATIONS } from "../../src/stores/sqlite/schema.ts";

/** The texts of all statements that the store cases prepare. */
const texts = new Set<string>();
let db: DatabaseSync;

beforeAll(async () => {
  const { prepare } = DatabaseSync.prototype;
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql, ...rest) {
    texts.add(sql);
    return prepare.call(this, sql, ...rest);
  } as typeof prepare;
  try {
    for (const { run } of storeCases) {
      await using fixture = createSqliteFixture({ durability: "relaxed" });
      await run(fixture);
    }
  } finally {
    DatabaseSync.prototype.prepare = prepare;
  }
  db = new DatabaseSync(":memory:");
  for (const migration of MIGRATIONS) db.exec(migration);
}, 120_000);

function planOf(sql: string): string {
  const rows = db.prepare(`explain query plan ${sql}`).all() as { detail: string }[];
  return rows.map(({ detail }) => detail).join("\n");
}

/** The statements of the row port: they quote their columns. */
function rowStatements(): readonly string[] {
  return [...texts].filter((sql) => sql.includes('"') && !sql.includes("sqlite_master"));
}

test("the store cases use reads and changes of many shapes", () => {
  expect(rowStatements().length).toBeGreaterThan(150);
});

/** Reads of small tables as a whole, or of few rows without a value for the first column. */
const SCANS: readonly RegExp[] = [
  /^select .* from (workers|leftovers|queues|lanes|outbox|schedules|start_keys)\b/,
  // Lists walk the runs by number and test the other conditions (list-runs.N1).
  /^select .*"budget" from runs( where .*)? order by "run" desc limit/,
  /^select .* from runs order by "run"/,
  // Pages of open promises, in the order of the key.
  /^select .* from run_promises order by "run", "command" limit/,
  // The first value of an index, without a lower bound.
  /^with recursive found [^]* from start_keys\n/,
];

test("no statement scans a table, except for small ones that are listed as a whole", () => {
  const scanning = rowStatements().filter(
    (sql) =>
      planOf(sql)
        .split("\n")
        .some((line) => /^\s*SCAN (?!CONSTANT|found|\(subquery)/.test(line) && !/USING (COVERING )?INDEX/.test(line)) &&
      !SCANS.some((allowed) => allowed.test(sql)),
  );
  expect(scanning).toEqual([]);
});

test("no statement sorts, except for counts by values of a limited number of rows", () => {
  const sorting = rowStatements().filter((sql) => planOf(sql).includes("TEMP B-TREE"));
  expect(sorting.filter((sql) => !/ limit \+\?\) group by /.test(sql))).toEqual([]);
});

/** The index of a few statuses names them all: each is a seek. */
const LISTED: readonly IndexName[] = ["runs_unhappy"];

test.each((Object.keys(INDEXES) as IndexName[]).filter((name) => !LISTED.includes(name)))(
  "the values of %s are found by seeks",
  (name) => {
    const info = pathInfo(name);
    const plan = planOf(distinctSql(info, 0));
    expect(plan).toContain(`${info.columns[0]!.name}${info.columns[0]!.isDescending ? "<" : ">"}?`);
    expect(plan).not.toContain("TEMP B-TREE");
  },
);
