// History: what happened to the store as a whole.
//
// A database can go back to an earlier state under running processes: an asynchronous standby is promoted, a backup is restored
// in place. What it lost is lost; nothing of it may be mixed with what comes after. What is known of it is kept as rows of
// `meta`, which every database has.

import type { EpochMs, Random } from "../base/index.ts";

/** The database has gone back to an earlier state under running processes, or a backup was put in its place. */
export interface HistoryEvent {
  readonly at: EpochMs;
  readonly kind: "rolled_back" | "restored";
  /** For people: what was found, or where the backup came from. */
  readonly detail: string;
}

/** A store noticed that what this process knows may not be what the database has. */
export interface HistoryBreak {
  /**
   * `rolled_back`: commits that this process had acknowledged are gone. `failed_over`: another server answers, or the same one
   * after a restart; it has everything this process wrote, but perhaps not everything it has read.
   */
  readonly kind: "rolled_back" | "failed_over";
  readonly at: EpochMs;
  readonly detail: string;
}

/** The key in `meta` of a value that changes with every such event: see `newIncarnation`. */
export const INCARNATION_KEY = "incarnation";
/** Keys in `meta` start with this; the time follows. */
export const HISTORY_PREFIX = "history:";
/** The first text behind all keys that start with it. */
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

/** Newest first. A row that cannot be read is left out: it is for people, and nothing depends on it. */
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
 * Unlike any other, and later in order than those before: a process that finds another one than it knows can tell one that was made
 * since from one that a database has gone back to.
 */
export function newIncarnation(random: Random, now: EpochMs): string {
  return `${String(now).padStart(16, "0")} ${random.token()}`;
}

/** What another incarnation than the known one says about the database. */
export function otherIncarnation(known: string | null, found: string | undefined): string {
  return found !== undefined && known !== null && found > known
    ? "another process noticed it first"
    : "it lacks the note of an earlier loss";
}
