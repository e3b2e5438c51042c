// Sent queries: every shape of query that the store cases send to a database, with the path that it walks.

import { INDEXES, pathInfo, type Path, type PathInfo } from "../../src/stores/rows/indexes.ts";
import type { Condition, Query } from "../../src/stores/remote/query.ts";
import { pathConditions } from "../../src/stores/remote/path-query.ts";
import { openRemoteStore } from "../../src/stores/remote/remote-store.ts";
import type { StoreSource } from "../../src/stores/index.ts";
import { storeCases, type StoreCase } from "../../src/testing/store-cases.ts";
import { createStoreTest } from "../../src/testing/store-test.ts";
import { createFolder } from "../engine/world.ts";
import { openSimBackend, type SimBackend } from "../simulation/store/sim-backend.ts";
import { simUserSql } from "./remote-fixture.ts";

export interface SentQuery {
  /** The shape, as text: the query without its bound values. */
  readonly shape: string;
  readonly query: Query;
  /** Undefined: no declared path has these conditions and this order. */
  readonly walk: Walk | undefined;
}

export interface Walk {
  readonly path: Path;
  /** The columns whose values are given. */
  readonly prefix: readonly string[];
}

/** Shapes of queries that read a whole table, and why that is right. */
export const WHOLE_TABLES: ReadonlyMap<string, string> = new Map([
  ["count runs [] by status   ", "people count the runs by status"],
  ["count outbox [attempt >] by destination   ", "people count the messages by destination"],
  ["count outbox [destination not null] by destination sent_at attempt ", "people count the messages by destination"],
  ["count writers [] by   mark ", "there are a few writers per process; read when a store is opened"],
  ["select writers [mark >, mark <] limit none", "there are a few writers per process; read when a store is opened"],
  ["select queues [] none", "there are few queues"],
  ["select workers [until <=] order worker asc none", "there are few workers"],
]);

/** Some cases wait in real time. */
const AT_ONCE = 8;

/** Runs all store cases on a simulated database; returns one query of each shape. */
export async function sentQueries(): Promise<readonly SentQuery[]> {
  const found = new Map<string, Query>();
  const source = (): StoreSource =>
    recordingSource((query) => {
      const shape = shapeOf(query);
      if (!found.has(shape)) found.set(shape, query);
    });
  using folder = createFolder();
  const runAll = async (cases: Iterator<StoreCase>): Promise<void> => {
    for (let next = cases.next(); next.done !== true; next = cases.next())
      await next.value.run(createStoreTest({ source: source(), userSql: simUserSql, folder: folder.path }));
  };
  const cases = storeCases.values();
  await Promise.all(Array.from({ length: AT_ONCE }, () => runAll(cases)));
  return [...found]
    .map(([shape, query]) => ({ shape, query, walk: walkOf(query) }))
    .sort((a, b) => (a.shape < b.shape ? -1 : 1));
}

function recordingSource(record: (query: Query) => void): StoreSource {
  let first: SimBackend | undefined;
  return {
    async "~open"(options) {
      const backend = first?.server.backend() ?? openSimBackend({ now: () => options.clock.now() });
      first ??= backend;
      const connect = backend.connect.bind(backend);
      backend.connect = async () => {
        const connection = await connect();
        for (const call of ["query", "read"] as const) {
          const send = connection[call].bind(connection);
          connection[call] = (queries) => {
            queries.forEach(record);
            return send(queries);
          };
        }
        return connection;
      };
      return openRemoteStore(backend, options);
    },
  };
}

function shapeOf(query: Query): string {
  const parts: string[] = [query.kind, query.table];
  if (query.kind === "lookup") return [...parts, `by ${query.columns.join()}`, query.lock].join(" ");
  parts.push(`[${query.where.map(textOf).join(", ")}]`);
  if (query.kind === "select") {
    if (query.order !== undefined) parts.push(`order ${query.order.map((one) => one.join(" ")).join()}`);
    if (query.limit !== undefined) parts.push(query.limit === 1 ? "first" : "limit");
    return [...parts, query.lock].join(" ");
  }
  if (query.kind === "distinct") return [...parts, query.columns.join()].join(" ");
  const { by, least, most, upTo } = query;
  return [...parts, `by ${by?.join() ?? ""}`, least, most, upTo === undefined ? "" : "upTo"].join(" ");
}

/** With the values that are written into the statement. */
function textOf(condition: Condition): string {
  const { column, is, fixed } = condition;
  if (fixed !== true) return `${column} ${is}`;
  if ("values" in condition) return `${column} ${is} ${JSON.stringify(condition.values)}`;
  return "value" in condition ? `${column} ${is} ${JSON.stringify(condition.value)}` : `${column} ${is}`;
}

/** The path with most conditions of its own, then the one with the longest prefix. */
export function walkOf(query: Query): Walk | undefined {
  let best: (Walk & { readonly rank: number }) | undefined;
  for (const path of [query.table, ...(Object.keys(INDEXES) as Path[])]) {
    const info = pathInfo(path);
    if (info.table !== query.table) continue;
    const length = prefixLength(info, query);
    if (length === undefined) continue;
    const rank = pathConditions(info, []).length * 100 + length;
    if (best === undefined || rank > best.rank)
      best = { path, prefix: info.columns.slice(0, length).map(({ name }) => name), rank };
  }
  return best && { path: best.path, prefix: best.prefix };
}

function prefixLength(info: PathInfo, query: Query): number | undefined {
  const names = info.columns.map(({ name }) => name);
  if (query.kind === "lookup") {
    const isPrefix = query.columns.every((column, at) => names[at] === column);
    return info.where === undefined && isPrefix ? query.columns.length : undefined;
  }
  const texts = query.where.map(textOf);
  const own = pathConditions(info, []).map(textOf);
  if (!own.every((text) => texts.includes(text))) return undefined;
  const equal = new Set(
    query.where.filter((one, at) => one.is === "=" && !own.includes(texts[at]!)).map(({ column }) => column),
  );
  const end = names.findIndex((name) => !equal.has(name));
  const length = end === -1 ? names.length : end;
  if (query.kind === "count") return length;
  const rest = names.slice(length);
  if (query.kind === "distinct") return query.columns.every((column, at) => rest[at] === column) ? length : undefined;
  const order = query.order ?? [];
  return order.every(([column], at) => rest[at] === column) ? length : undefined;
}
