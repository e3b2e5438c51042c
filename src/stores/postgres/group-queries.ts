// Group queries: the same query for many runs, as one statement. The rules query run by run; one statement per query would
// cost the server ten times as much as finding the rows.
//
// group-queries.G1. Queries that differ only in their values become one statement, which runs each of them (`lateral`), in order.
// group-queries.G2. It takes the position of the last of them: nothing is read before a lock that was requested earlier.
// group-queries.G3. One statement has one snapshot, even if it waits for a lock. So only queries are grouped that lock nothing, never
//   wait, or read rows that the lock of their run protects.
// group-queries.G4. `offset 0` prevents the planner from turning it into a join, which it might reorder (bind-query.Q3).

import type { QueryResult } from "../remote/backend.ts";
import type { BoundQuery } from "./bind-query.ts";
import { rowsOf } from "./rows.ts";
import type { Shapes } from "./shapes.ts";
import type { Bound, Parameter } from "./wire.ts";
import type { Result } from "./pipeline.ts";

/** Fewer queries are not grouped. */
const MIN_QUERIES = 4;

/** One statement, and the indexes of the queries it output. */
export interface QueryGroup extends Bound {
  readonly places: readonly number[];
}

export function groupQueries(shapes: Shapes, queries: readonly BoundQuery[]): readonly QueryGroup[] {
  const byText = new Map<string, number[]>();
  queries.forEach(({ shape }, place) => {
    const places = byText.get(shape.text);
    if (places === undefined) byText.set(shape.text, [place]);
    else places.push(place);
  });
  const groups = [...byText.values()].flatMap((places): readonly QueryGroup[] => {
    const first = queries[places[0] as number] as BoundQuery;
    if (places.length < MIN_QUERIES || !canGroup(first))
      return places.map((place) => ({ ...(queries[place] as BoundQuery), places: [place] }));
    return [groupOf(shapes, first, queries, places)];
  });
  // group-queries.G2
  return groups.sort((a, b) => (a.places.at(-1) as number) - (b.places.at(-1) as number));
}

function canGroup({ shape, values, isOneOfMany }: BoundQuery): boolean {
  // Text in quotes might look like a parameter.
  return isOneOfMany && values.length > 0 && !shape.text.includes("'") && values.every((value) => "value" in value);
}

function groupOf(
  shapes: Shapes,
  { shape, values }: BoundQuery,
  queries: readonly BoundQuery[],
  places: readonly number[],
): QueryGroup {
  const names = values.map((_, index) => `p${index + 1}`);
  const one = shape.text.replaceAll(/\$(\d+)/g, "k.p$1");
  // group-queries.G4. A query with a limit, a lock or a count is never turned into a join.
  const lateral = /\b(?:limit|for|count)\b/.test(one) ? one : `${one} offset 0`;
  const text = `select k.n, q.* from unnest(${names.map((_, index) => `$${index + 1}`).join(", ")})
    with ordinality k (${names.join(", ")}, n) cross join lateral (${lateral}) q`;
  const rows = places.map((place) =>
    (queries[place] as BoundQuery).values.map((value) => ("value" in value ? value.value : null)),
  );
  const arrays = values.map(({ type }, column): Parameter => ({ type, rows: rows as never, column }));
  return { shape: shapes.of(text), values: arrays, places };
}

/** The results in the order of the queries. */
export function resultsOf(
  queries: readonly BoundQuery[],
  groups: readonly QueryGroup[],
  results: readonly Result[],
): readonly QueryResult[] {
  const output: QueryResult[] = queries.map(() => []);
  groups.forEach(({ places }, index) => {
    const { rows } = results[index] as Result;
    const { columns } = queries[places[0] as number] as BoundQuery;
    if (places.length === 1) output[places[0] as number] = rowsOf(columns, rows);
    else {
      const byNumber = places.map((): (readonly (string | null)[])[] => []);
      for (const [number, ...fields] of rows) byNumber[Number(number) - 1]?.push(fields);
      places.forEach((place, at) => (output[place] = rowsOf(columns, byNumber[at] ?? [])));
    }
  });
  return output;
}
