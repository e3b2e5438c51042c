// Pick index: chooses the index of a query and forces it in the statement. The optimizer uses statistics, which are always outdated
// for a queue; with the wrong index a claim would lock rows that it only reads.

import type { Condition } from "../remote/query.ts";
import type { TableName } from "../rows/tables.ts";
import { INDEXES, type Index } from "./schema-indexes.ts";
import type { Order } from "./translate.ts";

/** The index whose first columns are compared for equality and whose next columns give the order or the range. */
export function pickIndex(table: TableName, where: readonly Condition[], order: Order = []): string | undefined {
  let best: { readonly index: Index; readonly score: number } | undefined;
  for (const index of INDEXES.get(table) ?? []) {
    const score = scoreOf(index, where, order);
    if (score > 0 && score > (best?.score ?? 0)) best = { index, score };
  }
  return best?.index.name;
}

/** Whether an index returns the rows in this order. */
export function isInOrder(
  table: TableName,
  name: string | undefined,
  where: readonly Condition[],
  order: Order,
): boolean {
  const columns = INDEXES.get(table)?.find((index) => index.name === name)?.columns ?? [];
  const equal = equalColumns(where);
  const rest = columns.slice(columns.findIndex((column) => !equal.has(column)));
  return order.filter(([column]) => !equal.has(column)).every(([column], place) => rest[place] === column);
}

function equalColumns(where: readonly Condition[]): ReadonlySet<string> {
  return new Set(where.filter(({ is }) => is === "=" || is === "null").map(({ column }) => column));
}

function scoreOf({ columns }: Index, where: readonly Condition[], order: Order): number {
  const equal = equalColumns(where);
  const among = new Set(where.filter(({ is }) => is === "in").map(({ column }) => column));
  let at = 0;
  while (at < columns.length && equal.has(columns[at]!)) at++;
  const rest = columns.slice(at);
  const wanted = order.map(([column]) => column).filter((column) => !equal.has(column));
  const isOrdered = wanted.length > 0 && wanted.every((column, place) => rest[place] === column);
  const isBounded = where.some(({ column, is }) => column === rest[0] && is !== "=" && is !== "null");
  // A column with several values, and the columns compared after it.
  let several = 0;
  if (rest[0] !== undefined && among.has(rest[0])) {
    several = 1;
    while (rest[several] !== undefined && equal.has(rest[several]!)) several++;
  }
  return at * 4 + several * 2 + (isOrdered ? 3 : 0) + (isBounded ? 1 : 0);
}

export function forced(index: string | undefined): string {
  return index === undefined ? "" : ` force index (\`${index}\`)`;
}
