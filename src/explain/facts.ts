// Facts: what `explain` reads about a run: a bounded number of reads, and never the whole journal of a long run.
//
// facts.F1. The journal is read only as far as rows do not tell: promises and receives that the store does not list, the names of
//   nodes, delays before the next attempt. That is at most `JOURNAL_WINDOW` entries; for a graph, those since its last step.
//   A caller that has read the journal passes it.
// facts.F2. Children are explained down to the leaf that does not move: `MAX_EXPLAINED_CHILDREN` of each run, `MAX_DEPTH` levels.

import {
  decodeData,
  hasEnded,
  journalEntryOf,
  type DiskSpace,
  type Entry,
  type JournalEntry,
  type OpenItem,
  type NewPromise,
  type QueueUse,
  type RunRecord,
  type RunStatus,
  type RunWork,
  type StepCommittedData,
  type Store,
  type WorkerInfo,
} from "../kernel/index.ts";
import type { WaitReason } from "./reasons.ts";
import { slotUserOf } from "./claims.ts";
import { stepsOf, type Step } from "./step-fold.ts";
import { attemptOf, effectiveEntries, typedEntryOf } from "./typed-entry.ts";

/** Everything that the decision depends on. */
export interface RunFacts {
  readonly now: number;
  readonly record: RunRecord;
  readonly work: RunWork;
  readonly workers: readonly WorkerInfo[];
  /** The time of its last journal entry, where it was read. */
  readonly committedAt: number | undefined;
  /** By `slotText`. */
  readonly queues: ReadonlyMap<string, QueueUse>;
  /** The steps of the journal that have not ended, as far as it was read. */
  readonly open: readonly Step[];
  /** Whether the journal was read as far as open steps may be. */
  readonly isWhole: boolean;
  readonly retries: readonly PendingRetry[];
  /** Nodes of a graph's current step by command, and joins that wait. */
  readonly nodes: ReadonlyMap<string, string>;
  /** Of the store's file; undefined: not known. */
  readonly disk: DiskSpace | undefined;
  readonly joins: readonly { readonly node: string; readonly arrived: readonly string[] }[];
  /** Children by id. */
  readonly children: ReadonlyMap<string, ExplainedChild>;
}

export interface ExplainedChild {
  /** Undefined: the store has no such run. */
  readonly status: RunStatus | undefined;
  readonly waitsFor: readonly WaitReason[];
}

/** An operation or a node of a graph that failed and runs again later. */
export interface PendingRetry {
  readonly kind: "operation" | "node";
  readonly command: string;
  readonly name: string;
  /** The next attempt, counted from 1. */
  readonly attempt: number;
  readonly until: number;
  readonly error: unknown;
}

export interface ExplainOptions {
  /** The journal, or of a graph the entries from its last step on, if the caller has read them. */
  readonly entries?: readonly Entry[];
}

/** Explains a child (facts.F2). */
export type ExplainChild = (record: RunRecord) => Promise<readonly WaitReason[]>;

const JOURNAL_WINDOW = 200;
const MAX_EXPLAINED_CHILDREN = 3;
const MAX_QUEUES = 10;

export async function readFacts(
  store: Store,
  record: RunRecord,
  { entries: given }: ExplainOptions,
  explainChild: ExplainChild | undefined,
): Promise<RunFacts | undefined> {
  const { run } = record;
  const work = await store.readRunWork(run);
  if (work === undefined) return undefined;
  const workers = await store.listWorkers();
  const [holder] = work.turn.worker === undefined ? [] : await store.readHolders([run]);
  const { entries, isWhole } = await readEntries(store, record, given);
  const decoded = entries.map(journalEntryOf);
  const open = stepsOf(decoded).filter(({ endedAt }) => endedAt === undefined);
  const listed = await listedPromises(store, record, isWhole ? [] : missing(work.promises, open));
  const steps = [...open, ...listed];
  const step = record.kind === "graph" ? lastStepOf(entries) : undefined;
  return {
    now: store.now(),
    record,
    work,
    workers,
    committedAt: holder?.committedAt,
    queues: await readQueues(store, work.items),
    open: steps,
    isWhole,
    retries: retriesOf(decoded),
    nodes: new Map((step?.frontier ?? []).map(({ node }, index) => [`Node(${(step?.step ?? 0) + 1}.${index})`, node])),
    disk: await store.readDiskSpace?.(),
    joins: (step?.waiting ?? []).map(({ node, arrived }) => ({ node, arrived: arrived.map((one) => one.node) })),
    children: await readChildren(store, childIdsOf(work, steps), explainChild),
  };
}

// ── the journal ──

/** facts.F1 */
async function readEntries(
  store: Store,
  record: RunRecord,
  given: readonly Entry[] | undefined,
): Promise<{ readonly entries: readonly Entry[]; readonly isWhole: boolean }> {
  const { run, kind, head, status } = record;
  // A flow waits only for what its rows list.
  if (kind === "flow" || hasEnded(status)) return { entries: [], isWhole: true };
  if (given !== undefined) return { entries: given, isWhole: true };
  const last = kind === "graph" ? await store.findCheckpoint(run, Number.MAX_SAFE_INTEGER, false) : undefined;
  const from = last === undefined ? 0 : last.seq - 1;
  const after = Math.max(from, head - JOURNAL_WINDOW);
  const window = await store.readJournal(run, after, head - after);
  if (after === from || last === undefined) return { entries: window, isWhole: after === from };
  return { entries: [...(await store.readJournal(run, from, 1)), ...window], isWhole: false };
}

function lastStepOf(entries: readonly Entry[]): StepCommittedData | undefined {
  const last = entries.findLast(({ type }) => type === "StepCommitted");
  return last && decodeData("StepCommitted", last.data);
}

function missing(promises: readonly NewPromise[], open: readonly Step[]): readonly NewPromise[] {
  const known = new Set(open.map(({ command }) => command));
  return promises.filter(({ command }) => !known.has(command));
}

/** Promises that the store lists, with what their entries say. */
async function listedPromises(
  store: Store,
  { run }: RunRecord,
  promises: readonly NewPromise[],
): Promise<readonly Step[]> {
  const entries: JournalEntry[] = [];
  for (const { seq } of promises)
    for (const entry of await store.readJournal(run, seq - 1, 1)) entries.push(journalEntryOf(entry));
  return stepsOf(entries);
}

/** Attempts that start later. The engine records them in the journal, because no item of the queue stands for them. */
function retriesOf(entries: readonly JournalEntry[]): readonly PendingRetry[] {
  const retries = new Map<string, PendingRetry>();
  for (const entry of effectiveEntries(entries)) {
    const { command = "" } = entry;
    const typed = typedEntryOf(entry);
    if (typed.type !== "OperationRetried" && typed.type !== "NodeRetried") {
      if (retries.size > 0) retries.delete(command);
      continue;
    }
    const { error, delay = 0, operationName } = typed.data;
    retries.set(command, {
      kind: typed.type === "NodeRetried" ? "node" : "operation",
      command,
      name: operationName ?? command,
      attempt: attemptOf(typed.data) + 1,
      until: typed.at.getTime() + delay,
      error,
    });
  }
  return [...retries.values()];
}

// ── queues and children ──

/** Identifies what `readQueueUse` was asked for. */
export function slotText(kind: OpenItem["kind"], queue: string, key: string | undefined): string {
  return JSON.stringify([slotUserOf(kind === "timer" ? "task" : kind), queue, key]);
}

const IN_QUEUE: ReadonlySet<OpenItem["state"]> = new Set<OpenItem["state"]>(["ready", "parked", "suspect"]);

async function readQueues(store: Store, items: readonly OpenItem[]): Promise<ReadonlyMap<string, QueueUse>> {
  const uses = new Map<string, QueueUse>();
  const seen = new Set<string>();
  for (const { kind, state, queue, key } of items) {
    if (queue === undefined || kind === "timer" || !IN_QUEUE.has(state)) continue;
    const text = slotText(kind, queue, key);
    if (seen.has(text) || seen.size >= MAX_QUEUES) continue;
    seen.add(text);
    const use = await store.readQueueUse(slotUserOf(kind), queue, key);
    if (use !== undefined) uses.set(text, use);
  }
  return uses;
}

/** Children that the code waits for come first. */
function childIdsOf({ children }: RunWork, open: readonly Step[]): readonly string[] {
  const awaited = open.flatMap(({ child }) => (child === undefined ? [] : [child]));
  return [...new Set([...awaited, ...children.map(({ id }) => id)])];
}

async function readChildren(
  store: Store,
  ids: readonly string[],
  explainChild: ExplainChild | undefined,
): Promise<ReadonlyMap<string, ExplainedChild>> {
  const children = new Map<string, ExplainedChild>();
  for (const id of ids.slice(0, MAX_EXPLAINED_CHILDREN)) {
    const record = await store.findRun(id);
    const isOpen = record !== undefined && !hasEnded(record.status) && explainChild !== undefined;
    children.set(id, { status: record?.status, waitsFor: isOpen ? await explainChild(record) : [] });
  }
  return children;
}
