// List runs: pages of runs that match a filter, newest first.
//
// list-runs.N1. A list walks the index that its filter selects: that of the parent's family, of the tag with the fewest runs, of the
//   statuses people search for, of the definition, or all runs by number. It tests the other conditions on the rows it reads.
// list-runs.N2. Lists carry no `evidence`: it can be large, and lists do not show it.
// list-runs.N3. Numbers grow with time (`leastNumberAt`). So a list of runs created in a period walks only the numbers of that
//   period, an hour wider: a number is reserved a moment before its run is created. The nearest run outside must confirm it:
//   versions before numbered runs from 1.

import { leastNumberAt, type RunFilter, type RunNumber, type RunRecord } from "../../kernel/index.ts";
import { passes, UNHAPPY, type Filter, type Test } from "../rows/indexes.ts";
import type { Part, Rows, Span } from "../rows/rows.ts";
import type { Value } from "../rows/tables.ts";
import { RUN_COLUMNS, taggedRecord } from "./run-rows.ts";
import { tagsOf } from "./tags.ts";

type ListedColumn = Exclude<(typeof RUN_COLUMNS)[number], "evidence">;
type ListedRow = Part<"runs", ListedColumn>;

/** list-runs.N2 */
const LISTED = RUN_COLUMNS.filter((column): column is ListedColumn => column !== "evidence");
const RUN = ["run"] as const;
const FAMILY = ["run", "root"] as const;
const CREATED = ["created_at"] as const;
/** Runs of a tag that are read at once, at least: the other conditions may exclude most of them. */
const TAG_PAGE = 20;
/** The children of how many generations of their parent are listed. */
const MAX_GENERATIONS = 1_000;
/** list-runs.N3 */
const SLACK_MS = 3_600_000;

export function listRuns(rows: Rows, filter: RunFilter): readonly RunRecord[] {
  if (filter.statuses?.length === 0) return [];
  const found = findRuns(rows, filter, boundsOf(rows, filter));
  const tags = found.map(({ run }) => tagsOf(rows, run));
  return found.map((row, index) => ({ ...taggedRecord(row, tags[index]!), evidence: undefined }));
}

/** The numbers between which the runs are: greater than `after`, less than `before`. */
interface Bounds {
  readonly after?: RunNumber | undefined;
  readonly before?: RunNumber | undefined;
}

/** list-runs.N3 */
function boundsOf(rows: Rows, { createdAfter, createdBefore, before }: RunFilter): Bounds {
  let least: RunNumber | undefined;
  let most = before;
  if (createdAfter !== undefined) {
    const bound = leastNumberAt(createdAfter - SLACK_MS);
    const below = bound > 0 ? rows.first("runs", [], CREATED, { before: bound, backwards: true }) : undefined;
    if (below === undefined || below.created_at < createdAfter) least = bound - 1;
  }
  if (createdBefore !== undefined) {
    const bound = leastNumberAt(createdBefore + SLACK_MS);
    const above = rows.first("runs", [], CREATED, { after: bound - 1 });
    if (above === undefined || above.created_at >= createdBefore)
      most = Math.min(most ?? Number.MAX_SAFE_INTEGER, Math.max(bound, 1));
  }
  return { after: least, before: most };
}

/** list-runs.N1 */
function findRuns(rows: Rows, filter: RunFilter, bounds: Bounds): readonly ListedRow[] {
  const { definition, statuses, limit, parent, tags = [] } = filter;
  const tests = testsOf(filter);
  if (parent !== undefined) return findChildren(rows, filter, parent, tests, bounds);
  if (tags.length > 0) return findTagged(rows, limit, tags, tagWalk(rows, limit, tags, tests, bounds), bounds);
  const span = { ...bounds, backwards: true, limit } as const;
  if (statuses?.every((status) => UNHAPPY.includes(status)) === true) {
    const { status: _, ...others } = tests;
    const pages = [...new Set(statuses)].map((status) =>
      rows.select("runs_unhappy", [status], LISTED, withTests(span, others)),
    );
    return newest(pages.flat(), limit);
  }
  if (definition === undefined) return rows.select("runs", [], LISTED, withTests(span, tests));
  const { definition: _, ...others } = tests;
  return rows.select("runs_by_definition", [definition], LISTED, withTests(span, others));
}

function testsOf(filter: RunFilter): Filter<"runs"> {
  const { definition, kind, statuses, errorCode, idContains } = filter;
  const created = timeTest(filter.createdAfter, filter.createdBefore);
  const ended = timeTest(filter.endedAfter, filter.endedBefore);
  return {
    ...(definition !== undefined && { definition }),
    ...(kind !== undefined && { kind }),
    ...(statuses !== undefined && { status: { in: statuses } }),
    ...(created !== undefined && { created_at: created }),
    ...(ended !== undefined && { ended_at: ended }),
    ...(errorCode !== undefined && { error_code: errorCode }),
    ...(idContains !== undefined && { id: { contains: idContains } }),
  };
}

/** At or after one time, and before the other. */
function timeTest(after: number | undefined, before: number | undefined): Test<number> | undefined {
  if (after === undefined) return before === undefined ? undefined : { most: before - 1 };
  return before === undefined ? { least: after } : { least: after, most: before - 1 };
}

function withTests(span: Span<"runs">, tests: Filter<"runs">): Span<"runs"> {
  return Object.keys(tests).length === 0 ? span : { ...span, also: tests };
}

function newest(found: readonly ListedRow[], limit: number): readonly ListedRow[] {
  return found.toSorted((a, b) => b.run - a.run).slice(0, limit);
}

/** The children of all generations of a run. */
function findChildren(
  rows: Rows,
  { limit, tags = [] }: RunFilter,
  parent: string,
  tests: Filter<"runs">,
  bounds: Bounds,
): readonly ListedRow[] {
  const generations = rows.select("runs_by_id", [parent], FAMILY, { backwards: true, limit: MAX_GENERATIONS });
  const [newestOne] = generations;
  if (newestOne === undefined) return [];
  const also = { ...tests, parent: { in: generations.map(({ run }) => run) } };
  const walk: Walk = (before, count) => {
    const span = { ...bounds, before, backwards: true, limit: count, also };
    const listed = rows.select("runs_by_root", [newestOne.root], LISTED, span);
    return { listed, last: listed.length < count ? undefined : listed.at(-1)?.run };
  };
  return tags.length > 0 ? findTagged(rows, limit, tags, walk, bounds) : walk(bounds.before, limit).listed;
}

// ── tags ──

/** Reads the next runs below a number. `last`: there may be more below this one. */
type Walk = (before: RunNumber | undefined, count: number) => WalkPage;

interface WalkPage {
  readonly listed: readonly ListedRow[];
  readonly last: RunNumber | undefined;
}

/** Reads pages until enough runs have all tags. */
function findTagged(
  rows: Rows,
  limit: number,
  tags: readonly string[],
  walk: Walk,
  bounds: Bounds,
): readonly ListedRow[] {
  const found: ListedRow[] = [];
  const count = Math.max(limit, TAG_PAGE);
  for (let { before } = bounds; found.length < limit;) {
    const { listed, last } = walk(before, count);
    const tagged = listed.map(({ run }) => tagsOf(rows, run));
    // The rows of this page come first, and their tags with them; they decide whether another page is needed.
    if (rows.isGuess) break;
    for (const [at, row] of listed.entries())
      if (found.length < limit && tags.every((tag) => tagged[at]!.includes(tag))) found.push(row);
    if (last === undefined) break;
    before = last;
  }
  return found;
}

/** Walks the runs of the tag with the fewest, as far as one page of each shows. */
function tagWalk(rows: Rows, limit: number, tags: readonly string[], tests: Filter<"runs">, bounds: Bounds): Walk {
  const select = (tag: string, before: RunNumber | undefined, count: number) =>
    rows.select("tags_by_tag", [tag], RUN, { ...bounds, before, backwards: true, limit: count });
  const tag = rarestOf(tags, Math.max(limit, TAG_PAGE), (one, count) => select(one, bounds.before, count));
  return (before, count) => {
    const numbers = select(tag, before, count);
    const read = numbers.map(({ run }) => rows.get("runs", [run], LISTED));
    // Their tags come in the same round trip.
    if (rows.isGuess) for (const { run } of numbers) tagsOf(rows, run);
    const listed = read.filter((row) => row !== undefined && isWanted(row, tests)) as readonly ListedRow[];
    return { listed, last: numbers.length < count ? undefined : numbers.at(-1)?.run };
  };
}

/** The tag whose first page is shortest, or reaches back furthest. */
function rarestOf(
  tags: readonly string[],
  count: number,
  select: (tag: string, count: number) => readonly { readonly run: RunNumber }[],
): string {
  const [first = ""] = tags;
  if (tags.length < 2) return first;
  const pages = tags.map((tag) => ({ tag, page: select(tag, count) }));
  const reach = (page: readonly { readonly run: RunNumber }[]): number =>
    page.length < count ? page.length - count : page.at(-1)!.run;
  return pages.reduce((best, one) => (reach(one.page) < reach(best.page) ? one : best)).tag;
}

function isWanted(row: ListedRow, tests: Filter<"runs">): boolean {
  return (Object.entries(tests) as [ListedColumn, Test][]).every(([column, test]) =>
    passes(row[column], test, compare),
  );
}

/** Only numbers are compared. */
function compare(a: Value, b: Value): number {
  return Number(a) - Number(b);
}
