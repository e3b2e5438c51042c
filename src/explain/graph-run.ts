// Graph run: reads the journal of a graph's run: the nodes and changes of each step, and the current nodes.
//
// graph-run.G1. The nodes of a step are the frontier of the step before, so a few entries describe any step.
// graph-run.G2. Steps are read page by page; entries that are not shown are not kept.
// graph-run.G3. The current nodes follow from the entries after the last checkpoint, without those a retry made void.

import {
  decodeData,
  forkOriginOf,
  hasEnded,
  journalEntryOf,
  type Entry,
  type EntryType,
  type FrontierItemData,
  type JournalEntry,
  type RunRecord,
  type StepCommittedData,
  type Store,
} from "../kernel/index.ts";
import { changesOf, tallyOf, type ChannelChange, type NodeTally } from "./step-changes.ts";
import { stepsOf, type Step } from "./step-fold.ts";
import { attemptOf, effectiveEntries, nodeOf, typedEntryOf } from "./typed-entry.ts";

export interface GraphStep {
  readonly step: number;
  readonly seq: number;
  readonly at: Date;
  /** Since the previous step; for step 0, since the start. */
  readonly tookMs: number | undefined;
  readonly key: string;
  readonly label: string | undefined;
  readonly nodes: readonly NodeTally[];
  readonly changed: readonly ChannelChange[];
  readonly next: readonly NodeTally[];
}

/** `pending`: the journal has no entry of the node yet. It may be running: a node has no entry when it starts. */
export type GraphNodeState = "pending" | "running" | "waiting" | "retrying" | "completed" | "failed";

/** An item of the step that is not committed yet. */
export interface CurrentNode {
  readonly command: string;
  readonly node: string;
  readonly state: GraphNodeState;
  /** The current or last attempt, counted from 1. */
  readonly attempt: number;
  readonly error: unknown;
  /** When the next attempt starts. */
  readonly dueAt: Date | undefined;
  /** The open steps of its code. */
  readonly waits: readonly Step[];
}

export interface GraphRun {
  /** The last committed step; -1 before the first. */
  readonly last: number;
  readonly steps: readonly GraphStep[];
  /** The items of the step after `last`. */
  readonly current: readonly CurrentNode[];
  /** Waiting joins, with the nodes that have arrived. */
  readonly joins: readonly { readonly node: string; readonly arrived: readonly string[] }[];
  /** The entries since the last step. */
  readonly since: readonly JournalEntry[];
  /** The origin of a fork: earlier steps are in that run. */
  readonly forked: { readonly run: string; readonly step: number } | undefined;
}

export interface StepRange {
  readonly from: number;
  readonly to: number;
}

const PAGE = 500;

/** The number of the latest checkpoint; -1 if there is none. */
export async function lastStepOf(store: Store, { run }: RunRecord): Promise<number> {
  return (await store.findCheckpoint(run, Number.MAX_SAFE_INTEGER, false))?.step ?? -1;
}

/** Reads the steps of a range and the current nodes (graph-run.G1, graph-run.G2). */
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
    await eachEntry(store, record, start - 1, end, (entry) => steps.read(entry));
  }
  const lastSeq = (await seqOf(last)) ?? 0;
  const since: JournalEntry[] = [];
  let newest: StepCommittedData | undefined;
  await eachEntry(store, record, Math.max(0, lastSeq - 1), record.head, (entry) => {
    if (entry.seq === lastSeq) newest = decodeData("StepCommitted", entry.data);
    else since.push(journalEntryOf(entry));
  });
  const [first] = await store.readJournal(record.run, 0, 1);
  const forked = first === undefined ? undefined : forkOriginOf(decodeData("RunStarted", first.data));
  return { ...currentStateOf(record, newest, since), steps: steps.steps, forked };
}

/** The current nodes of a run, from its last step and the entries since (graph-run.G3). */
export function currentStateOf(
  { status }: RunRecord,
  newest: StepCommittedData | undefined,
  since: readonly JournalEntry[],
): GraphRun {
  const isOver = hasEnded(status) && status !== "failed";
  return {
    last: newest?.step ?? -1,
    steps: [],
    current: newest === undefined || isOver ? [] : currentNodesOf(newest, since),
    joins: (newest?.waiting ?? []).map(({ node, arrived }) => ({ node, arrived: arrived.map((one) => one.node) })),
    since,
    forked: undefined,
  };
}

/** Calls `work` with the entries after `after` up to `end`. */
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

/** Collects steps from entries in order, starting at the checkpoint before the first wanted step. */
export class StepReader {
  readonly steps: GraphStep[] = [];
  readonly #from: number;
  #frontier: readonly FrontierItemData[] = [];
  #at: number | undefined;
  /** The number of attempts by command. */
  #attempts = new Map<string, number>();

  constructor(from: number) {
    this.#from = from;
  }

  /** Returns the step that this entry commits. */
  read(entry: Entry): GraphStep | undefined {
    if (entry.type === "RunStarted") this.#at = entry.at;
    else if (entry.type === "NodeCompleted") this.#noteAttempt(entry);
    return entry.type === "StepCommitted" ? this.#commit(entry) : undefined;
  }

  #noteAttempt({ command, data }: Entry): void {
    this.#attempts.set(command, attemptOf(decodeData("NodeCompleted", data)));
  }

  #commit(entry: Entry): GraphStep | undefined {
    const { step, key, label, delta, frontier } = decodeData("StepCommitted", entry.data);
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

const NODE_ENTRIES: ReadonlySet<EntryType> = new Set<EntryType>(["NodeCompleted", "NodeFailed", "NodeRetried"]);

/** graph-run.G3 */
function currentNodesOf({ step, frontier }: StepCommittedData, since: readonly JournalEntry[]): readonly CurrentNode[] {
  const latest = new Map<string, JournalEntry>();
  const started = new Set<string>();
  for (const entry of effectiveEntries(since)) {
    const { command = "" } = entry;
    const owner = nodeOf(command);
    if (owner !== undefined) started.add(owner);
    else if (NODE_ENTRIES.has(entry.type)) latest.set(command, entry);
  }
  const waits = Map.groupBy(
    stepsOf(since).filter(({ endedAt }) => endedAt === undefined),
    (one) => nodeOf(one.command),
  );
  return frontier.map(({ node }, index) => {
    const command = `Node(${step + 1}.${index})`;
    return currentNode(node, command, latest.get(command), waits.get(command) ?? [], started.has(command));
  });
}

function currentNode(
  node: string,
  command: string,
  entry: JournalEntry | undefined,
  waits: readonly Step[],
  hasStarted: boolean,
): CurrentNode {
  const made = { command, node, error: undefined, dueAt: undefined, waits, attempt: 1 };
  const typed = entry && typedEntryOf(entry);
  switch (typed?.type) {
    case "NodeCompleted":
      return { ...made, attempt: attemptOf(typed.data), state: "completed" };
    case "NodeFailed":
      return { ...made, attempt: attemptOf(typed.data), error: typed.data.error, state: "failed" };
    case "NodeRetried": {
      const { error, delay = 0 } = typed.data;
      const dueAt = new Date(typed.at.getTime() + delay);
      const state = waits.length > 0 ? "waiting" : "retrying";
      return { ...made, attempt: attemptOf(typed.data) + 1, error, dueAt, state };
    }
    default:
      if (waits.length > 0) return { ...made, state: "waiting" };
      return { ...made, state: hasStarted ? "running" : "pending" };
  }
}
