// Worker leases: registers workers, renews their leases, and takes over the work of expired workers (store.S3 to store.S5).
//
// worker-leases.L1. A worker is dead when its lease has expired at the store's time, or when it holds work and has no row in
//   `workers`: its lease would never expire. Behind a network both are found without locks, and checked again under the locks of
//   its work and of its row: it may have renewed its lease, and another worker may have taken over.
// worker-leases.L2. A takeover counts: after some of them the work is a suspect, after `MAX_TAKEOVERS` its run is blocked.
//   A worker that shuts down returns its work without counting.

import type { EpochMs, Random } from "../../base/index.ts";
import {
  ALONE_AFTER,
  MAX_TAKEOVERS,
  OutboxState,
  QueueItemState,
  SUSPECT_AFTER,
  type HeldWork,
  type RunNumber,
  type WorkerInfo,
} from "../../kernel/index.ts";
import type { Part, Rows } from "../rows/rows.ts";
import { LOST_ITEM, LOST_TURN, recordLostItem, recordLostTurn, returnTurn } from "./attempts.ts";
import { freeSlots, slotKeysOf } from "./queue-limiter.ts";
import { isMovable, NO_TURN, returnedTurn } from "./run-rows.ts";
import { noteStopEvent } from "./run-events.ts";
import type { Tx } from "./transaction.ts";
import { hasOldIds, sweepLeftovers, sweepOldIds } from "./sweep.ts";

/**
 * A worker's number is its identity in every claim, renewal and commit. It is random, because a counter would give one number
 * twice after the store is rolled back. It is greater than the counters of earlier versions.
 */
export function randomWorkerNumber(random: Random): number {
  return random.bytes(6).reduce((number, byte) => number * 256 + byte, 1);
}

/** False when the number is taken: the caller tries another. */
export function registerWorker(
  { rows, now }: Tx,
  worker: number,
  name: string,
  leaseMs: number,
  about?: string,
): boolean {
  return rows.add("workers", {
    worker,
    name,
    until: now + leaseMs,
    started_at: now,
    about: about ?? null,
    doing: null,
  });
}

/** An expired lease can be renewed until another worker has taken over. */
export function renewLease({ rows, now }: Tx, worker: number, leaseMs: number, doing?: string): boolean {
  const until = now + leaseMs;
  return rows.change("workers", [worker], doing === undefined ? { until } : { until, doing });
}

const WORKER = ["worker", "name", "started_at", "until", "about", "doing"] as const;

/** In the order in which they were registered. */
export function listWorkers(rows: Rows): readonly WorkerInfo[] {
  return rows
    .select("workers", [], WORKER)
    .toSorted((a, b) => a.started_at - b.started_at || a.worker - b.worker)
    .map(({ worker, name, started_at: startedAt, until, about, doing }) => ({
      worker,
      name,
      startedAt,
      until,
      profile: about ?? undefined,
      activity: doing ?? undefined,
    }));
}

// ── the work of a worker ──

const TURN = [...LOST_TURN, "turn_token"] as const;
const ITEM = [...LOST_ITEM, "token", "takeovers", "kind", "queue", "key"] as const;
const MESSAGE = ["line", "run", "seq", "token", "attempt"] as const;

type Turn = Part<"runs", (typeof TURN)[number]>;
type Item = Part<"queue", (typeof ITEM)[number]>;
type Message = Part<"outbox", (typeof MESSAGE)[number]>;

function heldTurns(rows: Rows, worker: number): readonly Turn[] {
  return rows.select("runs_held", [worker], TURN);
}

function heldItems(rows: Rows, worker: number): readonly Item[] {
  return rows.select("queue_leased", [worker], ITEM);
}

function heldMessages(rows: Rows, worker: number): readonly Message[] {
  return rows.select("outbox_leased", [worker], MESSAGE);
}

export function readHeld(rows: Rows, worker: number): HeldWork {
  return {
    turns: heldTurns(rows, worker).map(({ run, turn_token: token }) => ({ run, token: token ?? "" })),
    items: heldItems(rows, worker).map(({ run, item, token, attempt, queue, key }) => ({
      run,
      item,
      token: token ?? "",
      attempt,
      ...(queue !== null && { slot: { queue, ...(key !== null && { key }) } }),
    })),
    messages: heldMessages(rows, worker).map(({ line: firstRun, run, seq, token, attempt }) => ({
      firstRun,
      run,
      seq,
      token: token ?? "",
      attempt,
    })),
  };
}

/** worker-leases.L2. Returns the work of a worker that shuts down. */
export function releaseWorker(tx: Tx, worker: number): void {
  const { rows } = tx;
  const turns = heldTurns(rows, worker);
  const items = heldItems(rows, worker);
  const messages = heldMessages(rows, worker);
  const name = rows.get("workers", [worker], NAME)?.name;
  for (const turn of turns) returnTurn(tx, turn);
  for (const held of items) {
    const { run, item, takeovers } = held;
    const lost = recordLostItem(tx, held, "returned", name);
    rows.set("queue", [run, item], { state: stateAfter(takeovers), token: null, worker: null, ...lost });
  }
  freeSlots(tx, slotKeysOf(items));
  for (const { line, run, seq } of messages)
    rows.set("outbox", [line, run, seq], { state: OutboxState.next, token: null, worker: null });
  rows.drop("workers", [worker]);
}

/** The state of an item that workers may claim again. */
function stateAfter(takeovers: number): QueueItemState {
  return takeovers >= SUSPECT_AFTER ? QueueItemState.suspect : QueueItemState.ready;
}

// ── takeovers ──

export interface Reaped {
  readonly workers: number;
  readonly turns: number;
  readonly items: number;
}

export function reap(tx: Tx, self: number): Reaped {
  const { rows } = tx;
  let workers = 0;
  let turns = 0;
  let items = 0;
  for (const { worker, name } of deadWorkers(rows, tx.now, self)) {
    const held = {
      turns: heldTurns(rows, worker),
      items: heldItems(rows, worker),
      messages: heldMessages(rows, worker),
    };
    // worker-leases.L1
    const isDead =
      name === undefined
        ? held.turns.length + held.items.length + held.messages.length > 0
        : isStillExpired(rows, tx.now, worker);
    if (!isDead) continue;
    takeOverTurns(tx, held.turns, name);
    takeOverItems(tx, held.items, name);
    takeOverMessages(tx, held.messages);
    rows.drop("workers", [worker]);
    workers += 1;
    turns += held.turns.length;
    items += held.items.length;
  }
  sweepLeftovers(tx);
  sweepOldIds(tx);
  return { workers, turns, items };
}

const NAME = ["worker", "name"] as const;
const UNTIL = ["until"] as const;
const NUMBER = ["run"] as const;
const STATUS = ["status"] as const;
const TURN_HOLDER = ["turn_worker"] as const;
const HOLDER = ["worker"] as const;

export function hasNothingToReap(rows: Rows, now: EpochMs, self: number): boolean {
  const leftover = rows.first("leftovers", [], NUMBER);
  const hasOld = hasOldIds(rows, now);
  const dead = deadWorkers(rows, now, self);
  return leftover === undefined && !hasOld && dead.length === 0;
}

interface DeadWorker {
  readonly worker: number;
  /** Undefined: the worker has no row. */
  readonly name: string | undefined;
}

/** worker-leases.L1. Read without locks. */
function deadWorkers(rows: Rows, now: EpochMs, self: number): readonly DeadWorker[] {
  const expired = rows.select("workers", [], NAME, { also: { until: { most: now } }, peek: true });
  const dead = new Map<number, DeadWorker>();
  for (const { worker, name } of expired) if (worker !== self) dead.set(worker, { worker, name });
  for (const worker of listHolders(rows))
    if (worker !== self && !dead.has(worker) && rows.get("workers", [worker], UNTIL) === undefined)
      dead.set(worker, { worker, name: undefined });
  return [...dead.values()];
}

/** The workers that hold work. */
export function listHolders(rows: Rows): ReadonlySet<number> {
  const turns = rows.distinct("runs_held", [], TURN_HOLDER).map((row) => row.turn_worker);
  const items = rows.distinct("queue_leased", [], HOLDER).map((row) => row.worker);
  const messages = rows.distinct("outbox_leased", [], HOLDER).map((row) => row.worker);
  return new Set([...turns, ...items, ...messages].filter((worker) => worker !== null));
}

function isStillExpired(rows: Rows, now: EpochMs, worker: number): boolean {
  if (!rows.own("workers", [worker])) return false;
  const row = rows.get("workers", [worker], UNTIL);
  return row !== undefined && row.until <= now;
}

/** A paused run stays paused. */
function takeOverTurns(tx: Tx, turns: readonly Turn[], worker: string | undefined): void {
  const { rows } = tx;
  for (const turn of turns) {
    const { run, status, takeovers: before } = turn;
    const lost = recordLostTurn(tx, turn, "lost", worker);
    const takeovers = before + 1;
    if (status !== "paused" && takeovers >= MAX_TAKEOVERS) {
      const evidence = takeoverEvidence("turn", worker);
      rows.set("runs", [run], { ...NO_TURN, status: "blocked", evidence, takeovers, ...lost });
      noteStopEvent(tx, run, "blocked");
    } else rows.set("runs", [run], { ...returnedTurn(status, takeovers), takeovers, ...lost });
  }
}

function takeOverItems(tx: Tx, items: readonly Item[], worker: string | undefined): void {
  const { rows } = tx;
  for (const held of items) {
    const { run, item, takeovers: before } = held;
    const lost = recordLostItem(tx, held, "lost", worker);
    const takeovers = before + 1;
    const isPoison = takeovers >= MAX_TAKEOVERS;
    const state = isPoison ? QueueItemState.stopped : stateAfter(takeovers);
    rows.set("queue", [run, item], { state, token: null, worker: null, takeovers, ...lost });
    if (isPoison) blockRun(tx, run, takeoverEvidence(item, worker));
  }
  freeSlots(tx, slotKeysOf(items));
}

function blockRun(tx: Tx, run: RunNumber, evidence: string): void {
  const { rows } = tx;
  const status = rows.get("runs", [run], STATUS)?.status;
  if (status === undefined || !isMovable(status)) return;
  rows.set("runs", [run], { ...NO_TURN, status: "blocked", evidence });
  noteStopEvent(tx, run, "blocked");
}

const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 60_000;
const MAX_DOUBLINGS = 6;

/** The delay doubles up to a minute: a handler that kills its worker does so less and less often. */
function takeOverMessages({ rows, now }: Tx, messages: readonly Message[]): void {
  for (const { line, run, seq, attempt } of messages) {
    const delay = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(attempt, MAX_DOUBLINGS));
    rows.set("outbox", [line, run, seq], {
      state: OutboxState.next,
      token: null,
      worker: null,
      attempt: attempt + 1,
      available_at: now + delay,
    });
  }
}

/** store.S5. Canonical JSON: keys in order. */
function takeoverEvidence(what: string, worker = "unknown"): string {
  return JSON.stringify({
    item: what,
    message: `${MAX_TAKEOVERS} workers in a row lost their lease without a commit (${what}). The last ${MAX_TAKEOVERS - ALONE_AFTER} of them ran nothing else; the last one was ${worker}. Check the workers for crashes, stalls and memory limits.`,
    reason: "takeovers",
    takeovers: MAX_TAKEOVERS,
    worker,
  });
}
