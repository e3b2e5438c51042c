// Groups: the same question about many runs, asked once. Words ask run by run; a statement for each would cost the server ten
// times what it takes to find the rows.
//
// G1. Questions that differ in their values alone become one statement, which asks each of them in turn (`lateral`), in
//     their order.
// G2. It stands where the last of them stood: nothing is read before a lock that was asked for before it.
// G3. One statement sees one moment, also when it had to wait for a lock in the middle. So only those are put together that
//     lock nothing, never wait, or ask for rows that the lock of their run keeps as they are.
// G4. `offset 0` keeps the planner from making a join of it, which it might turn around (Q3).

import type { Answer } from "../remote/backend.ts";
import type { BoundQuestion } from "./questions.ts";
import { rowsOf } from "./rows.ts";
import type { Shapes } from "./shapes.ts";
import type { Bound, Parameter } from "./wire.ts";
import type { Result } from "./pipeline.ts";

/** Fewer are not worth a statement of their own. */
const FEWEST = 4;

/** One statement, and the questions it answers, by their place in the list. */
export interface Group extends Bound {
  readonly places: readonly number[];
}

export function groupQuestions(shapes: Shapes, questions: readonly BoundQuestion[]): readonly Group[] {
  const byText = new Map<string, number[]>();
  questions.forEach(({ shape }, place) => {
    const places = byText.get(shape.text);
    if (places === undefined) byText.set(shape.text, [place]);
    else places.push(place);
  });
  const groups = [...byText.values()].flatMap((places): readonly Group[] => {
    const first = questions[places[0] as number] as BoundQuestion;
    if (places.length < FEWEST || !canGroup(first))
      return places.map((place) => ({ ...(questions[place] as BoundQuestion), places: [place] }));
    return [together(shapes, first, questions, places)];
  });
  // G2
  return groups.sort((a, b) => (a.places.at(-1) as number) - (b.places.at(-1) as number));
}

function canGroup({ shape, values, isOneOfMany }: BoundQuestion): boolean {
  // A text in quotes might look like a place for a value.
  return isOneOfMany && values.length > 0 && !shape.text.includes("'") && values.every((value) => "value" in value);
}

function together(
  shapes: Shapes,
  { shape, values }: BoundQuestion,
  questions: readonly BoundQuestion[],
  places: readonly number[],
): Group {
  const names = values.map((_, index) => `p${index + 1}`);
  const one = shape.text.replaceAll(/\$(\d+)/g, "k.p$1");
  // G4. What is limited, locked or counted is no join either way.
  const asked = /\b(?:limit|for|count)\b/.test(one) ? one : `${one} offset 0`;
  const text = `select k.n, q.* from unnest(${names.map((_, index) => `$${index + 1}`).join(", ")})
    with ordinality k (${names.join(", ")}, n) cross join lateral (${asked}) q`;
  const rows = places.map((place) =>
    (questions[place] as BoundQuestion).values.map((value) => ("value" in value ? value.value : null)),
  );
  const arrays = values.map(({ type }, column): Parameter => ({ type, rows: rows as never, column }));
  return { shape: shapes.of(text), values: arrays, places };
}

/** The answers in the order of the questions. */
export function answersOf(
  questions: readonly BoundQuestion[],
  groups: readonly Group[],
  results: readonly Result[],
): readonly Answer[] {
  const answers: Answer[] = questions.map(() => []);
  groups.forEach(({ places }, index) => {
    const { rows } = results[index] as Result;
    const { columns } = questions[places[0] as number] as BoundQuestion;
    if (places.length === 1) answers[places[0] as number] = rowsOf(columns, rows);
    else {
      const byNumber = places.map((): (readonly (string | null)[])[] => []);
      for (const [number, ...fields] of rows) byNumber[Number(number) - 1]?.push(fields);
      places.forEach((place, at) => (answers[place] = rowsOf(columns, byNumber[at] ?? [])));
    }
  });
  return answers;
}
