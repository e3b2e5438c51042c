import assert from "node:assert/strict";
import type { ClaimItemsOutcome, NewItem, QueueLimits, Store } from "../../kernel/index.ts";
import {
  claimItems,
  commitTurn,
  endItemWrite,
  LEASE_MS,
  newTokens,
  registerWorker,
  taskParts,
  startHeld,
  startWithTasks,
  takeItem,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

async function declare(store: Store, limits: QueueLimits, name = "mail"): Promise<void> {
  assert.deepEqual(await store.write([{ write: "declare-queue", name, limits }]), [{ status: "committed" }]);
}

/** Items in queue `mail`, one per letter, with the letter as key: `"aab"` makes three. */
function keyed(letters: string, overrides: Partial<NewItem> = {}): (n: number) => Partial<NewItem> {
  return (n) => ({ slot: { queue: "mail", key: letters[n] ?? "" }, ...overrides });
}

const lined = (): Partial<NewItem> => ({ slot: { queue: "mail" } });

async function claim(store: Store, worker: number, count = 100, names = ["charge"]): Promise<ClaimItemsOutcome> {
  const [outcome] = await store.write([{ write: "claim-items", worker, tokens: newTokens(count), names }]);
  return outcome;
}

function namesOf({ items }: ClaimItemsOutcome): readonly string[] {
  return items.map(({ item }) => item);
}

export const queueCases: readonly StoreCase[] = [
  storeCase("a queue leases at most as many items at once as its concurrency, across workers", async (store, t) => {
    const other = await t.openAgain();
    const [one, two] = [await registerWorker(store), await registerWorker(other)];
    await declare(store, { concurrency: 3 });
    await startWithTasks(store, one, "order-1", 10, lined);
    const claims = await Promise.all([claim(store, one, 2), claim(other, two, 2), claim(store, one, 2)]);
    const out = claims.flatMap(({ items }) => items);
    assert.equal(out.length, 3);
    assert.ok(claims.some(({ held }) => held));
    assert.deepEqual(await claim(other, two), { items: [], nextAt: undefined, held: true });
    const [first] = out;
    assert.deepEqual(first?.slot, { queue: "mail" });
    assert.equal((await store.write([endItemWrite(first)]))[0].status, "committed");
    assert.equal((await claim(other, two)).items.length, 1);
  }),

  storeCase("a full queue does not hold back items without a queue", async (store) => {
    const worker = await registerWorker(store);
    await declare(store, { concurrency: 1 });
    await startWithTasks(store, worker, "order-1", 4, (n) => (n < 3 ? lined() : {}));
    assert.deepEqual([...namesOf(await claim(store, worker))].sort(), ["Task(0)", "Task(3)"]);
  }),

  storeCase(
    "an item whose key has no free slot does not block others, and is claimed when the key has one",
    async (store) => {
      const worker = await registerWorker(store);
      await declare(store, { perKey: { concurrency: 1 } });
      await startWithTasks(store, worker, "order-1", 5, keyed("aaaba"));
      const [a, b, ...rest] = (await claim(store, worker)).items;
      assert.deepEqual([a?.item, b?.item, rest], ["Task(0)", "Task(3)", []]);
      assert.deepEqual(a?.slot, { queue: "mail", key: "a" });
      assert.deepEqual(await claim(store, worker), { items: [], nextAt: undefined, held: true });
      await store.write([endItemWrite({ ...b! })]);
      assert.deepEqual(await claimItems(store, worker), []);
      await store.write([{ ...endItemWrite(a), slot: a.slot! }]);
      assert.deepEqual(namesOf(await claim(store, worker)), ["Task(1)"]);
    },
  ),

  storeCase("every write that removes an item frees its key", async (store, t) => {
    const [worker, other] = [await registerWorker(store), await registerWorker(store)];
    await declare(store, { perKey: { concurrency: 1 } });
    const held = await startHeld(store, worker, "order-1");
    const busy = await commitTurn(store, held, taskParts(held, 7, keyed("aaaaaaa")));
    // The worker returns it with a delay.
    const first = await takeItem(store, worker);
    const { run, token, slot: line = { queue: "" } } = first;
    const availableAt = store.now() + 1_000;
    await store.write([{ write: "return-item", run, item: first.item, token, slot: line, attempt: 1, availableAt }]);
    // The run's commit finishes it.
    const second = await takeItem(store, worker);
    assert.equal(second.item, "Task(1)");
    const finished = [{ item: second.item, token: second.token, slot: line }];
    const wrote = await commitTurn(store, busy, { entries: [["TaskCompleted", "Task(1)"]], finished });
    // The run's commit drops it.
    const third = await takeItem(store, worker);
    assert.equal(third.item, "Task(2)");
    await commitTurn(store, wrote, { dropped: ["Task(2)"], then: "release" });
    // Its worker releases.
    assert.equal((await takeItem(store, other)).item, "Task(3)");
    await store.releaseWorker(other);
    assert.equal((await takeItem(store, worker)).item, "Task(3)");
    // Its worker dies.
    const late = await registerWorker(store);
    t.clock.advance(LEASE_MS);
    await store.renewLease(late, LEASE_MS);
    assert.equal((await store.reap(late)).items, 1);
    assert.equal((await takeItem(store, late)).item, "Task(3)");
  }),

  storeCase("the end of a run frees the keys of its items", async (store) => {
    const worker = await registerWorker(store);
    await declare(store, { perKey: { concurrency: 1 } });
    const first = await startHeld(store, worker, "order-1");
    const busy = await commitTurn(store, first, taskParts(first, 2, keyed("aa")));
    await startWithTasks(store, worker, "order-2", 1, keyed("a"));
    assert.equal((await takeItem(store, worker)).runId, "order-1");
    await commitTurn(store, busy, { entries: [["RunCompleted", "", '{"output":null}']], then: "completed" });
    assert.equal((await takeItem(store, worker)).runId, "order-2");
  }),

  storeCase("a rate admits its limit in any window, and the store says when it admits more", async (store, t) => {
    const worker = await registerWorker(store);
    await declare(store, { rate: { limit: 3, perMs: 60_000 } });
    await startWithTasks(store, worker, "order-1", 6, lined);
    const begin = store.now();
    assert.equal((await claim(store, worker, 1)).items.length, 1);
    t.clock.advance(20_000);
    const second = await claim(store, worker);
    assert.deepEqual([second.items.length, second.nextAt], [2, begin + 60_000]);
    t.clock.advance(39_999);
    assert.deepEqual(await claim(store, worker), { items: [], nextAt: begin + 60_000, held: true });
    t.clock.advance(1);
    const third = await claim(store, worker);
    assert.deepEqual([third.items.length, third.nextAt], [1, begin + 80_000]);
    t.clock.advance(20_000);
    assert.equal((await claim(store, worker)).items.length, 2);
  }),

  storeCase("a rate per key holds back only its key, and admits more on time", async (store, t) => {
    const worker = await registerWorker(store);
    await declare(store, { perKey: { rate: { limit: 1, perMs: 1_000 } } });
    await startWithTasks(store, worker, "order-1", 4, keyed("aaba"));
    const begin = store.now();
    const first = await claim(store, worker);
    assert.deepEqual(namesOf(first), ["Task(0)", "Task(2)"]);
    assert.equal(first.nextAt, begin + 1_000);
    t.clock.advance(999);
    assert.deepEqual(namesOf(await claim(store, worker)), []);
    t.clock.advance(1);
    const second = await claim(store, worker);
    assert.deepEqual([namesOf(second), second.nextAt], [["Task(1)"], begin + 2_000]);
    t.clock.advance(1_000);
    assert.deepEqual(namesOf(await claim(store, worker)), ["Task(3)"]);
  }),

  storeCase("a paused queue admits nothing until it is resumed", async (store) => {
    const worker = await registerWorker(store);
    await declare(store, {});
    await startWithTasks(store, worker, "order-1", 2, lined);
    await store.write([{ write: "change-queue", name: "mail", paused: true }]);
    assert.deepEqual(await claim(store, worker), { items: [], nextAt: undefined, held: true });
    assert.deepEqual((await store.listQueues())[1]?.paused, true);
    await declare(store, {});
    assert.deepEqual(await claimItems(store, worker), []);
    await store.write([{ write: "change-queue", name: "mail", paused: false }]);
    assert.equal((await claim(store, worker)).items.length, 2);
  }),

  storeCase("a queue shows when it was paused, and pausing it again changes nothing", async (store, t) => {
    await declare(store, {});
    const pausedAt = async (paused?: boolean): Promise<number | undefined> => {
      t.clock.advance(1_000);
      if (paused !== undefined) await store.write([{ write: "change-queue", name: "mail", paused }]);
      const queue = (await store.listQueues())[1];
      assert.equal(queue?.paused, queue?.pausedAt !== undefined);
      return queue?.pausedAt;
    };
    assert.equal(await pausedAt(), undefined);
    const first = await pausedAt(true);
    assert.equal(first, store.now());
    assert.equal(await pausedAt(true), first);
    await store.write([{ write: "change-queue", name: "mail", limits: { concurrency: 7 } }]);
    await declare(store, { concurrency: 1 });
    assert.equal(await pausedAt(), first);
    assert.equal(await pausedAt(false), undefined);
    assert.equal(await pausedAt(false), undefined);
    assert.equal(await pausedAt(true), store.now());
    const [unknown] = await store.write([{ write: "change-queue", name: "post", paused: true }]);
    assert.deepEqual(unknown, { status: "no_queue" });
  }),

  storeCase("priority counts within a queue and across queues, then age", async (store, t) => {
    const worker = await registerWorker(store);
    await declare(store, { concurrency: 9 });
    await startWithTasks(store, worker, "order-1", 3, (n) => ({ ...lined(), priority: [0, 5, 0][n] ?? 0 }));
    t.clock.advance(1);
    await startWithTasks(store, worker, "order-2", 2, (n) => ({ priority: [9, 0][n] ?? 0 }));
    const order: string[] = [];
    for (let n = 0; n < 5; n++) {
      const [item] = (await claim(store, worker, 1)).items;
      order.push(`${item?.runId} ${item?.item}`);
    }
    assert.deepEqual(order, [
      "order-2 Task(0)",
      "order-1 Task(1)",
      "order-1 Task(0)",
      "order-1 Task(2)",
      "order-2 Task(1)",
    ]);
  }),

  storeCase("limits that an operator changed stay until other limits are declared", async (store) => {
    const limits = async (): Promise<unknown> => (await store.listQueues())[1]?.limits;
    assert.deepEqual(await store.write([{ write: "change-queue", name: "mail", limits: {} }]), [
      { status: "no_queue" },
    ]);
    await declare(store, { concurrency: 1 });
    await store.write([{ write: "change-queue", name: "mail", limits: { concurrency: 7 } }]);
    await declare(store, { concurrency: 1 });
    assert.deepEqual(await limits(), { concurrency: 7 });
    await declare(store, { concurrency: 2 });
    assert.deepEqual(await limits(), { concurrency: 2 });
  }),

  storeCase("new limits admit items that the old ones held back", async (store) => {
    const worker = await registerWorker(store);
    await declare(store, { perKey: { concurrency: 1 } });
    await startWithTasks(store, worker, "order-1", 3, keyed("aaa"));
    assert.equal((await claim(store, worker)).items.length, 1);
    await store.write([{ write: "change-queue", name: "mail", limits: { perKey: { concurrency: 2 } } }]);
    assert.equal((await claim(store, worker)).items.length, 1);
    await declare(store, {});
    assert.equal((await claim(store, worker)).items.length, 1);
  }),

  storeCase("queues are listed with their limits and their items", async (store, t) => {
    const worker = await registerWorker(store);
    await declare(store, { concurrency: 1, perKey: { concurrency: 1 } });
    await declare(store, { rate: { limit: 5, perMs: 1_000 } }, "idle");
    const later = { availableAt: store.now() + 60_000 };
    await startWithTasks(store, worker, "order-1", 4, (n) => ({ ...keyed("aaaa")(n), ...(n === 3 && later) }));
    const oldestReadyAt = store.now();
    t.clock.advance(5);
    await startWithTasks(store, worker, "order-2", 1, () => ({}));
    const none = { paused: false, pausedAt: undefined, ready: 0, leased: 0, delayed: 0, oldestReadyAt: undefined };
    assert.equal((await claim(store, worker, 1)).items.length, 1);
    assert.deepEqual(await store.listQueues(), [
      { ...none, name: "default", limits: {}, ready: 1, oldestReadyAt: store.now() },
      { ...none, name: "idle", limits: { rate: { limit: 5, perMs: 1_000 } } },
      {
        ...none,
        name: "mail",
        limits: { concurrency: 1, perKey: { concurrency: 1 } },
        ready: 2,
        leased: 1,
        delayed: 1,
        oldestReadyAt,
      },
    ]);
    assert.deepEqual((await store.info()).items, { ready: 3, leased: 1, delayed: 1 });
  }),
];
