// What a cold run needs of its past: its whole journal, or for a graph its newest checkpoint and what came after it.

import {
  findJournalFault,
  isTold,
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
}

export async function readPast(store: Store, record: RunRecord, body: WorkflowBody): Promise<Past> {
  const whole = body.restore && (await store.findCheckpoint(record.run, Number.MAX_SAFE_INTEGER, true));
  if (body.restore === undefined || whole?.state === undefined) {
    const entries = await store.readJournal(record.run, 0);
    // Checked on every load: neither SQLite nor a default PostgreSQL would notice a flipped byte.
    return { entries, fault: findJournalFault(entries, record), restored: undefined };
  }
  return readFrom(store, record, body.restore, whole, whole.state);
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
  const steps = tail.filter(({ type }) => type === "StepCommitted");
  const last = steps.at(-1)?.seq ?? 0;
  // V4. A retry after the last step says which of its entries count, one before it which of those told.
  const entries = tail.filter(({ seq: at, type }) => at > last || isTold(type) || type === "RunRetried");
  const { position, told } = restore(state, steps.map(decodeEntry));
  const lives = entries.filter(({ type }) => type === "RunRetried").map(decodeEntry);
  const restored = { position, told: lives.reduce((left, { data }) => toldAfter(left, data), told) };
  return { entries: [...first, ...entries], fault: undefined, restored };
}
