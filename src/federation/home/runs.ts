// Runs: what the run records and statements of a home say, filtered per shard and joined in merge order.
//
// runs.F1. A run is one visible run record, with the visible statement of the same origin, run and generation if there is one.

import type { EpochMs } from "../../base/index.ts";
import type { Origin } from "../log/origin.ts";
import { compareMarks, type Mark } from "../log/record-order.ts";
import { hexOf } from "./blobs.ts";
import { RUN_TYPE, STATEMENT_TYPE } from "./facts.ts";
import type { HomeParts } from "./home-parts.ts";
import type { Row } from "./home-database.ts";
import { Visibility } from "./visibility.ts";
import type { Bounds } from "./log-table.ts";

/** Conditions that all hold. */
export interface RunFilter {
  readonly origin?: Origin;
  readonly run?: string;
  readonly definition?: string;
  /** How it ended: `completed`, `failed`, `cancelled`, `continued`, `open`. */
  readonly status?: string;
  /** A tag of its statement. */
  readonly tag?: string;
  /** Ended at this time or later. */
  readonly since?: EpochMs;
  /** Ended before this time. */
  readonly before?: EpochMs;
  readonly limit?: number;
}

export interface FoundRun {
  readonly origin: Origin;
  readonly run: string;
  readonly generation: number;
  readonly definition: string;
  readonly version: number;
  readonly status: string;
  readonly createdAt: EpochMs;
  readonly endedAt?: EpochMs;
  readonly tags: readonly string[];
  /** The key of its run record. */
  readonly record: string;
  /** The key of its statement. */
  readonly statement?: string;
}

interface Statement {
  readonly key: string;
  readonly mark: Mark;
  readonly tags: readonly string[];
}

/** runs.F1. In merge order of the run records. */
export function findRuns(parts: HomeParts, filter: RunFilter, bounds: Bounds | undefined): FoundRun[] {
  const visibility = new Visibility(parts, bounds);
  const statements = findStatements(parts, filter, visibility);
  const found: { run: FoundRun; mark: Mark }[] = [];
  for (const row of factRows(parts, "run", conditionsOf(filter))) {
    const key = hexOf(row["key"]);
    const mark = visibility.markOf(key, RUN_TYPE, filter.origin);
    const statement = mark && statements.get(nameOf(mark.o, row));
    if (mark === undefined || (filter.tag !== undefined && statement === undefined)) continue;
    found.push({ mark, run: runOf(key, mark.o, row, statement) });
  }
  found.sort((a, b) => compareMarks(a.mark, b.mark));
  return found.slice(0, filter.limit ?? found.length).map(({ run }) => run);
}

function nameOf(origin: Origin, { run, generation }: Row): string {
  return `${origin} ${String(generation)} ${String(run)}`;
}

/** Visible statements by origin, generation and run: the greatest of each. */
function findStatements(parts: HomeParts, { tag, run }: RunFilter, visibility: Visibility): Map<string, Statement> {
  const found = new Map<string, Statement>();
  const conditions: Conditions = [
    ...(run === undefined ? [] : [["f.run = ?", run] as const]),
    ...(tag === undefined ? [] : [["exists (select 1 from tag t where t.tag = ? and t.id = f.id)", tag] as const]),
  ];
  for (const row of factRows(parts, "statement", conditions)) {
    const key = hexOf(row["key"]);
    const tags = row["tags"] === null ? [] : (JSON.parse(String(row["tags"])) as string[]).sort();
    const mark = visibility.markOf(key, STATEMENT_TYPE);
    if (mark === undefined) continue;
    const name = nameOf(mark.o, row);
    const other = found.get(name);
    if (other === undefined || compareMarks(other.mark, mark) < 0) found.set(name, { key, mark, tags });
  }
  return found;
}

type Conditions = readonly (readonly [sql: string, value: string | number])[];

function conditionsOf({ run, definition, status, since, before }: RunFilter): Conditions {
  const wanted: (readonly [string, string | number | undefined])[] = [
    ["f.run = ?", run],
    ["f.definition = ?", definition],
    ["f.status = ?", status],
    ["f.ended_at >= ?", since],
    ["f.ended_at < ?", before],
  ];
  return wanted.filter((one): one is readonly [string, string | number] => one[1] !== undefined);
}

/** Facts of every shard. */
function* factRows(
  { contents: { shards } }: HomeParts,
  kind: "run" | "statement",
  conditions: Conditions,
): Generator<Row> {
  const tags = kind === "run" ? "null" : "(select json_group_array(t.tag) from tag t where t.id = f.id)";
  const where = ["f.kind = ?", ...conditions.map(([sql]) => sql)].join(" and ");
  for (const index of shards.indexes())
    yield* shards
      .at(index)
      .all(
        `select a.key, f.*, ${tags} as tags from fact f join artifact a on a.id = f.id where ${where}`,
        kind,
        ...conditions.map(([, value]) => value),
      );
}

function runOf(record: string, origin: Origin, row: Row, statement: Statement | undefined): FoundRun {
  const { run, generation, definition, version, status, created_at: createdAt, ended_at: endedAt } = row;
  return {
    origin,
    run: String(run),
    generation: Number(generation),
    definition: String(definition ?? ""),
    version: Number(version ?? 0),
    status: String(status ?? ""),
    createdAt: Number(createdAt ?? 0),
    ...(endedAt !== null && { endedAt: Number(endedAt) }),
    tags: statement?.tags ?? [],
    record,
    ...(statement && { statement: statement.key }),
  };
}
