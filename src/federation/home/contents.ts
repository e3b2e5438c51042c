// Contents: bytes by their keys, in shards.
//
// contents.C1. A content is written only if its key is that of its type and bytes. So the same key never has other bytes, and writing
//   it again changes nothing.
//   It is checked again when it is read.
// contents.C2. What is erased is never written again. What was evicted can be.
// contents.C3. The contents of a call are on the disk when it returns: the records that name them become visible later, or never.

import { artifactKey, type Clock } from "../../base/index.ts";
import type { Content } from "../log/content.ts";
import { isKey, keyBlob } from "./blobs.ts";
import { dropFacts, hasFacts, indexFacts } from "./facts.ts";
import type { HomeDatabase } from "./home-database.ts";
import { State } from "./schema.ts";
import type { Shards } from "./shards.ts";

/** `missing`: no bytes were ever here. */
export type ContentState = "present" | "evicted" | "erased" | "missing";

export interface PutCount {
  readonly stored: number;
  /** The same bytes were there. */
  readonly duplicates: number;
}

/** contents.C1 */
export function isContentOfItsKey({ key, type, bytes }: Content): boolean {
  return isKey(key) && artifactKey(type, bytes) === key;
}

const INSERT =
  "insert into artifact (key, type, size, state, at, bytes) values (?, ?, ?, ?, ?, ?) on conflict (key) do nothing";
const RESTORE = "update artifact set state = ?, bytes = ?, at = ? where key = ? and state = ?";

export class Contents {
  readonly shards: Shards;
  readonly #clock: Clock;

  constructor(shards: Shards, clock: Clock) {
    this.shards = shards;
    this.#clock = clock;
  }

  /** contents.C3. The caller has checked them (contents.C1), and that none is erased. */
  put(contents: readonly Content[]): PutCount {
    let stored = 0;
    const at = this.#clock.now();
    for (const [index, group] of this.shards.group(contents, ({ key }) => key)) {
      const shard = this.shards.at(index);
      stored += shard.transact(() => group.reduce((count, content) => count + putOne(shard, content, at), 0));
    }
    return { stored, duplicates: contents.length - stored };
  }

  /** Bytes that have changed on the disk are not returned: they are evicted, so that they can be had again. */
  find(key: string): Content | undefined {
    if (!isKey(key)) return undefined;
    const row = this.shards.of(key).get("select type, bytes from artifact where key = ? and state = 0", keyBlob(key));
    if (row === undefined) return undefined;
    const content = { key, type: String(row["type"]), bytes: row["bytes"] as Uint8Array };
    if (isContentOfItsKey(content)) return content;
    this.drop(key, "evicted");
    return undefined;
  }

  /** Type and size, without the bytes. */
  describe(key: string): { readonly type: string; readonly size: number; readonly state: ContentState } | undefined {
    const row = this.shards.of(key).get("select type, size, state from artifact where key = ?", keyBlob(key));
    return row && { type: String(row["type"]), size: Number(row["size"]), state: stateName(row["state"]) };
  }

  /** Those of the keys whose bytes are here. */
  has(keys: Iterable<string>): Set<string> {
    return this.#select(keys, "select 1 from artifact where key = ? and state = 0");
  }

  #select(keys: Iterable<string>, sql: string): Set<string> {
    const found = new Set<string>();
    for (const [index, group] of this.shards.group(keys, (key) => key)) {
      const statement = this.shards.at(index).sql(sql);
      for (const key of group) if (statement.get(keyBlob(key)) !== undefined) found.add(key);
    }
    return found;
  }

  /** Those of the keys whose bytes are here, or were and can be had again. */
  knows(keys: Iterable<string>): Set<string> {
    return this.#select(keys, "select 1 from artifact where key = ? and state <= 1");
  }

  stateOf(key: string): ContentState {
    return this.describe(key)?.state ?? "missing";
  }

  /** The bytes go; that they were here stays. `erased` is for good (contents.C2). Returns how many bytes went. */
  drop(key: string, state: "evicted" | "erased"): number {
    const shard = this.shards.of(key);
    const blob = keyBlob(key);
    return shard.transact(() => {
      let bytes = 0;
      for (const [table, column] of [
        ["artifact", "key"],
        ["journal", "root"],
      ] as const) {
        const row = shard.get(`select size from ${table} where ${column} = ? and state = ${State.present}`, blob);
        bytes += Number(row?.["size"] ?? 0);
        shard.run(
          `update ${table} set state = ?, bytes = null where ${column} = ? and state <> ${State.erased}`,
          State[state],
          blob,
        );
      }
      // Facts are made of the bytes, so they go with them.
      const id = shard.get("select id from artifact where key = ?", blob)?.["id"];
      if (state === "erased" && id !== undefined) dropFacts(shard, Number(id));
      return bytes;
    });
  }
}

function putOne(shard: HomeDatabase, { key, type, bytes }: Content, at: number): number {
  const blob = keyBlob(key);
  const inserted = shard.sql(INSERT).run(blob, type, bytes.length, State.present, at, bytes);
  if (inserted.changes !== 0) {
    if (hasFacts(type)) indexFacts(shard, Number(inserted.lastInsertRowid), type, bytes);
    return 1;
  }
  // Facts of what was evicted are still here.
  return shard.run(RESTORE, State.present, bytes, at, blob, State.evicted);
}

const STATES = ["present", "evicted", "erased"] as const;

export function stateName(state: unknown): ContentState {
  return STATES[Number(state)] ?? "missing";
}
