// Asking: texts and keys of questions, and what an answer that was loaded is enough for.

import { matches } from "./evaluate.ts";
import type { Held, Known } from "./held.ts";
import type { Lock, Lookup, Select } from "./query.ts";
import { keyColumns, type AnyRow, type TableName, type Value } from "./tables.ts";

/** W2. Whether what was loaded is enough to answer with: rows that match no more, or stand elsewhere, may have hidden others. */
export function covers(known: Known, { where, order = [] }: Pick<Select, "where" | "order">, limit: number): boolean {
  if (known.isWhole) return true;
  let matching = 0;
  for (const { base, row } of known.rows)
    if (row !== undefined && matches(where, row) && order.every(([column]) => row[column] === base?.[column]))
      matching += 1;
  return matching >= limit;
}

export function reaching(question: Select, ahead: number): Select {
  return question.limit === undefined || question.limit >= ahead ? question : { ...question, limit: ahead };
}

/** As many again as are gone, and some. */
export function further(question: Select, known: Known, ahead: number): Select {
  if (question.limit === undefined) return question;
  return { ...question, limit: Math.max(known.limit * 2 + question.limit, ahead) };
}

export function blindKey({ table, dropped, patch }: Held): readonly Value[] {
  return keyColumns(table.name).map((column) => (dropped ?? patch)![column]!);
}

export function lookup(table: TableName, columns: readonly string[], keys: Lookup["keys"], lock: Lock): Lookup {
  return { ask: "lookup", table, columns, keys, lock };
}

export function keyRow(table: TableName, key: readonly Value[]): AnyRow {
  return Object.fromEntries(keyColumns(table).map((column, index) => [column, key[index]!]));
}

export function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((column, at) => column === b[at]);
}

/** The same whatever the limit. */
export function selectText({ where, order, lock }: Select): string {
  return JSON.stringify([where, order, lock]);
}

export function groupText(by: readonly string[], row: AnyRow): string {
  return JSON.stringify(by.map((column) => row[column]));
}
