// Pick index: the index a question is answered from, said in the statement itself. The optimizer goes by statistics, which
// of a queue are always of another moment; with the wrong index a claim would lock what it only looks at.

import type { Condition } from "../remote/query.ts";
import type { TableName } from "../remote/tables.ts";
import { INDEXES, UNHAPPY, type Index } from "./schema.ts";

/** A condition as it is asked here: `status` of a few kinds has an index under another name. */
export function asked(table: TableName, condition: Condition): Condition {
  if (table !== "runs" || condition.column !== "status") return condition;
  const values = condition.is === "in" ? condition.values : condition.is === "=" ? [condition.value] : [];
  const areUnhappy = values.length > 0 && values.every((value) => UNHAPPY.includes(String(value)));
  return areUnhappy ? { ...condition, column: "unhappy" } : condition;
}

type Order = readonly (readonly [column: string, direction: "asc" | "desc"])[];

const TURNED: ReadonlySet<TableName> = new Set<TableName>(["runs", "queue"]);

/** M2. From the most urgent to the least is one direction with the columns behind it. */
export function ordered(table: TableName, order: Order): Order {
  if (!TURNED.has(table)) return order;
  return order.map(([column, direction]) =>
    column === "priority" ? ["urgency", direction === "desc" ? "asc" : "desc"] : [column, direction],
  );
}

/** The index whose first columns are compared for equality and whose next ones give the order, or the range. */
export function pickIndex(table: TableName, where: readonly Condition[], order: Order = []): string | undefined {
  let best: { readonly index: Index; readonly score: number } | undefined;
  for (const index of INDEXES.get(table) ?? []) {
    const score = scoreOf(index, where, order);
    if (score > 0 && score > (best?.score ?? 0)) best = { index, score };
  }
  return best?.index.name;
}

function scoreOf({ columns }: Index, where: readonly Condition[], order: Order): number {
  const equal = new Set(where.filter(({ is }) => is === "=" || is === "null").map(({ column }) => column));
  const among = new Set(where.filter(({ is }) => is === "in").map(({ column }) => column));
  let at = 0;
  while (at < columns.length && equal.has(columns[at]!)) at++;
  const rest = columns.slice(at);
  const wanted = order.map(([column]) => column).filter((column) => !equal.has(column));
  const isOrdered = wanted.length > 0 && wanted.every((column, place) => rest[place] === column);
  const isBounded = where.some(({ column, is }) => column === rest[0] && is !== "=" && is !== "null");
  // Several values of one column, and what is compared behind it.
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
