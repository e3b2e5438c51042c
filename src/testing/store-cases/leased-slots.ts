import assert from "node:assert/strict";
import type {
  AheadClaim,
  ClaimItemsOutcome,
  ClaimItemsWrite,
  ClaimedItem,
  NewItem,
  QueueLimits,
  Store,
} from "../../kernel/index.ts";
import { claimItems, endItemWrite, LEASE_MS, newTokens, registerWorker, startWithTasks } from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const slot = { queue: "mail" };
const inQueue = (): Partial<NewItem> => ({ slot });

async function declare(store: Store, limits: QueueLimits): Promise<void> {
  await store.write([{ write: "declare-queue", name: "mail", limits }]);
}

/** A claim of up to `own` items with slots, and up to `count` ahead of them. */
function claim(worker: number, own: number, count: number, more: Partial<ClaimItemsWrite> = {}): ClaimItemsWrite {
  const ahead: readonly AheadClaim[] = [{ queue: "mail", count }];
  return { write: "claim-items", worker, tokens: newTokens(own + count), names: ["charge"], ahead, ...more };
}

async function claimAhead(
  store: Store,
  worker: number,
  own: number,
  count: number,
  more?: Partial<ClaimItemsWrite>,
): Promise<ClaimItemsOutcome> {
  return (await store.write([claim(worker, own, count, more)]))[0];
}

async function end(store: Store, items: readonly ClaimedItem[]): Promise<void> {
  for (const { status } of await store.write(items.map((item) => ({ ...endItemWrite(item), slot }))))
    assert.equal(status, "committed");
}

const REFILL = { refills: ["mail"] };
const GIVE_BACK = { tokens: [], refills: ["mail"], returnedSlots: ["mail"] };

export const leasedSlotsCases: readonly StoreCase[] = [
  storeCase("a worker with slots of a queue leases items ahead of them, and keeps the slots", async (store) => {
    const [worker, other] = [await registerWorker(store), await registerWorker(store)];
    await declare(store, { concurrency: 2 });
    await startWithTasks(store, worker, "order-1", 10, inQueue);
    const first = await claimAhead(store, worker, 2, 3);
    assert.deepEqual([first.items.length, first.slots], [5, [{ queue: "mail", slots: 2 }]]);
    assert.deepEqual(first.items[4]?.slot, slot);
    assert.equal((await claimItems(store, other)).length, 0);
    assert.equal((await store.readQueueUse("task", "mail"))?.whole.held, 2);
    await end(store, first.items.slice(0, 4));
    assert.equal((await claimItems(store, other)).length, 0);
    const next = await claimAhead(store, worker, 0, 3, REFILL);
    assert.deepEqual([next.items.length, next.slots], [3, [{ queue: "mail", slots: 2 }]]);
    const more = await claimAhead(store, worker, 0, 3);
    assert.deepEqual([more.items.length, more.slots, more.held], [2, [{ queue: "mail", slots: 2 }], false]);
  }),

  storeCase("a worker without a slot of a queue leases no item ahead", async (store) => {
    const [worker, other] = [await registerWorker(store), await registerWorker(store)];
    await declare(store, { concurrency: 2 });
    await startWithTasks(store, worker, "order-1", 4, inQueue);
    assert.equal((await claimItems(store, other)).length, 2);
    for (const refills of [{}, REFILL]) {
      const none = await claimAhead(store, worker, 2, 3, refills);
      assert.deepEqual([none.items, none.slots], [[], []]);
    }
  }),

  storeCase(
    "leased slots start with the functions of the worker, and grow with the room of the queue",
    async (store) => {
      const [worker, other] = [await registerWorker(store), await registerWorker(store)];
      await declare(store, { concurrency: 3 });
      await startWithTasks(store, worker, "order-1", 12, inQueue);
      const [mine, second] = await claimItems(store, worker, ["charge"], 2);
      const [theirs] = await claimItems(store, other, ["charge"], 1);
      const one = await claimAhead(store, worker, 1, 2, { ahead: [{ queue: "mail", count: 2, slots: 1 }] });
      assert.deepEqual([one.items.length, one.slots], [2, [{ queue: "mail", slots: 1 }]]);
      await end(store, [mine!, second!, theirs!]);
      const [plain] = await store.write([
        { write: "claim-items", worker, tokens: newTokens(1), names: ["charge"] } as const,
      ]);
      assert.deepEqual([plain.items.length, plain.slots], [1, [{ queue: "mail", slots: 2 }]]);
      const all = await claimAhead(store, worker, 1, 1);
      assert.deepEqual([all.items.length, all.slots], [2, [{ queue: "mail", slots: 3 }]]);
      assert.equal((await claimItems(store, other)).length, 0);
    },
  ),

  storeCase("slots that a worker gives back are free, except for the items that it holds", async (store) => {
    const [worker, other] = [await registerWorker(store), await registerWorker(store)];
    await declare(store, { concurrency: 2 });
    await startWithTasks(store, worker, "order-1", 10, inQueue);
    const { items } = await claimAhead(store, worker, 2, 3);
    await end(store, items.slice(0, 4));
    await store.write([claim(worker, 0, 0, GIVE_BACK)]);
    assert.equal((await claimItems(store, other)).length, 1);
    const last = await claimAhead(store, worker, 1, 1);
    assert.deepEqual([last.items.length, last.slots], [1, [{ queue: "mail", slots: 1 }]]);
  }),

  storeCase("the slots of a worker that is taken over or shuts down are free", async (store, t) => {
    await declare(store, { concurrency: 2 });
    const first = await registerWorker(store);
    await startWithTasks(store, first, "order-1", 10, inQueue);
    assert.equal((await claimAhead(store, first, 2, 3)).items.length, 5);
    t.clock.advance(LEASE_MS);
    const second = await registerWorker(store);
    await store.reap(second);
    const lost = await claimAhead(store, first, 2, 3);
    assert.deepEqual([lost.items, lost.slots], [[], []]);
    const taken = await claimAhead(store, second, 2, 3);
    assert.deepEqual([taken.items.length, taken.slots], [5, [{ queue: "mail", slots: 2 }]]);
    await store.releaseWorker(second);
    assert.equal((await claimItems(store, await registerWorker(store))).length, 2);
  }),

  storeCase("a queue that is paused, or has other limits, admits no items ahead of slots", async (store) => {
    const worker = await registerWorker(store);
    await declare(store, { concurrency: 3 });
    await startWithTasks(store, worker, "order-1", 20, inQueue);
    assert.equal((await claimAhead(store, worker, 3, 2)).items.length, 5);
    const change = async (paused: boolean, limits: QueueLimits): Promise<void> => {
      await store.write([{ write: "change-queue", name: "mail", paused, limits }]);
      for (const refills of [{}, REFILL]) {
        const { items, slots } = await claimAhead(store, worker, 0, 2, refills);
        assert.deepEqual([items, slots], [[], [{ queue: "mail", slots: 0 }]]);
      }
    };
    await change(true, { concurrency: 3 });
    await change(false, { concurrency: 2 });
    await change(false, { concurrency: 3, rate: { limit: 100, perMs: 1_000 } });
    await change(false, { concurrency: 3, perKey: { concurrency: 1 } });
    await store.write([{ write: "change-queue", name: "mail", limits: { concurrency: 3 } }]);
    assert.equal((await claimAhead(store, worker, 0, 2)).items.length, 2);
  }),

  storeCase("a worker leases no items ahead while items of other tasks wait in the queue", async (store) => {
    const worker = await registerWorker(store);
    await declare(store, { concurrency: 1 });
    await startWithTasks(store, worker, "order-1", 6, (n) => ({ slot, ...(n === 5 && { name: "ship" }) }));
    const one = await claimAhead(store, worker, 1, 2);
    assert.deepEqual([one.items.length, one.slots], [1, [{ queue: "mail", slots: 0 }]]);
    const none = await claimAhead(store, worker, 0, 2, REFILL);
    assert.deepEqual([none.items, none.slots, none.held], [[], [{ queue: "mail", slots: 0 }], true]);
  }),

  storeCase("a refill leaves only the queues to other claims where items of other tasks wait", async (store) => {
    const worker = await registerWorker(store);
    await declare(store, { concurrency: 1 });
    await store.write([{ write: "declare-queue", name: "post", limits: { concurrency: 1 } }]);
    const items = (n: number): Partial<NewItem> => ({
      slot: { queue: n < 6 ? "mail" : "post" },
      ...(n === 5 && { name: "ship" }),
    });
    await startWithTasks(store, worker, "order-1", 12, items);
    const ahead: readonly AheadClaim[] = ["mail", "post"].map((queue) => ({ queue, count: 1 }));
    const claimed = await claimAhead(store, worker, 2, 2, { ahead, refills: ["mail", "post"] });
    assert.deepEqual(
      claimed.items.map((item) => item.slot?.queue),
      ["post", "post"],
    );
    assert.deepEqual(claimed.slots, [
      { queue: "mail", slots: 0 },
      { queue: "post", slots: 1 },
    ]);
    assert.equal(claimed.held, true);
  }),

  storeCase("a worker leases no items ahead while more slots of the queue are taken than it has", async (store) => {
    const [worker, other] = [await registerWorker(store), await registerWorker(store)];
    await declare(store, { concurrency: 2 });
    const change = (concurrency: number) =>
      store.write([{ write: "change-queue", name: "mail", limits: { concurrency } }]);
    await startWithTasks(store, worker, "order-1", 12, inQueue);
    assert.equal((await claimAhead(store, worker, 2, 2)).items.length, 4);
    // Then they hold what they would if `other` did not count leased slots, as earlier versions.
    await change(4);
    assert.equal((await claimItems(store, other)).length, 2);
    await change(2);
    for (const refills of [{}, REFILL]) {
      const { items, slots } = await claimAhead(store, worker, 0, 2, refills);
      assert.deepEqual([items, slots], [[], [{ queue: "mail", slots: 0 }]]);
    }
  }),
];
