// List runs: pages of runs that match a filter, newest first.
//
// list-runs.N1. A list walks the index that its filter selects: that of the tag, of the statuses people search for, of the
//   definition, or all runs by number. It tests the other conditions on the rows it reads.
// list-runs.N2. Lists carry no `evidence`: it can be large, and lists do not show it.

import type { RunFilter, RunRecord, RunStatus } from "../../kernel/index.ts";
import { UNHAPPY, type Filter } from "../rows/indexes.ts";
import type { Part, Rows, Span } from "../rows/rows.ts";
import { RUN_COLUMNS, taggedRecord } from "./run-rows.ts";
import { tagsOf } from "./tags.ts";

type ListedColumn = Exclude<(typeof RUN_COLUMNS)[number], "evidence">;
type ListedRow = Part<"runs", ListedColumn>;

/** list-runs.N2 */
const LISTED = RUN_COLUMNS.filter((column): column is ListedColumn => column !== "evidence");
const RUN = ["run"] as const;
/** Runs of a tag that are read at once, at least: the other conditions may exclude most of them. */
const TAG_PAGE = 20;

export function listRuns(rows: Rows, filter: RunFilter): readonly RunRecord[] {
  if (filter.statuses?.length === 0) return [];
  const found = filter.tag === undefined ? findRuns(rows, filter) : findTagged(rows, filter, filter.tag);
  const tags = found.map(({ run }) => tagsOf(rows, run));
  return found.map((row, index) => ({ ...taggedRecord(row, tags[index]!), evidence: undefined }));
}

/** list-runs.N1 */
function findRuns(rows: Rows, filter: RunFilter): readonly ListedRow[] {
  const { definition, statuses, before, limit } = filter;
  const span = { backwards: true, before, limit } as const;
  if (statuses?.every((status) => UNHAPPY.includes(status)) === true) {
    const pages = [...new Set(statuses)].map((status) =>
      rows.select("runs_unhappy", [status], LISTED, withTests(span, { ...filter, statuses: undefined })),
    );
    return newest(pages.flat(), limit);
  }
  if (definition === undefined) return rows.select("runs", [], LISTED, withTests(span, filter));
  return rows.select("runs_by_definition", [definition], LISTED, withTests(span, { ...filter, definition: undefined }));
}

type Tests = Pick<RunFilter, "kind"> & {
  readonly definition?: string | undefined;
  readonly statuses?: readonly RunStatus[] | undefined;
};

function withTests(span: Span<"runs">, { definition, kind, statuses }: Tests): Span<"runs"> {
  if (definition === undefined && kind === undefined && statuses === undefined) return span;
  const also: Filter<"runs"> = {
    ...(definition !== undefined && { definition }),
    ...(kind !== undefined && { kind }),
    ...(statuses !== undefined && { status: { in: statuses } }),
  };
  return { ...span, also };
}

function newest(found: readonly ListedRow[], limit: number): readonly ListedRow[] {
  return found.toSorted((a, b) => b.run - a.run).slice(0, limit);
}

/** Reads pages of the tag's runs until enough match. */
function findTagged(rows: Rows, filter: RunFilter, tag: string): readonly ListedRow[] {
  const { definition, kind, statuses, limit } = filter;
  const isWanted = (row: ListedRow): boolean =>
    (definition === undefined || row.definition === definition) &&
    (kind === undefined || row.kind === kind) &&
    (statuses === undefined || statuses.includes(row.status));
  const found: ListedRow[] = [];
  const page = Math.max(limit, TAG_PAGE);
  for (let { before } = filter; found.length < limit;) {
    const numbers = rows.select("tags_by_tag", [tag], RUN, { backwards: true, before, limit: page });
    const read = numbers.map(({ run }) => rows.get("runs", [run], LISTED));
    // The rows of this page come first, and their tags with them; they decide whether another page is needed.
    if (rows.isGuess) {
      for (const { run } of numbers) tagsOf(rows, run);
      break;
    }
    for (const row of read) if (row !== undefined && found.length < limit && isWanted(row)) found.push(row);
    if (numbers.length < page) break;
    before = numbers.at(-1)?.run;
  }
  return found;
}
