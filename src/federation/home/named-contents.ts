// Named contents: which contents the records of a log name, and which run records and statements are about a run.

import { parseLink, slotOf } from "../log/link.ts";
import type { Origin } from "../log/origin.ts";
import { cellBlob, hexOf, isKey, keyBlob } from "./blobs.ts";
import type { Content } from "../log/content.ts";
import { LINK_TYPE } from "./facts.ts";
import type { HomeParts } from "./home-parts.ts";
import type { Shards } from "./shards.ts";

/** Whether a visible record of the log puts this content. */
export function isNamed({ origins, db }: HomeParts, origin: Origin, content: Content): boolean {
  const row = origins.find(origin);
  const cell = cellOfContent(content);
  if (row === undefined || cell === undefined) return false;
  const found = db.get(
    "select 1 from log where cell = ? and origin = ? and n <= ? and key = ? limit 1",
    ...([cellBlob(cell), row.number, row.size, keyBlob(content.key)] as const),
  );
  return found !== undefined;
}

/** The origins whose visible records put this content. */
export function namersOf({ db }: HomeParts, content: Content): Origin[] {
  const cell = cellOfContent(content);
  if (cell === undefined) return [];
  return db
    .all(
      "select distinct o.id from log l join origin o on o.number = l.origin where l.cell = ? and l.n <= o.size and l.key = ?",
      ...([cellBlob(cell), keyBlob(content.key)] as const),
    )
    .map(({ id }) => String(id));
}

/** The cell that a record of the content changes; undefined: the content is no link, though its type says so. */
function cellOfContent({ key, type, bytes }: Content): string | undefined {
  if (!isKey(key)) return undefined;
  if (type !== LINK_TYPE) return `a:${key}`;
  try {
    return `s:${slotOf(parseLink(Buffer.from(bytes).toString("utf8")))}`;
  } catch {
    return undefined;
  }
}

/** The keys of the run records or statements of one generation of a run, whichever site they are of; of one chain if it is given. */
export function factKeys(
  shards: Shards,
  kind: "run" | "statement",
  run: string,
  generation: number,
  chain?: string,
): string[] {
  const keys: string[] = [];
  for (const index of shards.indexes())
    for (const { key } of shards
      .at(index)
      .all(
        "select a.key from fact f join artifact a on a.id = f.id where f.run = ? and f.generation = ? and f.kind = ? and (? is null or f.chain = ?)",
        ...([run, generation, kind, chain ?? null, chain ?? null] as const),
      ))
      keys.push(hexOf(key));
  return keys.sort();
}
