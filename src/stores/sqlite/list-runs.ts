// List runs: pages of runs that match a filter, newest first.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { RunFilter, RunRecord } from "../../kernel/index.ts";
import { UNHAPPY } from "../rows/indexes.ts";
import type { Rows } from "../rows/rows.ts";
import { RUN_COLUMNS, recordOf, type RunRow } from "../rules/run-rows.ts";
import { IS_UNHAPPY } from "./schema.ts";

/** The SQL depends only on which filters are set, so that SQLite can choose the index for them. */
export function listRuns(db: DatabaseSync, rows: Rows, filter: RunFilter): readonly RunRecord[] {
  const where: string[] = [];
  const values: (string | number)[] = [];
  const also = (condition: string, ...bound: readonly (string | number)[]): void => {
    where.push(condition);
    values.push(...bound);
  };
  if (filter.before !== undefined) also("runs.run < ?", filter.before);
  if (filter.definition !== undefined) also("definition = ?", filter.definition);
  if (filter.kind !== undefined) also("runs.kind = ?", filter.kind);
  // The cross join fixes the order: SQLite reads the tag's index first, then the runs.
  if (filter.tag !== undefined) also("tags.tag = ? and runs.run = tags.run", filter.tag);
  if (filter.statuses !== undefined) {
    also(`status in (${filter.statuses.map(() => "?").join(", ")})`, ...filter.statuses);
    // Repeats the condition of the partial index: SQLite uses the index only for the same text.
    if (filter.statuses.every((status) => UNHAPPY.includes(status))) also(IS_UNHAPPY);
  }
  const from = filter.tag === undefined ? "runs" : "tags cross join runs";
  const order = filter.tag === undefined ? "runs.run" : "tags.run";
  const columns = RUN_COLUMNS.map((column) => (column === "evidence" ? "null as evidence" : `runs.${column}`)).join();
  const statement: StatementSync = db.prepare(
    `select ${columns} from ${from}${where.length === 0 ? "" : ` where ${where.join(" and ")}`} order by ${order} desc limit ?`,
  );
  return (statement.all(...values, filter.limit) as unknown as RunRow[]).map((row) => recordOf(rows, row));
}
