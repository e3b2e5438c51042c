import assert from "node:assert/strict";
import {
  SUSPECT_AFTER,
  type ClaimItemsOutcome,
  type ClaimItemsWrite,
  type NewItem,
  type QueueLimits,
  type Store,
} from "../../kernel/index.ts";
import {
  claimItems,
  commitTurn,
  endItemWrite,
  getRun,
  LEASE_MS,
  newTokens,
  registerWorker,
  send,
  startHeld,
  startWithTasks,
  takeItem,
  taskParts,
  turnWrite,
  versioned,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const inQueue = (): Partial<NewItem> => ({ slot: { queue: "mail" } });

async function declare(store: Store, limits: QueueLimits, name = "mail"): Promise<void> {
  await store.write([{ write: "declare-queue", name, limits }]);
}

function refill(worker: number, count = 10, names = ["charge"]): ClaimItemsWrite {
  return { write: "claim-items", worker, tokens: newTokens(count), names, refills: ["mail"] };
}

function namesOf({ items }: ClaimItemsOutcome): readonly string[] {
  return items.map(({ item }) => item);
}

function claimWithTurns(worker: number, definitions = ["checkout"], count = 10): ClaimItemsWrite {
  const tokens = newTokens(count);
  return { write: "claim-items", worker, tokens, names: ["charge"], turnsOf: definitions.map(versioned) };
}

export const refillCases: readonly StoreCase[] = [
  storeCase("a refill leases the next items in the transaction that frees their slots", async (store) => {
    const worker = await registerWorker(store);
    await declare(store, { concurrency: 2 });
    const held = await startHeld(store, worker, "order-1");
    const busy = await commitTurn(store, held, taskParts(held, 6, inQueue));
    const [first, second, ...none] = await claimItems(store, worker);
    assert.equal(none.length, 0);
    assert.deepEqual((await store.write([refill(worker)]))[0], { items: [], nextAt: undefined, held: true });
    const [, ended] = await store.write([{ ...endItemWrite(first!), slot: { queue: "mail" } }, refill(worker)]);
    assert.deepEqual([namesOf(ended), ended.held], [["Task(2)"], true]);
    const finished = [second!, ended.items[0]!].map(({ item, token }) => ({ item, token, slot: { queue: "mail" } }));
    const entries = finished.map(({ item }) => ["TaskCompleted", item] as const);
    const turn = turnWrite(store, busy, { entries, finished });
    const [committed, next] = await store.write([turn, refill(worker)]);
    assert.equal(committed.status, "committed");
    assert.deepEqual([namesOf(next), next.held], [["Task(3)", "Task(4)"], true]);
    const { run, item, token } = next.items[0]!;
    const back = { write: "return-item", run, item, token, slot: { queue: "mail" }, attempt: 1 } as const;
    const [, one] = await store.write([{ ...back, availableAt: store.now() + 1_000 }, refill(worker, 1)]);
    assert.deepEqual(namesOf(one), ["Task(5)"]);
  }),

  storeCase("a write that is rejected frees no slot for a refill", async (store) => {
    const worker = await registerWorker(store);
    await declare(store, { concurrency: 1 });
    await startWithTasks(store, worker, "order-1", 2, inQueue);
    const item = await takeItem(store, worker);
    const stale = { ...endItemWrite(item), token: "stale", slot: { queue: "mail" } };
    const [rejected, next] = await store.write([stale, refill(worker)]);
    assert.deepEqual([rejected.status, namesOf(next)], ["lease_lost", []]);
  }),

  storeCase("a refill claims only from its queues", async (store) => {
    const worker = await registerWorker(store);
    await declare(store, { concurrency: 1 });
    await declare(store, { concurrency: 1 }, "other");
    await startWithTasks(store, worker, "order-1", 2, inQueue);
    const item = await takeItem(store, worker);
    await startWithTasks(store, worker, "order-2", 3, (n) => (n === 0 ? {} : { slot: { queue: "other" } }));
    const [, next] = await store.write([{ ...endItemWrite(item), slot: { queue: "mail" } }, refill(worker)]);
    assert.deepEqual(
      next.items.map(({ runId, slot }) => [runId, slot]),
      [["order-1", { queue: "mail" }]],
    );
  }),

  storeCase("a refill obeys rates, keys and pauses", async (store) => {
    const worker = await registerWorker(store);
    await declare(store, { rate: { limit: 3, perMs: 60_000 }, perKey: { concurrency: 1 } });
    const keys = ["a", "a", "b", "c", "d"];
    await startWithTasks(store, worker, "order-1", 5, (n) => ({ slot: { queue: "mail", key: keys[n]! } }));
    const begin = store.now();
    const [first] = await claimItems(store, worker, ["charge"], 1);
    const [one] = await store.write([refill(worker)]);
    assert.deepEqual([namesOf(one), one.nextAt], [["Task(2)", "Task(3)"], begin + 60_000]);
    await declare(store, { perKey: { concurrency: 1 } });
    await store.write([{ write: "change-queue", name: "mail", paused: true }]);
    const [, paused] = await store.write([{ ...endItemWrite(first!), slot: first!.slot! }, refill(worker)]);
    assert.deepEqual([namesOf(paused), paused.held], [[], true]);
    await store.write([{ write: "change-queue", name: "mail", paused: false }]);
    assert.deepEqual(namesOf((await store.write([refill(worker)]))[0]), ["Task(1)", "Task(4)"]);
  }),

  storeCase("a refill leaves the slot to suspects, and to items that the worker does not claim", async (store, t) => {
    const worker = await registerWorker(store);
    await declare(store, { concurrency: 1 });
    await startWithTasks(store, worker, "order-1", 2, (n) => ({
      ...inQueue(),
      ...(n === 0 && { name: "ship", priority: 1 }),
    }));
    assert.deepEqual((await store.write([refill(worker)]))[0], { items: [], nextAt: undefined, held: true });
    assert.deepEqual(namesOf((await store.write([refill(worker, 10, ["charge", "ship"])]))[0]), ["Task(0)"]);
    for (let n = 0; n < SUSPECT_AFTER; n++) {
      const next = await registerWorker(store);
      t.clock.advance(LEASE_MS);
      await store.renewLease(next, LEASE_MS);
      await store.reap(next);
      if (n < SUSPECT_AFTER - 1) assert.equal((await takeItem(store, next, ["ship"])).suspicion, 0);
      else {
        const [left] = await store.write([refill(next, 10, ["charge", "ship"])]);
        assert.deepEqual(left, { items: [], nextAt: undefined, held: true });
        assert.equal((await takeItem(store, next, ["charge", "ship"])).suspicion, SUSPECT_AFTER);
      }
    }
  }),

  storeCase("a claim of a task takes the turn of its run if the run waits, under the same token", async (store) => {
    const worker = await registerWorker(store);
    const waiting = await startWithTasks(store, worker, "waiting", 2);
    const [{ items }] = await store.write([claimWithTurns(worker)]);
    const [first, second] = items;
    assert.deepEqual([first?.item, second?.item, second?.turn], ["Task(0)", "Task(1)", undefined]);
    assert.deepEqual(first?.turn, { ...(await getRun(store, "waiting")), status: "running" });
    const finished = [first!, second!].map(({ item, token }) => ({ item, token }));
    const entries = [
      ["TaskCompleted", "Task(0)"],
      ["TaskCompleted", "Task(1)"],
      ["RunCompleted", "", '{"output":null}'],
    ] as const;
    await commitTurn(store, { ...waiting, token: first!.token }, { entries, finished, then: "completed" });
    assert.equal((await getRun(store, "waiting")).status, "completed");
  }),

  storeCase("a claim takes no turn that is held, due or stopped, or of another definition", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "held");
    await commitTurn(store, held, taskParts(held, 1));
    await startWithTasks(store, worker, "due", 1);
    await send(store, "due");
    await startWithTasks(store, worker, "paused", 1);
    await store.write([{ write: "pause", id: "paused" }]);
    await startWithTasks(store, worker, "waiting", 2);
    const [none] = await store.write([claimWithTurns(worker, ["refund"], 4)]);
    assert.equal(none.items.length, 4);
    const [last] = await store.write([claimWithTurns(worker)]);
    assert.deepEqual(
      [...none.items, ...last.items].filter(({ turn }) => turn !== undefined).map(({ runId, item }) => [runId, item]),
      [["waiting", "Task(1)"]],
    );
  }),
];
