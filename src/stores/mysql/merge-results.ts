// Merge results: combines queries into few statements, and distributes the results to the queries.
//
// merge-results.A1. Hundreds of small queries of one kind (the status of many runs) become one statement. Each statement costs the
//   server a plan, and both sides a description of every column, many times the size of a row.
// merge-results.A2. Only queries without locks are combined, and the statement takes the position of the last of them: a query after
//   a lock still sees what was committed before the lock was granted.

import type { QueryResult, WireRow } from "../remote/backend.ts";
import type { Lookup, Query, Select } from "../remote/query.ts";
import type { Value } from "../rows/tables.ts";
import type { Result } from "./driver.ts";
import { renderNewest, renderQuery, renderUnion, Unfinished, type RenderedQuery } from "./render-query.ts";

export interface PendingQuery {
  readonly rendered: RenderedQuery;
  readonly deliver: (result: QueryResult, output: QueryResult[]) => void;
}

interface Placed<Q extends Query = Query> {
  readonly place: number;
  readonly query: Q;
}

/** Selections per statement. */
const MAX_SELECTS = 100;
const MAX_IDS = 400;

export function planQueries(queries: readonly Query[]): readonly PendingQuery[] {
  const placed = queries.map((query, place): Placed => ({ place, query }));
  if (queries.length < 2) return placed.map(alone);
  const groups = Map.groupBy(placed, kindOf);
  const pending: { readonly at: number; readonly pending: PendingQuery }[] = [];
  for (const [kind, members] of groups)
    for (const part of kind.startsWith("alone") ? members.map((each) => [each]) : partsOf(members))
      pending.push({ at: part.at(-1)!.place, pending: together(part) });
  // merge-results.A2
  return pending.toSorted((a, b) => a.at - b.at).map((each) => each.pending);
}

function partsOf(members: readonly Placed[]): readonly (readonly Placed[])[] {
  const { query } = members[0]!;
  if (query.kind === "lookup") return [members];
  const most = isNewestOfId(query) ? MAX_IDS : MAX_SELECTS;
  const parts: Placed[][] = [];
  for (let at = 0; at < members.length; at += most) parts.push(members.slice(at, at + most));
  return parts;
}

function kindOf({ query, place }: Placed): string {
  if (query.kind === "lookup" && query.lock === "none") return `lookup ${query.table} ${query.columns.join()}`;
  if (isNewestOfId(query)) return "newest";
  // The rows of a part of a union are unordered.
  const isUnordered = query.kind === "select" && (query.limit === 1 || query.order === undefined);
  return isUnordered && query.lock === "none" ? `select ${query.table}` : `alone ${place}`;
}

/** The newest generation of a run: the query of every client that waits for a result. */
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
    deliver: (result, output) => {
      const found = new Map(result.map((row) => [row["id"], row]));
      for (const { place, query } of members) {
        const row = found.get(idOf(query));
        output[place] = row === undefined ? [] : [row];
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
  return { rendered: renderQuery(query), deliver: (result, output) => (output[place] = result) };
}

function lookups(members: readonly Placed<Lookup>[]): PendingQuery {
  const { columns } = members[0]!.query;
  const keys = new Map(members.flatMap(({ query }) => query.keys.map((key) => [textOf(key), key])));
  return {
    rendered: renderQuery({ ...members[0]!.query, keys: [...keys.values()] }),
    deliver: (result, output) => {
      const found = Map.groupBy(result.entries(), ([, row]) => textOf(columns.map((column) => row[column] as Value)));
      for (const { place, query } of members) {
        const own = new Set(query.keys.map(textOf)).values();
        // In key order, as returned.
        const rows = [...own].flatMap((key) => found.get(key) ?? []).toSorted(([a], [b]) => a - b);
        output[place] = rows.map(([, row]): WireRow => row);
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
    deliver: (result, output) => {
      for (const { place } of members) output[place] = [];
      for (const row of result) (output[members[partOf(row)]!.place] as WireRow[]).push(row);
    },
  };
}

export function statementsOf(pending: readonly PendingQuery[]): readonly string[] {
  return pending.flatMap(({ rendered }) => rendered.statements);
}

/** Fills in the finished results; returns the queries that need another round trip. */
export function takeResults(
  output: QueryResult[],
  pending: readonly PendingQuery[],
  results: readonly Result[],
): readonly PendingQuery[] {
  const next: PendingQuery[] = [];
  let at = 0;
  for (const { rendered, deliver } of pending) {
    const own = results.slice(at, at + rendered.statements.length).map(({ rows }) => rows);
    at += own.length;
    const result = rendered.read(own);
    if (result instanceof Unfinished) next.push({ rendered: result.next, deliver });
    else deliver(result, output);
  }
  return next;
}
