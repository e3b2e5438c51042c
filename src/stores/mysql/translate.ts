// Translate: rewrites queries to the generated columns that indexes use instead of some columns of the port (mysql.M2). A translated
// query returns the same rows.

import { QueueItemState } from "../../kernel/index.ts";
import type { Condition } from "../remote/query.ts";
import { UNHAPPY } from "../rows/indexes.ts";
import type { TableName, Value } from "../rows/tables.ts";

export type Order = readonly (readonly [column: string, direction: "asc" | "desc"])[];

export interface TranslatedQuery {
  readonly where: readonly Condition[];
  readonly order: Order;
}

/** `columns`: the requested columns, if not whole rows. */
export function translate(
  table: TableName,
  where: readonly Condition[],
  order: Order,
  columns: readonly string[] = [],
): TranslatedQuery {
  if (table === "runs" && isOfEnded(where)) return ofEnded(where, order);
  if (table === "runs") return { where: where.map(ofRuns), order: negateOrder(order) };
  return table === "queue" ? ofQueue(where, negateOrder(order), columns) : { where, order };
}

/** mysql.M2. By urgency, the order has the same direction as the columns after it. */
function negateOrder(order: Order): Order {
  return order.map(([column, direction]) =>
    column === "priority" ? ["urgency", direction === "desc" ? "asc" : "desc"] : [column, direction],
  );
}

/** Whether indexes contain the column negated, as `urgency`. */
export function isNegated(table: TableName, column: string): boolean {
  return column === "priority" && (table === "runs" || table === "queue");
}

function ofPriority(condition: Condition): Condition {
  const isOne = condition.column === "priority" && condition.is === "=";
  return isOne ? { column: "urgency", is: "=", value: -Number(condition.value) } : condition;
}

function ofRuns(condition: Condition): Condition {
  if (condition.column !== "status") return ofPriority(condition);
  const values = valuesOf(condition);
  const areUnhappy = values.length > 0 && values.every((value) => UNHAPPY.some((status) => status === value));
  return areUnhappy ? { ...condition, column: "unhappy" } : condition;
}

/** Whether the query walks `runs_ended`: its conditions are those of that index. */
function isOfEnded(where: readonly Condition[]): boolean {
  const has = (column: string, is: Condition["is"]): boolean =>
    where.some((condition) => condition.column === column && condition.is === is && condition.fixed === true);
  return has("ended_at", "not null") && has("parent", "null");
}

/** `ended_status` is set exactly for the rows of that index. */
function ofEnded(given: readonly Condition[], order: Order): TranslatedQuery {
  const where = given.filter(({ fixed }) => fixed !== true);
  return {
    where: [
      { column: "ended_status", is: "not null" },
      ...where.map((each) => (each.column === "status" ? { ...each, column: "ended_status" } : each)),
    ],
    order: order.map(([column, direction]) => [column === "status" ? "ended_status" : column, direction]),
  };
}

function valuesOf(condition: Condition): readonly Value[] {
  return condition.is === "in" ? condition.values : condition.is === "=" ? [condition.value] : [];
}

const ITEM_KINDS: readonly string[] = ["start", "task", "timer"];

function ofQueue(given: readonly Condition[], order: Order, columns: readonly string[]): TranslatedQuery {
  const where = given.map(ofPriority);
  const find = (column: string): Condition | undefined => where.find((condition) => condition.column === column);
  const state = find("state");
  // The items of a run are found by the primary key.
  if (state === undefined || find("run")?.is === "=") return { where, order };
  const states = new Set(valuesOf(state));
  const queue = find("queue");
  const others = where.filter((condition) => condition !== state);
  const areAll = (...wanted: readonly number[]): boolean =>
    states.size > 0 && [...states].every((value) => wanted.includes(Number(value)));
  if (
    areAll(QueueItemState.parked, QueueItemState.admitted) ||
    (states.size > 0 && queue !== undefined && queue.is !== "null")
  ) {
    // The columns after `kind` form a range only for one kind at a time.
    const kinds: Condition[] =
      columns.includes("kind") && find("kind") === undefined ? [{ column: "kind", is: "in", values: ITEM_KINDS }] : [];
    return { where: [{ ...state, column: "lined_state" }, ...kinds, ...others], order };
  }
  if (areAll(QueueItemState.suspect) || (areAll(QueueItemState.ready) && queue?.is === "null"))
    return {
      where: [
        { ...state, column: "open_state" },
        ...others.filter((each) => !areAll(QueueItemState.ready) || each !== queue),
      ],
      order,
    };
  const isTask = where.some(({ column, ...each }) => column === "kind" && each.is === "=" && each.value === "task");
  // Delayed tasks without the timers, of which there may be millions.
  if (areAll(QueueItemState.delayed) && isTask && queue?.is === "null" && order.length === 0)
    return {
      where: [{ ...state, column: "open_state" }, ...others.filter((each) => each !== queue && each.column !== "kind")],
      order,
    };
  if (areAll(QueueItemState.delayed)) return delayed(others, order);
  // The row of a leased item has its worker.
  return areAll(QueueItemState.leased) && find("worker") === undefined
    ? { where: [...where, { column: "worker", is: "not null" }], order }
    : { where, order };
}

function delayed(others: readonly Condition[], order: Order): TranslatedQuery {
  return {
    where: [
      { column: "due_at", is: "not null" },
      ...others.map((each) => (each.column === "available_at" ? { ...each, column: "due_at" } : each)),
    ],
    order: order.map(([column, direction]) => [column === "available_at" ? "due_at" : column, direction]),
  };
}
