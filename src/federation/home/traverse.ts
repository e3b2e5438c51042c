// Traverse: what led to a key, a run or an origin, and what followed from it, over links and over what statements and claims say.
//
// traverse.T1. A relation counts if the artifact that says it is visible at the snapshot: of a slot, the link that is visible.
// traverse.T2. A search visits each relation once, at its least distance, and stops at its limits. Relations of one distance are in
//   merge order. So sites with the same records and contents give the same answer.

import { compareMarks, type Mark } from "../log/record-order.ts";
import type { HomeParts } from "./home-parts.ts";
import type { Bounds } from "./log-table.ts";
import { relationBy, relationsWith, type Relation } from "./relations.ts";
import { Visibility } from "./visibility.ts";

export interface TraverseOptions {
  /** `forward`: what followed. `back`: what led to it. */
  readonly direction: "forward" | "back";
  /** Only relations of these types. */
  readonly types?: readonly string[];
  /** The greatest distance; default 50. */
  readonly depth?: number;
  /** The most relations; default 10,000. */
  readonly limit?: number;
}

export interface TraversedRelation extends Relation {
  /** From 1. */
  readonly depth: number;
  /** The place of the artifact that says it in merge order; `o` is the origin that vouches for it. */
  readonly mark: Mark;
}

export interface Traversal {
  readonly relations: readonly TraversedRelation[];
  /** A limit left something out. */
  readonly isCut: boolean;
}

const DEPTH = 50;
const LIMIT = 10_000;

/** Without bounds: as it is now. */
export function traverse(
  parts: HomeParts,
  start: string,
  { direction, types, depth: most = DEPTH, limit = LIMIT }: TraverseOptions,
  bounds: Bounds | undefined,
): Traversal {
  const visibility = new Visibility(parts, bounds);
  const [near, far] = direction === "forward" ? (["from", "to"] as const) : (["to", "from"] as const);
  const relations: TraversedRelation[] = [];
  const seen = new Set<string>();
  const reached = new Set([start]);
  let level: readonly string[] = [start];
  for (let depth = 1; level.length > 0; depth += 1) {
    const found: TraversedRelation[] = [];
    for (const end of level)
      for (const { by, type } of relationsWith(parts.db, end, near)) {
        if (seen.has(`${by} ${type}`) || types?.includes(type) === false) continue;
        seen.add(`${by} ${type}`);
        const described = parts.contents.describe(by);
        const mark = described && visibility.markOf(by, described.type);
        if (mark !== undefined) found.push({ ...relationBy(parts.db, by, type), depth, mark });
      }
    if (found.length > 0 && depth > most) return { relations, isCut: true };
    found.sort(
      (a, b) => compareMarks(a.mark, b.mark) || (a.by < b.by ? -1 : a.by > b.by ? 1 : a.type < b.type ? -1 : 1),
    );
    for (const relation of found) {
      if (relations.length === limit) return { relations, isCut: true };
      relations.push(relation);
    }
    level = [...new Set(found.flatMap((relation) => relation[far]))].filter((end) => !reached.has(end));
    for (const end of level) reached.add(end);
  }
  return { relations, isCut: false };
}
