// Pages: reads all rows of a table in key order, page by page.

import type { QueryResult } from "./backend.ts";
import type { Condition, Query, Select } from "./query.ts";
import { keyColumns, type TableName } from "../rows/tables.ts";

/** Runs one query. */
export type RunQuery = (query: Query) => Promise<QueryResult>;

export async function* pagesOf(run: RunQuery, table: TableName, limit: number): AsyncGenerator<QueryResult> {
  const key = keyColumns(table);
  const order = key.map((column) => [column, "asc"] as const);
  const select = (where: readonly Condition[], most: number): Select => ({
    kind: "select",
    table,
    where,
    order,
    limit: most,
    lock: "none",
  });
  let page = [...(await run(select([], limit)))];
  while (page.length > 0) {
    yield page;
    if (page.length < limit) return;
    const last = page.at(-1)!;
    page = [];
    // Rows that share all but the last column of the last key, then fewer: each is a range of the primary key.
    for (let same = key.length - 1; same >= 0 && page.length < limit; same -= 1) {
      const where: Condition[] = key
        .slice(0, same)
        .map((column) => ({ column, is: "=", value: last[column] as number | string }));
      where.push({ column: key[same]!, is: ">", value: last[key[same]!] as number | string });
      page.push(...(await run(select(where, limit - page.length))));
    }
  }
}
