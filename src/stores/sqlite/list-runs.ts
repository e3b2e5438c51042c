// List runs: newest first, page by page, by whatever filter is set.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { RunFilter, RunRecord, RunStatus } from "../../kernel/index.ts";
import { recordOf, type RunRow } from "../rules/run-rows.ts";
import { UNHAPPY } from "./schema.ts";
import { LISTED_COLUMNS, type Statements } from "./statements.ts";

const UNHAPPY_STATUSES: ReadonlySet<RunStatus> = new Set<RunStatus>([
  "paused",
  "blocked",
  "determinism_violation",
  "failed",
]);

/** Newest first. The text depends only on which filters are set, so that SQLite can choose the index that fits. */
export function listRuns(db: DatabaseSync, sql: Statements, filter: RunFilter): readonly RunRecord[] {
  const where: string[] = [];
  const values: (string | number)[] = [];
  const also = (condition: string, ...bound: readonly (string | number)[]): void => {
    where.push(condition);
    values.push(...bound);
  };
  if (filter.before !== undefined) also("runs.run < ?", filter.before);
  if (filter.definition !== undefined) also("definition = ?", filter.definition);
  if (filter.kind !== undefined) also("runs.kind = ?", filter.kind);
  // The cross join keeps the order: from the tag's index to the runs, never the other way round.
  if (filter.tag !== undefined) also("tags.tag = ? and runs.run = tags.run", filter.tag);
  if (filter.statuses !== undefined) {
    also(`status in (${filter.statuses.map(() => "?").join(", ")})`, ...filter.statuses);
    // Repeats the partial index's own condition: SQLite uses it only when it stands there word for word.
    if (filter.statuses.every((status) => UNHAPPY_STATUSES.has(status))) also(UNHAPPY);
  }
  const from = filter.tag === undefined ? "runs" : "tags cross join runs";
  const order = filter.tag === undefined ? "runs.run" : "tags.run";
  const columns = LISTED_COLUMNS.replace(/^run,/, "runs.run,");
  const statement: StatementSync = db.prepare(
    `select ${columns} from ${from}${where.length === 0 ? "" : ` where ${where.join(" and ")}`} order by ${order} desc limit ?`,
  );
  return (statement.all(...values, filter.limit) as unknown as RunRow[]).map((row) => recordOf(sql, row));
}
