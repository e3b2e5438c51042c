// Complete: how a node of a flow ends, and everything that follows from it (CN1–CN7).
//
// P1. The run's row comes first, then readiness is judged, then the fence: the node's own row, by its token. Only then is
//     anything written, in this order: entries, arrivals, readiness, queue, the run's row. What follows for other runs
//     comes last.
// P2. A completion that may not be (CN4) writes that the run is blocked, and stops the node. Nothing else.

import {
  chainAfter,
  markOf,
  readinessEvidence,
  type CompleteOutcome,
  type CompleteWrite,
  type NewSpread,
  type NodeItem,
  type QueuedNode,
  type ReadinessEvidence,
  type RunNumber,
  type RunRecord,
} from "../../kernel/index.ts";
import { arrive } from "./arrive.ts";
import { ARRIVAL_KINDS } from "./flow-reads.ts";
import { FlowRows, type FlowRun, type ReadinessRow } from "./flow-rows.ts";
import { freeKey } from "./gates.ts";
import { insertNode } from "./items.ts";
import { isStopped } from "./rows.ts";
import type { Tx } from "./statements.ts";
import { clearEnded } from "./sweep.ts";
import { tellChildren } from "./tell-children.ts";
import { startChildren } from "./turn.ts";

/** A node that something arrives for. */
interface Target {
  readonly row: ReadinessRow;
  readonly isNew: boolean;
  readonly node: NodeItem;
  /** How many arrivals the write brings, repeated ones included. */
  brought: number;
  /** The place of the last one that counted; 0 while none has. */
  cause: number;
}

const NONE: readonly never[] = [];
const STALE: CompleteOutcome = { status: "stale" };

export function applyComplete(tx: Tx, write: CompleteWrite): CompleteOutcome {
  const rows = (tx.flows ??= new FlowRows(tx.sql));
  const flow = rows.find(write.run);
  if (flow === undefined) return STALE;
  const targets = targetsOf(rows, flow, write);
  const evidence = findFault(tx, rows, flow, write, targets);
  if (evidence !== undefined) return isHeld(tx, write, flow) ? block(tx, rows, write, evidence) : STALE;
  if (!passFence(tx, write, flow)) return STALE;

  const { read } = "turn" in write.fence ? write.fence : flow;
  const first = flow.head + 1;
  const queue = new NodeQueue(tx, write, flow);
  insertEntries(tx, write, flow);
  countArrivals(tx, write, flow, targets, first);
  for (const { row, cause, node } of targets) {
    if (cause === 0 || row.completed !== row.required) continue;
    rows.saveNode(flow, row);
    queue.add(row.node, node, cause);
  }
  if (write.spread !== undefined) spread(rows, flow, write.spread, first + write.spread.cause, queue);
  for (const { barrier, node } of write.advances) advance(rows, flow, barrier, node, queue);
  moveRun(tx, rows, write, flow, read, queue.queued.length > 0);
  return { status: "committed", seq: first, at: tx.now, queued: queue.queued, ...reach(tx, rows, write, flow, read) };
}

/** What follows for others, and for the run's own rows when it has ended. */
function reach(
  tx: Tx,
  rows: FlowRows,
  write: CompleteWrite,
  flow: FlowRun,
  read: number,
): { readonly children: readonly RunRecord[]; readonly told: readonly RunNumber[]; readonly more: boolean } {
  let more = flow.arrivals > read;
  const { children, messages, cancel, then } = write;
  const isOver = then !== "go on";
  if (!isOver && children.length === 0 && messages.length === 0) return { children: NONE, told: NONE, more };
  rows.save();
  if (isOver) {
    // A failed run may be retried, and must not be told twice (turn.ts).
    clearEnded(tx, write.run, flow.arrivals, then === "failed" && !more);
    more = false;
  }
  const started = startChildren(tx, write);
  for (const { to, arrival } of messages) arrive(tx, to, arrival);
  const told = isOver && cancel !== undefined ? tellChildren(tx, write.run, cancel) : NONE;
  return { children: started.children, told, more: more || started.taken };
}

// ── readiness, judged before anything is written ──

function targetsOf(rows: FlowRows, flow: FlowRun, { arrivals }: CompleteWrite): readonly Target[] {
  if (arrivals.length === 0) return NONE;
  const targets: Target[] = [];
  for (const { target: node, required, node: item } of arrivals) {
    let target = targets.find(({ row }) => row.node === node);
    if (target === undefined) {
      const found = rows.readiness(flow, node);
      // Nothing may arrive at a barrier before its spread has said how much.
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

/** CN3, CN4 */
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
  return targets.find(({ row }) => row.node === node) as Target;
}

/** Looked for one by one only when there seem to be too many. */
function countFresh({ sql }: Tx, { run, arrivals }: CompleteWrite, target: string): number {
  const fresh = new Set<string>();
  for (const arrival of arrivals)
    if (arrival.target === target && sql.hasArrived.get(run, target, arrival.edge, arrival.index) === undefined)
      fresh.add(`${arrival.index} ${arrival.edge}`);
  return fresh.size;
}

/** Its barrier waits already, so it was spread before. */
function findSpreadFault(row: ReadinessRow | undefined, spread: NewSpread): ReadinessEvidence | undefined {
  if (row === undefined) return undefined;
  const { node, required, completed } = row;
  if (spread.required !== required)
    return { code: "READINESS_MISMATCH", node, completed, required, wanted: spread.required };
  return { code: "READINESS_OVERFLOW", node, completed, required, wanted: completed + required };
}

// ── the fence (CN1) ──

function isHeld({ sql }: Tx, { run, fence }: CompleteWrite, { token }: FlowRun): boolean {
  return "turn" in fence ? token === fence.turn : sql.heldItem.get(run, fence.item, fence.token) !== undefined;
}

function passFence(tx: Tx, { run, fence }: CompleteWrite, { token }: FlowRun): boolean {
  const { sql } = tx;
  if ("turn" in fence) {
    if (token !== fence.turn) return false;
    if (fence.read > 0) sql.dropRead.run(run, fence.read);
    return true;
  }
  if (sql.endItem.run(run, fence.item, fence.token).changes === 0) return false;
  if (fence.line !== undefined) freeKey(tx, "task", fence.line);
  return true;
}

/** P2 */
function block(tx: Tx, rows: FlowRows, { run, fence }: CompleteWrite, evidence: ReadinessEvidence): CompleteOutcome {
  const { sql } = tx;
  rows.save();
  sql.stopFlow.run("blocked", readinessEvidence(evidence), run);
  sql.stopNodes.run(run);
  if ("item" in fence) {
    sql.stopItem.run(run, fence.item);
    if (fence.line !== undefined) freeKey(tx, "task", fence.line);
  }
  return { status: "blocked", evidence };
}

// ── what is written ──

/** CN6 */
function insertEntries({ sql, now }: Tx, { run, entries }: CompleteWrite, flow: FlowRun): void {
  for (const { type, command, data } of entries) {
    flow.chain = chainAfter(flow.chain, type, command, data);
    flow.head += 1;
    sql.insertEntry.run(run, flow.head, type, command, data, now, markOf(flow.chain), null);
  }
}

/** CN2, CN3. `first`: the place of the write's first entry. */
function countArrivals(
  { sql }: Tx,
  { run, arrivals }: CompleteWrite,
  { nodes }: FlowRun,
  targets: readonly Target[],
  first: number,
): void {
  for (const { row, isNew } of targets) if (isNew) nodes.set(row.node, row);
  for (const { target: node, edge, index, kind, cause } of arrivals) {
    const seq = cause === undefined ? 1 : first + cause;
    if (sql.insertArrival.run(run, node, edge, index, ARRIVAL_KINDS.indexOf(kind), seq).changes === 0) continue;
    const target = rowOf(targets, node);
    target.cause = seq;
    target.row.completed += 1;
    if (target.row.state === "saved") target.row.state = "changed";
  }
}

/** F4 */
function spread(rows: FlowRows, flow: FlowRun, write: NewSpread, firstSeq: number, queue: NodeQueue): void {
  const { barrier, required, window, perEntry, node, claims } = write;
  const queued = Math.min(window, required);
  const row: ReadinessRow = { ...newRow(barrier, required), queued, window, firstSeq, perEntry };
  flow.nodes.set(barrier, row);
  rows.saveNode(flow, row);
  for (let index = 0; index < queued; index++) {
    const claim = claims[index];
    queue.add(itemOf(barrier, index), claim ? { ...node, claim } : node, firstSeq + Math.floor(index / perEntry));
  }
  if (required === 0) queue.add(barrier, write.barrierNode, firstSeq);
}

function advance(rows: FlowRows, flow: FlowRun, barrier: string, node: NodeItem, queue: NodeQueue): void {
  const row = rows.readiness(flow, barrier);
  if (row === undefined || row.queued === null || row.queued >= row.required) return;
  const index = row.queued;
  row.queued += 1;
  if (row.state === "saved") row.state = "changed";
  queue.add(itemOf(barrier, index), node, (row.firstSeq as number) + Math.floor(index / (row.perEntry as number)));
}

function itemOf(barrier: string, index: number): string {
  return `${barrier}[${index}]`;
}

/** Nodes that become ready by one write. */
class NodeQueue {
  readonly queued: QueuedNode[] = [];
  readonly #tx: Tx;
  readonly #run: RunNumber;
  /** CN7 */
  readonly #isStopped: boolean;
  /** CN5. What an end would take out again is not put in. */
  readonly #isOver: boolean;

  constructor(tx: Tx, { run, then }: CompleteWrite, { status }: FlowRun) {
    this.#tx = tx;
    this.#run = run;
    this.#isStopped = isStopped(status);
    this.#isOver = then !== "go on";
  }

  add(item: string, node: NodeItem, seq: number): void {
    if (this.#isOver) return;
    const claim = this.#isStopped ? undefined : node.claim;
    insertNode(this.#tx, this.#run, item, node, claim, seq, this.#isStopped);
    this.queued.push({ item, seq, token: claim?.token });
  }
}

/** CN5 */
function moveRun(
  tx: Tx,
  rows: FlowRows,
  { run, fence, then }: CompleteWrite,
  flow: FlowRun,
  read: number,
  busy: boolean,
): void {
  const { sql, now } = tx;
  const { head, chain, status, token } = flow;
  if (then !== "go on") {
    rows.release(flow);
    sql.endFlow.run(head, chain, read, then, now, run);
  } else if ("turn" in fence) {
    rows.release(flow);
    sql.releaseFlow.run(head, chain, read, statusOf(tx, run, busy), run);
  } else if (token === null && (status === "running" || status === "waiting")) flow.status = statusOf(tx, run, busy);
}

/** Of a run whose turn nobody holds. */
function statusOf({ sql }: Tx, run: RunNumber, busy: boolean): "running" | "waiting" {
  return busy || sql.hasWork.get(run) !== undefined ? "running" : "waiting";
}
