// A graph's run as its journal tells it: which nodes each step ran and what it changed, and where the run stands now.
//
// GV1. A step's nodes are the frontier of the step before: so a few entries tell about any step, wherever in the journal.
// GV2. Steps are read page by page; of entries that are not shown nothing is kept.
// GV3. What is at work follows from the entries after the last checkpoint, without those that a retry made void.

import { decode, encode } from "../base/index.ts";
import {
  forkedOf,
  hasEnded,
  journalEntryOf,
  type Delta,
  type Entry,
  type JournalEntry,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { countingOf, fieldsOf, nodeOf, stepsOf, textOf, type Step } from "./steps.ts";

/** An item of a frontier, as its checkpoint keeps it. */
interface StoredItem {
  readonly node: string;
  readonly parent: string;
  readonly edge: number;
}

export interface ChannelChange {
  readonly channel: string;
  readonly how: "append" | "merge" | "set";
  /** Items or keys. */
  readonly count: number;
  readonly bytes: number;
}

/** One node of a step, or several of the same name. */
export interface NodeTally {
  readonly node: string;
  readonly count: number;
  /** The most that one of them took. */
  readonly attempts: number;
}

export interface GraphStep {
  readonly step: number;
  readonly seq: number;
  readonly at: Date;
  /** Since the step before; of step 0, since the start. */
  readonly tookMs: number | undefined;
  readonly key: string;
  readonly label: string | undefined;
  readonly nodes: readonly NodeTally[];
  readonly changed: readonly ChannelChange[];
  readonly next: readonly NodeTally[];
}

/** `open`: it has not ended, and nothing more is known; a node has no entry before something of it has ended. */
export type NodeState = "open" | "at work" | "waits" | "retries" | "completed" | "failed";

/** An item of the step that is not complete. */
export interface NodeNow {
  readonly command: string;
  readonly node: string;
  readonly state: NodeState;
  /** The attempt it is in, or ended with; from 0. */
  readonly attempt: number;
  readonly error: unknown;
  /** When a retry is due. */
  readonly dueAt: Date | undefined;
  /** What its code waits for, or has asked for. */
  readonly waits: readonly Step[];
}

export interface GraphRun {
  /** The last step that is complete; -1 before the first. */
  readonly last: number;
  readonly steps: readonly GraphStep[];
  /** The items of the step after `last`. */
  readonly now: readonly NodeNow[];
  /** Joins that wait, with the nodes that have arrived. */
  readonly joins: readonly { readonly node: string; readonly arrived: readonly string[] }[];
  /** The entries since the last step. */
  readonly since: readonly JournalEntry[];
  /** Where a fork comes from: the steps before stand in that run. */
  readonly forked: { readonly run: string; readonly step: number } | undefined;
}

export interface StepRange {
  readonly from: number;
  readonly to: number;
}

const PAGE = 500;

/** The number of the newest checkpoint; -1 where there is none. */
export async function lastStepOf(store: Store, { run }: RunRecord): Promise<number> {
  return (await store.findCheckpoint(run, Number.MAX_SAFE_INTEGER, false))?.step ?? -1;
}

/** GV1, GV2. The steps of a range, and where the run stands. */
export async function readGraphRun(store: Store, record: RunRecord, { from, to }: StepRange): Promise<GraphRun> {
  const last = await lastStepOf(store, record);
  const steps = new StepReader(from);
  const seqOf = async (step: number): Promise<number | undefined> => {
    const found = step < 0 ? undefined : await store.findCheckpoint(record.run, step, false);
    return found?.step === step ? found.seq : undefined;
  };
  const end = await seqOf(Math.min(to, last));
  if (end !== undefined) {
    const start = (await seqOf(from - 1)) ?? 1;
    await eachEntry(store, record, start - 1, end, (entry) => steps.see(entry));
  }
  const lastSeq = (await seqOf(last)) ?? 0;
  const since: JournalEntry[] = [];
  let newest: StepData | undefined;
  await eachEntry(store, record, Math.max(0, lastSeq - 1), record.head, (entry) => {
    if (entry.seq === lastSeq) newest = decode(entry.data) as StepData;
    else since.push(journalEntryOf(entry));
  });
  const [first] = await store.readJournal(record.run, 0, 1);
  const forked = first === undefined ? undefined : forkedOf(decode(first.data));
  return { ...standingOf(record, newest, since), steps: steps.steps, forked };
}

/** GV3. Where a run stands, from its last step and the entries since. */
export function standingOf(
  { status }: RunRecord,
  newest: StepData | undefined,
  since: readonly JournalEntry[],
): GraphRun {
  const isOver = hasEnded(status) && status !== "failed";
  return {
    last: newest?.step ?? -1,
    steps: [],
    now: newest === undefined || isOver ? [] : nowOf(newest, since),
    joins: (newest?.waiting ?? []).map(({ node, arrived }) => ({ node, arrived: arrived.map((one) => one.node) })),
    since,
    forked: undefined,
  };
}

/** Entries behind `after` up to `end`. */
export async function eachEntry(
  store: Store,
  { run }: RunRecord,
  after: number,
  end: number,
  work: (entry: Entry) => void,
): Promise<void> {
  for (let at = after; at < end;) {
    const page = await store.readJournal(run, at, Math.min(PAGE, end - at));
    for (const entry of page) work(entry);
    const last = page.at(-1);
    if (last === undefined) return;
    at = last.seq;
  }
}

export interface StepData {
  readonly step: number;
  readonly key: string;
  readonly label?: string;
  readonly delta: Delta;
  readonly frontier: readonly StoredItem[];
  readonly waiting?: readonly { readonly node: string; readonly arrived: readonly { readonly node: string }[] }[];
}

/** Entries in order, from the checkpoint before the first step that is wanted. */
export class StepReader {
  readonly steps: GraphStep[] = [];
  readonly #from: number;
  #frontier: readonly StoredItem[] = [];
  #at: number | undefined;
  /** By the item's place in its step: how many attempts it took. */
  #attempts = new Map<string, number>();

  constructor(from: number) {
    this.#from = from;
  }

  /** The step that this entry completes. */
  see(entry: Entry): GraphStep | undefined {
    if (entry.type === "RunStarted") this.#at = entry.at;
    else if (entry.type === "NodeCompleted") this.#noteAttempt(entry);
    return entry.type === "StepCommitted" ? this.#commit(entry) : undefined;
  }

  #noteAttempt({ command, data }: Entry): void {
    const { attempt } = decode(data) as { attempt?: number };
    if (attempt !== undefined) this.#attempts.set(command, attempt + 1);
  }

  #commit(entry: Entry): GraphStep | undefined {
    const { step, key, label, delta, frontier } = decode(entry.data) as StepData;
    const nodes = tallyOf(this.#frontier, (index) => this.#attempts.get(`Node(${step}.${index})`) ?? 1);
    const tookMs = this.#at === undefined ? undefined : entry.at - this.#at;
    this.#frontier = frontier;
    this.#at = entry.at;
    this.#attempts = new Map();
    if (step < this.#from) return undefined;
    const at = new Date(entry.at);
    const made = {
      step,
      seq: entry.seq,
      at,
      tookMs,
      key,
      label,
      nodes,
      changed: changesOf(delta),
      next: tallyOf(frontier),
    };
    this.steps.push(made);
    return made;
  }
}

export function tallyOf(
  items: readonly { readonly node: string }[],
  attemptsAt: (index: number) => number = () => 1,
): readonly NodeTally[] {
  const tallies = new Map<string, NodeTally>();
  for (const [index, { node }] of items.entries()) {
    const { count = 0, attempts = 1 } = tallies.get(node) ?? {};
    tallies.set(node, { node, count: count + 1, attempts: Math.max(attempts, attemptsAt(index)) });
  }
  return [...tallies.values()];
}

export function changesOf({ append = {}, merge = {}, set = {} }: Delta): readonly ChannelChange[] {
  const change = (how: ChannelChange["how"], channel: string, value: unknown, count: number): ChannelChange => ({
    channel,
    how,
    count,
    bytes: Buffer.byteLength(encode(value)),
  });
  return [
    ...Object.entries(append).map(([name, items]) => change("append", name, items, items.length)),
    ...Object.entries(merge).map(([name, laid]) => change("merge", name, laid, Object.keys(laid).length)),
    ...Object.entries(set).map(([name, value]) => change("set", name, value, 1)),
  ];
}

/** GV3 */
function nowOf({ step, frontier }: StepData, since: readonly JournalEntry[]): readonly NodeNow[] {
  const latest = new Map<string, JournalEntry>();
  const begun = new Set<string>();
  for (const entry of countingOf(since)) {
    const { command = "" } = entry;
    const asking = nodeOf(command);
    if (asking !== undefined) begun.add(asking);
    else if (entry.type.startsWith("Node")) latest.set(command, entry);
  }
  const waits = Map.groupBy(
    stepsOf(since).filter(({ endedAt }) => endedAt === undefined),
    (one) => nodeOf(one.command),
  );
  return frontier.map(({ node }, index) => {
    const command = `Node(${step + 1}.${index})`;
    return nodeNow(node, command, latest.get(command), waits.get(command) ?? [], begun.has(command));
  });
}

function nodeNow(
  node: string,
  command: string,
  entry: JournalEntry | undefined,
  waits: readonly Step[],
  hasBegun: boolean,
): NodeNow {
  const fields = entry === undefined ? {} : fieldsOf(entry);
  const attempt = Number(fields["attempt"] ?? 0);
  const made = { command, node, error: fields["error"], dueAt: undefined, waits, attempt };
  switch (entry?.type) {
    case "NodeCompleted":
      return { ...made, state: "completed" };
    case "NodeFailed":
      return { ...made, state: "failed" };
    case "NodeRetried": {
      const dueAt = new Date(entry.at.getTime() + Number(fields["delay"] ?? 0));
      return { ...made, attempt: attempt + 1, dueAt, state: waits.length > 0 ? "waits" : "retries" };
    }
    default:
      if (waits.length > 0) return { ...made, state: "waits" };
      return { ...made, state: hasBegun ? "at work" : "open" };
  }
}

/** What a node says of itself: `search`, `search ×3`. */
export function tallyText({ node, count }: NodeTally): string {
  return `${textOf(node, "?")}${count > 1 ? ` ×${count}` : ""}`;
}
