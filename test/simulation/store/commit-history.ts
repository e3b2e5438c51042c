// CommitHistory: the rows that recent commits replaced, so that a simulated database can return to an earlier state.
//
// commit-history.H1. Undoing the commits after a point, newest first, gives exactly the rows of that point: rows are immutable.

import type { SimRow, SimTable } from "./sim-table.ts";

/** The rows before a commit; undefined for a row that did not exist. */
interface Undo {
  readonly at: number;
  readonly rows: readonly (readonly [table: SimTable, key: string, row: SimRow | undefined])[];
  readonly userRows: readonly (readonly [key: string, value: string | undefined])[];
}

/** The number of commits that can be undone. */
const KEPT = 5_000;

export class CommitHistory {
  readonly #now: () => number;
  readonly #userRows: Map<string, string>;
  readonly #undos: Undo[] = [];

  constructor(now: () => number, userRows: Map<string, string>) {
    this.#now = now;
    this.#userRows = userRows;
  }

  /** Called before the rows change. */
  record(rows: Iterable<readonly [SimTable, string]>, userKeys: Iterable<string>): void {
    this.#undos.push({
      at: this.#now(),
      rows: [...rows].map(([table, key]) => [table, key, table.get(key)]),
      userRows: [...userKeys].map((key) => [key, this.#userRows.get(key)]),
    });
    if (this.#undos.length > 2 * KEPT) this.#undos.splice(0, KEPT);
  }

  /** The number of commits after this time. */
  since(at: number): number {
    const first = this.#undos.findLastIndex((undo) => undo.at <= at);
    return this.#undos.length - 1 - first;
  }

  /** commit-history.H1 */
  undo(count: number): void {
    for (const { rows, userRows } of this.#undos.splice(this.#undos.length - count).toReversed()) {
      // Remove added rows first: they may use a unique value of a restored row.
      for (const [table, key] of rows) table.remove(key);
      for (const [table, key, row] of rows) if (row !== undefined) table.set(key, row);
      for (const [key, value] of userRows) {
        if (value === undefined) this.#userRows.delete(key);
        else this.#userRows.set(key, value);
      }
    }
  }
}
