// Scheduler: decides which process runs next, and what time it is. Everything simulated gets both from here.
//
// scheduler.C1. One callback runs at a time, and all promise callbacks that follow from it run before the next (`setImmediate`).
// scheduler.C2. Within a process, callbacks run in order; between processes, the order is random.
// scheduler.C3. Time moves only when no process can run. A paused process cannot run; a dead one never will.

import type { Clock, Timers } from "../../src/base/index.ts";
import type { RandomSource } from "../replay/random-source.ts";
import { hash } from "./random.ts";

/** A time that cannot be confused with the real one. */
export const START_MS = 1_893_456_000_000; // 2030-01-01
const SHOWN_EVENTS = 60;

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly loop: EventLoop;
  fn: (() => void) | undefined;
}

/** The callbacks of one process, in order. */
export class EventLoop {
  readonly name: string;
  readonly timers: Timers;
  readonly clock: Clock;
  readonly #scheduler: Scheduler;
  readonly queue: (() => void)[] = [];
  isPaused = false;
  isDead = false;
  /** The error of its wall clock. */
  skewMs = 0;
  readonly #deathbeds: (() => void)[] = [];

  constructor(scheduler: Scheduler, name: string) {
    this.#scheduler = scheduler;
    this.name = name;
    this.timers = {
      set: (ms, fn) => scheduler.setTimer(this, ms, fn),
      soon: (fn) => void (this.isDead || this.queue.push(fn)),
    };
    this.clock = {
      now: () => START_MS + Math.floor(scheduler.elapsedMs) + this.skewMs,
      monotonic: () => scheduler.elapsedMs,
    };
  }

  onDeath(fn: () => void): void {
    this.#deathbeds.push(fn);
  }

  die(): void {
    this.isDead = true;
    this.queue.length = 0;
    for (const fn of this.#deathbeds) fn();
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.timers.set(ms, resolve));
  }

  log(event: string): void {
    this.#scheduler.log(this.name, event);
  }
}

export class Stuck extends Error {}

export class Scheduler {
  /** Since the start. */
  elapsedMs = 0;
  steps = 0;
  /** A hash of all log lines: the same seed gives the same one. */
  digest = 0;
  readonly #chance: RandomSource;
  readonly #loops = new Set<EventLoop>();
  readonly #timers: Timer[] = [];
  readonly #logs = new Map<string, string[]>();
  #order = 0;

  constructor(chance: RandomSource) {
    this.#chance = chance;
  }

  createLoop(name: string): EventLoop {
    const loop = new EventLoop(this, name);
    this.#loops.add(loop);
    return loop;
  }

  kill(loop: EventLoop): void {
    this.#loops.delete(loop);
    loop.die();
  }

  setTimer(loop: EventLoop, ms: number, fn: () => void): () => void {
    const timer: Timer = { at: this.elapsedMs + Math.max(0, ms), order: (this.#order += 1), loop, fn };
    if (!loop.isDead) push(this.#timers, timer);
    return () => void (timer.fn = undefined);
  }

  log(who: string, event: string): void {
    const line = `${Math.round(this.elapsedMs)} ${event}`;
    this.digest = hash(`${who} ${line}`, this.digest);
    const lines = this.#logs.get(who) ?? [];
    this.#logs.set(who, lines);
    lines.push(line);
    if (lines.length > SHOWN_EVENTS) lines.shift();
  }

  /** The last events of each process. */
  get logs(): ReadonlyMap<string, readonly string[]> {
    return this.#logs;
  }

  /** Runs until a promise settles; throws `Stuck` when it cannot. */
  async run(until: Promise<unknown>, maxSteps: number): Promise<void> {
    let isOver = false;
    const over = (): void => void (isOver = true);
    until.then(over, over);
    await drain();
    for (const stop = this.steps + maxSteps; !isOver; this.steps += 1) {
      if (this.steps >= stop) throw new Stuck(`it did not settle within ${maxSteps} steps`);
      const next = this.#next();
      if (next === undefined) throw new Stuck("no process can run, and no timer is set");
      next();
      await drain();
    }
    await until;
  }

  #next(): (() => void) | undefined {
    for (;;) {
      // scheduler.C2
      const able = [...this.#loops].filter((loop) => !loop.isPaused && loop.queue.length > 0);
      if (able.length > 0) return able[able.length === 1 ? 0 : this.#chance.below(able.length)]!.queue.shift()!;
      const timer = pop(this.#timers);
      if (timer === undefined) return undefined;
      if (timer.fn === undefined || timer.loop.isDead) continue;
      this.elapsedMs = Math.max(this.elapsedMs, timer.at);
      const { fn } = timer;
      timer.loop.queue.push(() => timer.fn === fn && fn());
    }
  }
}

/** scheduler.C1 */
function drain(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

// ── a heap: the earliest first, simultaneous ones in the order they were set ──

function isBefore(a: Timer, b: Timer): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

function push(heap: Timer[], timer: Timer): void {
  let at = heap.push(timer) - 1;
  while (at > 0) {
    const above = (at - 1) >> 1;
    if (!isBefore(timer, heap[above]!)) break;
    heap[at] = heap[above]!;
    at = above;
  }
  heap[at] = timer;
}

function pop(heap: Timer[]): Timer | undefined {
  const first = heap[0];
  const last = heap.pop();
  if (first === undefined || last === undefined || heap.length === 0) return first;
  let at = 0;
  for (;;) {
    let below = at * 2 + 1;
    if (below >= heap.length) break;
    if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below += 1;
    if (!isBefore(heap[below]!, last)) break;
    heap[at] = heap[below]!;
    at = below;
  }
  heap[at] = last;
  return first;
}
