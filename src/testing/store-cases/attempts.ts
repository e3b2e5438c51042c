import assert from "node:assert/strict";
import type { AttemptRecord, ExecutionFacts, Store } from "../../kernel/index.ts";
import {
  claimItems,
  commitTurn,
  endItemWrite,
  fireDue,
  getRun,
  LEASE_MS,
  newToken,
  registerWorker,
  startHeld,
  startWithTasks,
  takeItem,
  takeTurn,
  taskParts,
  turnWrite,
  WAITS,
} from "./store-actions.ts";
import { arrival, completed, startWithNodes, takeNodes } from "./flow-actions.ts";
import { type CaseTools, storeCase, type StoreCase } from "./store-case.ts";

const RAN: ExecutionFacts = { execution: 3, worker: "shop-1", startedAt: 1_700_000_000_001, tookMs: 25 };

async function takeOver(store: Store, t: CaseTools): Promise<void> {
  t.clock.advance(LEASE_MS);
  await store.reap(await registerWorker(store, "reaper"));
}

function briefly({ step, execution, attempt, outcome, seq, worker }: AttemptRecord): unknown[] {
  return [step, execution, attempt, outcome, seq, worker];
}

export const attemptCases: readonly StoreCase[] = [
  storeCase("an entry keeps the execution that it ends: its number, worker, start and duration", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const write = turnWrite(store, held, { entries: [["OperationCompleted", "Operation(0)"], WAITS] });
    const entries = write.entries.map((entry, index) => (index === 0 ? { ...entry, ...RAN } : entry));
    await store.write([{ ...write, entries }]);
    const [, operation, wait] = await store.readJournal(held.run, 0);
    const { execution, worker: name, startedAt, tookMs } = operation!;
    assert.deepEqual({ execution, worker: name, startedAt, tookMs }, RAN);
    assert.deepEqual([wait!.execution, wait!.worker, wait!.startedAt, wait!.tookMs], Array(4).fill(undefined));
  }),

  storeCase("a result of another worker carries its execution through the inbox", async (store) => {
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "order-1", 1);
    const item = await takeItem(store, worker);
    const write = endItemWrite(item);
    await store.write([{ ...write, arrival: { ...write.arrival, ran: RAN } }]);
    const [message] = await store.readInbox(item.run, 0);
    assert.deepEqual(message!.ran, RAN);
    const held = await takeTurn(store, worker);
    assert.deepEqual(held.inbox[0]!.ran, RAN);
  }),

  storeCase("a node's entry keeps the execution that it ends", async (store) => {
    const worker = await registerWorker(store);
    const { run } = await startWithNodes(store, worker, "import-1", "x");
    const [x] = await takeNodes(store, worker, "x");
    const write = completed(x, [arrival("y", "x", 1)]);
    await store.write([{ ...write, entries: write.entries.map((entry) => ({ ...entry, ran: RAN })) }]);
    const last = (await store.readJournal(run, 0)).at(-1)!;
    assert.deepEqual([last.execution, last.worker, last.startedAt, last.tookMs], [3, "shop-1", 1_700_000_000_001, 25]);
  }),

  storeCase("every claim of an item is one execution more, whatever returned it", async (store, t) => {
    const worker = await registerWorker(store, "first");
    await startWithTasks(store, worker, "order-1", 1);
    const first = await takeItem(store, worker);
    await store.write([{ write: "return-item", run: first.run, item: first.item, token: first.token, attempt: 0 }]);
    const second = await takeItem(store, worker);
    await takeOver(store, t);
    const third = await takeItem(store, await registerWorker(store, "third"));
    assert.deepEqual(
      [first, second, third].map(({ execution, attempt }) => [execution, attempt]),
      [
        [1, 0],
        [2, 0],
        [3, 0],
      ],
    );
  }),

  storeCase(
    "an item that the write which inserts it leases has execution 1, and 2 after a takeover",
    async (store, t) => {
      const worker = await registerWorker(store, "first");
      const held = await startHeld(store, worker, "order-1");
      const parts = taskParts(held, 1);
      const items = parts.items!.map((item) => ({ ...item, claim: { worker, token: newToken() } }));
      await commitTurn(store, held, { ...parts, items });
      await takeOver(store, t);
      const [lost] = (await store.readAttempts(held.run)).filter(({ step }) => step !== "");
      assert.deepEqual(briefly(lost!), [items[0]!.item, 1, 0, "lost", 0, "first"]);
      const [again] = await claimItems(store, await registerWorker(store));
      assert.equal(again!.execution, 2);
    },
  ),

  storeCase("a lost turn is recorded with its worker, its start and the head of the journal", async (store, t) => {
    const worker = await registerWorker(store, "first");
    const claimedAt = store.now();
    const held = await startHeld(store, worker, "order-1");
    const after = await commitTurn(store, held, { entries: [WAITS] });
    assert.deepEqual(await store.readAttempts(held.run), []);
    await takeOver(store, t);
    const [lost, ...others] = await store.readAttempts(held.run, "");
    assert.deepEqual(others, []);
    assert.deepEqual(briefly(lost!), ["", 1, 0, "lost", after.head, "first"]);
    assert.deepEqual([lost!.startedAt, lost!.at], [claimedAt, store.now()]);
    assert.equal((await getRun(store, "order-1")).lostTurns, 1);
    // A second worker loses it too.
    await takeTurn(store, await registerWorker(store, "second"));
    await takeOver(store, t);
    const names = (await store.readAttempts(held.run)).map((one) => [one.execution, one.worker]);
    assert.deepEqual(names, [
      [1, "first"],
      [2, "second"],
    ]);
    assert.equal((await getRun(store, "order-1")).lostTurns, 2);
  }),

  storeCase("work that a worker returns is recorded as returned, not as lost", async (store) => {
    const worker = await registerWorker(store, "first");
    const held = await startHeld(store, worker, "order-1");
    await store.write([{ write: "return-turn", run: held.run, token: held.token }]);
    await startWithTasks(store, worker, "order-2", 1);
    const item = await takeItem(store, worker);
    await store.releaseWorker(worker);
    const [turn] = await store.readAttempts(held.run);
    assert.deepEqual(briefly(turn!), ["", 1, 0, "returned", 1, "first"]);
    const [returned] = await store.readAttempts(item.run);
    assert.deepEqual(briefly(returned!), [item.item, 1, 0, "returned", 0, "first"]);
  }),

  storeCase("a failed attempt that is retried is recorded with its error", async (store, t) => {
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "order-1", 1);
    const { run, item, token } = await takeItem(store, worker);
    const data = '{"error":{"$":"Error","message":"no"},"stack":"Error: no\\n    at charge (/app/a.ts:1:2)"}';
    const failed = { attempt: 0, execution: 1, worker: "shop-1", startedAt: store.now(), data };
    t.clock.advance(40);
    await store.write([
      { write: "return-item", run, item, token, attempt: 1, availableAt: store.now(), failures: "[1]", failed },
    ]);
    const [record] = await store.readAttempts(run, item);
    assert.deepEqual(briefly(record!), [item, 1, 0, "failed", 0, "shop-1"]);
    assert.deepEqual([record!.data, record!.at - record!.startedAt!], [data, 40]);
    await fireDue(store);
    assert.equal((await takeItem(store, worker)).execution, 2);
  }),

  storeCase("a step keeps the records of its last hundred failed attempts", async (store, t) => {
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "order-1", 1);
    let claimed = await takeItem(store, worker);
    for (let attempt = 0; attempt < 103; attempt++) {
      const { run, item, token, execution } = claimed;
      const failed = { attempt, execution, worker: "shop-1", startedAt: store.now(), data: "{}" };
      t.clock.advance(1);
      await store.write([{ write: "return-item", run, item, token, attempt: attempt + 1, failures: "[1]", failed }]);
      claimed = await takeItem(store, worker);
    }
    const kept = await store.readAttempts(claimed.run, claimed.item);
    assert.deepEqual([kept.length, kept[0]?.execution, kept.at(-1)?.execution], [100, 4, 103]);
  }),

  storeCase("a rejected return records no attempt", async (store) => {
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "order-1", 1);
    const { run, item } = await takeItem(store, worker);
    const failed = { attempt: 0, execution: 1, worker: "shop-1", startedAt: store.now(), data: "{}" };
    const [outcome] = await store.write([
      { write: "return-item", run, item, token: "another token", attempt: 1, failures: "[1]", failed },
    ]);
    assert.equal(outcome.status, "lease_lost");
    assert.deepEqual(await store.readAttempts(run), []);
  }),
];
