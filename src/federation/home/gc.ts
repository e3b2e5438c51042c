// Gc: frees the bytes of contents that nothing here needs any more. Records stay, and evicted bytes can be had again.
//
// gc.G1. Kept: what is visible now or in a kept snapshot, what such an artifact names (its claim, its journal, its values), what a pin
//   names, and what the caller keeps: what rules publish and no peer has yet.
// gc.G2. With `maxBytes`, visible contents of other origins go too, oldest first, until the rest fits. Pins and snapshots hold.

import type { EpochMs } from "../../base/index.ts";
import { hexOf } from "./blobs.ts";
import type { HomeParts } from "./home-parts.ts";
import { relationsWith } from "./relations.ts";
import type { Snapshots } from "./snapshots.ts";
import { Visibility } from "./visibility.ts";

export interface GcOptions {
  /** Keys and roots that must stay. */
  readonly keep?: (key: string) => boolean;
  /** gc.G2 */
  readonly maxBytes?: number;
  /** Also contents that nothing names, if they came before this time. */
  readonly unnamedBefore?: EpochMs;
}

export interface GcReport {
  readonly contents: number;
  readonly bytes: number;
}

interface HeldContent {
  readonly key: string;
  readonly type: string;
  readonly size: number;
  readonly at: EpochMs;
}

export function collectGarbage(parts: HomeParts, snapshots: Snapshots, options: GcOptions): GcReport {
  const needs = new Needs(parts, snapshots);
  const { keep = () => false, maxBytes, unnamedBefore = 0 } = options;
  const going: HeldContent[] = [];
  const spare: HeldContent[] = [];
  let total = 0;
  for (const held of heldContents(parts)) {
    total += held.size;
    const need = needs.of(held);
    const isGoing = need === "none" || (need === "unnamed" && held.at < unnamedBefore);
    const isSpare = need === "foreign" && maxBytes !== undefined;
    if ((!isGoing && !isSpare) || keep(held.key) || needs.isPinned(held)) continue;
    (isGoing ? going : spare).push(held);
  }
  let left = total - going.reduce((sum, { size }) => sum + size, 0);
  for (const held of spare.sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1))) {
    if (maxBytes === undefined || left <= maxBytes) break;
    going.push(held);
    left -= held.size;
  }
  const bytes = going.reduce((sum, { key }) => sum + parts.contents.drop(key, "evicted"), 0);
  return { contents: going.length, bytes };
}

function* heldContents({ contents: { shards } }: HomeParts): Generator<HeldContent> {
  for (const index of shards.indexes()) {
    const shard = shards.at(index);
    for (const sql of [
      "select key, type, size, at from artifact where state = 0",
      "select root as key, 'journal' as type, size, at from journal where state = 0",
    ])
      for (const { key, type, size, at } of shard.all(sql))
        yield { key: hexOf(key), type: String(type), size: Number(size), at: Number(at) };
  }
}

/** Why a content must stay. */
class Needs {
  readonly #parts: HomeParts;
  readonly #now: Visibility;
  readonly #kept: readonly Visibility[];
  readonly #pins: ReadonlySet<string>;
  readonly #own: ReadonlySet<string>;

  constructor(parts: HomeParts, snapshots: Snapshots) {
    this.#parts = parts;
    this.#now = new Visibility(parts, undefined);
    this.#kept = snapshots.list().map(({ heads }) => new Visibility(parts, parts.log.boundsOf(heads)));
    this.#pins = new Set(parts.db.all("select what from pin").map(({ what }) => String(what)));
    this.#own = new Set(parts.origins.list().flatMap(({ id, own }) => (own ? [id] : [])));
  }

  /** By a pin, or by a kept snapshot (gc.G1). */
  isPinned({ key, type }: HeldContent): boolean {
    if (this.#pins.has(key)) return true;
    return this.#kept.some((visibility) => this.#originsOf(visibility, key, type).length > 0);
  }

  /** `foreign`: only other origins put it. `unnamed`: no record and no artifact ever named it. */
  of({ key, type }: HeldContent): "own" | "foreign" | "unnamed" | "none" {
    const origins = this.#originsOf(this.#now, key, type);
    if (origins.some((origin) => this.#own.has(origin))) return "own";
    if (origins.length > 0) return "foreign";
    const isNamed = this.#parts.db.get("select 1 from relation_end where end = ? limit 1", key) !== undefined;
    const hasCell = this.#now.cellOf(key, type) !== undefined;
    return isNamed || hasCell ? "none" : "unnamed";
  }

  /** The origins of the visible artifacts that need this content: itself, or those that name it, step by step. */
  #originsOf(visibility: Visibility, key: string, type: string): string[] {
    const own = visibility.markOf(key, type);
    if (own !== undefined) return [own.o];
    return this.#namers(key).flatMap((by) => {
      const described = this.#parts.contents.describe(by);
      const mark = described && visibility.markOf(by, described.type);
      return mark === undefined ? [] : [mark.o];
    });
  }

  #namers(key: string): string[] {
    const sides = ["from", "to"] as const;
    return [...new Set(sides.flatMap((side) => relationsWith(this.#parts.db, key, side).map(({ by }) => by)))];
  }
}
