// Evaluate: conditions on rows in memory, with the databases' semantics: texts compare by bytes, null matches nothing.

import type { Condition } from "./query.ts";
import type { AnyRow, Value } from "../rows/tables.ts";

export function matches(where: readonly Condition[], row: AnyRow): boolean {
  return where.every((condition) => holds(condition, row[condition.column] ?? null));
}

/** As `matches`, for a row of which only some columns are known: the others might match. */
export function matchesKnown(where: readonly Condition[], row: AnyRow): boolean {
  return where.every((condition) => {
    const value = row[condition.column];
    return value === undefined || holds(condition, value);
  });
}

function holds(condition: Condition, value: Value): boolean {
  switch (condition.is) {
    case "null":
      return value === null;
    case "not null":
      return value !== null;
    case "in":
      return value !== null && condition.values.includes(value);
    case "contains":
      return value !== null && String(value).includes(condition.value);
    case "=":
      return value === condition.value;
    case "<>":
      return value !== null && value !== condition.value;
    case "<":
      return value !== null && compareValues(value, condition.value) < 0;
    case "<=":
      return value !== null && compareValues(value, condition.value) <= 0;
    case ">":
      return value !== null && compareValues(value, condition.value) > 0;
    case ">=":
      return value !== null && compareValues(value, condition.value) >= 0;
  }
}

/** Null first; texts by the bytes of their UTF-8. */
export function compareValues(a: Value, b: Value): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return compareTexts(String(a), String(b));
}

/** UTF-16 units sort as UTF-8 bytes do, except surrogates, which sort after all other units. */
function compareTexts(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at);
    const right = b.charCodeAt(at);
    if (left !== right) return (left >= 0xd800 ? rank(left) : left) - (right >= 0xd800 ? rank(right) : right);
  }
  return a.length - b.length;
}

function rank(unit: number): number {
  return unit <= 0xdfff ? unit + 0x1_0000 : unit;
}
