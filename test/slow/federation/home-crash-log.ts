// The log that the processes of the crash test take: values, a link, a tombstone, an erasure, and a checkpoint that comes in two batches.

import type { Home } from "../../../src/federation/home/home.ts";
import type { Batch } from "../../../src/federation/home/ingest.ts";
import { linkOf, TestOrigin, valueOf } from "../../federation/home/log-writer.ts";

export function crashOrigin(): TestOrigin {
  const edge = new TestOrigin("edge");
  edge.value("first");
  edge.put(linkOf({ type: "t", from: ["run:a"], to: ["run:b"] }));
  edge.value("second");
  edge.tomb(`a:${valueOf("first").key}`);
  edge.erase(`a:${valueOf("second").key}`);
  edge.value("third");
  edge.value("first");
  return edge;
}

export function erasedKey(): string {
  return valueOf("second").key;
}

/** Of each batch: where it ends, and the size of its checkpoint. The second and the third are one checkpoint. */
export const ENDS = [
  [3, 3],
  [5, 7],
  [7, 7],
] as const;

/** The batches that a home still lacks, each when it is its turn. */
export function* batches(home: Home): Generator<Batch> {
  const edge = crashOrigin();
  for (const [end, size] of ENDS) {
    const { cursor } = home.origin(edge.origin)!;
    if (cursor < end) yield { ...edge.batchFrom(cursor, end), checkpoint: edge.checkpoint(size) };
  }
}
