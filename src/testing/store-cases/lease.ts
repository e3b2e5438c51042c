import assert from "node:assert/strict";
import { MAX_TAKEOVERS, type Store } from "../../kernel/index.ts";
import { assertNothingWritten } from "./store-dump.ts";
import {
  claimItems,
  claimTurns,
  commitTurn,
  COMPLETES,
  getRun,
  endItemWrite,
  LEASE_MS,
  newToken,
  registerWorker,
  taskParts,
  send,
  startHeld,
  startRun,
  startWithTasks,
  takeItem,
  takeTurn,
  turnWrite,
  WAITS,
} from "./store-actions.ts";
import { type CaseTools, storeCase, type StoreCase } from "./store-case.ts";

/** Lets every lease expire and takes over with a new worker. */
async function takeOver(store: Store, t: CaseTools) {
  t.clock.advance(LEASE_MS);
  return store.reap(await registerWorker(store, "reaper"));
}

export const leaseCases: readonly StoreCase[] = [
  storeCase("worker numbers are never used again", async (store) => {
    const numbers = [];
    for (let n = 0; n < 5; n++) {
      const worker = await registerWorker(store);
      numbers.push(worker);
      if (n % 2 === 0) await store.releaseWorker(worker);
    }
    assert.equal(new Set(numbers).size, 5);
  }),

  storeCase("readHeld returns what a worker claimed, until that ends or is returned", async (store) => {
    const [worker, other] = [await registerWorker(store), await registerWorker(store)];
    assert.deepEqual(await store.readHeld(worker), { turns: [], items: [], messages: [] });
    const held = await startHeld(store, worker, "order-1");
    const others = await startHeld(store, other, "order-2");
    await startWithTasks(store, worker, "order-3", 1);
    const { item, run, token, attempt } = await takeItem(store, worker);
    const { turns, items } = await store.readHeld(worker);
    assert.deepEqual(
      turns.filter((turn) => turn.run === held.run),
      [{ run: held.run, token: held.token }],
    );
    assert.deepEqual(items, [{ run, item, token, attempt }]);
    assert.deepEqual((await store.readHeld(other)).turns, [{ run: others.run, token: others.token }]);
    await store.write([
      { write: "return-turn", run: held.run, token: held.token },
      { write: "return-item", run, item, token, attempt },
    ]);
    const left = await store.readHeld(worker);
    assert.deepEqual([left.turns.some((turn) => turn.run === held.run), left.items], [false, []]);
  }),

  storeCase("a worker's lease is listed until it is released", async (store, t) => {
    const startedAt = store.now();
    const worker = await store.registerWorker("shop-1", 5_000);
    const listed = { worker, name: "shop-1", startedAt, profile: undefined, activity: undefined };
    assert.deepEqual(await store.listWorkers(), [{ ...listed, until: store.now() + 5_000 }]);
    t.clock.advance(1_000);
    assert.equal(await store.renewLease(worker, 8_000), true);
    assert.deepEqual(await store.listWorkers(), [{ ...listed, until: store.now() + 8_000 }]);
    assert.deepEqual((await store.info()).workers, await store.listWorkers());
    await store.releaseWorker(worker);
    assert.deepEqual([await store.listWorkers(), (await store.info()).workers], [[], []]);
    assert.equal(await store.renewLease(worker, 8_000), false);
  }),

  storeCase("a worker's profile and activity are returned as they were stored", async (store) => {
    const about = JSON.stringify({ host: "büro", items: ["charge", "orders\n1"], long: "x".repeat(100_000) });
    const [worker, silent] = [await store.registerWorker("shop-1", 5_000, about), await registerWorker(store)];
    const said = async () => {
      const rows = new Map((await store.listWorkers()).map((row) => [row.worker, row]));
      return [worker, silent].map((number) => [number, rows.get(number)?.profile, rows.get(number)?.activity]);
    };
    assert.deepEqual(await said(), [
      [worker, about, undefined],
      [silent, undefined, undefined],
    ]);
    assert.equal(await store.renewLease(worker, 5_000, '{"steps":1}'), true);
    assert.deepEqual((await said())[0], [worker, about, '{"steps":1}']);
    assert.equal(await store.renewLease(worker, 5_000, '{"steps":2}'), true);
    assert.equal(await store.renewLease(worker, 5_000), true);
    assert.deepEqual(await said(), [
      [worker, about, '{"steps":2}'],
      [silent, undefined, undefined],
    ]);
  }),

  storeCase("a worker whose lease has expired is listed until another worker takes over", async (store, t) => {
    const worker = await registerWorker(store);
    t.clock.advance(LEASE_MS * 2);
    assert.deepEqual(
      (await store.listWorkers()).map((row) => [row.worker, row.until < store.now()]),
      [[worker, true]],
    );
    await takeOver(store, t);
    assert.ok(!(await store.listWorkers()).some((row) => row.worker === worker));
  }),

  storeCase("a lease that expires exactly now is lost, and one with a millisecond left is not", async (store, t) => {
    const [worker, reaper] = [await registerWorker(store), await store.registerWorker("reaper", LEASE_MS * 10)];
    await startHeld(store, worker, "order-1");
    t.clock.advance(LEASE_MS - 1);
    assert.deepEqual(await store.reap(reaper), { workers: 0, turns: 0, items: 0 });
    t.clock.advance(1);
    assert.deepEqual(await store.reap(reaper), { workers: 1, turns: 1, items: 0 });
    assert.deepEqual(await store.reap(reaper), { workers: 0, turns: 0, items: 0 });
  }),

  storeCase("a renewed lease keeps everything its worker holds", async (store, t) => {
    const [worker, reaper] = [await registerWorker(store), await store.registerWorker("reaper", LEASE_MS * 10)];
    const held = await startHeld(store, worker, "order-1");
    for (let n = 0; n < 5; n++) {
      t.clock.advance(LEASE_MS - 1);
      assert.equal(await store.renewLease(worker, LEASE_MS), true);
      assert.equal((await store.reap(reaper)).workers, 0);
    }
    await commitTurn(store, held, COMPLETES);
  }),

  storeCase("renewing returns false after the lease was taken over", async (store, t) => {
    const worker = await registerWorker(store);
    await takeOver(store, t);
    assert.equal(await store.renewLease(worker, LEASE_MS), false);
    assert.ok(!(await store.info()).workers.some((row) => row.worker === worker));
  }),

  storeCase(
    "the turns and items of an expired worker are claimed by others, and its tokens are void",
    async (store, t) => {
      const worker = await registerWorker(store);
      const held = await startHeld(store, worker, "order-1");
      const preclaimed = newToken();
      const busy = await commitTurn(
        store,
        held,
        taskParts(held, 3, (n) => (n === 0 ? { claim: { worker, token: preclaimed } } : {})),
      );
      const [claimed] = await claimItems(store, worker, ["charge"], 1);
      assert.ok(claimed !== undefined);
      await startHeld(store, worker, "order-2");

      assert.deepEqual(await takeOver(store, t), { workers: 1, turns: 2, items: 2 });
      await assertNothingWritten(store, async () => {
        const outcomes = await store.write([
          turnWrite(store, busy, { entries: [["StateSet", "State(0)"]] }),
          endItemWrite(claimed),
          endItemWrite({ run: held.run, item: "Task(0)", token: preclaimed }),
        ]);
        for (const outcome of outcomes) assert.equal(outcome.status, "lease_lost");
      });

      const next = await registerWorker(store);
      assert.deepEqual((await claimTurns(store, next)).map((turn) => turn.record.id).sort(), ["order-1", "order-2"]);
      const items = await claimItems(store, next);
      assert.equal(items.length, 3);
      const again = items.find((item) => item.item === claimed.item);
      assert.ok(again !== undefined && again.token !== claimed.token);
      assert.deepEqual([again.data, again.attempt], [claimed.data, claimed.attempt]);
    },
  ),

  storeCase("messages that arrived while a lost turn was held are delivered to the next holder", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await send(store, "order-1");
    await takeOver(store, t);
    const turn = await takeTurn(store, await registerWorker(store));
    assert.deepEqual([turn.inbox.length, turn.head], [1, held.head]);
  }),

  storeCase("a worker with an expired lease can commit until another worker takes over", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    t.clock.advance(LEASE_MS * 2);
    await commitTurn(store, held, COMPLETES);
  }),

  storeCase("a worker never takes over its own work", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    t.clock.advance(LEASE_MS * 2);
    assert.deepEqual(await store.reap(worker), { workers: 0, turns: 0, items: 0 });
    assert.equal((await store.info()).workers.length, 1);
    await commitTurn(store, held, COMPLETES);
  }),

  storeCase("a lease is taken over once when two connections reap at the same time", async (store, t) => {
    const other = await t.openAgain();
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(
      store,
      held,
      taskParts(held, 3, () => ({ claim: { worker, token: newToken() } })),
    );
    t.clock.advance(LEASE_MS);
    const [one, two] = [await registerWorker(store), await registerWorker(other)];
    const reaps = await Promise.all([store.reap(one), other.reap(two), store.reap(one), other.reap(two)]);
    const sum = (part: "workers" | "turns" | "items") => reaps.reduce((total, reap) => total + reap[part], 0);
    assert.deepEqual([sum("workers"), sum("turns"), sum("items")], [1, 1, 3]);
  }),

  storeCase(
    "after too many takeovers of its turn without a commit a run is blocked with evidence",
    async (store, t) => {
      await startRun(store, "poison");
      for (let takeovers = 1; takeovers <= MAX_TAKEOVERS; takeovers++) {
        assert.notEqual((await getRun(store, "poison")).status, "blocked");
        await takeTurn(store, await registerWorker(store));
        await takeOver(store, t);
      }
      const record = await getRun(store, "poison");
      assert.equal(record.status, "blocked");
      assert.ok(record.evidence !== undefined && record.evidence !== "");
      const worker = await registerWorker(store);
      assert.deepEqual(await claimTurns(store, worker), []);
      await send(store, "poison");
      assert.deepEqual(await claimTurns(store, worker), []);

      await store.write([{ write: "resume", id: "poison" }]);
      await commitTurn(store, await takeTurn(store, worker), { ...COMPLETES, read: 1 });
    },
  ),

  storeCase(
    "after too many takeovers of an item without a commit its run is blocked with evidence",
    async (store, t) => {
      await startWithTasks(store, await registerWorker(store), "poison", 1);
      for (let takeovers = 1; takeovers <= MAX_TAKEOVERS; takeovers++) {
        assert.notEqual((await getRun(store, "poison")).status, "blocked");
        await takeItem(store, await registerWorker(store));
        await takeOver(store, t);
      }
      const record = await getRun(store, "poison");
      assert.equal(record.status, "blocked");
      assert.ok(record.evidence !== undefined && record.evidence !== "");
      assert.deepEqual(await claimItems(store, await registerWorker(store)), []);
    },
  ),

  storeCase("a commit resets the number of takeovers", async (store, t) => {
    let entry = 0;
    await startRun(store, "order-1");
    for (let takeovers = 1; takeovers <= MAX_TAKEOVERS * 2; takeovers++) {
      const held = await takeTurn(store, await registerWorker(store));
      if (takeovers % 2 === 0) await commitTurn(store, held, { entries: [["StateSet", `State(${entry++})`]] });
      await takeOver(store, t);
    }
    assert.notEqual((await getRun(store, "order-1")).status, "blocked");
    await takeTurn(store, await registerWorker(store));
  }),

  storeCase("a resume resets the number of takeovers", async (store, t) => {
    await startRun(store, "poison");
    const loseTurn = async (): Promise<void> => {
      await takeTurn(store, await registerWorker(store));
      await takeOver(store, t);
    };
    for (let takeovers = 1; takeovers <= MAX_TAKEOVERS; takeovers++) await loseTurn();
    await store.write([{ write: "resume", id: "poison" }]);
    await loseTurn();
    assert.notEqual((await getRun(store, "poison")).status, "blocked");
    await takeTurn(store, await registerWorker(store));
  }),

  storeCase("a worker that releases returns its work at once, without a takeover", async (store) => {
    const starter = await registerWorker(store);
    await startWithTasks(store, starter, "order-1", 1);
    await startRun(store, "order-2");
    for (let n = 0; n <= MAX_TAKEOVERS; n++) {
      const worker = await registerWorker(store);
      const held = await takeTurn(store, worker);
      const item = await takeItem(store, worker);
      await store.releaseWorker(worker);
      await assertNothingWritten(store, async () => {
        const [turn, end] = await store.write([turnWrite(store, held, { entries: [WAITS] }), endItemWrite(item)]);
        assert.deepEqual([turn.status, end.status], ["lease_lost", "lease_lost"]);
      });
    }
    await takeTurn(store, starter);
    await takeItem(store, starter);
    assert.notEqual((await getRun(store, "order-2")).status, "blocked");
  }),

  storeCase("a run that has ended is not taken over with its last holder", async (store, t) => {
    const worker = await registerWorker(store);
    await commitTurn(store, await startHeld(store, worker, "order-1"), COMPLETES);
    assert.deepEqual(await takeOver(store, t), { workers: 1, turns: 0, items: 0 });
    assert.equal((await getRun(store, "order-1")).status, "completed");
    assert.deepEqual(await claimTurns(store, await registerWorker(store)), []);
  }),

  storeCase("the holders of a run and its items, and the time of its last commit, can be read", async (store, t) => {
    const [worker, other] = [await registerWorker(store), await registerWorker(store)];
    const due = await startRun(store, "due");
    const startedAt = store.now();
    t.clock.advance(1_000);
    const held = await startHeld(store, worker, "held");
    const heldAt = store.now();
    const tasks = await startHeld(store, worker, "tasks");
    t.clock.advance(1_000);
    await commitTurn(
      store,
      tasks,
      taskParts(tasks, 3, (n) => (n === 1 ? { claim: { worker: other, token: newToken() } } : {})),
    );
    t.clock.advance(1_000);
    const none = { worker: undefined, items: [] };
    assert.deepEqual(await store.readHolders([tasks.run, 1_000_000, due.run, held.run]), [
      { run: tasks.run, worker, committedAt: heldAt + 1_000, items: [{ item: "Task(1)", worker: other }] },
      { ...none, run: due.run, committedAt: startedAt },
      { ...none, run: held.run, worker, committedAt: heldAt },
    ]);
    await store.releaseWorker(worker);
    await store.releaseWorker(other);
    assert.deepEqual(
      (await store.readHolders([tasks.run, held.run])).map((holder) => [holder.worker, holder.items]),
      [
        [undefined, []],
        [undefined, []],
      ],
    );
    assert.deepEqual(await store.readHolders([]), []);
  }),

  storeCase("a new store has no history", async (store) => {
    await startRun(store, "order-1");
    assert.deepEqual(await store.readHistory(), []);
  }),
];
