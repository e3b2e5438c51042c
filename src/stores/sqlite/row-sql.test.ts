// Every read of the row port walks the index of its path and sorts nothing.

import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import { INDEXES, pathInfo, type Path } from "../rows/indexes.ts";
import { SHARED } from "../rows/tables.ts";
import { createSchema } from "./migrate.ts";
import { selectSql, storedColumns } from "./row-sql.ts";

const db = new DatabaseSync(":memory:");
createSchema(db);
afterAll(() => db.close());

const paths: readonly Path[] = [...SHARED, ...(Object.keys(INDEXES) as (keyof typeof INDEXES)[])];

test.each(paths)("reads of %s use one index and sort nothing", (path) => {
  const info = pathInfo(path);
  for (let prefix = 0; prefix <= info.columns.length; prefix++)
    for (const backwards of [false, true]) {
      const isBounded = prefix < info.columns.length;
      const shape = { prefix, after: isBounded, before: false, upTo: isBounded, also: [], backwards, limit: true };
      const sql = selectSql(info, storedColumns(info.table), shape, false);
      const plan = db.prepare(`explain query plan ${sql}`).all();
      expect(plan, sql).toHaveLength(1);
      expect(String(plan[0]!["detail"]), sql).toMatch(/^SEARCH /);
    }
});
