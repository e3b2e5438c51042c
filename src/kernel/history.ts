// History: events of the store as a whole, kept as rows of `meta`.
//
// A database can go back to an earlier state while processes run: an asynchronous standby is promoted, a backup is restored in
// place. The lost commits stay lost; a process must not mix them with what comes after.

import type { EpochMs, Random } from "../base/index.ts";

/** The database went back to an earlier state while processes were running, or a backup was restored. */
export interface HistoryEvent {
  readonly at: EpochMs;
  readonly kind: "rolled_back" | "restored";
  /** For people: what the process found, or where the backup came from. */
  readonly detail: string;
}

/** A store detected that the database may differ from what this process has read or written. */
export interface HistoryBreak {
  /**
   * `rolled_back`: acknowledged commits of this process are lost. `failed_over`: another server responds, or the same one after
   * a restart; it has every commit of this process, but perhaps not everything that it read.
   */
  readonly kind: "rolled_back" | "failed_over";
  readonly at: EpochMs;
  readonly detail: string;
}

/** The key in `meta` of a value that changes with every such event (`newIncarnation`). */
export const INCARNATION_KEY = "incarnation";
/** Keys in `meta` start with this; the time follows. */
export const HISTORY_PREFIX = "history:";
/** The first text after all keys with this prefix. */
export const HISTORY_END = "history;";

/** How rows store the kind `rolled_back`: stored text never changes. */
const STORED_ROLLED_BACK = "rolled-back";

export interface MetaRow {
  readonly key: string;
  readonly value: string;
}

export function historyRow(event: HistoryEvent): MetaRow {
  const { at, kind, detail } = event;
  const stored = kind === "rolled_back" ? STORED_ROLLED_BACK : kind;
  return { key: `${HISTORY_PREFIX}${at}`, value: JSON.stringify({ at, kind: stored, detail }) };
}

/** Newest first. Skips rows that cannot be parsed: they are for people, and no decision depends on them. */
export function historyOf(rows: readonly MetaRow[]): readonly HistoryEvent[] {
  return rows.flatMap(({ value }) => eventOf(value) ?? []).toSorted((a, b) => b.at - a.at);
}

function eventOf(value: string): HistoryEvent | undefined {
  let read: unknown;
  try {
    read = JSON.parse(value);
  } catch {
    return undefined;
  }
  const { at, kind, detail } = (read ?? {}) as Partial<Record<keyof HistoryEvent, unknown>>;
  if (typeof at !== "number" || (kind !== STORED_ROLLED_BACK && kind !== "restored")) return undefined;
  return {
    at,
    kind: kind === "restored" ? kind : "rolled_back",
    detail: typeof detail === "string" ? detail : JSON.stringify(detail ?? ""),
  };
}

/**
 * Unique, and greater than every earlier one. So a process that finds another incarnation than the one it knows can distinguish a
 * later one from one that the database went back to.
 */
export function newIncarnation(random: Random, now: EpochMs): string {
  return `${String(now).padStart(16, "0")} ${random.token()}`;
}

/** What an incarnation other than the known one implies. */
export function otherIncarnation(known: string | null, found: string | undefined): string {
  return found !== undefined && known !== null && found > known
    ? "another process detected it first"
    : "it lacks the record of an earlier loss";
}
