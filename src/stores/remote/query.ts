// Query: the reads that the rules may send to a database, few enough that every database and a working set in memory answer
// them alike.

import type { TableName, Value } from "../rows/tables.ts";

export type Comparison = "=" | "<>" | "<" | "<=" | ">" | ">=";

/**
 * A condition on one column. Values are bound parameters, so that one plan serves all of them. `fixed` marks the condition of a
 * partial index: its values are written into the statement, because the index is used only when its condition is in the statement.
 */
export type Condition =
  | { readonly column: string; readonly is: Comparison; readonly value: number | string; readonly fixed?: true }
  | { readonly column: string; readonly is: "null" | "not null"; readonly fixed?: true }
  | { readonly column: string; readonly is: "contains"; readonly value: string; readonly fixed?: true }
  | {
      readonly column: string;
      readonly is: "in";
      readonly values: readonly (number | string)[];
      readonly fixed?: true;
    };

/**
 * How rows are locked. `update` waits for the transaction that holds a row, and leaves out a row that no longer matches after the
 * wait; `skip` leaves out rows that other transactions have locked, so it never waits, and the limit counts the others; `share`
 * only prevents changes. `none` is for rows that never change, or whose run's row is locked already (remote.L1).
 */
export type Lock = "none" | "share" | "update" | "skip";

/** Rows of one table; without `order` in any order. */
export interface Select<T extends TableName = TableName> {
  readonly kind: "select";
  readonly table: T;
  readonly where: readonly Condition[];
  readonly order?: readonly (readonly [column: string, direction: "asc" | "desc"])[];
  readonly limit?: number;
  readonly lock: Lock;
}

/** Rows by the values of some columns, which are never null; returned, each once, and locked in the order of the primary key. */
export interface Lookup<T extends TableName = TableName> {
  readonly kind: "lookup";
  readonly table: T;
  readonly columns: readonly string[];
  readonly keys: readonly (readonly Value[])[];
  readonly lock: Lock;
}

/**
 * The number of rows, as `count`; never locked. With `by`, one result row per combination of these columns, in their order.
 * With `least` or `most`, also the smallest or largest value of a column, under the same names. With `upTo`, and without the
 * others, counting stops there.
 */
export interface Count<T extends TableName = TableName> {
  readonly kind: "count";
  readonly table: T;
  readonly where: readonly Condition[];
  readonly upTo?: number;
  readonly by?: readonly string[];
  readonly least?: string;
  readonly most?: string;
}

/**
 * The combinations of values that exist, in their order, one index seek each however many rows share them; never locked. `where`
 * excludes null.
 */
export interface Distinct<T extends TableName = TableName> {
  readonly kind: "distinct";
  readonly table: T;
  readonly columns: readonly string[];
  readonly where: readonly Condition[];
}

export type Query = Select | Lookup | Count | Distinct;

export function lookup(table: TableName, columns: readonly string[], keys: Lookup["keys"], lock: Lock): Lookup {
  return { kind: "lookup", table, columns, keys, lock };
}
