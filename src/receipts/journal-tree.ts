// Journal tree: a leaf per entry, with what the hash chain leaves out: times, durations, workers.
//
// journal-tree.L1. `ctx.now()` is made of the times of entries, and the chain does not cover them. So a statement signs the root over
//   entries with their times.
// journal-tree.L2. A line has a digest of the data, not the data: a journal can be shown without its payloads.
// journal-tree.L3. When a run continues, its earlier tree is a prefix of the new one.

import { sha256Hex } from "../base/index.ts";
import type { Entry } from "../kernel/index.ts";
import { blindData } from "./blind.ts";

/** An entry as a bundle has it: without the mark, which follows from the chain. */
export type PlainEntry = Omit<Entry, "mark">;

/** The text of an entry's leaf. With a salt, the digest of the data is blind. */
export function journalLine(entry: PlainEntry, salt?: Uint8Array): string {
  const { seq, type, command, at, data, execution, worker, startedAt, tookMs } = entry;
  const digest = salt === undefined ? sha256Hex(data) : blindData(salt, seq, data);
  // The text of canonicalJson, in the order of its keys: every entry pays for it.
  return (
    `{"at":${at},` +
    (salt === undefined ? "" : `"blind":"${digest}",`) +
    `"command":${JSON.stringify(command)}` +
    (salt === undefined ? `,"data":"${digest}"` : "") +
    (execution === undefined ? "" : `,"execution":${execution}`) +
    `,"seq":${seq},"size":${Buffer.byteLength(data)}` +
    (startedAt === undefined ? "" : `,"startedAt":${startedAt}`) +
    (tookMs === undefined ? "" : `,"tookMs":${tookMs}`) +
    `,"type":"${type}"` +
    (worker === undefined ? "" : `,"worker":${JSON.stringify(worker)}`) +
    "}"
  );
}
