// Query: what the rules may ask a database for, small enough that each database, and the memory of a transaction, can answer
// it alike.

import type { TableName, Value } from "./tables.ts";

export type Comparison = "=" | "<>" | "<" | "<=" | ">" | ">=";

/**
 * A condition on one column. Numbers and texts are given separately from the text of the statement, so that a plan serves
 * all of them; `fixed` ones stand in the text itself, because a partial index must find its own condition there.
 */
export type Condition =
  | { readonly column: string; readonly is: Comparison; readonly value: number | string; readonly fixed?: true }
  | { readonly column: string; readonly is: "null" | "not null" }
  | {
      readonly column: string;
      readonly is: "in";
      readonly values: readonly (number | string)[];
      readonly fixed?: true;
    };

/**
 * How rows are locked. `update` waits for whoever has them; `skip` leaves out what somebody has, so it never waits; `share`
 * only keeps them from being changed. `none` is for rows that never change, or whose run's row is locked already (L1).
 */
export type Lock = "none" | "share" | "update" | "skip";

/** Rows of one table. Without an order they come in any. */
export interface Select<T extends TableName = TableName> {
  readonly ask: "select";
  readonly table: T;
  readonly where: readonly Condition[];
  readonly order?: readonly (readonly [column: string, direction: "asc" | "desc"])[];
  readonly limit?: number;
  readonly lock: Lock;
}

/** Rows by the values of some columns: in the order of the primary key, which is the order they are locked in. */
export interface Lookup<T extends TableName = TableName> {
  readonly ask: "lookup";
  readonly table: T;
  readonly columns: readonly string[];
  readonly keys: readonly (readonly Value[])[];
  readonly lock: Lock;
}

/**
 * How many rows there are, answered as `count`; never locked. With `by`, one answer per combination of these columns that
 * there is, in their order. With `least` or `most`, also the least or greatest value of a column, under the same names. With
 * `upTo`, and without the others, nothing is counted further than that.
 */
export interface Count<T extends TableName = TableName> {
  readonly ask: "count";
  readonly table: T;
  readonly where: readonly Condition[];
  readonly upTo?: number;
  readonly by?: readonly string[];
  readonly least?: string;
  readonly most?: string;
}

/** Which combinations of values there are, one seek each however many rows share them; never locked. */
export interface Distinct<T extends TableName = TableName> {
  readonly ask: "distinct";
  readonly table: T;
  readonly columns: readonly string[];
  readonly where: readonly Condition[];
}

export type Question = Select | Lookup | Count | Distinct;
