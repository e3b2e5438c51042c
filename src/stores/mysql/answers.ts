// Answers: questions that are asked together, and what the server said put back to each of them.
//
// AN1. Hundreds of small questions of one kind (how is this run, and this one …) become one statement. Each statement costs
//      the server its planning and both sides a description of every column, many times the row itself.
// AN2. What becomes one statement locks nothing, and stands where the last of its questions stood: whoever asked after a lock
//      still sees what the lock was waited for.

import type { Answer, WireRow } from "../remote/backend.ts";
import type { Lookup, Question, Select } from "../remote/query.ts";
import type { Value } from "../remote/tables.ts";
import type { Result } from "./driver.ts";
import { renderNewest, renderQuestion, renderUnion, Unfinished, type Rendered } from "./render-question.ts";

export interface Open {
  readonly rendered: Rendered;
  readonly deliver: (answer: Answer, answers: Answer[]) => void;
}

interface Placed<Q extends Question = Question> {
  readonly place: number;
  readonly question: Q;
}

/** Selects in one statement. */
const MOST_SELECTS = 100;
const MOST_IDS = 400;

export function openQuestions(questions: readonly Question[]): readonly Open[] {
  const placed = questions.map((question, place): Placed => ({ place, question }));
  if (questions.length < 2) return placed.map(alone);
  const groups = Map.groupBy(placed, kindOf);
  const open: { readonly at: number; readonly open: Open }[] = [];
  for (const [kind, members] of groups)
    for (const part of kind.startsWith("alone") ? members.map((each) => [each]) : partsOf(members))
      open.push({ at: part.at(-1)!.place, open: together(part) });
  // AN2
  return open.toSorted((a, b) => a.at - b.at).map((each) => each.open);
}

function partsOf(members: readonly Placed[]): readonly (readonly Placed[])[] {
  const { question } = members[0]!;
  if (question.ask === "lookup") return [members];
  const most = isNewestOfId(question) ? MOST_IDS : MOST_SELECTS;
  const parts: Placed[][] = [];
  for (let at = 0; at < members.length; at += most) parts.push(members.slice(at, at + most));
  return parts;
}

function kindOf({ question, place }: Placed): string {
  if (question.ask === "lookup" && question.lock === "none")
    return `lookup ${question.table} ${question.columns.join()}`;
  if (isNewestOfId(question)) return "newest";
  // The rows of a part of a union come in no order.
  const isUnordered = question.ask === "select" && (question.limit === 1 || question.order === undefined);
  return isUnordered && question.lock === "none" ? `select ${question.table}` : `alone ${place}`;
}

/** How a run stands: what whoever waits for it asks again and again. */
function isNewestOfId(question: Question): question is Select<"runs"> {
  if (question.ask !== "select" || question.table !== "runs" || question.lock !== "none" || question.limit !== 1)
    return false;
  const [only, other] = question.where;
  const [order] = question.order ?? [];
  return only?.column === "id" && only.is === "=" && other === undefined && order?.join() === "generation,desc";
}

function idOf({ where: [only] }: Select): string {
  return only?.is === "=" ? String(only.value) : "";
}

function newest(members: readonly Placed<Select>[]): Open {
  return {
    rendered: renderNewest(members.map(({ question }) => idOf(question))),
    deliver: (answer, answers) => {
      const found = new Map(answer.map((row) => [row["id"], row]));
      for (const { place, question } of members) {
        const row = found.get(idOf(question));
        answers[place] = row === undefined ? [] : [row];
      }
    },
  };
}

function together(members: readonly Placed[]): Open {
  const [first] = members;
  if (members.length === 1) return alone(first!);
  if (isNewestOfId(first!.question)) return newest(members as readonly Placed<Select>[]);
  return first!.question.ask === "lookup"
    ? lookups(members as readonly Placed<Lookup>[])
    : selects(members as readonly Placed<Select>[]);
}

function alone({ question, place }: Placed): Open {
  return { rendered: renderQuestion(question), deliver: (answer, answers) => (answers[place] = answer) };
}

function lookups(members: readonly Placed<Lookup>[]): Open {
  const { columns } = members[0]!.question;
  const keys = new Map(members.flatMap(({ question }) => question.keys.map((key) => [textOf(key), key])));
  return {
    rendered: renderQuestion({ ...members[0]!.question, keys: [...keys.values()] }),
    deliver: (answer, answers) => {
      const found = Map.groupBy(answer.entries(), ([, row]) => textOf(columns.map((column) => row[column] as Value)));
      for (const { place, question } of members) {
        const own = new Set(question.keys.map(textOf)).values();
        // In the order of the key, as they came.
        const rows = [...own].flatMap((key) => found.get(key) ?? []).toSorted(([a], [b]) => a - b);
        answers[place] = rows.map(([, row]): WireRow => row);
      }
    },
  };
}

function textOf(key: readonly Value[]): string {
  return JSON.stringify(key);
}

function selects(members: readonly Placed<Select>[]): Open {
  const { rendered, partOf } = renderUnion(members.map(({ question }) => question));
  return {
    rendered,
    deliver: (answer, answers) => {
      for (const { place } of members) answers[place] = [];
      for (const row of answer) (answers[members[partOf(row)]!.place] as WireRow[]).push(row);
    },
  };
}

export function statementsOf(open: readonly Open[]): readonly string[] {
  return open.flatMap(({ rendered }) => rendered.statements);
}

/** Fills in what is answered; what is not yet, has to be asked next. */
export function takeAnswers(answers: Answer[], open: readonly Open[], results: readonly Result[]): readonly Open[] {
  const next: Open[] = [];
  let at = 0;
  for (const { rendered, deliver } of open) {
    const own = results.slice(at, at + rendered.statements.length).map(({ rows }) => rows);
    at += own.length;
    const answer = rendered.read(own);
    if (answer instanceof Unfinished) next.push({ rendered: answer.next, deliver });
    else deliver(answer, answers);
  }
  return next;
}
