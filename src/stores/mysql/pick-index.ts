// Pick index: the index a question is answered from, said in the statement itself. The optimizer goes by statistics, which
// of a queue are always of another moment; with the wrong index a claim would lock what it only looks at.

import type { Condition } from "../remote/query.ts";
import type { TableName } from "../remote/tables.ts";
import { INDEXES, UNHAPPY, type Index } from "./schema.ts";

/** The conditions as they are asked here, of columns that indexes have, and with what is known besides. */
export function asked(
  table: TableName,
  where: readonly Condition[],
  columns: readonly string[] = [],
): readonly Condition[] {
  const conditions = where.map((condition) => translated(table, condition));
  // What comes behind the kind of an item is a range only for one kind at a time.
  const isKindOpen = table === "queue" && columns.includes("kind") && !where.some(({ column }) => column === "kind");
  return isKindOpen ? [...conditions, { column: "kind", is: "in", values: ITEM_KINDS }] : conditions;
}

const ITEM_KINDS: readonly string[] = ["start", "task", "timer"];

function translated(table: TableName, condition: Condition): Condition {
  const { column } = condition;
  if (column === "priority" && condition.is === "=" && TURNED.has(table))
    return { column: "urgency", is: "=", value: -Number(condition.value) };
  // A few statuses have an index under another name.
  if (table !== "runs" || column !== "status") return condition;
  const values = condition.is === "in" ? condition.values : condition.is === "=" ? [condition.value] : [];
  const areUnhappy = values.length > 0 && values.every((value) => UNHAPPY.includes(String(value)));
  return areUnhappy ? { ...condition, column: "unhappy" } : condition;
}

export type Order = readonly (readonly [column: string, direction: "asc" | "desc"])[];

const TURNED: ReadonlySet<TableName> = new Set<TableName>(["runs", "queue"]);

/** M2. From the most urgent to the least is one direction with the columns behind it. */
export function ordered(table: TableName, order: Order): Order {
  return order.map(([column, direction]) =>
    isTurned(table, column) ? ["urgency", direction === "desc" ? "asc" : "desc"] : [column, direction],
  );
}

export function isTurned(table: TableName, column: string): boolean {
  return column === "priority" && TURNED.has(table);
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

/** Whether an index gives the rows in this order by itself. */
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
