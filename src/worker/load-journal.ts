// Loads what a replay needs: the whole journal, or for a graph its newest full checkpoint and the entries after it.

import type { Timers } from "../base/index.ts";
import {
  decodeData,
  decodeEntriesOf,
  findHeadFault,
  followChain,
  forkOriginOf,
  isDeliveredMessage,
  rebuildCheckpoints,
  deliveredAfterRetry,
  type Entry,
  type JournalFault,
  type NewCheckpoint,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { readShared, type Restored, type WorkflowBody } from "../workflow/index.ts";

export interface LoadedJournal {
  /** What a fork shares, the first entry, and the entries to replay. */
  readonly entries: readonly Entry[];
  readonly fault: JournalFault | undefined;
  readonly restored: Restored | undefined;
  /** The entry of the full checkpoint. */
  readonly checkpointSeq?: number | undefined;
}

export async function loadJournal(
  store: Store,
  timers: Timers,
  record: RunRecord,
  body: WorkflowBody,
): Promise<LoadedJournal> {
  const whole = body.restore && (await store.findCheckpoint(record.run, Number.MAX_SAFE_INTEGER, true));
  if (body.restore === undefined || whole?.state === undefined) {
    const { entries, fault } = await readChecked(store, timers, record);
    if (fault === undefined && body.restore !== undefined && isFork(entries)) return restoreFork(body.restore, entries);
    // fork.F5
    const shared = fault === undefined ? await readShared(store, entries[0]) : undefined;
    if (shared === undefined || shared.entries.length === 0) return { entries, fault, restored: undefined };
    return { entries: [...shared.entries, ...entries], fault: shared.fault, restored: undefined };
  }
  return readFromCheckpoint(store, timers, record, body.restore, whole, whole.state);
}

/** The first page of a journal holds this many entries; the size of these tells how many the next one holds. */
const FIRST_PAGE = 32;
const MAX_PAGE = 2_048;
/** About the size of a page, in characters. */
const PAGE_SIZE = 1024 * 1024;

/** Reads the entries after a place page by page, so that a large journal does not keep the event loop from other work. */
async function readChecked(
  store: Store,
  timers: Timers,
  record: RunRecord,
  from?: { readonly seq: number; readonly chain: string },
): Promise<{ readonly entries: readonly Entry[]; readonly fault: JournalFault | undefined }> {
  const entries: Entry[] = [];
  let place = from;
  let size = 0;
  // One more than there are, so that no second page is read to find the end.
  for (let limit = Math.min(FIRST_PAGE, Math.max(0, record.head - (from?.seq ?? 0)) + 1); ;) {
    const page = await store.readJournal(record.run, place?.seq ?? 0, limit);
    entries.push(...page);
    // Checked on every load: neither SQLite nor a default PostgreSQL detects a flipped byte.
    const next = followChain(page, place);
    if ("problem" in next) return { entries, fault: next };
    place = next;
    if (page.length < limit) return { entries, fault: findHeadFault(place, record) };
    for (const { data } of page) size += data.length;
    limit = Math.min(MAX_PAGE, Math.max(1, Math.floor((PAGE_SIZE * entries.length) / Math.max(1, size))));
    await new Promise<void>((resolve) => timers.soon(resolve));
  }
}

function isFork([first]: readonly Entry[]): boolean {
  return first !== undefined && forkOriginOf(decodeData("RunStarted", first.data)) !== undefined;
}

/** fork.F2. The fork's checkpoint rows are missing, and its journal does not start at step 0. */
function restoreFork(restore: NonNullable<WorkflowBody["restore"]>, entries: readonly Entry[]): LoadedJournal {
  const whole = rebuildCheckpoints(entries).findLast(({ state }) => state !== undefined);
  if (whole?.state === undefined)
    return {
      entries,
      fault: { seq: 2, problem: "the journal of a fork does not hold the step that it starts from" },
      restored: undefined,
    };
  return journalFrom(restore, whole.state, entries.slice(0, 1), entries.slice(whole.seq - 1));
}

async function readFromCheckpoint(
  store: Store,
  timers: Timers,
  record: RunRecord,
  restore: NonNullable<WorkflowBody["restore"]>,
  { seq, chain }: NewCheckpoint,
  state: string,
): Promise<LoadedJournal> {
  const [first, checkpoint] = await Promise.all([
    store.readJournal(record.run, 0, 1),
    store.readJournal(record.run, seq - 1, 1),
  ]);
  const { entries: after, fault } = await readChecked(store, timers, record, { seq, chain });
  if (fault !== undefined) return { entries: first, fault, restored: undefined };
  return journalFrom(restore, state, first, [...checkpoint, ...after]);
}

/** `tail` starts with the entry of the full checkpoint. */
function journalFrom(
  restore: NonNullable<WorkflowBody["restore"]>,
  state: string,
  first: readonly Entry[],
  tail: readonly Entry[],
): LoadedJournal {
  const steps = decodeEntriesOf("StepCommitted", tail);
  const last = steps.at(-1)?.seq ?? 0;
  // retry-record.V4. A retry after the last step voids entries after it; an earlier one voids delivered messages.
  const entries = tail.filter(({ seq: at, type }) => at > last || isDeliveredMessage(type) || type === "RunRetried");
  const { position, delivered } = restore(state, steps);
  const retries = decodeEntriesOf("RunRetried", entries);
  const counting = retries.reduce((left, { data }) => deliveredAfterRetry(left, data), delivered);
  const restored = { position, delivered: counting };
  return { entries: [...first, ...entries], fault: undefined, restored, checkpointSeq: tail[0]?.seq };
}
