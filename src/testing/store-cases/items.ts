import assert from "node:assert/strict";
import { assertNothingWritten } from "./store-dump.ts";
import {
  claimItems,
  claimTurns,
  commitTurn,
  COMPLETES,
  fireDue,
  getRun,
  endItemWrite,
  newToken,
  registerWorker,
  taskParts,
  startHeld,
  startWithTasks,
  takeItem,
  takeTurn,
  WAITS,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

export const itemCases: readonly StoreCase[] = [
  storeCase("a scheduled item is claimed once, with the data of the entry that scheduled it", async (store) => {
    const worker = await registerWorker(store);
    const held = await startWithTasks(store, worker, "order-1", 2);
    const tokens = [newToken(), newToken(), newToken()];
    const [{ items }] = await store.write([{ write: "claim-items", worker, tokens, names: ["charge"] }]);
    const byItem = [...items].sort((a, b) => (a.item < b.item ? -1 : 1));
    const { generation } = await getRun(store, "order-1");
    assert.deepEqual(
      byItem,
      [0, 1].map((n) => ({
        run: held.run,
        runId: "order-1",
        definition: "checkout",
        generation,
        item: `Task(${n})`,
        kind: "task",
        name: "charge",
        token: byItem[n]?.token,
        attempt: 0,
        execution: 1,
        failures: undefined,
        seq: 2 + n,
        data: `{"input":${n}}`,
        suspicion: 0,
      })),
    );
    assert.notEqual(byItem[0]?.token, byItem[1]?.token);
    for (const item of items) assert.ok(tokens.includes(item.token));
    assert.deepEqual(await claimItems(store, worker), []);
  }),

  storeCase("only items of the named tasks are claimed", async (store) => {
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "order-1", 3, (n) => ({ name: ["charge", "Charge", "refund"][n] ?? "" }));
    assert.deepEqual(await claimItems(store, worker, []), []);
    assert.deepEqual(await claimItems(store, worker, ["unknown"]), []);
    assert.deepEqual(
      (await claimItems(store, worker, ["charge"])).map((item) => item.item),
      ["Task(0)"],
    );
    assert.deepEqual((await claimItems(store, worker, ["Charge", "refund"])).length, 2);
  }),

  storeCase("the item with the highest priority is claimed first, then the oldest", async (store, t) => {
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "order-1", 4, (n) => ({ priority: [0, 5, 0, -1][n] ?? 0 }));
    t.clock.advance(1);
    await startWithTasks(store, worker, "order-2", 1, () => ({ priority: 5, name: "charge" }));
    const order: string[] = [];
    for (let n = 0; n < 5; n++) {
      const [item] = await claimItems(store, worker, ["charge"], 1);
      order.push(`${item?.runId} ${item?.item}`);
    }
    assert.deepEqual(order, [
      "order-1 Task(1)",
      "order-2 Task(0)",
      "order-1 Task(0)",
      "order-1 Task(2)",
      "order-1 Task(3)",
    ]);
  }),

  storeCase("an item inserted with a claim is leased to its worker, and no worker can claim it", async (store) => {
    const [mine, other] = [await registerWorker(store), await registerWorker(store)];
    const token = newToken();
    const held = await startWithTasks(store, mine, "order-1", 1, () => ({ claim: { worker: mine, token } }));
    assert.deepEqual(await claimItems(store, other), []);
    assert.deepEqual((await store.info()).items, { ready: 0, leased: 1, delayed: 0 });
    const [outcome] = await store.write([endItemWrite({ run: held.run, item: "Task(0)", token })]);
    assert.equal(outcome.status, "committed");
  }),

  storeCase("an item's result arrives in its run and makes the turn due", async (store) => {
    const worker = await registerWorker(store);
    const held = await startWithTasks(store, worker, "order-1", 1);
    const item = await takeItem(store, worker);
    assert.deepEqual(await claimTurns(store, worker), []);
    assert.deepEqual(await store.write([endItemWrite(item, '{"output":"✓"}')]), [{ status: "committed" }]);
    const turn = await takeTurn(store, worker);
    assert.deepEqual(turn.inbox, [{ arrival: 1, type: "TaskCompleted", target: "Task(0)", data: '{"output":"✓"}' }]);
    assert.equal(turn.run, held.run);
    await commitTurn(store, turn, {
      entries: [["TaskCompleted", "Task(0)", '{"output":"✓"}'], WAITS],
      read: 1,
      then: "release",
    });
    assert.deepEqual((await store.info()).items, { ready: 0, leased: 0, delayed: 0 });
  }),

  storeCase("an item ends once: afterwards its token and every other token is void", async (store) => {
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "order-1", 2);
    const [one, two] = await claimItems(store, worker);
    assert.ok(one !== undefined && two !== undefined);
    const [first, second] = await store.write([endItemWrite(one), endItemWrite(one)]);
    assert.deepEqual([first.status, second.status], ["committed", "lease_lost"]);
    await assertNothingWritten(store, async () => {
      const outcomes = await store.write([
        endItemWrite(one),
        endItemWrite({ ...two, token: newToken() }),
        endItemWrite({ ...two, token: one.token }),
        { write: "return-item", run: two.run, item: two.item, token: newToken(), attempt: 1 },
      ]);
      for (const outcome of outcomes) assert.equal(outcome.status, "lease_lost");
    });
    assert.equal((await store.write([endItemWrite(two)]))[0].status, "committed");
  }),

  storeCase("the results of one run in one batch all arrive, except the rejected ones", async (store) => {
    const worker = await registerWorker(store);
    const held = await startWithTasks(store, worker, "order-1", 5);
    const items = await claimItems(store, worker);
    const writes = items.map((item, n) => endItemWrite(n % 2 === 0 ? item : { ...item, token: newToken() }));
    const statuses = (await store.write(writes)).map((outcome) => outcome.status);
    assert.deepEqual(statuses, ["committed", "lease_lost", "committed", "lease_lost", "committed"]);
    assert.deepEqual(
      (await store.readInbox(held.run, 0)).map((row) => row.arrival),
      [1, 2, 3],
    );
    assert.deepEqual((await store.info()).items, { ready: 0, leased: 2, delayed: 0 });
  }),

  storeCase("a returned item is claimed again with its attempt and failures", async (store) => {
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "order-1", 1);
    const first = await takeItem(store, worker);
    const failures = '[{"message":"no\u2028"}]';
    const [back] = await store.write([
      { write: "return-item", run: first.run, item: first.item, token: first.token, attempt: 1, failures },
    ]);
    assert.deepEqual(back, { status: "committed" });
    assert.equal((await store.write([endItemWrite(first)]))[0].status, "lease_lost");
    const second = await takeItem(store, worker);
    assert.deepEqual(
      [second.item, second.attempt, second.failures, second.data],
      [first.item, 1, failures, first.data],
    );
    await store.write([
      { write: "return-item", run: first.run, item: first.item, token: second.token, attempt: 1, failures },
    ]);
    const third = await takeItem(store, worker);
    assert.deepEqual([third.attempt, third.failures], [1, failures]);
    assert.equal((await store.write([endItemWrite(third)]))[0].status, "committed");
  }),

  storeCase("an item returned with a delay is not ready before its time", async (store, t) => {
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "order-1", 1);
    const { run, item, token } = await takeItem(store, worker);
    const availableAt = store.now() + 1_000;
    await store.write([{ write: "return-item", run, item, token, attempt: 1, availableAt }]);
    assert.equal((await fireDue(store)).nextAt, availableAt);
    t.clock.advance(999);
    assert.equal((await fireDue(store)).ready, 0);
    assert.deepEqual(await claimItems(store, worker), []);
    t.clock.advance(1);
    assert.equal((await fireDue(store)).ready, 1);
    assert.equal((await takeItem(store, worker)).attempt, 1);
  }),

  storeCase("readItems returns the state, the attempt and the failures of an item", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startWithTasks(store, worker, "order-1", 2);
    const { run } = held;
    const readStates = async (): Promise<readonly unknown[]> =>
      (await store.readItems(run, ["Task(0)", "Task(1)", "Task(9)"])).map((one) => one && [one.state, one.attempt]);
    assert.deepEqual(await readStates(), [["ready", 0], ["ready", 0], undefined]);
    const items = await claimItems(store, worker);
    assert.deepEqual(await readStates(), [["leased", 0], ["leased", 0], undefined]);
    const [first, second] = items.toSorted((a, b) => (a.item < b.item ? -1 : 1));
    const availableAt = store.now() + 1_000;
    const failures = '[{"message":"no\u2028"}]';
    const back = { write: "return-item", run, attempt: 2 } as const;
    await store.write([{ ...back, item: "Task(0)", token: first!.token, availableAt, failures }]);
    await store.write([endItemWrite(second!)]);
    const [delayed, gone] = await store.readItems(run, ["Task(0)", "Task(1)"]);
    assert.deepEqual([delayed, gone], [{ state: "delayed", attempt: 2, availableAt, failures }, undefined]);
    t.clock.advance(1_000);
    await fireDue(store);
    assert.deepEqual((await readStates())[0], ["ready", 2]);
    assert.deepEqual(await store.readItems(run + 1, ["Task(0)"]), [undefined]);
  }),

  storeCase("a delayed item becomes ready at its time and not before", async (store, t) => {
    const worker = await registerWorker(store);
    const availableAt = store.now() + 1_000;
    await startWithTasks(store, worker, "order-1", 2, (n) => (n === 1 ? { availableAt } : {}));
    assert.deepEqual((await store.info()).items, { ready: 1, leased: 0, delayed: 1 });
    assert.equal((await takeItem(store, worker)).item, "Task(0)");
    t.clock.advance(999);
    assert.deepEqual(await fireDue(store), { runs: [], ready: 0, nextAt: availableAt });
    assert.deepEqual(await claimItems(store, worker), []);
    t.clock.advance(1);
    assert.deepEqual(await fireDue(store), { runs: [], ready: 1, nextAt: undefined });
    assert.equal((await takeItem(store, worker)).item, "Task(1)");
  }),

  storeCase("an item whose delay is over is ready at once", async (store) => {
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "order-1", 1, () => ({ availableAt: store.now() }));
    await fireDue(store);
    assert.equal((await takeItem(store, worker)).item, "Task(0)");
  }),

  storeCase("a result in the batch of its run's end is dropped, and its item is deleted", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const busy = await commitTurn(store, held, taskParts(held, 2));
    const [one, two] = await claimItems(store, worker);
    assert.ok(one !== undefined && two !== undefined);
    const ended = await commitTurn(store, busy, COMPLETES);
    await store.write([endItemWrite(one), endItemWrite(two)]);
    assert.deepEqual(await store.readInbox(ended.run, 0), []);
    assert.deepEqual((await store.info()).items, { ready: 0, leased: 0, delayed: 0 });
    assert.deepEqual(await claimItems(store, worker), []);
    assert.deepEqual(await claimTurns(store, worker), []);
    assert.equal((await getRun(store, "order-1")).arrivals, 0);
  }),

  storeCase("a result for a stopped run is kept until it is resumed", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const busy = await commitTurn(store, held, taskParts(held, 1));
    const item = await takeItem(store, worker);
    await store.write([{ write: "stop", run: busy.run, token: busy.token, status: "blocked", evidence: "{}" }]);
    assert.equal((await store.write([endItemWrite(item)]))[0].status, "committed");
    assert.deepEqual(await claimTurns(store, worker), []);
    await store.write([{ write: "resume", id: "order-1" }]);
    assert.deepEqual(
      (await takeTurn(store, worker)).inbox.map((row) => row.target),
      ["Task(0)"],
    );
  }),
];
