// Groups: the same query about many runs, asked once. Words ask run by run; a statement for each would cost the server ten
// times what it takes to find the rows.
//
// G1. Queries that differ in their values alone become one statement, which asks each of them in turn (`lateral`), in
//     their order.
// G2. It stands where the last of them stood: nothing is read before a lock that was asked for before it.
// G3. One statement sees one moment, also when it had to wait for a lock in the middle. So only those are put together that
//     lock nothing, never wait, or ask for rows that the lock of their run keeps as they are.
// G4. `offset 0` keeps the planner from making a join of it, which it might turn around (Q3).

import type { QueryResult } from "../remote/backend.ts";
import type { BoundQuery } from "./bind-query.ts";
import { rowsOf } from "./rows.ts";
import type { Shapes } from "./shapes.ts";
import type { Bound, Parameter } from "./wire.ts";
import type { Result } from "./pipeline.ts";

/** Fewer are not worth a statement of their own. */
const FEWEST = 4;

/** One statement, and the queries it answers, by their place in the list. */
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
    if (places.length < FEWEST || !canGroup(first))
      return places.map((place) => ({ ...(queries[place] as BoundQuery), places: [place] }));
    return [together(shapes, first, queries, places)];
  });
  // G2
  return groups.sort((a, b) => (a.places.at(-1) as number) - (b.places.at(-1) as number));
}

function canGroup({ shape, values, isOneOfMany }: BoundQuery): boolean {
  // A text in quotes might look like a place for a value.
  return isOneOfMany && values.length > 0 && !shape.text.includes("'") && values.every((value) => "value" in value);
}

function together(
  shapes: Shapes,
  { shape, values }: BoundQuery,
  queries: readonly BoundQuery[],
  places: readonly number[],
): QueryGroup {
  const names = values.map((_, index) => `p${index + 1}`);
  const one = shape.text.replaceAll(/\$(\d+)/g, "k.p$1");
  // G4. What is limited, locked or counted is no join either way.
  const asked = /\b(?:limit|for|count)\b/.test(one) ? one : `${one} offset 0`;
  const text = `select k.n, q.* from unnest(${names.map((_, index) => `$${index + 1}`).join(", ")})
    with ordinality k (${names.join(", ")}, n) cross join lateral (${asked}) q`;
  const rows = places.map((place) =>
    (queries[place] as BoundQuery).values.map((value) => ("value" in value ? value.value : null)),
  );
  const arrays = values.map(({ type }, column): Parameter => ({ type, rows: rows as never, column }));
  return { shape: shapes.of(text), values: arrays, places };
}

/** The answers in the order of the queries. */
export function resultsOf(
  queries: readonly BoundQuery[],
  groups: readonly QueryGroup[],
  results: readonly Result[],
): readonly QueryResult[] {
  const answers: QueryResult[] = queries.map(() => []);
  groups.forEach(({ places }, index) => {
    const { rows } = results[index] as Result;
    const { columns } = queries[places[0] as number] as BoundQuery;
    if (places.length === 1) answers[places[0] as number] = rowsOf(columns, rows);
    else {
      const byNumber = places.map((): (readonly (string | null)[])[] => []);
      for (const [number, ...fields] of rows) byNumber[Number(number) - 1]?.push(fields);
      places.forEach((place, at) => (answers[place] = rowsOf(columns, byNumber[at] ?? [])));
    }
  });
  return answers;
}
