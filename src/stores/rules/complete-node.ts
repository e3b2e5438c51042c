// Complete node: commits the end of a flow's node and what follows from it (completion.C1 to completion.C7).
//
// complete-node.P1. The run's row is read first, then readiness is checked, then the fence: the token of the node's row. Only then
//   rows are written: entries, arrivals, readiness, queue, the run's row, and last the rows of other runs.
// complete-node.P2. A completion that breaks readiness (completion.C4) blocks the run and stops the node. It writes nothing else.

import { invariant } from "../../base/index.ts";
import {
  chainAfter,
  markOf,
  readinessEvidence,
  TurnDue,
  type CompleteOutcome,
  type CompleteWrite,
  type NewSpread,
  type NodeItem,
  type QueuedNode,
  type ReadinessEvidence,
  type RunNumber,
  type RunRecord,
  type SpreadPortion,
} from "../../kernel/index.ts";
import { endSpending, settle } from "./budgets.ts";
import { appendToInbox } from "./inbox.ts";
import { ARRIVAL_KINDS } from "./flow-reads.ts";
import { FlowRows, type FlowRun, type ReadinessRow } from "./flow-rows.ts";
import { freeSlot } from "./queue-limiter.ts";
import type { Rows, Span } from "../rows/rows.ts";
import { stopItem, stopNodes } from "./control.ts";
import { insertNode } from "./items.ts";
import { errorCodeOf } from "./error-code.ts";
import { insertEntry } from "./journal-entries.ts";
import { addRuntime, isStopped, NO_TURN } from "./run-rows.ts";
import type { Tx } from "./transaction.ts";
import { noteStopEvent } from "./run-events.ts";
import { clearEnded } from "./sweep.ts";
import { cancelChildren } from "./cancel-children.ts";
import { startChildren } from "./commit-turn.ts";

/** A node that the write brings arrivals to. */
interface Target {
  readonly row: ReadinessRow;
  readonly isNew: boolean;
  readonly node: NodeItem;
  /** How many arrivals the write brings, repeated ones included. */
  brought: number;
  /** The `seq` of the last arrival that counted; 0 while none has. */
  cause: number;
}

const NONE: readonly never[] = [];
const STALE: CompleteOutcome = { status: "stale" };

export function applyComplete(tx: Tx, write: CompleteWrite): CompleteOutcome {
  const rows = (tx.flows ??= new FlowRows(tx.rows));
  const flow = rows.find(write.run);
  if (flow === undefined) return STALE;
  const targets = targetsOf(rows, flow, write);
  const evidence = findFault(tx, rows, flow, write, targets);
  if (evidence !== undefined) return isHeld(tx, write, flow) ? block(tx, rows, write, evidence) : STALE;
  if (!passFence(tx, write, flow)) return STALE;

  if (write.runtime !== undefined) addRuntime(tx.rows, write.run, write.runtime);
  const { read } = "turn" in write.fence ? write.fence : flow;
  const first = flow.head + 1;
  const queue = new NodeQueue(tx, write, flow);
  insertEntries(tx, write, flow);
  invariant(
    flow.head + 1 === first + write.entries.length,
    "The head of a flow must move by the number of its entries.",
  );
  countArrivals(tx, write, flow, targets, first);
  for (const { row, cause, node } of targets) {
    invariant(row.completed <= row.required, "A node must not get more arrivals than it requires.");
    if (cause === 0 || row.completed !== row.required) continue;
    rows.saveNode(flow, row);
    queue.add(row.node, node, cause);
  }
  if (write.spread !== undefined) spread(rows, flow, write.spread, first + write.spread.cause, queue);
  if (write.portion !== undefined) addPortion(rows, flow, write.portion, queue);
  for (const { barrier, node } of write.advances) advance(rows, flow, barrier, node, queue);
  moveRun(tx, rows, write, flow, read, queue.queued.length > 0);
  return { status: "committed", seq: first, at: tx.now, queued: queue.queued, ...reach(tx, rows, write, flow, read) };
}

/** Writes the rows of other runs, and clears the rows of a run that has ended. */
function reach(
  tx: Tx,
  rows: FlowRows,
  write: CompleteWrite,
  flow: FlowRun,
  read: number,
): { readonly children: readonly RunRecord[]; readonly notified: readonly RunNumber[]; readonly more: boolean } {
  let more = flow.arrivals > read;
  const { children, messages, cancel, then } = write;
  const isOver = then !== "continue";
  if (!isOver && children.length === 0 && messages.length === 0) return { children: NONE, notified: NONE, more };
  rows.save();
  if (isOver) {
    const { head, arrivals } = flow;
    clearEnded(tx, write.run, { status: then, head, arrivals, unread: arrivals - read });
    if (write.budget !== undefined) endSpending(tx, write.run, write.budget, then);
    more = false;
  }
  const started = startChildren(tx, write);
  for (const { to, arrival } of messages) appendToInbox(tx, to, arrival);
  const notified = isOver && cancel !== undefined ? cancelChildren(tx, write.run, cancel) : NONE;
  return { children: started.children, notified, more: more || started.taken };
}

// ── readiness, checked before anything is written ──

function targetsOf(rows: FlowRows, flow: FlowRun, { arrivals }: CompleteWrite): readonly Target[] {
  if (arrivals.length === 0) return NONE;
  const targets: Target[] = [];
  for (const { target: node, required, node: item } of arrivals) {
    let target = targets.find(({ row }) => row.node === node);
    if (target === undefined) {
      const found = rows.readiness(flow, node);
      // Without `required` the target is a barrier, and nothing arrives at a barrier before its spread.
      const row = found ?? newRow(node, required ?? 0);
      targets.push((target = { row, isNew: found === undefined, node: item, brought: 0, cause: 0 }));
    }
    target.brought += 1;
  }
  return targets;
}

function newRow(node: string, required: number): ReadinessRow {
  return {
    node,
    required,
    completed: 0,
    queued: null,
    window: null,
    firstSeq: null,
    perEntry: null,
    state: "new",
  };
}

/** completion.C3, completion.C4 */
function findFault(
  tx: Tx,
  rows: FlowRows,
  flow: FlowRun,
  write: CompleteWrite,
  targets: readonly Target[],
): ReadinessEvidence | undefined {
  for (const { target: node, required: wanted } of write.arrivals) {
    if (wanted === undefined) continue;
    const { completed, required } = rowOf(targets, node).row;
    if (wanted !== required) return { code: "READINESS_MISMATCH", node, completed, required, wanted };
  }
  for (const { row, brought } of targets) {
    const { node, completed, required } = row;
    if (completed + brought <= required) continue;
    const wanted = completed + countFresh(tx, write, node);
    if (wanted > required) return { code: "READINESS_OVERFLOW", node, completed, required, wanted };
  }
  return write.spread && findSpreadFault(rows.readiness(flow, write.spread.barrier), write.spread);
}

function rowOf(targets: readonly Target[], node: string): Target {
  const target = targets.find(({ row }) => row.node === node);
  invariant(target !== undefined, "Every arrival of a write must have a target.");
  return target;
}

/** How many of the arrivals are new. Only read when the write may bring too many. */
function countFresh({ rows }: Tx, { run, arrivals }: CompleteWrite, target: string): number {
  const fresh = new Set<string>();
  for (const arrival of arrivals)
    if (
      arrival.target === target &&
      rows.get("arrivals", [run, target, arrival.edge, arrival.index], SEQ) === undefined
    )
      fresh.add(`${arrival.index} ${arrival.edge}`);
  return fresh.size;
}

/** A barrier that has a row was spread before. */
function findSpreadFault(row: ReadinessRow | undefined, spread: NewSpread): ReadinessEvidence | undefined {
  if (row === undefined) return undefined;
  const { node, required, completed } = row;
  if (spread.required !== required)
    return { code: "READINESS_MISMATCH", node, completed, required, wanted: spread.required };
  return { code: "READINESS_OVERFLOW", node, completed, required, wanted: completed + required };
}

// ── the fence (completion.C1) ──

function isHeld({ rows }: Tx, { run, fence }: CompleteWrite, flow: FlowRun): boolean {
  return "turn" in fence
    ? isTurnHeld(rows, flow, fence.turn)
    : rows.is("queue", [run, fence.item], { token: fence.token });
}

/** The second test guesses that the fence holds where the row is not loaded (rows.P4). */
function isTurnHeld(rows: Rows, { run, token }: FlowRun, turn: string): boolean {
  return token === turn || rows.is("runs", [run], { turn_token: turn });
}

function passFence(tx: Tx, { run, fence }: CompleteWrite, flow: FlowRun): boolean {
  const { rows } = tx;
  if ("turn" in fence) {
    if (!isTurnHeld(rows, flow, fence.turn)) return false;
    if (fence.read > 0) rows.clear("inbox", [run], { upTo: fence.read });
    return true;
  }
  if (!rows.remove("queue", [run, fence.item], { token: fence.token })) return false;
  if (fence.slot !== undefined) freeSlot(tx, "task", fence.slot);
  return true;
}

/** complete-node.P2 */
function block(tx: Tx, flows: FlowRows, { run, fence }: CompleteWrite, evidence: ReadinessEvidence): CompleteOutcome {
  const { rows } = tx;
  flows.save();
  rows.set("runs", [run], { ...NO_TURN, status: "blocked", evidence: readinessEvidence(evidence) });
  stopNodes(rows, run);
  noteStopEvent(tx, run, "blocked");
  if ("item" in fence) {
    stopItem(rows, run, fence.item);
    if (fence.slot !== undefined) freeSlot(tx, "task", fence.slot);
  }
  return { status: "blocked", evidence };
}

// ── the rows of the run ──

/** completion.C6 */
function insertEntries(tx: Tx, { run, entries }: CompleteWrite, flow: FlowRun): void {
  const { rows, now } = tx;
  for (const { type, command, data, ran } of entries) {
    flow.chain = chainAfter(flow.chain, type, command, data);
    flow.head += 1;
    insertEntry(rows, run, flow.head, type, command, data, now, markOf(flow.chain), ran);
    if (ran?.charge !== undefined) settle(tx, run, command, ran.charge, ran.execution);
  }
}

/** completion.C2, completion.C3. `first`: the `seq` of the write's first entry. */
function countArrivals(
  { rows }: Tx,
  { run, arrivals }: CompleteWrite,
  { nodes }: FlowRun,
  targets: readonly Target[],
  first: number,
): void {
  for (const { row, isNew } of targets) if (isNew) nodes.set(row.node, row);
  for (const { target: node, edge, index, kind, cause } of arrivals) {
    const seq = cause === undefined ? 1 : first + cause;
    if (!rows.add("arrivals", { run, target: node, edge, idx: index, kind: ARRIVAL_KINDS.indexOf(kind), seq }))
      continue;
    const target = rowOf(targets, node);
    target.cause = seq;
    target.row.completed += 1;
    if (target.row.state === "saved") target.row.state = "changed";
  }
}

/** rules.F4 */
function spread(rows: FlowRows, flow: FlowRun, write: NewSpread, firstSeq: number, queue: NodeQueue): void {
  const { barrier, required, perEntry, node, claims, portion } = write;
  const window = portion === undefined ? write.window : null;
  const queued = portion?.keys.length ?? Math.min(write.window, required);
  const row: ReadinessRow = { ...newRow(barrier, required), queued, window, firstSeq, perEntry };
  flow.nodes.set(barrier, row);
  rows.saveNode(flow, row);
  if (portion !== undefined) queuePortion(row, 0, portion, queue);
  else
    for (let index = 0; index < queued; index++) {
      const claim = claims[index];
      queue.add(itemOf(barrier, index), claim ? { ...node, claim } : node, firstSeq + Math.floor(index / perEntry));
    }
  if (required === 0) queue.add(barrier, write.barrierNode, firstSeq);
}

function advance(rows: FlowRows, flow: FlowRun, barrier: string, node: NodeItem, queue: NodeQueue): void {
  const row = rows.readiness(flow, barrier);
  if (row === undefined || row.queued === null || row.queued >= row.required) return;
  // Its items are queued in portions.
  if (row.window === null) return;
  invariant(
    row.firstSeq !== null && row.perEntry !== null,
    "The row of a barrier must say where the items of its spread are.",
  );
  const index = row.queued;
  row.queued += 1;
  if (row.state === "saved") row.state = "changed";
  queue.add(itemOf(barrier, index), node, row.firstSeq + Math.floor(index / row.perEntry));
}

/** Queues the items that follow the queued ones. */
function addPortion(
  rows: FlowRows,
  flow: FlowRun,
  { barrier, ...portion }: SpreadPortion & { readonly barrier: string },
  queue: NodeQueue,
): void {
  const row = rows.readiness(flow, barrier);
  if (row === undefined || row.queued === null) return;
  const from = row.queued;
  row.queued += portion.keys.length;
  if (row.state === "saved") row.state = "changed";
  queuePortion(row, from, portion, queue);
}

function queuePortion(row: ReadinessRow, from: number, { keys, node, next }: SpreadPortion, queue: NodeQueue): void {
  const { node: barrier, required, firstSeq, perEntry } = row;
  const left = from + keys.length;
  invariant(left <= required, "A portion must not have more items than its spread has left.");
  invariant(firstSeq !== null && perEntry !== null, "The row of a barrier must say where the items of its spread are.");
  const seqOf = (index: number): number => firstSeq + Math.floor(index / perEntry);
  const { slot } = node;
  for (const [n, key] of keys.entries()) {
    const index = from + n;
    const item = key === null || slot === undefined ? node : { ...node, slot: { ...slot, key } };
    queue.add(itemOf(barrier, index), item, seqOf(index));
  }
  if (left < required) queue.add(next.item, next.node, seqOf(left));
}

function itemOf(barrier: string, index: number): string {
  return `${barrier}[${index}]`;
}

/** The nodes that one write makes ready. */
class NodeQueue {
  readonly queued: QueuedNode[] = [];
  readonly #tx: Tx;
  readonly #run: RunNumber;
  /** completion.C7 */
  readonly #isStopped: boolean;
  /** completion.C5. The end of a run would delete its items again, so none are inserted. */
  readonly #isOver: boolean;

  constructor(tx: Tx, { run, then }: CompleteWrite, { status }: FlowRun) {
    this.#tx = tx;
    this.#run = run;
    this.#isStopped = isStopped(status);
    this.#isOver = then !== "continue";
  }

  add(item: string, node: NodeItem, seq: number): void {
    if (this.#isOver) return;
    const claim = this.#isStopped ? undefined : node.claim;
    insertNode(this.#tx, this.#run, item, node, claim, seq, this.#isStopped);
    this.queued.push({ item, seq, token: claim?.token });
  }
}

/** completion.C5 */
function moveRun(
  tx: Tx,
  flows: FlowRows,
  { run, fence, then, entries }: CompleteWrite,
  flow: FlowRun,
  read: number,
  busy: boolean,
): void {
  const { rows, now } = tx;
  const { head, chain, status, token, arrivals } = flow;
  if (then !== "continue") {
    flows.release(flow);
    const unread = arrivals - read;
    const ended = { ...NO_TURN, head, chain, read, takeovers: 0, status: then, ended_at: now, unread, evidence: null };
    rows.set("runs", [run], then === "failed" ? { ...ended, error_code: errorCodeOf(entries) } : ended);
  } else if ("turn" in fence) {
    flows.release(flow);
    // control.C1. A paused run stays paused, and its turn does not become due.
    const isPaused = status === "paused";
    rows.set("runs", [run], {
      ...NO_TURN,
      head,
      chain,
      read,
      takeovers: 0,
      status: isPaused ? "paused" : statusOf(rows, run, busy),
      turn_due: !isPaused && arrivals > read ? TurnDue.yes : TurnDue.no,
    });
  } else if (token === null && (status === "running" || status === "waiting")) flow.status = statusOf(rows, run, busy);
}

const SEQ = ["seq"] as const;
const ITEM = ["item"] as const;
/** The items of a run do not change while its row is locked. The first of them may be the one that has just ended. */
const TASKS = { also: { kind: "task" }, peek: true, unordered: true, ahead: 8 } as const satisfies Span<"queue">;

/** The status of a run whose turn no worker holds. */
function statusOf(rows: Rows, run: RunNumber, busy: boolean): "running" | "waiting" {
  return busy || rows.first("queue", [run], ITEM, TASKS) !== undefined ? "running" : "waiting";
}
