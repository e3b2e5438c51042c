// Shards: the files that contents are in, 1 to 256 of them, by the first byte of the key.
//
// shards.S1. Which file a content is in follows from its key and the number of files alone. Files change no key, order or result.
// shards.S2. A file is made when its first content comes, and a process opens it when it first needs it. It stays open: three descriptors
//   and a small cache each, 768 of them at most. (Closing those that were not used lately made a search over 256 files 20 times slower:
//   SQLite copies its log when the last connection closes.)

import { existsSync } from "node:fs";
import { join } from "node:path";
import { RepriseError } from "../../base/index.ts";
import { HomeDatabase, type HomeDatabaseOptions } from "./home-database.ts";
import { SHARD_SCHEMA } from "./schema.ts";

export const MAX_SHARDS = 256;
/** shards.S2. KiB of cache of all shards together, and of one at least. */
const CACHE_KIB = 16_384;
const LEAST_CACHE_KIB = 256;

export class Shards {
  readonly count: number;
  readonly #folder: string;
  readonly #options: HomeDatabaseOptions;
  readonly #open = new Map<number, HomeDatabase>();

  constructor(folder: string, count: number, options: HomeDatabaseOptions) {
    this.#folder = folder;
    this.count = count;
    this.#options = options;
  }

  /** shards.S1 */
  indexOf(key: string): number {
    return (Number.parseInt(key.slice(0, 2), 16) * this.count) >> 8;
  }

  of(key: string): HomeDatabase {
    return this.at(this.indexOf(key));
  }

  at(index: number): HomeDatabase {
    let shard = this.#open.get(index);
    if (shard !== undefined) return shard;
    shard = new HomeDatabase(shardPath(this.#folder, index), SHARD_SCHEMA, this.#options);
    this.#open.set(index, shard);
    shard.db.exec(`pragma cache_size = -${Math.max(LEAST_CACHE_KIB, Math.floor(CACHE_KIB / this.count))}`);
    // What is erased must not stay on free pages.
    shard.db.exec("pragma secure_delete = on");
    this.#checkPlace(shard, index);
    return shard;
  }

  /** A file that was copied under another name would hide the contents that belong there. */
  #checkPlace(shard: HomeDatabase, index: number): void {
    const place = `${index}/${this.count}`;
    const found = shard.get("select value from meta where key = 'place'")?.["value"];
    if (found === place) return;
    if (found === undefined) shard.run("insert or ignore into meta (key, value) values ('place', ?)", place);
    else
      throw new RepriseError(
        "STORE_CORRUPT",
        `${shard.path} is shard ${String(found)}, and shard ${place} belongs there. Put the files of the home back as they were.`,
        { details: { path: shard.path, found, expected: place } },
      );
  }

  /** The indexes of the shards that have something, in order. */
  *indexes(): Iterable<number> {
    for (let index = 0; index < this.count; index += 1)
      if (this.#open.has(index) || existsSync(shardPath(this.#folder, index))) yield index;
  }

  /** Keys by the shard that they are in. */
  group<T>(items: Iterable<T>, keyOf: (item: T) => string): Map<number, T[]> {
    const groups = new Map<number, T[]>();
    for (const item of items) {
      const index = this.indexOf(keyOf(item));
      const group = groups.get(index);
      if (group === undefined) groups.set(index, [item]);
      else group.push(item);
    }
    return groups;
  }

  close(): void {
    for (const shard of this.#open.values()) shard.close();
    this.#open.clear();
  }
}

export function shardPath(folder: string, index: number): string {
  return join(folder, `${index.toString(16).padStart(2, "0")}.db`);
}

export function checkShards(count: number): number {
  if (Number.isSafeInteger(count) && count >= 1 && count <= MAX_SHARDS) return count;
  throw new RepriseError("BAD_OPTIONS", `shards must be a whole number from 1 to ${MAX_SHARDS}; got ${count}.`);
}
