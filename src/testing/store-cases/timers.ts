import assert from "node:assert/strict";
import {
  claimItems,
  claimTurns,
  commitTurn,
  fireDue,
  registerWorker,
  timerParts,
  startHeld,
  takeTurn,
  WAITS,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

export const timerCases: readonly StoreCase[] = [
  storeCase("a timer fires once, never early, and makes the turn due", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const dueAt = store.now() + 1_000;
    await commitTurn(store, held, { ...timerParts(held, dueAt), then: "release" });
    assert.deepEqual(await fireDue(store), { runs: [], ready: 0, nextAt: dueAt });
    t.clock.advance(999);
    assert.deepEqual(await fireDue(store), { runs: [], ready: 0, nextAt: dueAt });
    assert.deepEqual(await claimTurns(store, worker), []);
    t.clock.advance(1);
    assert.deepEqual(await fireDue(store), { runs: [held.run], ready: 0, nextAt: undefined });
    t.clock.advance(10_000);
    assert.deepEqual(await fireDue(store), { runs: [], ready: 0, nextAt: undefined });

    const turn = await takeTurn(store, worker);
    assert.deepEqual(
      turn.inbox.map((row) => [row.arrival, row.type, row.target]),
      [[1, "TimerFired", "Timer(0)"]],
    );
    const data = turn.inbox[0]?.data ?? "";
    await commitTurn(store, turn, { entries: [["TimerFired", "Timer(0)", data], WAITS], read: 1, then: "release" });
    assert.deepEqual(await claimTurns(store, worker), []);
  }),

  storeCase("timers fire in the order they are due, and the next one is known", async (store, t) => {
    const worker = await registerWorker(store);
    const start = store.now();
    const one = await startHeld(store, worker, "one");
    const two = await startHeld(store, worker, "two");
    await commitTurn(store, one, { ...timerParts(one, start + 300, start + 100, start + 500), then: "release" });
    await commitTurn(store, two, { ...timerParts(two, start + 200), then: "release" });
    t.clock.advance(400);
    assert.deepEqual((await fireDue(store, 1)).runs, [one.run]);
    assert.deepEqual(
      (await store.readInbox(one.run, 0)).map((row) => row.target),
      ["Timer(1)"],
    );
    assert.deepEqual((await fireDue(store, 1)).runs, [two.run]);
    assert.deepEqual(await fireDue(store, 1), { runs: [one.run], ready: 0, nextAt: start + 500 });
    assert.deepEqual(
      (await store.readInbox(one.run, 0)).map((row) => row.target),
      ["Timer(1)", "Timer(0)"],
    );
  }),

  storeCase("a limit leaves the other due timers for the next call", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const start = store.now();
    await commitTurn(store, held, { ...timerParts(held, start + 1, start + 2, start + 3), then: "release" });
    t.clock.advance(10);
    assert.equal((await fireDue(store, 2)).nextAt, start + 3);
    assert.equal((await store.readInbox(held.run, 0)).length, 2);
    assert.equal((await fireDue(store, 2)).nextAt, undefined);
    assert.deepEqual(
      (await store.readInbox(held.run, 0)).map((row) => row.target),
      ["Timer(0)", "Timer(1)", "Timer(2)"],
    );
  }),

  storeCase("a timer fires once when two connections poll at the same time", async (store, t) => {
    const other = await t.openAgain();
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const start = store.now();
    await commitTurn(store, held, {
      ...timerParts(held, ...Array.from({ length: 20 }, (_, n) => start + n)),
      then: "release",
    });
    t.clock.advance(100);
    await Promise.all(Array.from({ length: 6 }, (_, n) => fireDue(n % 2 === 0 ? store : other, 5)));
    await fireDue(store);
    const targets = (await store.readInbox(held.run, 0)).map((row) => row.target);
    assert.equal(targets.length, 20);
    assert.equal(new Set(targets).size, 20);
  }),

  storeCase("a dropped timer never fires", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const armed = await commitTurn(store, held, timerParts(held, store.now() + 10));
    await commitTurn(store, armed, {
      entries: [["TimerCancelled", "Timer(0)"], WAITS],
      dropped: ["Timer(0)"],
      then: "release",
    });
    t.clock.advance(1_000);
    assert.deepEqual(await fireDue(store), { runs: [], ready: 0, nextAt: undefined });
    assert.deepEqual(await store.readInbox(held.run, 0), []);
  }),

  storeCase("a timer cannot be claimed", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, { ...timerParts(held, store.now() + 10), then: "release" });
    t.clock.advance(10);
    assert.deepEqual(await claimItems(store, worker, ["TimerFired", "charge", "Timer(0)"]), []);
  }),

  storeCase("a timer that becomes due while the turn is held arrives and makes the turn due", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const armed = await commitTurn(store, held, timerParts(held, store.now() + 10));
    t.clock.advance(10);
    assert.deepEqual((await fireDue(store)).runs, [held.run]);
    assert.deepEqual(await claimTurns(store, worker), []);
    await commitTurn(store, armed, { then: "release" });
    assert.equal((await takeTurn(store, worker)).inbox.length, 1);
  }),

  storeCase("a timer of a stopped run arrives but makes no turn due until it is resumed", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const armed = await commitTurn(store, held, timerParts(held, store.now() + 10));
    await store.write([{ write: "stop", run: armed.run, token: armed.token, status: "blocked", evidence: "{}" }]);
    t.clock.advance(10);
    await fireDue(store);
    assert.deepEqual(await claimTurns(store, worker), []);
    await store.write([{ write: "resume", id: "order-1" }]);
    assert.deepEqual(
      (await takeTurn(store, worker)).inbox.map((row) => row.target),
      ["Timer(0)"],
    );
  }),
];
