// Prune threads: finds LangGraph threads without activity, some at a time.
//
// prune-threads.A1. The age of a thread is that of its newest checkpoint, by the store's clock. Checkpoints of earlier versions have
//   no time: then the time in the id counts, which LangGraph makes as a UUID of version 6. A thread whose age is unknown stays.
// prune-threads.A2. Threads are visited by name: a window of checkpoints, and the newest checkpoint of each thread in it. No index
//   by age is needed, which every step of every thread would pay for.

import type { EpochMs } from "../../base/index.ts";
import type { Part, Rows } from "../rows/rows.ts";

/** How many checkpoints are read at once: some milliseconds. */
const WINDOW = 500;

const THREAD = ["thread"] as const;
export const AGE = ["checkpoint", "id", "stored_at"] as const;
export type AgedRow = Part<"langgraph_checkpoints", (typeof AGE)[number]>;

export interface ThreadWindow {
  /** Threads that are likely old enough. */
  readonly threads: readonly string[];
  /** The next window starts after this thread; undefined: this was the last one. */
  readonly after: string | undefined;
}

/** prune-threads.A2 */
export function readThreadWindow(rows: Rows, after: string | undefined, storedBefore: EpochMs): ThreadWindow {
  const window = rows.select("langgraph_checkpoints_by_thread", [], THREAD, { after, limit: WINDOW });
  const names = [...new Set(window.map(({ thread }) => thread))];
  const newest = names.map((thread) =>
    rows.first("langgraph_checkpoints_by_thread", [thread], AGE, { backwards: true }),
  );
  return {
    threads: names.filter((_, at) => newest[at] !== undefined && isStoredBefore(newest[at], storedBefore)),
    after: window.length < WINDOW ? undefined : names.at(-1),
  };
}

/** prune-threads.A1 */
export function isStoredBefore({ stored_at: storedAt, id }: AgedRow, time: EpochMs): boolean {
  const at = storedAt ?? timeOfUuid(id);
  return at !== undefined && at < time;
}

const UUID = /^([0-9a-f]{8})-([0-9a-f]{4})-([67])([0-9a-f]{3})-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** From the first day of the Gregorian calendar, where UUIDs of version 6 start, to 1970. */
const GREGORIAN_MS = 12_219_292_800_000;
const PER_MS = 10_000;

/** The time in a UUID of version 6 or 7; undefined: the id is none. */
function timeOfUuid(id: string): EpochMs | undefined {
  const [, high, mid, version, low] = UUID.exec(id) ?? [];
  if (high === undefined || mid === undefined || low === undefined) return undefined;
  if (version === "7") return Number.parseInt(`${high}${mid}`, 16);
  return Math.floor(Number(BigInt(`0x${high}${mid}${low}`) / BigInt(PER_MS)) - GREGORIAN_MS);
}
