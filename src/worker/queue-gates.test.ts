import { expect, test } from "vitest";
import type { AheadClaim, ClaimedItem, Write } from "../kernel/index.ts";
import { ExecutionSlots } from "./execution-slots.ts";
import { LocalQueue, LONG_WAIT_MS, type QueuedItem } from "./local-queue.ts";
import { QueueGates } from "./queue-gates.ts";

const WORKER = 7;
const queue = "narrow";

/** A worker with so many execution slots. */
function world(executionSlots: number) {
  let now = 1_000;
  const due: { readonly at: number; readonly fn: () => void }[] = [];
  const timers = {
    set: (ms: number, fn: () => void) => (due.push({ at: now + ms, fn }), () => {}),
    soon: (fn: () => void) => fn(),
  };
  const submitted: Write[] = [];
  const pump = { wake: () => {}, submit: (write: Write) => (submitted.push(write), new Promise(() => {})) };
  const slots = new ExecutionSlots(executionSlots);
  const parts = {
    claimant: WORKER,
    drain: { isDraining: false },
    filter: { itemsOf: () => ["job"] },
    lease: { worker: WORKER },
    now: () => now,
    pump,
    quarantine: { isActive: false },
    slots,
    timers,
  };
  // They call each other, as parts of a worker.
  const both = { ...parts } as typeof parts & { gates: QueueGates; localQueue: LocalQueue };
  both.gates = new QueueGates(both as never);
  both.localQueue = new LocalQueue(both);
  const { gates, localQueue: local } = both;
  const started: string[] = [];
  const givenBack: string[] = [];
  const item = (name: string, suspicion = 0): ClaimedItem =>
    ({ kind: "task", name: "job", item: name, data: "{}", suspicion, slot: { queue } }) as ClaimedItem;
  const start = (claimed: ClaimedItem): QueuedItem => {
    const work = {
      item: claimed,
      isEager: false,
      start: () => void started.push(claimed.item),
      giveBack: () => void givenBack.push(claimed.item),
    };
    gates.onDispatched(claimed);
    local.add(work);
    return work;
  };
  return {
    gates,
    slots,
    local,
    started,
    givenBack,
    submitted,
    /** The answer to a claim ahead: these items, and so many leased slots. */
    claim(items: readonly ClaimedItem[], leased: number): readonly QueuedItem[] {
      const requested: readonly AheadClaim[] = [{ queue, count: items.length }];
      const gate = gates.of(item("any"))!;
      gate.requested += items.length;
      const outcome = { items, nextAt: undefined, held: false, slots: [{ queue, slots: leased }] };
      gates.onClaimed(WORKER, requested, outcome);
      return items.map(start);
    },
    item,
    start,
    end(work: QueuedItem): void {
      local.onEnded(work, 1);
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

test("a worker that has no execution slot for items of a queue gives back their slots, and leases none for a second", () => {
  const at = world(1);
  const [first] = at.claim([at.item("first")], 2);
  at.end(first!);
  // Tasks of another queue take the execution slots.
  at.slots.acquire();
  at.claim([at.item("a"), at.item("b"), at.item("c"), at.item("d")], 2);
  expect(at.started).toEqual(["first"]);
  at.advance(LONG_WAIT_MS);
  expect(at.givenBack.toSorted()).toEqual(["a", "b", "c", "d"]);
  at.gates.returnSlots();
  expect(at.submitted).toMatchObject([{ write: "claim-items", returnedSlots: [queue] }]);
  at.advance(999);
  expect(at.gates.request(100, [queue])).toEqual([]);
});

test("a claimed suspect starts at once in its slot, and the items that wait for others go back", () => {
  const at = world(8);
  const [first] = at.claim([at.item("first")], 1);
  at.end(first!);
  at.claim([at.item("a"), at.item("b"), at.item("c")], 1);
  expect(at.started).toEqual(["first", "a"]);
  at.claim([at.item("suspect", 1)], 2);
  expect(at.started).toEqual(["first", "a", "suspect"]);
  expect(at.givenBack).toEqual(["b", "c"]);
});

test("a worker that has no item of a queue, and found none, asks for none ahead of slots until it gets one", () => {
  const at = world(8);
  const find = (items: readonly ClaimedItem[]): boolean => {
    const requested = at.gates.request(100);
    at.gates.onClaimed(WORKER, requested, { items, nextAt: undefined, held: false });
    for (const item of items) at.end(at.start(item));
    return requested.length > 0;
  };
  const first = at.item("first");
  expect([find([first]), find([]), find([]), find([first]), find([first]), find([])]).toEqual([
    false,
    true,
    false,
    false,
    true,
    true,
  ]);
});
