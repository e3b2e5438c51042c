import { expect, test } from "vitest";
import type { ClaimedItem } from "../kernel/index.ts";
import { ExecutionSlots } from "./execution-slots.ts";
import { QueueGates } from "./queue-gates.ts";
import { LocalQueue, LONG_WAIT_MS, SHORT_WAIT_MS, type QueuedItem } from "./local-queue.ts";

const SLOTS = 2;

function world() {
  let now = 1_000;
  const due: { readonly at: number; readonly fn: () => void }[] = [];
  const slots = new ExecutionSlots(SLOTS);
  const timers = {
    set: (ms: number, fn: () => void) => (due.push({ at: now + ms, fn }), () => {}),
    soon: (fn: () => void) => fn(),
  };
  const queue = new LocalQueue({ slots, timers, now: () => now, gates: new QueueGates({} as never) });
  const started: QueuedItem[] = [];
  const givenBack: QueuedItem[] = [];
  const item = (name: string, data = "{}"): QueuedItem => ({
    item: { name, data, suspicion: 0 } as ClaimedItem,
    isEager: true,
    start() {
      started.push(this);
    },
    giveBack() {
      givenBack.push(this);
    },
  });
  const add = (work: QueuedItem): void => queue.add(work);
  return {
    queue,
    slots,
    started,
    givenBack,
    item,
    add,
    /** As a commit that leases the task does. */
    lease(name: string, hasBacklog = false): QueuedItem | undefined {
      if (!queue.admits(name, hasBacklog)) return undefined;
      const work = item(name);
      queue.reserve(work.item.data);
      add(work);
      return work;
    },
    end(work: QueuedItem, ms = 0): void {
      queue.onEnded(work, ms);
      slots.release();
    },
    advance(ms: number): void {
      now += ms;
      for (const timer of due.splice(0))
        if (timer.at <= now) timer.fn();
        else due.push(timer);
    },
  };
}

/** Widens the window: tasks are refused, and start without a wait. */
function widen(at: ReturnType<typeof world>, name: string, rounds: number): void {
  for (let round = 0; round < rounds; round += 1) {
    while (at.lease(name) !== undefined);
    while (at.slots.inUse > 0) at.end(at.started.shift()!);
  }
}

test("a task whose duration is unknown is leased for a free slot only", () => {
  const at = world();
  widen(at, "known", 6);
  expect(at.queue.room).toBeGreaterThan(10);
  const leased = Array.from({ length: 10 }, () => at.lease("unknown"));
  expect(leased.filter((work) => work !== undefined).length).toBe(SLOTS);
  expect(at.lease("known")).toBeDefined();
});

test("a task that takes longer than the longest wait is leased for a free slot only", () => {
  const at = world();
  widen(at, "known", 6);
  const slow = at.lease("slow")!;
  at.end(slow, LONG_WAIT_MS + 1);
  at.started.length = 0;
  expect(Array.from({ length: 10 }, () => at.lease("slow")).filter((work) => work !== undefined).length).toBe(SLOTS);
});

test("the window grows while it refuses work that starts at once, and shrinks when work waits", () => {
  const at = world();
  expect(at.queue.room).toBe(SLOTS);
  widen(at, "task", 2);
  const before = at.queue.room;
  expect(before).toBeGreaterThan(SLOTS);
  widen(at, "task", 3);
  const wide = at.queue.room;
  expect(wide).toBeGreaterThan(before);
  while (at.lease("task") !== undefined);
  at.advance(SHORT_WAIT_MS + 1);
  while (at.slots.inUse > 0) at.end(at.started.shift()!);
  expect(at.queue.room).toBeLessThan(wide);
});

test("a window that refused nothing does not grow", () => {
  const at = world();
  for (let round = 0; round < 100; round += 1) at.end(at.lease("task")!);
  expect(at.queue.room).toBe(SLOTS);
});

test("work that waits too long is given back in its order, and the window is that of the slots again", () => {
  const at = world();
  widen(at, "task", 4);
  at.started.length = 0;
  const leased: QueuedItem[] = [];
  for (let work = at.lease("task"); work !== undefined; work = at.lease("task")) leased.push(work);
  expect(at.started).toEqual(leased.slice(0, SLOTS));
  at.advance(LONG_WAIT_MS - 1);
  expect(at.givenBack).toEqual([]);
  at.advance(1);
  expect(at.givenBack).toEqual(leased.slice(SLOTS));
  expect(at.slots.load).toBe(SLOTS);
  for (const work of leased.slice(0, SLOTS)) at.end(work);
  expect(at.started.length).toBe(SLOTS);
  expect(at.queue.room).toBe(SLOTS);
});

test("a withdrawn task does not start, and the one behind it does", () => {
  const at = world();
  widen(at, "task", 2);
  at.started.length = 0;
  const leased = Array.from({ length: SLOTS + 2 }, () => at.lease("task")!);
  expect(at.queue.withdraw(leased[SLOTS]!)).toBe(true);
  expect(at.queue.withdraw(leased[0]!)).toBe(false);
  at.end(leased[0]!);
  expect(at.started).toEqual([leased[0], leased[1], leased[SLOTS + 1]]);
});

test("while items wait in the store, new tasks leave them a quarter of a wide window, and all of a narrow one", () => {
  const at = world();
  expect(at.lease("task", true)).toBeUndefined();
  widen(at, "task", 6);
  const window = at.queue.room;
  const leased = Array.from({ length: window }, () => at.lease("task", true)).filter((work) => work !== undefined);
  expect(leased.length).toBeGreaterThanOrEqual(Math.floor(window * 0.75));
  expect(at.queue.room).toBeGreaterThanOrEqual(Math.floor(window * 0.25));
});

test("large inputs that wait close the window before it is full", () => {
  const at = world();
  widen(at, "task", 6);
  const megabyte = "x".repeat(1024 * 1024);
  let waiting = 0;
  for (; at.queue.admits("task", false) && waiting < 1_000; waiting += 1) {
    const work = at.item("task", megabyte);
    at.queue.reserve(megabyte);
    at.add(work);
  }
  expect(waiting).toBeLessThanOrEqual(40);
});
