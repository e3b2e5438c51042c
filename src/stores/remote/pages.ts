// Pages: every row of a table in the order of its key, some at a time.

import type { QueryResult } from "./backend.ts";
import type { Condition, Query, Select } from "./query.ts";
import { keyColumns, type TableName } from "./tables.ts";

/** Asks one query. */
export type Ask = (query: Query) => Promise<QueryResult>;

export async function* pagesOf(ask: Ask, table: TableName, limit: number): AsyncGenerator<QueryResult> {
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
  let page = [...(await ask(select([], limit)))];
  while (page.length > 0) {
    yield page;
    if (page.length < limit) return;
    const last = page.at(-1)!;
    page = [];
    // What has all of the last key but its end in common, then what has less: each is a walk along the key.
    for (let same = key.length - 1; same >= 0 && page.length < limit; same -= 1) {
      const where: Condition[] = key
        .slice(0, same)
        .map((column) => ({ column, is: "=", value: last[column] as number | string }));
      where.push({ column: key[same]!, is: ">", value: last[key[same]!] as number | string });
      page.push(...(await ask(select(where, limit - page.length))));
    }
  }
}
