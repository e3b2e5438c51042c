// What a cold run needs of its past: its whole journal, or for a graph its newest checkpoint and what came after it.

import {
  findJournalFault,
  forkedOf,
  isTold,
  rebuildCheckpoints,
  toldAfter,
  type Entry,
  type JournalFault,
  type NewCheckpoint,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { decodeEntry, type Restored, type WorkflowBody } from "../workflow/index.ts";

export interface Past {
  /** The first entry, and those a replay must see. */
  readonly entries: readonly Entry[];
  readonly fault: JournalFault | undefined;
  readonly restored: Restored | undefined;
  /** The entry of the whole checkpoint. */
  readonly keptAt?: number | undefined;
}

export async function readPast(store: Store, record: RunRecord, body: WorkflowBody): Promise<Past> {
  const whole = body.restore && (await store.findCheckpoint(record.run, Number.MAX_SAFE_INTEGER, true));
  if (body.restore === undefined || whole?.state === undefined) {
    const entries = await store.readJournal(record.run, 0);
    // Checked on every load: neither SQLite nor a default PostgreSQL would notice a flipped byte.
    const fault = findJournalFault(entries, record);
    if (fault === undefined && body.restore !== undefined && isFork(entries)) return restoreFork(body.restore, entries);
    return { entries, fault, restored: undefined };
  }
  return readFrom(store, record, body.restore, whole, whole.state);
}

function isFork([first]: readonly Entry[]): boolean {
  return first !== undefined && forkedOf(decodeEntry(first).data) !== undefined;
}

/** FK2. Its rows are gone, and it has no beginning of its own to go on from. */
function restoreFork(restore: NonNullable<WorkflowBody["restore"]>, entries: readonly Entry[]): Past {
  const whole = rebuildCheckpoints(entries).findLast(({ state }) => state !== undefined);
  if (whole?.state === undefined)
    return { entries, fault: { seq: 2, problem: "a fork has no step it begins from" }, restored: undefined };
  return pastOf(restore, whole.state, entries.slice(0, 1), entries.slice(whole.seq - 1));
}

async function readFrom(
  store: Store,
  record: RunRecord,
  restore: NonNullable<WorkflowBody["restore"]>,
  { seq, chain }: NewCheckpoint,
  state: string,
): Promise<Past> {
  const first = await store.readJournal(record.run, 0, 1);
  const tail = await store.readJournal(record.run, seq - 1);
  const fault = findJournalFault(tail.slice(1), record, { seq, chain });
  if (fault !== undefined) return { entries: first, fault, restored: undefined };
  return pastOf(restore, state, first, tail);
}

/** `tail`: from the whole checkpoint's own entry on. */
function pastOf(
  restore: NonNullable<WorkflowBody["restore"]>,
  state: string,
  first: readonly Entry[],
  tail: readonly Entry[],
): Past {
  const steps = tail.filter(({ type }) => type === "StepCommitted");
  const last = steps.at(-1)?.seq ?? 0;
  // V4. A retry after the last step says which of its entries count, one before it which of those told.
  const entries = tail.filter(({ seq: at, type }) => at > last || isTold(type) || type === "RunRetried");
  const { position, told } = restore(state, steps.map(decodeEntry));
  const lives = entries.filter(({ type }) => type === "RunRetried").map(decodeEntry);
  const restored = { position, told: lives.reduce((left, { data }) => toldAfter(left, data), told) };
  return { entries: [...first, ...entries], fault: undefined, restored, keptAt: tail[0]?.seq };
}
