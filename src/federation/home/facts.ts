// Facts: what run records and statements say about runs, in columns that a filter can compare. Derived from contents alone.

import { mediaType } from "../../base/index.ts";
import type { HomeDatabase } from "./home-database.ts";

export const RUN_TYPE = mediaType("run");
export const LINK_TYPE = mediaType("link");
export const CLAIM_TYPE = mediaType("claim");
export const MEMO_ANSWER_TYPE = mediaType("memo-answer");
export const STATEMENT_TYPE = "application/vnd.in-toto+json";

export function hasFacts(type: string): boolean {
  return type === RUN_TYPE || type === STATEMENT_TYPE;
}

/** Writes the facts of a content into its shard, under the id of its row. A text that is no run record and no statement has none. */
export function indexFacts(shard: HomeDatabase, artifact: number, type: string, bytes: Uint8Array): void {
  const fields = fieldsOf(bytes);
  if (fields === undefined) return;
  if (type === RUN_TYPE) {
    const { id, generation, chain, name, version, end, times } = fields;
    const [createdAt, endedAt] = Array.isArray(times) ? (times as unknown[]) : [];
    if (typeof id !== "string" || !isWhole(generation)) return;
    shard.run(
      INSERT,
      ...([artifact, "run", id, generation, text(chain) ?? ""] as const),
      ...([text(name), whole(version), text(end), whole(createdAt), whole(endedAt)] as const),
    );
    return;
  }
  const { run, generation, chain, status, tags } = (fields["predicate"] ?? {}) as Fields;
  if (typeof run !== "string" || !isWhole(generation)) return;
  shard.run(
    INSERT,
    ...([artifact, "statement", run, generation, text(chain) ?? "", null, null, text(status), null, null] as const),
  );
  if (!Array.isArray(tags)) return;
  for (const tag of tags)
    if (typeof tag === "string") shard.run("insert or ignore into tag (tag, id) values (?, ?)", tag, artifact);
}

const INSERT =
  "insert or ignore into fact (id, kind, run, generation, chain, definition, version, status, created_at, ended_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

export function dropFacts(shard: HomeDatabase, artifact: number): void {
  shard.run("delete from fact where id = ?", artifact);
  shard.run("delete from tag where id = ?", artifact);
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(bytes: Uint8Array): Fields | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
    return typeof value === "object" && value !== null ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function whole(value: unknown): number | null {
  return isWhole(value) ? value : null;
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
