// Scan: the visible artifacts of a home, per shard and joined in merge order; and what a reader wants to know of each.

import type { Origin } from "../log/origin.ts";
import { compareMarks, type Mark } from "../log/record-order.ts";
import { hexOf } from "./blobs.ts";
import { stateName, type ContentState } from "./contents.ts";
import type { HomeParts } from "./home-parts.ts";
import type { Bounds } from "./log-table.ts";
import { State } from "./schema.ts";
import { Visibility } from "./visibility.ts";

export interface ScanFilter {
  readonly type?: string;
  /** Put by this origin, also if another put the same later. */
  readonly origin?: Origin;
  /** What follows this place in merge order. */
  readonly after?: Pick<ScannedArtifact, keyof Mark | "key">;
  readonly limit?: number;
}

export interface ScannedArtifact extends Mark {
  readonly key: string;
  readonly type: string;
  readonly size: number;
  readonly state: ContentState;
}

/** The visible artifacts that fit. Without bounds: as they are now. */
export function scan(parts: HomeParts, filter: ScanFilter, bounds: Bounds | undefined): ScannedArtifact[] {
  const { shards } = parts.contents;
  const visibility = new Visibility(parts, bounds);
  const found = [...shards.indexes()].map((index) => scanShard(parts, index, filter, visibility));
  return mergeSorted(found, filter.limit ?? Number.POSITIVE_INFINITY);
}

/** In merge order. */
function scanShard(
  { contents: { shards } }: HomeParts,
  index: number,
  { type, origin, after }: ScanFilter,
  visibility: Visibility,
): ScannedArtifact[] {
  const shard = shards.at(index);
  const columns = `select key, type, size, state from artifact where state <> ${State.erased}`;
  const rows = type === undefined ? shard.all(columns) : shard.all(`${columns} and type = ?`, type);
  const found: ScannedArtifact[] = [];
  for (const row of rows) {
    const key = hexOf(row["key"]);
    const mark = visibility.markOf(key, String(row["type"]), origin);
    if (mark === undefined || (after !== undefined && comparePlaces({ ...mark, key }, after) <= 0)) continue;
    found.push({ ...mark, key, type: String(row["type"]), size: Number(row["size"]), state: stateName(row["state"]) });
  }
  return found.sort(comparePlaces);
}

/** Merge order. A claim has the place of its statement, so keys decide between them. */
function comparePlaces(a: Pick<ScannedArtifact, keyof Mark | "key">, b: typeof a): number {
  return compareMarks(a, b) || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
}

/** Joins sorted lists. */
function mergeSorted(lists: readonly (readonly ScannedArtifact[])[], limit: number): ScannedArtifact[] {
  const merged: ScannedArtifact[] = [];
  const heads = lists.filter(({ length }) => length > 0).map((list) => ({ list, at: 0 }));
  while (heads.length > 0 && merged.length < limit) {
    const least = heads.reduce((a, b) => (comparePlaces(b.list[b.at]!, a.list[a.at]!) < 0 ? b : a));
    merged.push(least.list[least.at]!);
    least.at += 1;
    if (least.at === least.list.length) heads.splice(heads.indexOf(least), 1);
  }
  return merged;
}

/** The members of an artifact that is JSON, by their paths: `name`, `predicate.run`. Absent ones are left out. */
export function project(
  parts: HomeParts,
  keys: Iterable<string>,
  paths: readonly string[],
): { readonly key: string; readonly values: Readonly<Record<string, unknown>> }[] {
  return [...keys].map((key) => {
    const content = parts.erasure.isErased(key) ? undefined : parts.contents.find(key);
    const value = content === undefined ? undefined : jsonOf(content.bytes);
    const values = paths.map((path) => [path, memberAt(value, path)] as const).filter(([, one]) => one !== undefined);
    return { key, values: Object.fromEntries(values) };
  });
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}

function memberAt(value: unknown, path: string): unknown {
  let at = value;
  for (const name of path.split(".")) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[name];
  }
  return at;
}
