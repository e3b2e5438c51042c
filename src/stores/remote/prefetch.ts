// Prefetch: the rows a write is known to need, so that one round trip loads them for the whole list.
//
// prefetch.F1. Correctness does not depend on it: a row that is not prefetched is missed and loaded then. A test counts the round
//   trips.
// prefetch.F2. It runs before every pass, so that rows whose keys depend on other rows are prefetched as soon as those are loaded.

import type { EpochMs } from "../../base/index.ts";
import {
  commandTypeOf,
  DEADLINE_ITEM,
  isCancel,
  type Arrival,
  type CompleteWrite,
  type ForkWrite,
  type QueueSlot,
  type MessageWrite,
  type NewRun,
  type RetryWrite,
  type StartWrite,
  type StopWrite,
  type TerminateWrite,
  type TurnWrite,
  type Write,
} from "../../kernel/index.ts";
import { DEDUP_ID_PREFIX } from "../rules/message.ts";
import { prefetchAdmit, prefetchClaimItems, prefetchClaimMessages, prefetchClaimTurns } from "./prefetch-claims.ts";
import type { Lock } from "./query.ts";
import {
  anyTask,
  delayedItems,
  firstOfLine,
  idsOfRun,
  inboxFrom,
  itemsOfRun,
  rateGatesOf,
  lastChunkOf,
  lastOfLine,
  liveChildren,
  newestChild,
  newestOfId,
  onceOfRun,
  parkedItems,
  parkedOfQueue,
  stoppedItems,
  waitingTasks,
} from "./statements/selections.ts";
import type { RowOf } from "../rows/tables.ts";
import type { AccessMode } from "./statements/context.ts";
import type { WorkingSet } from "./working-set.ts";

const SWEEP_LIMIT = 1_000;
const START_ITEM = "Start";
/** All writes but claims lock their rows. */
const OURS: Lock = "update";

export function prefetch(ws: WorkingSet, mode: AccessMode, now: EpochMs, write: Write): void {
  switch (write.write) {
    case "turn":
      return prefetchTurn(ws, write);
    case "complete":
      return prefetchComplete(ws, write);
    case "start":
      return prefetchStart(ws, write);
    case "end-item":
      prefetchRun(ws, write.run);
      return prefetchItem(ws, write.run, write.item, write.slot);
    case "return-item":
      return prefetchItem(ws, write.run, write.item, write.slot);
    case "return-turn":
      return prefetchRun(ws, write.run);
    case "message":
      return prefetchMessage(ws, write);
    case "claim-turns":
      return prefetchClaimTurns(ws, mode, write);
    case "claim-items":
      return prefetchClaimItems(ws, mode, now, write);
    case "claim-messages":
      return prefetchClaimMessages(ws, mode, now, write);
    case "admit":
      return prefetchAdmit(ws, mode, now, write);
    case "stop":
      return prefetchStop(ws, write);
    case "pause":
    case "resume": {
      const row = newest(ws, write.id);
      if (row === undefined) return;
      if (write.write === "pause") return row.kind === "flow" ? ws.prefetch(waitingTasks(OURS, row.run)) : undefined;
      ws.prefetchRows("queue", OURS, [[row.run, START_ITEM]]);
      return ws.prefetch(stoppedItems(OURS, row.run));
    }
    case "terminate":
      return prefetchTerminate(ws, write);
    case "retry":
      return prefetchRetry(ws, write);
    case "fork":
      return prefetchFork(ws, write);
    case "put-schedule":
    case "remove-schedule":
      return undefined;
    case "declare-queue":
    case "change-queue":
      return prefetchQueue(ws, write.name);
    case "message-delivered":
      ws.prefetch({ ...firstOfLine(OURS, write.firstRun), limit: 2 });
      return ws.prefetchRows("outbox", OURS, [[write.firstRun, write.run, write.seq]]);
    case "return-message":
      return ws.prefetchRows("outbox", OURS, [[write.firstRun, write.run, write.seq]]);
    case "fire-due":
      // Its first statement prefetches everything.
      return mode === "read" ? ws.prefetch(delayedItems(1)) : undefined;
  }
}

// ── parts of writes ──

function prefetchRun(ws: WorkingSet, run: number): void {
  ws.prefetchRows("runs", OURS, [[run]]);
}

/** The newest generation of a run, once it is loaded. */
function newest(ws: WorkingSet, id: string): RowOf<"runs"> | undefined {
  return ws.trySelect(newestOfId(OURS, id))?.[0];
}

function prefetchNew(ws: WorkingSet, runs: readonly Pick<NewRun, "id">[]): void {
  ws.prefetchBy(
    "runs",
    ["id", "generation"],
    runs.map(({ id }) => [id, 0]),
    OURS,
  );
}

function prefetchItem(ws: WorkingSet, run: number, item: string, line: QueueSlot | undefined): void {
  ws.prefetchRows("queue", OURS, [[run, item]]);
  prefetchFreed(ws, line);
}

/** The items parked for the key of an item that is deleted. */
function prefetchFreed(ws: WorkingSet, line: QueueSlot | undefined): void {
  if (line?.key === undefined) return;
  ws.prefetchRows("queues", OURS, [[line.queue]]);
  ws.trySelect(parkedItems(OURS, "task", line.queue, line.key, 1), 4);
}

/** A cancel removes a run that has not started from its queue. */
function prefetchArrival(ws: WorkingSet, run: number, { type }: Arrival): void {
  prefetchRun(ws, run);
  if (isCancel(type)) ws.prefetchRows("queue", OURS, [[run, START_ITEM]]);
}

/** The rows that the end of a run deletes. */
function prefetchEnd(ws: WorkingSet, run: number): void {
  ws.prefetch(itemsOfRun(OURS, run, SWEEP_LIMIT));
  if (ws.original("runs", run)?.arrivals !== 0) ws.prefetch(onceOfRun(run, SWEEP_LIMIT));
}

// ── writes ──

function prefetchTurn(ws: WorkingSet, turn: TurnWrite): void {
  const { run } = turn;
  prefetchRun(ws, run);
  const row = ws.original("runs", run);
  for (const { item, slot: line } of turn.finished) prefetchItem(ws, run, item, line);
  const tasks = turn.dropped.filter((item) => commandTypeOf(item) === "Task");
  if (tasks.length > 0)
    ws.prefetchRows(
      "queue",
      OURS,
      tasks.map((item) => [run, item]),
    );
  prefetchChildren(ws, turn);
  for (const { to, arrival } of turn.messages)
    if (typeof to === "number") prefetchArrival(ws, to, arrival);
    else {
      const child = ws.trySelect(newestChild(OURS, to, run))?.[0];
      if (child !== undefined) prefetchArrival(ws, child.run, arrival);
    }
  if (turn.chunks.length > 0 || turn.outgoing.length > 0) prefetchLeaving(ws, turn, row);
  for (const { step, key } of turn.checkpoints ?? []) {
    ws.prefetchRows("checkpoints", "none", [[run, step]]);
    ws.prefetchBy("checkpoints", ["key"], [[key]], "none");
  }
  if (turn.then === "hold" || turn.then === "release") return;
  prefetchEnd(ws, run);
  if (turn.next !== undefined) prefetchNext(ws, run, turn.read, row);
}

function prefetchChildren(ws: WorkingSet, { children }: Pick<TurnWrite, "children">): void {
  if (children.length > 0)
    prefetchNew(
      ws,
      children.map((child) => child.run),
    );
}

/** Streams and outbox rows have the number of the first generation, mostly the only one. */
function prefetchLeaving(
  ws: WorkingSet,
  { run, chunks: emits, outgoing: sends }: TurnWrite,
  row: RowOf<"runs"> | undefined,
): void {
  let first = run;
  if (row !== undefined && row.generation > 0) {
    ws.prefetchBy("runs", ["id", "generation"], [[row.id, 0]], "none");
    first = ws.loadedBy("runs", ["id", "generation"], [row.id, 0])[0]?.run ?? run;
  }
  for (const stream of new Set(emits.map((emit) => emit.stream))) {
    ws.prefetch(lastChunkOf(first, stream));
    ws.prefetchRows("emitted", "none", [[run, stream]]);
  }
  if (sends.length > 0) ws.prefetch(lastOfLine(OURS, first));
}

function prefetchNext(ws: WorkingSet, run: number, read: number, row: RowOf<"runs"> | undefined): void {
  ws.prefetchBy("tags", ["run"], [[run]], "none");
  ws.prefetch(idsOfRun(run));
  ws.prefetchRows("queue", OURS, [
    [run, START_ITEM],
    [run, DEADLINE_ITEM],
  ]);
  if (row !== undefined && row.arrivals > read) ws.prefetch(inboxFrom(run, read));
}

function prefetchComplete(ws: WorkingSet, write: CompleteWrite): void {
  const { run, fence, arrivals, spread, advances } = write;
  prefetchRun(ws, run);
  if ("item" in fence) prefetchItem(ws, run, fence.item, fence.slot);
  const nodes = [...arrivals.map(({ target }) => target), ...advances.map(({ barrier }) => barrier)];
  if (spread !== undefined) nodes.push(spread.barrier);
  ws.prefetchRows(
    "readiness",
    "none",
    nodes.map((node) => [run, node]),
  );
  ws.prefetchRows(
    "arrivals",
    "none",
    arrivals.map(({ target, edge, index }) => [run, target, edge, index]),
  );
  prefetchChildren(ws, write);
  for (const { to, arrival } of write.messages) prefetchArrival(ws, to, arrival);
  if (write.then === "continue") return void ws.trySelect(anyTask(run), 8);
  prefetchEnd(ws, run);
  const row = ws.original("runs", run);
  if (write.cancel !== undefined && row !== undefined) ws.prefetch(liveChildren(OURS, row.root, run));
}

function prefetchStart(ws: WorkingSet, { run, singleton, debounce }: StartWrite): void {
  prefetchNew(ws, [run]);
  for (const [kind, key] of [
    ["singleton", singleton],
    ["debounce", debounce],
  ] as const) {
    if (key === undefined) continue;
    ws.prefetch(newestOfId(OURS, run.id));
    const id = ws.tryGet("start_keys", OURS, run.definition, kind, key)?.id;
    const other = id === undefined ? undefined : newest(ws, id);
    if (other === undefined) continue;
    ws.prefetchBy("tags", ["run"], [[other.run]], "none");
    if (kind === "singleton") ws.prefetchRows("journal", "none", [[other.run, 1]]);
    else ws.prefetchRows("queue", OURS, [[other.run, START_ITEM]]);
  }
}

function prefetchMessage(ws: WorkingSet, { to, arrival, once, dedupId }: MessageWrite): void {
  const row = newest(ws, to);
  if (row === undefined) return;
  prefetchArrival(ws, row.run, arrival);
  if (once) ws.prefetchRows("once", "none", [[row.run, arrival.target]]);
  if (dedupId !== undefined) ws.prefetchRows("once", "none", [[row.run, DEDUP_ID_PREFIX + dedupId]]);
}

function prefetchStop(ws: WorkingSet, { run, item, slot: line }: StopWrite): void {
  prefetchRun(ws, run);
  if (item !== undefined) prefetchItem(ws, run, item, line);
  ws.prefetch(waitingTasks(OURS, run));
}

function prefetchTerminate(ws: WorkingSet, { id }: TerminateWrite): void {
  const row = newest(ws, id);
  if (row === undefined) return;
  prefetchEnd(ws, row.run);
  if (row.parent !== null) prefetchRun(ws, row.parent);
  ws.prefetch(liveChildren(OURS, row.root, row.run));
  ws.prefetchBy("tags", ["run"], [[row.run]], "none");
}

function prefetchRetry(ws: WorkingSet, { run, children, singleton }: RetryWrite): void {
  ws.prefetchRows(
    "runs",
    OURS,
    [run, ...children].map((one) => [one]),
  );
  ws.prefetch(itemsOfRun(OURS, run, SWEEP_LIMIT));
  const row = ws.original("runs", run);
  if (singleton === undefined || row === undefined) return;
  const holder = ws.tryGet("start_keys", OURS, row.definition, "singleton", singleton)?.id;
  if (holder !== undefined) ws.prefetch(newestOfId(OURS, holder));
}

function prefetchFork(ws: WorkingSet, { run, origin, checkpoint }: ForkWrite): void {
  ws.prefetch(newestOfId(OURS, run.id));
  prefetchNew(ws, [run]);
  prefetchRun(ws, origin.run);
  ws.prefetchRows("checkpoints", "none", [[origin.run, origin.step]]);
  ws.prefetchBy("checkpoints", ["key"], [[checkpoint.key]], "none");
}

function prefetchQueue(ws: WorkingSet, name: string): void {
  ws.prefetchRows("queues", OURS, [[name]]);
  for (const kind of ["task", "start"]) {
    ws.prefetch(parkedOfQueue(OURS, kind, name));
    ws.prefetch(rateGatesOf(kind, name));
  }
}
