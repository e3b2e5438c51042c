// Flow run: reads the journal and the counters of a flow's run: a row per node, one row for a spread. Needs no code.
//
// flow-run.F1. The journal is read page by page, and counters before it: a node that ends in between is listed once, as ended.

import { decode } from "../base/index.ts";
import {
  hasEnded,
  FLOW_OUTPUT,
  parseItemName,
  spreadItemName,
  type Entry,
  type ItemInfo,
  type JournalEntry,
  type Readiness,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { eachEntry } from "./graph-run.ts";
import { ENDED, FlowReader, WITH_CHILD, type EndedNode, type FailedItem, type SpreadProgress } from "./flow-fold.ts";
import { attemptOf } from "./typed-entry.ts";

/** A completed item of a spread: `show --watch` counts it and prints no line. */
export function isCompletedItem({ type, command }: Pick<Entry, "type" | "command">): boolean {
  return type === "NodeCompleted" && parseItemName(command).kind === "item";
}

/** `unfinished`: it was queued or running when the run ended. */
export type FlowNodeState =
  | "completed"
  | "skipped"
  | "failed"
  | "running"
  | "queued"
  | "retrying"
  | "waiting"
  | "awaiting_child"
  | "unfinished";

/** `node`: an action, a call of a task, or a join; the journal does not distinguish them. */
export type FlowRowKind = "node" | "inline" | "when" | "spread" | "call" | "output";

export interface SpreadCounts {
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly running: number;
  readonly queued: number;
  /** Waiting for the next attempt. */
  readonly retrying: number;
  /** Waiting for a child run. */
  readonly awaitingChild: number;
  /** The first ones, by index. */
  readonly failures: readonly FailedItem[];
}

export interface FlowRow {
  readonly node: string;
  readonly kind: FlowRowKind;
  readonly state: FlowNodeState;
  /** For a spread, the highest number of one item. */
  readonly attempts: number;
  /** How long its code ran; for a child, from the last input to the end; for a spread, until all its items had ended. */
  tookMs: number | undefined;
  /** The seq of its last entry. */
  readonly seq: number | undefined;
  readonly value: { readonly value: unknown } | undefined;
  readonly error: unknown;
  /** Its `catch` returned the value. */
  readonly isCaught: boolean;
  /** The child run that it waits for, or that returned its value. */
  readonly child: string | undefined;
  /** When the next attempt starts. */
  readonly dueAt: number | undefined;
  /** How many of its inputs have arrived. */
  readonly inputs: { readonly completed: number; readonly required: number } | undefined;
  readonly items: SpreadCounts | undefined;
}

export interface FlowRun {
  readonly record: RunRecord;
  /** Ended nodes in the order they ended; then running and queued nodes; then nodes that wait for inputs. */
  readonly rows: readonly FlowRow[];
  /** How the run ended, and cancel and retry requests. */
  readonly events: readonly JournalEntry[];
}

/** How many items of a spread are read from the queue at once. */
const ITEMS_PAGE = 2_000;

/** Reads the run (flow-run.F1). `limit`: how many of the last rows need their times. */
export async function readFlowRun(store: Store, given: RunRecord, limit: number): Promise<FlowRun> {
  const readiness = await store.readReadiness(given.run);
  const record = (await store.findRun(given.id, given.generation)) ?? given;
  let reader = new FlowReader();
  await eachEntry(store, record, 0, record.head, (entry) => reader.read(entry));
  if (reader.isStale) {
    reader = new FlowReader(reader.voids);
    await eachEntry(store, record, 0, record.head, (entry) => reader.read(entry));
  }
  const rows = await rowsOf(store, record, reader, readiness);
  await addTimes(store, record, reader, rows.slice(-limit));
  return { record, rows, events: reader.events };
}

const EMPTY_ROW = {
  attempts: 1,
  tookMs: undefined,
  seq: undefined,
  value: undefined,
  error: undefined,
  isCaught: false,
  child: undefined,
  dueAt: undefined,
  inputs: undefined,
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
    const { node: name, kind } = parseItemName(node);
    if (reader.ended.has(name) || reader.spreads.has(name)) continue;
    const isSpread = kind === "spread" || queued !== undefined;
    if (completed === required) ready.push({ name, isSpread });
    else
      waiting.push({
        ...EMPTY_ROW,
        node: name,
        kind: name === FLOW_OUTPUT ? "output" : isSpread ? "spread" : "node",
        state: "waiting",
        inputs: { completed, required },
      });
  }
  const items = ready.map(({ name, isSpread }) => (isSpread ? `${name}[]` : name));
  const states = await store.readItems(record.run, items);
  for (const [index, { name, isSpread }] of ready.entries()) {
    const child = reader.children.get(name)?.id;
    const item = states[index];
    const state = child === undefined ? queueStateOf(item) : "awaiting_child";
    const failures = item?.failures === undefined ? [] : (decode(item.failures) as readonly unknown[]);
    const kind = name === FLOW_OUTPUT ? "output" : isSpread ? "spread" : child === undefined ? "node" : "call";
    rows.push({
      ...EMPTY_ROW,
      node: name,
      kind,
      state: isOver ? "unfinished" : state,
      attempts: (item?.attempt ?? 0) + 1,
      error: failures.at(-1),
      child,
      dueAt: state === "retrying" ? item?.availableAt : undefined,
    });
  }
  for (const [name, spread] of reader.spreads)
    if (!reader.ended.has(name)) rows.push(await openSpread(store, record, name, spread, queuedOf.get(name) ?? 0));
  return [...rows, ...waiting];
}

/** An item without a row has ended since its counters were read, or is about to be queued. */
function queueStateOf(item: ItemInfo | undefined): "running" | "queued" | "retrying" {
  if (item?.state === "leased") return "running";
  return item?.state === "delayed" ? "retrying" : "queued";
}

function endedRows(reader: FlowReader, name: string, { entry, data }: EndedNode): FlowRow[] {
  const derived: FlowRow[] = [
    ...Object.entries(data.kept ?? {}).map(([node, value]): FlowRow => ({
      ...EMPTY_ROW,
      node,
      kind: "inline",
      state: "completed",
      seq: entry.seq,
      value: { value },
    })),
    ...(data.skipped ?? []).map((node): FlowRow => {
      const isWhen = parseItemName(node).kind === "when";
      return { ...EMPTY_ROW, node, kind: isWhen ? "when" : "inline", state: "skipped", seq: entry.seq };
    }),
  ];
  if (name === "input") return derived;
  const spread = reader.spreads.get(name);
  const child = reader.children.get(name)?.id;
  const state = entry.type === "NodeFailed" ? "failed" : entry.type === "NodeSkipped" ? "skipped" : "completed";
  const own: FlowRow = {
    ...EMPTY_ROW,
    node: name,
    kind: name === FLOW_OUTPUT ? "output" : spread !== undefined ? "spread" : child !== undefined ? "call" : "node",
    state,
    attempts: spread?.attempts ?? attemptOf(data),
    tookMs: spread === undefined ? undefined : entry.at - spread.at,
    seq: entry.seq,
    value: "result" in data ? { value: data.result } : undefined,
    error: data.error ?? data.caught,
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
  spread: SpreadProgress,
  queued: number,
): Promise<FlowRow> {
  const isOver = hasEnded(status);
  const open: string[] = [];
  let inFlight = 0;
  let withChild = 0;
  let running = 0;
  let retrying = 0;
  const count = async (): Promise<void> => {
    const states = isOver ? [] : (await store.readItems(run, open.splice(0))).map(queueStateOf);
    running += states.filter((state) => state === "running").length;
    retrying += states.filter((state) => state === "retrying").length;
  };
  for (let index = 0; index < queued; index += 1) {
    if (spread.items[index] === ENDED) continue;
    if (spread.items[index] === WITH_CHILD) {
      withChild += 1;
      continue;
    }
    inFlight += 1;
    open.push(spreadItemName(name, index));
    if (open.length === ITEMS_PAGE) await count();
  }
  await count();
  const hasFailed = isOver && spread.failed > 0 && spread.completed + spread.failed < spread.total;
  return {
    ...EMPTY_ROW,
    node: name,
    kind: "spread",
    state: hasFailed ? "failed" : isOver ? "unfinished" : openState(running, inFlight - running - retrying, retrying),
    attempts: spread.attempts,
    items: isOver
      ? countsOf(spread)
      : { ...countsOf(spread), running, retrying, queued: inFlight - running - retrying, awaitingChild: withChild },
  };
}

function openState(running: number, queued: number, retrying: number): FlowNodeState {
  if (running > 0) return "running";
  if (queued > 0) return "queued";
  return retrying > 0 ? "retrying" : "awaiting_child";
}

function countsOf({ total, completed, failed, failures }: SpreadProgress): SpreadCounts {
  const counts = { total, completed, failed, running: 0, queued: 0, retrying: 0, awaitingChild: 0 };
  return { ...counts, failures: failures.map(({ stack: _stack, ...failure }) => failure) };
}

/** The entry of each input says when it arrived. One node at a time, because inputs can be large. */
async function addTimes(store: Store, { run }: RunRecord, reader: FlowReader, rows: readonly FlowRow[]): Promise<void> {
  for (const row of rows) {
    // Derived and skipped nodes take no time.
    if (row.seq === undefined || row.state === "skipped" || row.items !== undefined || row.kind === "inline") continue;
    row.tookMs = reader.ended.get(row.node)?.entry.tookMs;
    if (row.tookMs !== undefined) continue;
    // A child, or an entry of an earlier version: its wait counts.
    const end = reader.timeOf(row.seq);
    const [inputs = []] = await store.readInputs([{ run, targets: [row.node] }]);
    const readyAt = inputs.reduce((latest, { seq }) => Math.max(latest, reader.timeOf(seq) ?? Number.NaN), 0);
    if (end !== undefined && inputs.length > 0 && !Number.isNaN(readyAt)) row.tookMs = end - readyAt;
  }
}
