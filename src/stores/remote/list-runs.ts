// List runs: finds a run by id, and lists runs newest first, page by page, by filter.

import type { RunFilter, RunRecord } from "../../kernel/index.ts";
import { UNHAPPY } from "../rows/indexes.ts";
import { taggedRecord } from "../rules/run-rows.ts";
import type { Condition, Select } from "./query.ts";
import { equal, lookup } from "./reads.ts";
import type { Reader } from "./reader.ts";
import type { RowOf } from "../rows/tables.ts";

const WHAT = "Listing runs";

export async function listRuns(reader: Reader, filter: RunFilter): Promise<readonly RunRecord[]> {
  const rows = filter.tag === undefined ? await select(reader, filter) : await tagged(reader, filter, filter.tag);
  const tags = await tagsOf(
    reader,
    rows.map(({ run }) => run),
  );
  // Without `evidence`: it can be large, and lists do not show it.
  return rows.map((row) => ({ ...taggedRecord(row, tags.get(row.run) ?? []), evidence: undefined }));
}

function before(run: number | undefined): readonly Condition[] {
  return run === undefined ? [] : [{ column: "run", is: "<", value: run }];
}

function conditions({ definition, kind, statuses }: RunFilter): readonly Condition[] {
  const where: Condition[] = [];
  if (definition !== undefined) where.push(equal("definition", definition));
  if (kind !== undefined) where.push(equal("kind", kind));
  if (statuses === undefined) return where;
  where.push({ column: "status", is: "in", values: statuses });
  if (statuses.every((status) => UNHAPPY.includes(status)))
    where.push({ column: "status", is: "in", values: UNHAPPY, fixed: true });
  return where;
}

async function select(reader: Reader, filter: RunFilter): Promise<readonly RowOf<"runs">[]> {
  if (filter.statuses?.length === 0) return [];
  return reader.rows(WHAT, {
    kind: "select",
    table: "runs",
    where: [...before(filter.before), ...conditions(filter)],
    order: [["run", "desc"]],
    limit: filter.limit,
    lock: "none",
  });
}

/** Reads pages of the tag's runs until enough match. */
async function tagged(reader: Reader, filter: RunFilter, tag: string): Promise<readonly RowOf<"runs">[]> {
  const found: RowOf<"runs">[] = [];
  const statuses = filter.statuses && new Set<string>(filter.statuses);
  const isWanted = (row: RowOf<"runs">): boolean =>
    (filter.definition === undefined || row.definition === filter.definition) &&
    (filter.kind === undefined || row.kind === filter.kind) &&
    (statuses === undefined || statuses.has(row.status));
  const limit = Math.max(filter.limit, 20);
  for (let last = filter.before; found.length < filter.limit;) {
    const page: Select<"tags"> = {
      kind: "select",
      table: "tags",
      where: [equal("tag", tag), ...before(last)],
      order: [["run", "desc"]],
      limit,
      lock: "none",
    };
    const numbers = (await reader.rows(WHAT, page)).map(({ run }) => [run]);
    if (numbers.length > 0) {
      const rows = await reader.rows(WHAT, lookup("runs", ["run"], numbers));
      found.push(...rows.filter(isWanted).toSorted((a, b) => b.run - a.run));
    }
    if (numbers.length < limit) break;
    last = numbers.at(-1)![0];
  }
  return found.slice(0, filter.limit);
}

async function tagsOf(reader: Reader, runs: readonly number[]): Promise<ReadonlyMap<number, readonly string[]>> {
  if (runs.length === 0) return new Map();
  const keys = runs.map((run) => [run]);
  const rows = await reader.rows(WHAT, lookup("tags", ["run"], keys));
  const tags = new Map<number, string[]>();
  for (const { run, tag } of rows.toSorted((a, b) => a.position - b.position))
    tags.set(run, [...(tags.get(run) ?? []), tag]);
  return tags;
}
