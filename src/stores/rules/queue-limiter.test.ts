import { describe, expect, test } from "vitest";
import { RowStore } from "../../../test/stores/differential/row-store.ts";
import { itemRow, queueRow } from "../../../test/stores/rows.ts";
import { QueueItemState, type QueueLimits } from "../../kernel/index.ts";
import type { RowOf } from "../rows/tables.ts";
import { dueRateGates, freeSlots, openRateGates, QueueLimiter, slotKeysOf, type QueuedItem } from "./queue-limiter.ts";
import type { Tx } from "./transaction.ts";

const NOW = 10_000;
const QUEUE = "emails";

/** A queue with these limits, and ready items of it: by key, or without one. */
class World {
  now = NOW;
  readonly store = new RowStore(() => this.now);

  static async with(limits: QueueLimits, keys: readonly (string | null)[], paused = 0): Promise<World> {
    const world = new World();
    await world.act(({ rows }) => {
      rows.insert("queues", queueRow(QUEUE, { limits: JSON.stringify(limits), paused }) as RowOf<"queues">);
      for (const [n, key] of keys.entries())
        rows.insert(
          "queue",
          itemRow(n + 1, "Task(0)", { queue: QUEUE, key, state: QueueItemState.ready }) as RowOf<"queue">,
        );
    });
    return world;
  }

  act<T>(work: (tx: Tx) => T): Promise<T> {
    return this.store.transact(this.now, work);
  }

  /** Which of the items one claim admits, in order; they are leased. */
  admit(items: readonly (readonly [run: number, key: string | null])[]): Promise<readonly number[]> {
    return this.act(({ rows, now }) => {
      const limiter = new QueueLimiter(rows, now, "task");
      const admitted = items.filter(([run, key]) => limiter.admit(itemOf(run, key))).map(([run]) => run);
      for (const run of admitted)
        rows.set("queue", [run, "Task(0)"], { state: QueueItemState.leased, token: `t${run}`, worker: 1 });
      return admitted;
    });
  }

  stateOf(run: number): Promise<number | undefined> {
    return this.store.read((rows) => rows.get("queue", [run, "Task(0)"], ["state"])?.state);
  }

  heldBack(): Promise<{ readonly nextAt: number | undefined; readonly held: boolean }> {
    return this.act(({ rows, now }) => {
      const limiter = new QueueLimiter(rows, now, "task");
      limiter.room(QUEUE);
      return limiter.heldBack();
    });
  }
}

const itemOf = (run: number, key: string | null): QueuedItem => ({ run, item: "Task(0)", queue: QUEUE, key });
const without = (...runs: readonly number[]) => runs.map((run) => [run, null] as const);
const of = (key: string, ...runs: readonly number[]) => runs.map((run) => [run, key] as const);

describe("a queue", () => {
  test("without limits admits everything", async () => {
    const world = await World.with({}, [null, null, null]);
    expect(await world.admit(without(1, 2, 3))).toEqual([1, 2, 3]);
    expect(await world.heldBack()).toEqual({ nextAt: undefined, held: false });
  });

  test("that is paused admits nothing", async () => {
    const world = await World.with({}, [null], 1);
    expect(await world.admit(without(1))).toEqual([]);
  });

  test("admits as many items as its concurrency leaves, in one claim and over several", async () => {
    const world = await World.with({ concurrency: 2 }, [null, null, null, null]);
    expect(await world.admit(without(1, 2, 3))).toEqual([1, 2]);
    expect(await world.admit(without(3, 4))).toEqual([]);
    await world.act(({ rows }) => rows.drop("queue", [1, "Task(0)"]));
    expect(await world.admit(without(3, 4))).toEqual([3]);
  });

  test("admits as many items as its rate, in a sliding window", async () => {
    const world = await World.with({ rate: { limit: 2, perMs: 1_000 } }, [null, null, null, null, null]);
    expect(await world.admit(without(1))).toEqual([1]);
    world.now = NOW + 400;
    expect(await world.admit(without(2, 3))).toEqual([2]);
    expect(await world.heldBack()).toEqual({ nextAt: NOW + 1_000, held: false });
    world.now = NOW + 999;
    expect(await world.admit(without(3))).toEqual([]);
    world.now = NOW + 1_000;
    expect(await world.admit(without(3, 4))).toEqual([3]);
    world.now = NOW + 1_400;
    expect(await world.admit(without(4, 5))).toEqual([4]);
  });
});

describe("a limit per key", () => {
  test("parks an item whose key has no slot, and admits items of other keys and without a key", async () => {
    const world = await World.with({ perKey: { concurrency: 1 } }, ["a", "a", "b", null]);
    expect(await world.admit([...of("a", 1, 2), ...of("b", 3), ...without(4)])).toEqual([1, 3, 4]);
    expect(await world.stateOf(2)).toBe(QueueItemState.parked);
    expect(await world.heldBack()).toEqual({ nextAt: undefined, held: true });
  });

  test("unparks the next item of the key when one is removed, and no item of another key", async () => {
    const world = await World.with({ perKey: { concurrency: 1 } }, ["a", "a", "a", "b", "b"]);
    expect(await world.admit([...of("a", 1, 2, 3), ...of("b", 4, 5)])).toEqual([1, 4]);
    await world.act((tx) => {
      tx.rows.drop("queue", [1, "Task(0)"]);
      freeSlots(tx, [{ kind: "task", queue: QUEUE, key: "a", count: 1 }]);
    });
    const states = await Promise.all([2, 3, 5].map((run) => world.stateOf(run)));
    expect(states).toEqual([QueueItemState.ready, QueueItemState.parked, QueueItemState.parked]);
  });

  test("with a rate has a gate that opens when the rate admits more, and not before", async () => {
    const world = await World.with({ perKey: { rate: { limit: 1, perMs: 1_000 } } }, ["a", "a", "a"]);
    expect(await world.admit(of("a", 1, 2, 3))).toEqual([1]);
    expect(await world.heldBack()).toEqual({ nextAt: NOW + 1_000, held: true });
    const open = () =>
      world.act((tx) => {
        const gates = dueRateGates(tx);
        openRateGates(tx, gates);
        return gates.length;
      });
    world.now = NOW + 999;
    expect(await open()).toBe(0);
    world.now = NOW + 1_000;
    expect(await open()).toBe(1);
    // One more than the rate admits: it is parked again, and makes the next gate.
    expect(await Promise.all([2, 3].map((run) => world.stateOf(run)))).toEqual([
      QueueItemState.ready,
      QueueItemState.ready,
    ]);
    expect(await world.admit(of("a", 2, 3))).toEqual([2]);
    expect(await world.stateOf(3)).toBe(QueueItemState.parked);
    expect(await world.heldBack()).toEqual({ nextAt: NOW + 2_000, held: true });
  });

  test("does not park a suspect", async () => {
    const world = await World.with({ perKey: { concurrency: 1 } }, ["a", "a"]);
    expect(await world.admit(of("a", 1))).toEqual([1]);
    const answers = await world.act(({ rows, now }) => {
      const limiter = new QueueLimiter(rows, now, "task");
      return [limiter.canAdmit(itemOf(2, "a")), limiter.admitSuspect(itemOf(2, "a"))];
    });
    expect(answers).toEqual([false, false]);
    expect(await world.stateOf(2)).toBe(QueueItemState.ready);
  });
});

test("the slots of removed items are counted by kind, queue and key; timers and items without a key have none", () => {
  const item = (kind: "task" | "start" | "timer", queue: string | null, key: string | null) => ({ kind, queue, key });
  expect(
    slotKeysOf([
      item("task", "q", "a"),
      item("task", "q", "a"),
      item("task", "q", "b"),
      item("start", "q", "a"),
      item("task", "q", null),
      item("task", null, null),
      item("timer", "q", "a"),
    ]),
  ).toEqual([
    { kind: "task", queue: "q", key: "a", count: 2 },
    { kind: "task", queue: "q", key: "b", count: 1 },
    { kind: "start", queue: "q", key: "a", count: 1 },
  ]);
  expect(slotKeysOf([])).toEqual([]);
});
