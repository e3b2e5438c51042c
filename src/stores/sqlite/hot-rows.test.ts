import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { columnsOf, columnType, type AnyRow, type TableName } from "../rows/tables.ts";
import { bindHotRow } from "./hot-rows.ts";
import { createSchema } from "./migrate.ts";
import { insertSql, storedColumns } from "./row-sql.ts";

const HOT: readonly TableName[] = ["journal", "queue", "runs", "arrivals", "readiness", "checkpoints", "inbox"];

/** Another value in every column. */
function distinctRow(table: TableName): AnyRow {
  const columns = columnsOf(table) as readonly string[];
  return Object.fromEntries(
    columns.map((column, at) => [column, columnType(table, column) === "int" ? 1_000 + at : `value ${at}`]),
  );
}

test.each(HOT)("both forms insert the same row into %s", (table) => {
  const rows = [true, false].map((isHot) => {
    const db = new DatabaseSync(":memory:");
    createSchema(db);
    const statement = db.prepare(insertSql(table, false));
    const row = distinctRow(table);
    if (isHot) expect(bindHotRow(statement, table, row)).toMatchObject({ changes: 1 });
    else statement.run(...storedColumns(table).map((column) => row[column]!));
    const found = db.prepare(`select * from ${table}`).all();
    db.close();
    return found;
  });
  expect(rows[0]).toHaveLength(1);
  expect(rows[0]).toEqual(rows[1]);
});

test("a table without a special form is left to the generic one", () => {
  const db = new DatabaseSync(":memory:");
  createSchema(db);
  expect(bindHotRow(db.prepare(insertSql("tags", false)), "tags", { run: 1, tag: "a", position: 1 })).toBeUndefined();
  db.close();
});
