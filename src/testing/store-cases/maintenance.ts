import assert from "node:assert/strict";
import type { NewChild, Store } from "../../kernel/index.ts";
import { dumpStore } from "./store-dump.ts";
import {
  claimItems,
  claimTurns,
  commitTurn,
  COMPLETES,
  fireDue,
  getRun,
  type HeldTurn,
  LEASE_MS,
  newRun,
  newToken,
  registerWorker,
  resolved,
  timerParts,
  startEnded,
  startHeld,
  startRun,
  startWaiting,
  startWithTasks,
  takeItem,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const HOUR = 3_600_000;

/** Starts a child that is leased to the parent's worker. Returns both held turns. */
export async function startChild(
  store: Store,
  worker: number,
  parent: HeldTurn,
  id: string,
  n = 0,
): Promise<readonly [HeldTurn, HeldTurn]> {
  const command = `ChildWorkflow(${n})`;
  const token = newToken();
  const child: NewChild = {
    run: newRun(id),
    command,
    detached: false,
    claim: { worker, token },
    taken: { type: "ChildWorkflowFailed", target: command, data: "{}" },
  };
  const after = await commitTurn(store, parent, { entries: [["ChildWorkflowInitiated", command]], children: [child] });
  const { run, head, chain } = await getRun(store, id);
  return [after, { run, id, token, head, chain, read: 0, inbox: [] }];
}

export const maintenanceCases: readonly StoreCase[] = [
  storeCase("rekeying changes no readable payload", async (store) => {
    const worker = await registerWorker(store);
    const held = await startWithTasks(store, worker, "with tasks", 1);
    const item = await takeItem(store, worker);
    await store.write([
      { write: "return-item", run: held.run, item: item.item, token: item.token, attempt: 1, failures: "[1]" },
      { write: "message", to: "with tasks", arrival: resolved(), once: false },
    ]);
    const stopped = await startHeld(store, worker, "stopped");
    await store.write([
      { write: "stop", run: stopped.run, token: stopped.token, status: "blocked", evidence: '{"message":"m"}' },
    ]);
    const before = await dumpStore(store);
    try {
      assert.equal((await store.rekey()).unreadable, 0);
    } catch (error) {
      // The store has no codec.
      assert.equal((error as { code?: unknown }).code, "BAD_OPTIONS");
    }
    assert.deepEqual(await dumpStore(store), before);
    assert.equal((await takeItem(store, worker)).failures, "[1]");
  }),

  storeCase("prune deletes the runs that ended before the given time, and only those", async (store, t) => {
    const worker = await registerWorker(store);
    const old = await startEnded(store, worker, "old");
    await startRun(store, "old but queued", { definition: "other" });
    await startHeld(store, worker, "old but held");
    await startWaiting(store, worker, "old but waiting");
    t.clock.advance(HOUR);
    await startEnded(store, worker, "young");
    assert.deepEqual(await store.prune(store.now() - HOUR / 2), { runs: 1 });
    assert.equal(await store.findRun("old"), undefined);
    assert.deepEqual(await store.readJournal(old.run, 0), []);
    const left = (await store.listRuns({ limit: 10 })).map((record) => record.id);
    assert.deepEqual(left, ["young", "old but waiting", "old but held", "old but queued"]);
    assert.equal((await store.readJournal((await getRun(store, "young")).run, 0)).length, 2);
    assert.deepEqual(await store.prune(store.now() - HOUR / 2), { runs: 0 });
  }),

  storeCase(
    "a dry run of prune counts the runs it would delete, in whole families, and deletes nothing",
    async (store, t) => {
      const worker = await registerWorker(store);
      await startEnded(store, worker, "alone");
      const start = await startHeld(store, worker, "parent");
      const [parent, child] = await startChild(store, worker, start, "child");
      await commitTurn(store, child, COMPLETES);
      await commitTurn(store, parent, COMPLETES);
      t.clock.advance(HOUR);
      await startEnded(store, worker, "young");
      let last: readonly [number, number] = [0, 0];
      const onProgress = (done: number, total: number): void => void (last = [done, total]);
      assert.deepEqual(await store.prune(store.now() - HOUR / 2, { dryRun: true, onProgress }), { runs: 3 });
      assert.ok(last[0] <= last[1] && last[1] > 0);
      assert.equal((await store.listRuns({ limit: 10 })).length, 4);
      assert.deepEqual(await store.prune(store.now() - HOUR / 2), { runs: 3 });
    },
  ),

  storeCase("a family is pruned as a whole, once every run of it ended before the given time", async (store, t) => {
    const worker = await registerWorker(store);
    const start = await startHeld(store, worker, "grandparent");
    const [grandparent, middle] = await startChild(store, worker, start, "parent");
    const [parent, child] = await startChild(store, worker, middle, "child");
    const pruned = async (): Promise<number> => {
      t.clock.advance(HOUR);
      return (await store.prune(store.now() - HOUR / 2)).runs;
    };
    await commitTurn(store, grandparent, COMPLETES);
    assert.equal(await pruned(), 0);
    await commitTurn(store, child, COMPLETES);
    assert.equal(await pruned(), 0);
    await commitTurn(store, parent, COMPLETES);
    assert.deepEqual(await store.prune(store.now() - HOUR / 2), { runs: 0 });
    assert.equal((await store.listRuns({ limit: 10 })).length, 3);
    assert.equal(await pruned(), 3);
    assert.deepEqual(await store.listRuns({ limit: 10 }), []);
  }),

  storeCase("a live child keeps its parent and its siblings from being pruned", async (store, t) => {
    const worker = await registerWorker(store);
    const start = await startHeld(store, worker, "parent");
    const [middle, ended] = await startChild(store, worker, start, "ended");
    const [parent, live] = await startChild(store, worker, middle, "live", 1);
    await commitTurn(store, ended, COMPLETES);
    await commitTurn(store, parent, COMPLETES);
    t.clock.advance(HOUR);
    assert.deepEqual(await store.prune(store.now()), { runs: 0 });
    assert.equal((await store.listRuns({ limit: 10 })).length, 3);
    await commitTurn(store, live, COMPLETES);
  }),

  storeCase("a pruned id is free again", async (store, t) => {
    const worker = await registerWorker(store);
    await startEnded(store, worker, "order-1", { started: '{"input":1}' });
    t.clock.advance(HOUR);
    await store.prune(store.now());
    const again = await startRun(store, "order-1", { started: '{"input":2}' });
    assert.deepEqual(
      (await store.readJournal(again.run, 0)).map((entry) => entry.data),
      ['{"input":2}'],
    );
  }),

  storeCase("a message to the number of a pruned run is dropped", async (store, t) => {
    const worker = await registerWorker(store);
    const sender = await startHeld(store, worker, "sender");
    const pruned = await startEnded(store, worker, "pruned");
    t.clock.advance(HOUR);
    await store.prune(store.now());
    const next = await startRun(store, "next");
    await commitTurn(store, sender, { ...COMPLETES, messages: [{ to: pruned.run, arrival: resolved() }] });
    assert.deepEqual(await store.readInbox(next.run, 0), []);
    assert.equal((await getRun(store, "next")).arrivals, 0);
  }),

  storeCase("a backup opens as a store with the same runs, and they continue there", async (store, t) => {
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "tasks", 2);
    await startEnded(store, worker, "ended");
    await startRun(store, "due");
    const before = await dumpStore(store);
    const path = t.backupPath();
    await store.backup(path);
    await startRun(store, "after the backup");

    const copy = await t.openBackup(path);
    assert.deepEqual(await dumpStore(copy), before);
    const next = await registerWorker(copy);
    assert.equal((await claimTurns(copy, next)).length, 1);
    assert.equal((await claimItems(copy, next)).length, 2);
    assert.equal((await claimTurns(store, worker)).length, 2);
  }),

  storeCase("a healthy store reports progress and no problem", async (store) => {
    const worker = await registerWorker(store);
    for (let n = 0; n < 5; n++) await startEnded(store, worker, `run-${n}`);
    const steps: (readonly [number, number])[] = [];
    assert.deepEqual(await store.check((done, total) => steps.push([done, total])), []);
    for (const [done, total] of steps) assert.ok(done <= total);
  }),
];

export const timeCases: readonly StoreCase[] = [
  storeCase("time moves with the clock", async (store, t) => {
    const start = store.now();
    assert.ok(Number.isInteger(start));
    t.clock.advance(1_500);
    assert.equal(store.now(), start + 1_500);
  }),

  storeCase("time never goes backwards when the wall clock is set back, and does not stand still", async (store, t) => {
    t.clock.advance(10);
    await startRun(store, "before");
    const start = store.now();
    t.clock.setBack(HOUR);
    assert.ok(store.now() >= start);
    t.clock.advance(1_000);
    assert.ok(store.now() >= start + 1_000);
    const record = await startRun(store, "after");
    assert.ok(record.createdAt >= start + 1_000);
  }),

  storeCase("timers fire and leases expire on time although the wall clock was set back", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, timerParts(held, store.now() + 1_000));
    t.clock.setBack(HOUR);
    t.clock.advance(LEASE_MS);
    assert.deepEqual((await fireDue(store)).runs, [held.run]);
    const reaper = await registerWorker(store, "reaper");
    assert.equal((await store.reap(reaper)).turns, 1);
  }),

  storeCase(
    "a connection opened after the wall clock was set back continues from the stored time",
    async (store, t) => {
      t.clock.advance(5_000);
      const { createdAt } = await startRun(store, "order-1");
      t.clock.setBack(HOUR);
      const other = await t.openAgain();
      assert.ok(other.now() >= createdAt);
      assert.ok((await startRun(other, "order-2")).createdAt >= createdAt);
    },
  ),
];
