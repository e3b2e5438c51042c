// A flow's run as its journal and its counters tell it: a row per node, a spread as one row. Its code is not needed.
//
// FV1. The journal is read page by page. Of an item of a spread a bit is kept, of those that failed the first few; so what
//      is held follows the number of nodes, not that of items.
// FV2. What a retry made void is not seen: where there was one, the journal is read a second time without it.
// FV3. Counters are read before the journal: a node that ended in between has ended, and none is told twice.

import { decode } from "../base/index.ts";
import {
  hasEnded,
  journalEntryOf,
  type Entry,
  type ItemState,
  type JournalEntry,
  type Readiness,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { OUTPUT } from "../flow/index.ts";
import { eachEntry } from "./graph-run.ts";

/** An item of a spread that ended well: counted, and not told by itself to somebody who watches. */
export function isQuietItem({ type, command }: Pick<Entry, "type" | "command">): boolean {
  return type === "NodeCompleted" && /\[\d+\]$/.test(command);
}

/** `left`: it was to run, or at work, when the run ended. */
export type FlowNodeState =
  | "done"
  | "skipped"
  | "failed"
  | "at work"
  | "queued"
  | "retries"
  | "waiting"
  | "child"
  | "left";

/** `node`: an action, a call of a task, or a join; the journal does not tell them apart. */
export type FlowRowKind = "node" | "inline" | "when" | "spread" | "call" | "output";

export interface FailedItem {
  readonly item: string;
  readonly attempts: number;
  readonly error: unknown;
}

export interface SpreadCounts {
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly atWork: number;
  readonly queued: number;
  /** Waiting for the time of another attempt. */
  readonly retrying: number;
  /** Waiting for the child they started. */
  readonly children: number;
  /** The first few, by index. */
  readonly failures: readonly FailedItem[];
}

export interface FlowRow {
  readonly node: string;
  readonly kind: FlowRowKind;
  readonly state: FlowNodeState;
  /** Of a spread, the most that one item took. */
  readonly attempts: number;
  /** From the moment all it needs was there; of a spread, until all its items had ended. */
  tookMs: number | undefined;
  /** The entry it ended with. */
  readonly seq: number | undefined;
  readonly value: { readonly value: unknown } | undefined;
  readonly error: unknown;
  /** Its `catch` gave the value. */
  readonly isCaught: boolean;
  /** The run it waits for, or had its value from. */
  readonly child: string | undefined;
  /** When it is tried again. */
  readonly dueAt: number | undefined;
  readonly got: { readonly completed: number; readonly required: number } | undefined;
  readonly items: SpreadCounts | undefined;
}

export interface FlowRun {
  readonly record: RunRecord;
  /** Those that ended, in that order; then those at work or queued; then those that wait for more. */
  readonly rows: readonly FlowRow[];
  /** How it ended, and what somebody did to it. */
  readonly events: readonly JournalEntry[];
}

/** Failed items that are told one by one. */
export const FAILED_ITEMS = 10;
/** Items of one spread that are looked up in the queue. */
const MAX_LOOKED_UP = 2_000;
const MAX_EVENTS = 20;

/** FV2, FV3. `limit`: rows whose times are wanted, counted from the last. */
export async function readFlowRun(store: Store, given: RunRecord, limit: number): Promise<FlowRun> {
  const readiness = await store.readReadiness(given.run);
  const record = (await store.findRun(given.id, given.generation)) ?? given;
  let reader = new FlowReader();
  await eachEntry(store, record, 0, record.head, (entry) => reader.see(entry));
  if (reader.voids.length > 0) {
    reader = new FlowReader(reader.voids);
    await eachEntry(store, record, 0, record.head, (entry) => reader.see(entry));
  }
  const rows = await rowsOf(store, record, reader, readiness);
  await addTimes(store, record, reader, rows.slice(-limit));
  return { record, rows, events: reader.events };
}

/** From entry `from` to the one before `to`. */
interface VoidRange {
  readonly from: number;
  readonly to: number;
}

interface SeenNode {
  readonly entry: Pick<Entry, "type" | "seq" | "at">;
  readonly data: Readonly<Record<string, unknown>>;
}

interface SeenSpread {
  readonly seq: number;
  readonly at: number;
  readonly total: number;
  /** What is known of each item. */
  readonly items: Uint8Array;
  done: number;
  failed: number;
  attempts: number;
  readonly failures: (FailedItem & { readonly index: number })[];
}

const ENDED = 1;
const WITH_CHILD = 2;

const PART = /^(.*)\[(\d*|again)\]$/s;

export class FlowReader {
  readonly voids: VoidRange[] = [];
  readonly events: JournalEntry[] = [];
  /** By name, in the order they ended; a spread under its own. */
  readonly ended = new Map<string, SeenNode>();
  readonly spreads = new Map<string, SeenSpread>();
  /** By node or item: the child it started. */
  readonly children = new Map<string, string>();
  /** Of entries whose values others may have got. */
  readonly #times = new Map<number, number>();
  readonly #skip: readonly VoidRange[];

  constructor(skip: readonly VoidRange[] = []) {
    this.#skip = skip;
  }

  get skips(): number {
    return this.#skip.length;
  }

  timeOf(seq: number): number | undefined {
    return this.#times.get(seq);
  }

  see(entry: Entry): void {
    const { seq, type, command } = entry;
    if (this.#skip.some(({ from, to }) => seq >= from && seq < to)) return;
    switch (type) {
      case "NodeCompleted":
      case "NodeFailed":
      case "NodeSkipped":
        return this.#seeNode(entry);
      case "ChildWorkflowInitiated": {
        return this.#seeChild(command, entry.data);
      }
      case "ItemsSpread":
        return;
      case "RunStarted":
        this.#times.set(seq, entry.at);
        return;
      case "RunRetried":
        this.voids.push({ from: Number((decode(entry.data) as { from?: number }).from), to: seq });
        break;
      default:
    }
    this.events.push(journalEntryOf(entry));
    if (this.events.length > MAX_EVENTS) this.events.shift();
  }

  #seeChild(command: string, data: string): void {
    const [, name = command, index] = PART.exec(command) ?? [];
    const spread = index === undefined ? undefined : this.spreads.get(name);
    if (spread !== undefined) spread.items[Number(index)] = WITH_CHILD;
    else this.children.set(command, (decode(data) as { childExecutionId: string }).childExecutionId);
  }

  #seeNode(entry: Entry): void {
    const { seq, at, type, command } = entry;
    const [, name = command, which] = PART.exec(command) ?? [];
    const spread = which === "" || which === "again" ? undefined : this.spreads.get(name);
    if (spread !== undefined && which !== undefined) return seeItem(spread, entry, Number(which));
    const data = decode(entry.data) as SeenNode["data"];
    this.#times.set(seq, at);
    if (which === "" && type === "NodeCompleted") {
      const total = Number(data["result"] ?? 0);
      const counts = { done: 0, failed: 0, attempts: 1, failures: [] };
      this.spreads.set(name, { seq, at, total, items: new Uint8Array(total), ...counts });
      return;
    }
    this.ended.set(name, { entry: { type, seq, at }, data });
  }
}

/** FV1. Keys are sorted: an attempt, where there was more than one, comes first. */
function seeItem(spread: SeenSpread, { type, command, data }: Entry, index: number): void {
  const attempts = Number(/^\{"attempt":(\d+)/.exec(data)?.[1] ?? 0) + 1;
  spread.attempts = Math.max(spread.attempts, attempts);
  spread.items[index] = ENDED;
  if (type !== "NodeFailed") {
    spread.done += 1;
    return;
  }
  spread.failed += 1;
  const { failures } = spread;
  if (failures.length >= FAILED_ITEMS && index > failures.at(-1)!.index) return;
  failures.push({ item: command, index, attempts, error: (decode(data) as { error?: unknown }).error });
  failures.sort((a, b) => a.index - b.index);
  failures.length = Math.min(failures.length, FAILED_ITEMS);
}

// ── rows ──

const NOTHING = {
  attempts: 1,
  tookMs: undefined,
  seq: undefined,
  value: undefined,
  error: undefined,
  isCaught: false,
  child: undefined,
  dueAt: undefined,
  got: undefined,
  items: undefined,
} as const;

export async function rowsOf(
  store: Store,
  record: RunRecord,
  reader: FlowReader,
  readiness: readonly Readiness[],
): Promise<FlowRow[]> {
  const rows: FlowRow[] = [];
  for (const [name, seen] of reader.ended) rows.push(...endedRows(reader, name, seen));
  const isOver = hasEnded(record.status);
  const queuedOf = new Map(readiness.map(({ node, queued }) => [node, queued]));
  const [waiting, ready] = [[] as FlowRow[], [] as { name: string; isSpread: boolean }[]];
  for (const { node, required, completed, queued } of readiness) {
    const name = node.replace(/\[\]$/, "");
    if (reader.ended.has(name) || reader.spreads.has(name)) continue;
    const isSpread = node !== name || queued !== undefined;
    if (completed === required) ready.push({ name, isSpread });
    else
      waiting.push({
        ...NOTHING,
        node: name,
        kind: name === OUTPUT ? "output" : isSpread ? "spread" : "node",
        state: "waiting",
        got: { completed, required },
      });
  }
  const items = ready.map(({ name, isSpread }) => (isSpread ? `${name}[]` : name));
  const states = await store.readItems(record.run, items);
  for (const [index, { name, isSpread }] of ready.entries()) {
    const child = reader.children.get(name);
    const item = states[index];
    const state = child === undefined ? stateOf(item) : "child";
    const failures = item?.failures === undefined ? [] : (decode(item.failures) as readonly unknown[]);
    const kind = name === OUTPUT ? "output" : isSpread ? "spread" : child === undefined ? "node" : "call";
    rows.push({
      ...NOTHING,
      node: name,
      kind,
      state: isOver ? "left" : state,
      attempts: (item?.attempt ?? 0) + 1,
      error: failures.at(-1),
      child,
      dueAt: state === "retries" ? item?.availableAt : undefined,
    });
  }
  for (const [name, spread] of reader.spreads)
    if (!reader.ended.has(name)) rows.push(await openSpread(store, record, name, spread, queuedOf.get(name) ?? 0));
  return [...rows, ...waiting];
}

/** One that is not there has ended since its counters were read, or is about to be queued. */
function stateOf(item: ItemState | undefined): "at work" | "queued" | "retries" {
  if (item?.state === "leased") return "at work";
  return item?.state === "delayed" ? "retries" : "queued";
}

function endedRows(reader: FlowReader, name: string, { entry, data }: SeenNode): FlowRow[] {
  const kept = Object.entries((data["kept"] ?? {}) as Record<string, unknown>);
  const skipped = (data["skipped"] ?? []) as readonly string[];
  const derived: FlowRow[] = [
    ...kept.map(([node, value]): FlowRow => ({
      ...NOTHING,
      node,
      kind: "inline",
      state: "done",
      seq: entry.seq,
      value: { value },
    })),
    ...skipped.map((node): FlowRow => {
      const isWhen = node.endsWith("?");
      return { ...NOTHING, node, kind: isWhen ? "when" : "inline", state: "skipped", seq: entry.seq };
    }),
  ];
  if (name === "input") return derived;
  const spread = reader.spreads.get(name);
  const child = reader.children.get(name);
  const state = entry.type === "NodeFailed" ? "failed" : entry.type === "NodeSkipped" ? "skipped" : "done";
  const own: FlowRow = {
    ...NOTHING,
    node: name,
    kind: name === OUTPUT ? "output" : spread !== undefined ? "spread" : child !== undefined ? "call" : "node",
    state,
    attempts: spread?.attempts ?? Number(data["attempt"] ?? 0) + 1,
    tookMs: spread === undefined ? undefined : entry.at - spread.at,
    seq: entry.seq,
    value: "result" in data ? { value: data["result"] } : undefined,
    error: data["error"] ?? data["caught"],
    isCaught: "caught" in data,
    child,
    items: spread && countsOf(spread),
  };
  return [own, ...derived];
}

async function openSpread(
  store: Store,
  { run, status }: RunRecord,
  name: string,
  spread: SeenSpread,
  queued: number,
): Promise<FlowRow> {
  const open: string[] = [];
  let inFlight = 0;
  let withChild = 0;
  for (let index = 0; index < queued; index += 1) {
    if (spread.items[index] === ENDED) continue;
    if (spread.items[index] === WITH_CHILD) {
      withChild += 1;
      continue;
    }
    inFlight += 1;
    if (open.length < MAX_LOOKED_UP) open.push(`${name}[${index}]`);
  }
  const isOver = hasEnded(status);
  const states = isOver ? [] : (await store.readItems(run, open)).map(stateOf);
  const atWork = states.filter((state) => state === "at work").length;
  const retrying = states.filter((state) => state === "retries").length;
  const failedFor = isOver && spread.failed > 0 && spread.done + spread.failed < spread.total;
  return {
    ...NOTHING,
    node: name,
    kind: "spread",
    state: failedFor ? "failed" : isOver ? "left" : openState(atWork, inFlight - atWork - retrying, retrying),
    attempts: spread.attempts,
    items: isOver
      ? countsOf(spread)
      : { ...countsOf(spread), atWork, retrying, queued: inFlight - atWork - retrying, children: withChild },
  };
}

function openState(atWork: number, queued: number, retrying: number): FlowNodeState {
  if (atWork > 0) return "at work";
  if (queued > 0) return "queued";
  return retrying > 0 ? "retries" : "child";
}

function countsOf({ total, done, failed, failures }: SeenSpread): SpreadCounts {
  return { total, done, failed, atWork: 0, queued: 0, retrying: 0, children: 0, failures };
}

/** What came for a node says by its entry when it came. One node at a time: what came may be large. */
async function addTimes(store: Store, { run }: RunRecord, reader: FlowReader, rows: readonly FlowRow[]): Promise<void> {
  for (const row of rows) {
    // What is derived, and what is skipped, takes no time of its own.
    if (row.seq === undefined || row.state === "skipped" || row.items !== undefined || row.kind === "inline") continue;
    const end = reader.timeOf(row.seq);
    const [came = []] = await store.readInputs([{ run, targets: [row.node] }]);
    const readyAt = came.reduce((latest, { seq }) => Math.max(latest, reader.timeOf(seq) ?? Number.NaN), 0);
    if (end !== undefined && came.length > 0 && !Number.isNaN(readyAt)) row.tookMs = end - readyAt;
  }
}
