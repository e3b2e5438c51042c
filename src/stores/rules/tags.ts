// Tags: the tags of a run, in the order in which they were given.

import type { RunNumber } from "../../kernel/index.ts";
import type { Rows } from "../rows/rows.ts";

const TAG = ["tag", "position"] as const;

/** The tags of a run, in the order in which they were given. */
export function tagsOf(rows: Rows, run: RunNumber): readonly string[] {
  const tags = rows.select("tags", [run], TAG);
  if (tags.length < 2) return tags.map(({ tag }) => tag);
  return tags.toSorted((a, b) => a.position - b.position).map(({ tag }) => tag);
}

/** `tags` has no tag twice. */
export function insertTags(rows: Rows, run: RunNumber, tags: readonly string[]): void {
  for (const [index, tag] of tags.entries()) rows.insert("tags", { run, tag, position: index + 1 });
}
