// Answers: what the server said, put back to the questions it was asked.

import type { Answer } from "../remote/backend.ts";
import type { Result } from "./driver.ts";
import { Unfinished, type Rendered } from "./render-question.ts";

export interface Open {
  readonly place: number;
  readonly rendered: Rendered;
}

export function openQuestions(rendered: readonly Rendered[]): readonly Open[] {
  return rendered.map((each, place) => ({ place, rendered: each }));
}

export function statementsOf(open: readonly Open[]): readonly string[] {
  return open.flatMap(({ rendered }) => rendered.statements);
}

/** Fills in what is answered; what is not yet, has to be asked next. */
export function takeAnswers(answers: Answer[], open: readonly Open[], results: readonly Result[]): readonly Open[] {
  const next: Open[] = [];
  let at = 0;
  for (const { place, rendered } of open) {
    const own = results.slice(at, at + rendered.statements.length).map(({ rows }) => rows);
    at += own.length;
    const answer = rendered.read(own);
    if (answer instanceof Unfinished) next.push({ place, rendered: answer.next });
    else answers[place] = answer;
  }
  return next;
}
