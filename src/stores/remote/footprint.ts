// Footprint: what a write is known to need before it is applied, so that one round trip fetches it for the whole list.
//
// F1. Nothing depends on it: what is not foreseen is missed, and asked for then. A test counts the round trips.
// F2. What a later step needs is wanted as soon as the rows are here that say what it is: the footprint is looked at before
//     every pass.

import type { EpochMs } from "../../base/index.ts";
import {
  DEADLINE_ITEM,
  isCancel,
  type Arrival,
  type CompleteWrite,
  type ForkWrite,
  type Line,
  type MessageWrite,
  type NewRun,
  type PutScheduleWrite,
  type RetryWrite,
  type StartWrite,
  type StopWrite,
  type TerminateWrite,
  type TurnWrite,
  type Write,
} from "../../kernel/index.ts";
import { DEDUP } from "../rules/message.ts";
import { wantAdmit, wantClaimItems, wantClaimMessages, wantClaimTurns } from "./footprint-claims.ts";
import type { Lock } from "./query.ts";
import {
  anyTask,
  delayedItems,
  firstOfLine,
  idsOfRun,
  inboxFrom,
  itemsOfRun,
  lanesOf,
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
} from "./selections.ts";
import type { RowOf } from "./tables.ts";
import type { Mode } from "./word.ts";
import type { WorkingSet } from "./working-set.ts";

const SWEEP_LIMIT = 1_000;
const START_ITEM = "Start";
/** Everything but claims is applied under locks. */
const OURS: Lock = "update";

export function wantFootprint(ws: WorkingSet, mode: Mode, now: EpochMs, write: Write): void {
  switch (write.write) {
    case "turn":
      return wantTurn(ws, write);
    case "complete":
      return wantComplete(ws, write);
    case "start":
      return wantStart(ws, write);
    case "item-end":
      wantRun(ws, write.run);
      return wantItem(ws, write.run, write.item, write.line);
    case "item-back":
      return wantItem(ws, write.run, write.item, write.line);
    case "turn-back":
      return wantRun(ws, write.run);
    case "message":
      return wantMessage(ws, write);
    case "claim-turns":
      return wantClaimTurns(ws, mode, write);
    case "claim-items":
      return wantClaimItems(ws, mode, now, write);
    case "claim-messages":
      return wantClaimMessages(ws, mode, now, write);
    case "admit":
      return wantAdmit(ws, mode, now, write);
    case "stop":
      return wantStop(ws, write);
    case "pause":
    case "resume": {
      const row = newest(ws, write.id);
      if (row === undefined) return;
      if (write.write === "pause") return row.kind === "flow" ? ws.want(waitingTasks(OURS, row.run)) : undefined;
      ws.wantRows("queue", OURS, [[row.run, START_ITEM]]);
      return ws.want(stoppedItems(OURS, row.run));
    }
    case "terminate":
      return wantTerminate(ws, write);
    case "retry":
      return wantRetry(ws, write);
    case "fork":
      return wantFork(ws, write);
    case "put-schedule":
      return wantPutSchedule(ws, write);
    case "remove-schedule":
      return ws.wantRows("schedules", OURS, [[write.name]]);
    case "declare-queue":
    case "change-queue":
      return wantQueue(ws, write.name);
    case "message-delivered":
      ws.want({ ...firstOfLine(OURS, write.line), limit: 2 });
      return ws.wantRows("outbox", OURS, [[write.line, write.run, write.seq]]);
    case "message-back":
      return ws.wantRows("outbox", OURS, [[write.line, write.run, write.seq]]);
    case "fire-due":
      // Its first word asks for everything.
      return mode === "read" ? ws.want(delayedItems(1)) : undefined;
  }
}

// ── parts ──

function wantRun(ws: WorkingSet, run: number): void {
  ws.wantRows("runs", OURS, [[run]]);
}

/** Its newest generation, once it is here. */
function newest(ws: WorkingSet, id: string): RowOf<"runs"> | undefined {
  return ws.trySelect(newestOfId(OURS, id))?.[0];
}

function wantNew(ws: WorkingSet, runs: readonly Pick<NewRun, "id">[]): void {
  ws.wantFound(
    "runs",
    ["id", "generation"],
    runs.map(({ id }) => [id, 0]),
    OURS,
  );
}

function wantItem(ws: WorkingSet, run: number, item: string, line: Line | undefined): void {
  ws.wantRows("queue", OURS, [[run, item]]);
  wantFreed(ws, line);
}

/** Whoever waits for the key of an item that goes. */
function wantFreed(ws: WorkingSet, line: Line | undefined): void {
  if (line?.key === undefined) return;
  ws.wantRows("queues", OURS, [[line.queue]]);
  ws.trySelect(parkedItems(OURS, "task", line.queue, line.key, 1), 4);
}

/** A cancel takes a run out of its line. */
function wantArrival(ws: WorkingSet, run: number, { type }: Arrival): void {
  wantRun(ws, run);
  if (isCancel(type)) ws.wantRows("queue", OURS, [[run, START_ITEM]]);
}

/** What a run leaves behind when it ends. */
function wantEnd(ws: WorkingSet, run: number): void {
  ws.want(itemsOfRun(OURS, run, SWEEP_LIMIT));
  if (ws.before("runs", run)?.arrivals !== 0) ws.want(onceOfRun(run, SWEEP_LIMIT));
}

// ── writes ──

function wantTurn(ws: WorkingSet, turn: TurnWrite): void {
  const { run } = turn;
  wantRun(ws, run);
  const row = ws.before("runs", run);
  for (const { item, line } of turn.finished) wantItem(ws, run, item, line);
  const tasks = turn.dropped.filter((item) => item.includes("Task("));
  if (tasks.length > 0)
    ws.wantRows(
      "queue",
      OURS,
      tasks.map((item) => [run, item]),
    );
  wantChildren(ws, turn);
  for (const { to, arrival } of turn.messages)
    if (typeof to === "number") wantArrival(ws, to, arrival);
    else {
      const child = ws.trySelect(newestChild(OURS, to, run))?.[0];
      if (child !== undefined) wantArrival(ws, child.run, arrival);
    }
  if (turn.emits.length > 0 || turn.sends.length > 0) wantLeaving(ws, turn, row);
  for (const { step, key } of turn.checkpoints ?? []) {
    ws.wantRows("checkpoints", "none", [[run, step]]);
    ws.wantFound("checkpoints", ["key"], [[key]], "none");
  }
  if (turn.then === "hold" || turn.then === "release") return;
  wantEnd(ws, run);
  if (turn.next !== undefined) wantNext(ws, run, turn.read, row);
}

function wantChildren(ws: WorkingSet, { children }: Pick<TurnWrite, "children">): void {
  if (children.length > 0)
    wantNew(
      ws,
      children.map((child) => child.run),
    );
}

/** Streams and lines stand under the first generation, mostly the only one. */
function wantLeaving(ws: WorkingSet, { run, emits, sends }: TurnWrite, row: RowOf<"runs"> | undefined): void {
  let first = run;
  if (row !== undefined && row.generation > 0) {
    ws.wantFound("runs", ["id", "generation"], [[row.id, 0]], "none");
    first = ws.here("runs", ["id", "generation"], [row.id, 0])[0]?.run ?? run;
  }
  for (const stream of new Set(emits.map((emit) => emit.stream))) {
    ws.want(lastChunkOf(first, stream));
    ws.wantRows("emitted", "none", [[run, stream]]);
  }
  if (sends.length > 0) ws.want(lastOfLine(OURS, first));
}

function wantNext(ws: WorkingSet, run: number, read: number, row: RowOf<"runs"> | undefined): void {
  ws.wantFound("tags", ["run"], [[run]], "none");
  ws.want(idsOfRun(run));
  ws.wantRows("queue", OURS, [
    [run, START_ITEM],
    [run, DEADLINE_ITEM],
  ]);
  if (row !== undefined && row.arrivals > read) ws.want(inboxFrom(run, read));
}

function wantComplete(ws: WorkingSet, write: CompleteWrite): void {
  const { run, fence, arrivals, spread, advances } = write;
  wantRun(ws, run);
  if ("item" in fence) wantItem(ws, run, fence.item, fence.line);
  const nodes = [...arrivals.map(({ target }) => target), ...advances.map(({ barrier }) => barrier)];
  if (spread !== undefined) nodes.push(spread.barrier);
  ws.wantRows(
    "readiness",
    "none",
    nodes.map((node) => [run, node]),
  );
  ws.wantRows(
    "arrivals",
    "none",
    arrivals.map(({ target, edge, index }) => [run, target, edge, index]),
  );
  wantChildren(ws, write);
  for (const { to, arrival } of write.messages) wantArrival(ws, to, arrival);
  if (write.then === "go on") return void ws.trySelect(anyTask(run), 8);
  wantEnd(ws, run);
  const row = ws.before("runs", run);
  if (write.cancel !== undefined && row !== undefined) ws.want(liveChildren(OURS, row.root, run));
}

function wantStart(ws: WorkingSet, { run, singleton, debounce }: StartWrite): void {
  wantNew(ws, [run]);
  for (const [kind, key] of [
    ["singleton", singleton],
    ["debounce", debounce],
  ] as const) {
    if (key === undefined) continue;
    ws.want(newestOfId(OURS, run.id));
    const id = ws.tryGet("start_keys", OURS, run.definition, kind, key)?.id;
    const other = id === undefined ? undefined : newest(ws, id);
    if (other === undefined) continue;
    ws.wantFound("tags", ["run"], [[other.run]], "none");
    if (kind === "singleton") ws.wantRows("journal", "none", [[other.run, 1]]);
    else ws.wantRows("queue", OURS, [[other.run, START_ITEM]]);
  }
}

function wantMessage(ws: WorkingSet, { to, arrival, once, dedupId }: MessageWrite): void {
  const row = newest(ws, to);
  if (row === undefined) return;
  wantArrival(ws, row.run, arrival);
  if (once) ws.wantRows("once", "none", [[row.run, arrival.target]]);
  if (dedupId !== undefined) ws.wantRows("once", "none", [[row.run, DEDUP + dedupId]]);
}

function wantStop(ws: WorkingSet, { run, item, line }: StopWrite): void {
  wantRun(ws, run);
  if (item !== undefined) wantItem(ws, run, item, line);
  ws.want(waitingTasks(OURS, run));
}

function wantTerminate(ws: WorkingSet, { id }: TerminateWrite): void {
  const row = newest(ws, id);
  if (row === undefined) return;
  wantEnd(ws, row.run);
  if (row.parent !== null) wantRun(ws, row.parent);
  ws.want(liveChildren(OURS, row.root, row.run));
  ws.wantFound("tags", ["run"], [[row.run]], "none");
}

function wantRetry(ws: WorkingSet, { run, children, singleton }: RetryWrite): void {
  ws.wantRows(
    "runs",
    OURS,
    [run, ...children].map((one) => [one]),
  );
  ws.want(itemsOfRun(OURS, run, SWEEP_LIMIT));
  const row = ws.before("runs", run);
  if (singleton === undefined || row === undefined) return;
  const holder = ws.tryGet("start_keys", OURS, row.definition, "singleton", singleton)?.id;
  if (holder !== undefined) ws.want(newestOfId(OURS, holder));
}

function wantFork(ws: WorkingSet, { run, origin, checkpoint }: ForkWrite): void {
  ws.want(newestOfId(OURS, run.id));
  wantNew(ws, [run]);
  wantRun(ws, origin.run);
  ws.wantRows("checkpoints", "none", [[origin.run, origin.step]]);
  ws.wantFound("checkpoints", ["key"], [[checkpoint.key]], "none");
}

function wantPutSchedule(ws: WorkingSet, { schedule, starts, cancel }: PutScheduleWrite): void {
  ws.wantRows("schedules", OURS, [[schedule.name]]);
  if (starts.length > 0) wantNew(ws, starts);
  const row = cancel && newest(ws, cancel.to);
  if (cancel !== undefined && row !== undefined) wantArrival(ws, row.run, cancel.arrival);
  const { lastRun } = schedule;
  if (lastRun !== undefined && !starts.some(({ id }) => id === lastRun)) ws.want(newestOfId("none", lastRun));
}

function wantQueue(ws: WorkingSet, name: string): void {
  ws.wantRows("queues", OURS, [[name]]);
  for (const kind of ["task", "start"]) {
    ws.want(parkedOfQueue(OURS, kind, name));
    ws.want(lanesOf(kind, name));
  }
}
