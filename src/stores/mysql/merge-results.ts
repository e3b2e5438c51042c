// Answers: queries that are asked together, and what the server said put back to each of them.
//
// AN1. Hundreds of small queries of one kind (how is this run, and this one …) become one statement. Each statement costs
//      the server its planning and both sides a description of every column, many times the row itself.
// AN2. What becomes one statement locks nothing, and stands where the last of its queries stood: whoever asked after a lock
//      still sees what the lock was waited for.

import type { QueryResult, WireRow } from "../remote/backend.ts";
import type { Lookup, Query, Select } from "../remote/query.ts";
import type { Value } from "../remote/tables.ts";
import type { Result } from "./driver.ts";
import { renderNewest, renderQuery, renderUnion, Unfinished, type RenderedQuery } from "./render-query.ts";

export interface PendingQuery {
  readonly rendered: RenderedQuery;
  readonly deliver: (answer: QueryResult, answers: QueryResult[]) => void;
}

interface Placed<Q extends Query = Query> {
  readonly place: number;
  readonly query: Q;
}

/** Selects in one statement. */
const MOST_SELECTS = 100;
const MOST_IDS = 400;

export function planQueries(queries: readonly Query[]): readonly PendingQuery[] {
  const placed = queries.map((query, place): Placed => ({ place, query }));
  if (queries.length < 2) return placed.map(alone);
  const groups = Map.groupBy(placed, kindOf);
  const open: { readonly at: number; readonly open: PendingQuery }[] = [];
  for (const [kind, members] of groups)
    for (const part of kind.startsWith("alone") ? members.map((each) => [each]) : partsOf(members))
      open.push({ at: part.at(-1)!.place, open: together(part) });
  // AN2
  return open.toSorted((a, b) => a.at - b.at).map((each) => each.open);
}

function partsOf(members: readonly Placed[]): readonly (readonly Placed[])[] {
  const { query } = members[0]!;
  if (query.kind === "lookup") return [members];
  const most = isNewestOfId(query) ? MOST_IDS : MOST_SELECTS;
  const parts: Placed[][] = [];
  for (let at = 0; at < members.length; at += most) parts.push(members.slice(at, at + most));
  return parts;
}

function kindOf({ query, place }: Placed): string {
  if (query.kind === "lookup" && query.lock === "none") return `lookup ${query.table} ${query.columns.join()}`;
  if (isNewestOfId(query)) return "newest";
  // The rows of a part of a union come in no order.
  const isUnordered = query.kind === "select" && (query.limit === 1 || query.order === undefined);
  return isUnordered && query.lock === "none" ? `select ${query.table}` : `alone ${place}`;
}

/** How a run stands: what whoever waits for it asks again and again. */
function isNewestOfId(query: Query): query is Select<"runs"> {
  if (query.kind !== "select" || query.table !== "runs" || query.lock !== "none" || query.limit !== 1) return false;
  const [only, other] = query.where;
  const [order] = query.order ?? [];
  return only?.column === "id" && only.is === "=" && other === undefined && order?.join() === "generation,desc";
}

function idOf({ where: [only] }: Select): string {
  return only?.is === "=" ? String(only.value) : "";
}

function newest(members: readonly Placed<Select>[]): PendingQuery {
  return {
    rendered: renderNewest(members.map(({ query }) => idOf(query))),
    deliver: (answer, answers) => {
      const found = new Map(answer.map((row) => [row["id"], row]));
      for (const { place, query } of members) {
        const row = found.get(idOf(query));
        answers[place] = row === undefined ? [] : [row];
      }
    },
  };
}

function together(members: readonly Placed[]): PendingQuery {
  const [first] = members;
  if (members.length === 1) return alone(first!);
  if (isNewestOfId(first!.query)) return newest(members as readonly Placed<Select>[]);
  return first!.query.kind === "lookup"
    ? lookups(members as readonly Placed<Lookup>[])
    : selects(members as readonly Placed<Select>[]);
}

function alone({ query, place }: Placed): PendingQuery {
  return { rendered: renderQuery(query), deliver: (answer, answers) => (answers[place] = answer) };
}

function lookups(members: readonly Placed<Lookup>[]): PendingQuery {
  const { columns } = members[0]!.query;
  const keys = new Map(members.flatMap(({ query }) => query.keys.map((key) => [textOf(key), key])));
  return {
    rendered: renderQuery({ ...members[0]!.query, keys: [...keys.values()] }),
    deliver: (answer, answers) => {
      const found = Map.groupBy(answer.entries(), ([, row]) => textOf(columns.map((column) => row[column] as Value)));
      for (const { place, query } of members) {
        const own = new Set(query.keys.map(textOf)).values();
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

function selects(members: readonly Placed<Select>[]): PendingQuery {
  const { rendered, partOf } = renderUnion(members.map(({ query }) => query));
  return {
    rendered,
    deliver: (answer, answers) => {
      for (const { place } of members) answers[place] = [];
      for (const row of answer) (answers[members[partOf(row)]!.place] as WireRow[]).push(row);
    },
  };
}

export function statementsOf(open: readonly PendingQuery[]): readonly string[] {
  return open.flatMap(({ rendered }) => rendered.statements);
}

/** Fills in what is answered; what is not yet, has to be asked next. */
export function takeResults(
  answers: QueryResult[],
  open: readonly PendingQuery[],
  results: readonly Result[],
): readonly PendingQuery[] {
  const next: PendingQuery[] = [];
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
