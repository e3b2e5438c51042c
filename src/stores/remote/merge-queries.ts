// Merge queries: combines queries into as few as possible, in lock order.
//
// merge-queries.Q1. Queries that lock runs come first, then queues (remote.L1), then other locks. Queries without locks come
//   last, so that they read the state under the locks (remote.L2).

import { TABLE_ORDER } from "./net-changes.ts";
import { keyText, type Key } from "./tracked-row.ts";
import type { Lookup, Query } from "./query.ts";

export function mergeQueries(queries: readonly Query[]): readonly Query[] {
  const lookups = new Map<string, { readonly lookup: Lookup; readonly keys: Map<Key, Lookup["keys"][number]> }>();
  const others = new Map<string, Query>();
  for (const query of queries) {
    if (query.kind !== "lookup") {
      const text = textOf(query);
      const known = others.get(text);
      // Of two selections that differ in their limit, the longer one answers both.
      if (known === undefined || limitOf(known) < limitOf(query)) others.set(text, query);
      continue;
    }
    const shape = `${query.table} ${query.columns.join()} ${query.lock}`;
    let group = lookups.get(shape);
    if (group === undefined) lookups.set(shape, (group = { lookup: query, keys: new Map() }));
    for (const key of query.keys) group.keys.set(keyText(key), key);
  }
  return [
    ...[...lookups.values()].map(({ lookup, keys }): Query => ({ ...lookup, keys: [...keys.values()] })),
    ...others.values(),
  ].sort((a, b) => rank(a) - rank(b));
}

/** merge-queries.Q1 */
function rank(query: Query): number {
  const isLocked = "lock" in query && query.lock !== "none";
  return (isLocked ? 0 : 1000) + TABLE_ORDER[query.table] * 2 + (query.kind === "lookup" ? 0 : 1);
}

function textOf(query: Query): string {
  return query.kind === "select"
    ? JSON.stringify([query.table, query.where, query.order, query.lock])
    : JSON.stringify(query);
}

function limitOf(query: Query): number {
  return query.kind === "select" ? (query.limit ?? Number.POSITIVE_INFINITY) : 0;
}
