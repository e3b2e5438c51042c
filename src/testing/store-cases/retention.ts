import assert from "node:assert/strict";
import type { DeleteOutcome, Expired, FinalStatus, Store } from "../../kernel/index.ts";
import { forkWrite, twoSteps } from "./forks.ts";
import { goOn } from "./generations.ts";
import { startChild } from "./maintenance.ts";
import {
  commitTurn,
  COMPLETES,
  getRun,
  newRun,
  registerWorker,
  startEnded,
  startHeld,
  startRun,
  takeTurn,
  type TurnParts,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const HOUR = 3_600_000;
const FAILS: TurnParts = { entries: [["RunFailed", ""]], then: "failed" };

/** One batch: runs that ended more than an hour ago. */
function expire(store: Store, status: FinalStatus = "completed", definition = "checkout"): Promise<Expired> {
  return store.expire({ definition, status, endedBefore: store.now() - HOUR });
}

async function ids(store: Store): Promise<readonly string[]> {
  return (await store.listRuns({ limit: 1_000 })).map(({ id }) => id);
}

export const retentionCases: readonly StoreCase[] = [
  storeCase("the runs of a definition expire by status and age, with everything they have", async (store, t) => {
    const worker = await registerWorker(store);
    const old = await startEnded(store, worker, "old");
    await commitTurn(store, await startHeld(store, worker, "failed"), FAILS);
    await startEnded(store, worker, "other", { definition: "refund" });
    await startHeld(store, worker, "live");
    t.clock.advance(HOUR + 1);
    await startEnded(store, worker, "young");
    const youngEnd = (await getRun(store, "young")).endedAt;
    assert.deepEqual(await expire(store), { runs: 1, kept: 0, after: undefined, nextEndedAt: youngEnd });
    assert.deepEqual(await ids(store), ["young", "live", "other", "failed"]);
    assert.deepEqual(await store.readJournal(old.run, 0), []);
    assert.deepEqual(await expire(store), { runs: 0, kept: 0, after: undefined, nextEndedAt: youngEnd });
    assert.equal((await expire(store, "failed")).runs, 1);
    assert.equal((await expire(store, "cancelled")).runs, 0);
    assert.equal((await expire(store, "completed", "refund")).runs, 1);
    assert.deepEqual(await ids(store), ["young", "live"]);
    assert.deepEqual(await store.check(), []);
  }),

  storeCase("a run that ended exactly at the time does not expire, and one after `after` does", async (store, t) => {
    const worker = await registerWorker(store);
    await startEnded(store, worker, "one");
    const first = (await getRun(store, "one")).endedAt ?? 0;
    t.clock.advance(10);
    await startEnded(store, worker, "two");
    const request = { definition: "checkout", status: "completed" } as const;
    assert.deepEqual(await store.expire({ ...request, endedBefore: first }), {
      runs: 0,
      kept: 0,
      after: undefined,
      nextEndedAt: first,
    });
    assert.equal((await store.expire({ ...request, endedBefore: first + HOUR, after: first })).runs, 1);
    assert.deepEqual(await ids(store), ["one"]);
  }),

  storeCase(
    "a family expires as a whole, by the status of its root, after its last run has ended",
    async (store, t) => {
      const worker = await registerWorker(store);
      const [parent, child] = await startChild(store, worker, await startHeld(store, worker, "parent"), "child");
      await commitTurn(store, parent, FAILS);
      t.clock.advance(HOUR + 1);
      assert.deepEqual(await expire(store, "failed"), { runs: 0, kept: 1, after: undefined, nextEndedAt: undefined });
      await commitTurn(store, child, COMPLETES);
      assert.equal((await expire(store, "failed")).runs, 0);
      t.clock.advance(HOUR + 1);
      assert.deepEqual(await expire(store, "completed"), {
        runs: 0,
        kept: 0,
        after: undefined,
        nextEndedAt: undefined,
      });
      assert.equal((await expire(store, "failed")).runs, 2);
      assert.deepEqual(await ids(store), []);
    },
  ),

  storeCase("the generations of a run expire together, by the status of the last one", async (store, t) => {
    const worker = await registerWorker(store);
    await goOn(store, await startHeld(store, worker, "order-1"));
    const turn = await takeTurn(store, worker);
    t.clock.advance(HOUR + 1);
    for (const status of ["completed", "failed", "cancelled"] as const)
      assert.equal((await expire(store, status)).runs, 0);
    await commitTurn(store, turn, FAILS);
    t.clock.advance(HOUR + 1);
    assert.equal((await expire(store, "completed")).runs, 0);
    assert.equal((await expire(store, "failed")).runs, 2);
    assert.equal(await store.findRun("order-1"), undefined);
  }),

  storeCase("a run does not expire while a fork of it exists", async (store, t) => {
    const worker = await registerWorker(store);
    const origin = await twoSteps(store, worker, "a");
    await store.write([await forkWrite(store, origin, 1, "b")]);
    await commitTurn(store, origin, COMPLETES);
    const fork = await takeTurn(store, worker, ["agent"]);
    t.clock.advance(HOUR + 1);
    assert.deepEqual(
      [(await expire(store, "completed", "agent")).runs, (await expire(store, "completed", "agent")).kept],
      [0, 1],
    );
    await commitTurn(store, fork, COMPLETES);
    t.clock.advance(HOUR + 1);
    while ((await expire(store, "completed", "agent")).runs > 0);
    assert.deepEqual(await ids(store), []);
  }),

  storeCase("several connections expire the same runs, and each run is deleted once", async (store, t) => {
    const worker = await registerWorker(store);
    const others = [store, await t.openAgain(), await t.openAgain()];
    for (let n = 0; n < 12; n++) await startEnded(store, worker, `run-${n}`);
    t.clock.advance(HOUR + 1);
    const batches = await Promise.all(others.map((one) => expire(one)));
    assert.equal(
      batches.reduce((sum, { runs }) => sum + runs, 0),
      12,
    );
    assert.deepEqual(await ids(store), []);
    assert.deepEqual(await store.check(), []);
  }),

  storeCase("start keys are deleted when their runs are gone, and others stay", async (store, t) => {
    const worker = await registerWorker(store);
    const claim = { worker, token: "held" };
    await store.write([{ write: "start", run: newRun("old"), singleton: "a", claim }]);
    const { run, head, chain } = await getRun(store, "old");
    await commitTurn(store, { run, id: "old", token: "held", head, chain, read: 0, inbox: [] }, COMPLETES);
    t.clock.advance(HOUR + 1);
    await store.write([{ write: "start", run: newRun("live"), singleton: "b" }]);
    assert.equal((await expire(store)).runs, 1);
    await store.deleteUnusedKeys("checkout");
    const [again] = await store.write([{ write: "start", run: newRun("again"), singleton: "b" }]);
    assert.deepEqual([again.status, again.record.id], ["singleton", "live"]);
    const [other] = await store.write([{ write: "start", run: newRun("other"), singleton: "a" }]);
    assert.equal(other.status, "started");
  }),

  storeCase("one ended run is deleted with its family, and its id is free again", async (store) => {
    const worker = await registerWorker(store);
    const [parent, child] = await startChild(store, worker, await startHeld(store, worker, "parent"), "child");
    await commitTurn(store, child, COMPLETES);
    await commitTurn(store, parent, COMPLETES);
    await startEnded(store, worker, "other");
    assert.deepEqual(await store.deleteRun("parent"), { status: "deleted", runs: 2 });
    assert.deepEqual(await ids(store), ["other"]);
    assert.deepEqual(await store.readJournal(parent.run, 0), []);
    assert.deepEqual(await store.deleteRun("parent"), { status: "no_run" });
    assert.equal((await startRun(store, "parent")).status, "queued");
    assert.deepEqual(await store.check(), []);
  }),

  storeCase("a run is not deleted while a run of its family lives, sends, or has a fork", async (store) => {
    const worker = await registerWorker(store);
    const refuses = async (id: string, expected: DeleteOutcome): Promise<void> => {
      const before = await ids(store);
      assert.deepEqual(await store.deleteRun(id), expected);
      assert.deepEqual(await ids(store), before);
    };
    const start = await startHeld(store, worker, "parent");
    await refuses("parent", { status: "live", run: "parent", as: "running" });
    const [parent, child] = await startChild(store, worker, start, "child");
    await commitTurn(store, parent, COMPLETES);
    await refuses("parent", { status: "live", run: "child", as: "running" });
    await commitTurn(store, child, COMPLETES);
    await refuses("child", { status: "child", of: "parent" });

    const sender = await startHeld(store, worker, "sender");
    await commitTurn(store, sender, {
      entries: [["MessageSent", "Message(0)", '{"payload":0}'], ...(COMPLETES.entries ?? [])],
      outgoing: [{ seq: sender.head + 1, destination: "mail" }],
      then: "completed",
    });
    await refuses("sender", { status: "sending", run: "sender" });

    const origin = await twoSteps(store, worker, "origin");
    await store.write([await forkWrite(store, origin, 1, "fork")]);
    await commitTurn(store, origin, COMPLETES);
    await refuses("origin", { status: "forked", run: "origin", by: "fork" });
  }),
];
