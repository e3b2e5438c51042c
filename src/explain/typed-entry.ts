// Typed entry: entries of a journal whose type decides the type of their data, and what their commands say.

import {
  retryRecordOf,
  timerDueAt,
  VoidEntries,
  type EntryData,
  type EntryType,
  type JournalEntry,
  type RunRetriedData,
} from "../kernel/index.ts";

/** A journal entry whose `type` decides the type of `data`. Fields are optional: other versions may write fewer. */
export type TypedEntry<T extends EntryType = EntryType> = {
  readonly [K in T]: Omit<JournalEntry, "type" | "data"> & {
    readonly type: K;
    readonly data: Partial<EntryData[K]>;
  };
}[T];

export function typedEntryOf(entry: JournalEntry): TypedEntry {
  const data = typeof entry.data === "object" && entry.data !== null ? entry.data : {};
  return { ...entry, data } as TypedEntry;
}

/** The stored attempt counts from 0; people count from 1. */
export function attemptOf(data: object): number {
  return Number((data as { readonly attempt?: unknown }).attempt ?? 0) + 1;
}

const GRAPH_NODE = /^Node\(\d+\.\d+\)/;

/** True for a node of a graph. The names of flow nodes contain no dots, so they never match. */
export function isGraphNode(command: string): boolean {
  return GRAPH_NODE.test(command);
}

/** The node whose code created the command: `Node(3.0)` of `Node(3.0)#0/Task(1)`; undefined outside nodes. */
export function nodeOf(command: string): string | undefined {
  const [node] = GRAPH_NODE.exec(command) ?? [];
  return node === undefined || node.length === command.length ? undefined : node;
}

/** The entries without those that a retry made void. */
export function effectiveEntries(entries: readonly JournalEntry[]): readonly JournalEntry[] {
  const retries = entries.flatMap((entry) =>
    entry.type === "RunRetried" ? [retryRecordOf(entry.seq, typedEntryOf(entry).data as RunRetriedData)] : [],
  );
  if (retries.length === 0) return entries;
  const voids = new VoidEntries(retries);
  return entries.filter((entry) => {
    const { seq, type, command = "" } = entry;
    return voids.classify({ seq, type, command }, () => typedEntryOf(entry).data as EntryData[EntryType]) === "counts";
  });
}

/** When a sleep ends. */
export function timerEndOf({ data: { timerId = "", ms = 0, until }, at }: TypedEntry<"TimerStarted">): Date {
  return new Date(timerDueAt({ timerId, ms, until: until === true }, at.getTime()));
}
