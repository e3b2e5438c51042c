// Merge questions: what is missing, as few questions in the order rows are to be locked.
//
// Q1. Runs are locked first, then queues (L1), then whatever else is locked. What is only looked at comes last: it is seen
//     as it is once the locks are held (L2).

import { ORDER } from "./net-changes.ts";
import { keyText, type Key } from "./held.ts";
import type { Lookup, Question } from "./query.ts";

export function mergeQuestions(questions: readonly Question[]): readonly Question[] {
  const lookups = new Map<string, { readonly lookup: Lookup; readonly keys: Map<Key, Lookup["keys"][number]> }>();
  const others = new Map<string, Question>();
  for (const question of questions) {
    if (question.ask !== "lookup") {
      const text = textOf(question);
      const known = others.get(text);
      // The same selection, wanted twice: the longer one answers both.
      if (known === undefined || limitOf(known) < limitOf(question)) others.set(text, question);
      continue;
    }
    const shape = `${question.table} ${question.columns.join()} ${question.lock}`;
    let group = lookups.get(shape);
    if (group === undefined) lookups.set(shape, (group = { lookup: question, keys: new Map() }));
    for (const key of question.keys) group.keys.set(keyText(key), key);
  }
  return [
    ...[...lookups.values()].map(({ lookup, keys }): Question => ({ ...lookup, keys: [...keys.values()] })),
    ...others.values(),
  ].sort((a, b) => rank(a) - rank(b));
}

/** Q1 */
function rank(question: Question): number {
  const isLocked = "lock" in question && question.lock !== "none";
  return (isLocked ? 0 : 1000) + ORDER[question.table] * 2 + (question.ask === "lookup" ? 0 : 1);
}

function textOf(question: Question): string {
  return question.ask === "select"
    ? JSON.stringify([question.table, question.where, question.order, question.lock])
    : JSON.stringify(question);
}

function limitOf(question: Question): number {
  return question.ask === "select" ? (question.limit ?? Number.POSITIVE_INFINITY) : 0;
}
