import assert from "node:assert/strict";
import type { EndedRun, LogRow, SequenceWrite, Store } from "../../kernel/index.ts";
import { commit, completed, endParts, RUN_FAILED, startWithNodes, takeNodes } from "./flow-actions.ts";
import { goOn } from "./generations.ts";
import { startChild } from "./maintenance.ts";
import {
  commitTurn,
  COMPLETES,
  getRun,
  LEASE_MS,
  registerWorker,
  startEnded,
  startHeld,
  startRun,
  startWaiting,
  takeTurn,
  type HeldTurn,
  type TurnParts,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const HOUR = 3_600_000;
const FAILS: TurnParts = { entries: [["RunFailed", ""]], then: "failed" };

async function federated(store: Store): Promise<number> {
  await store.setFederated(true);
  return registerWorker(store);
}

async function noted(store: Store): Promise<readonly string[]> {
  return (await store.listEnded(100)).map(({ record }) => `${record.id}#${record.generation} ${record.status}`);
}

/** The record of an end, as a sequencer would write it. */
function recordOf({ record }: EndedRun) {
  return { rec: `{"run":"${record.id}","size":${record.head}}`, run: record.run, head: record.head };
}

function sequenceWrite(expect: number, ended: readonly EndedRun[], keep = false): SequenceWrite {
  const done = ended.map(({ record: { run, head } }) => ({ run, head, keep }));
  return { write: "sequence", expect, records: ended.map(recordOf), done };
}

/** Appends the records of all noted runs. */
async function sequence(store: Store, keep = false): Promise<void> {
  const write = sequenceWrite(await store.logSize(), await store.listEnded(100), keep);
  const [outcome] = await store.write([write]);
  assert.equal(outcome.status, "committed");
}

async function sweep(store: Store, limit = 100): Promise<number> {
  let count = 0;
  for (let after = 0; ;) {
    const page = await store.noteEnded(after, limit);
    count += page.noted;
    if (page.next === undefined) return count;
    after = page.next;
  }
}

async function retry(store: Store, held: HeldTurn): Promise<void> {
  const data = '{"commands":0,"from":2}';
  const { run, head } = held;
  const [outcome] = await store.write([{ write: "retry", run, head, data, items: [], children: [], answers: [] }]);
  assert.equal(outcome.status, "committed");
}

const texts = (log: readonly LogRow[]): readonly string[] => log.map(({ rec }) => rec);

export const logCases: readonly StoreCase[] = [
  storeCase("a federated store notes every end of a run, in the order of the ends", async (store, { clock }) => {
    const worker = await federated(store);
    await startHeld(store, worker, "live");
    const failing = await startHeld(store, worker, "failed");
    const [parent, child] = await startChild(store, worker, await startHeld(store, worker, "parent"), "child");
    await commitTurn(store, child, COMPLETES);
    clock.advance(1);
    await commitTurn(store, parent, { entries: [["RunCancelled", ""]], then: "cancelled" });
    clock.advance(1);
    await commitTurn(store, failing, FAILS);
    clock.advance(1);
    await goOn(store, await startHeld(store, worker, "endless"));
    clock.advance(1);
    await startWaiting(store, worker, "waiting");
    await store.write([{ write: "terminate", id: "waiting", data: "{}", answer: "{}", cancel: "{}" }]);
    clock.advance(1);
    await startWithNodes(store, worker, "flow", "A");
    const [node] = await takeNodes(store, worker, "A");
    await commit(store, completed(node, [], endParts("failed", [RUN_FAILED])));
    assert.deepEqual(await noted(store), [
      "child#0 completed",
      "parent#0 cancelled",
      "failed#0 failed",
      "endless#0 continued",
      "waiting#0 cancelled",
      "flow#0 failed",
    ]);
    const ended = await store.listEnded(2);
    assert.deepEqual(ended, [
      { record: await getRun(store, "child"), adopted: false },
      { record: await getRun(store, "parent"), adopted: false },
    ]);
    clock.advance(1);
    await commitTurn(store, await takeTurn(store, worker), COMPLETES);
    assert.equal((await noted(store)).at(-1), "endless#1 completed");
  }),

  storeCase("a store that is not federated notes nothing", async (store) => {
    const worker = await registerWorker(store);
    assert.equal(await store.isFederated(), false);
    await startEnded(store, worker, "order-1");
    assert.deepEqual([await noted(store), await sweep(store)], [[], 0]);
    assert.deepEqual(await store.deleteRun("order-1"), { status: "deleted", runs: 1 });
  }),

  storeCase("a run that is retried is noted by its next end, and not before", async (store) => {
    const worker = await federated(store);
    const failed = await commitTurn(store, await startHeld(store, worker, "order-1"), FAILS);
    await retry(store, failed);
    assert.deepEqual(await noted(store), []);
    const again = await commitTurn(store, await takeTurn(store, worker), FAILS);
    await sequence(store, true);
    await retry(store, again);
    assert.deepEqual([await noted(store), await sweep(store)], [[], 0]);
    await commitTurn(store, await takeTurn(store, worker), COMPLETES);
    assert.deepEqual(await noted(store), ["order-1#0 completed"]);
    await sequence(store);
    assert.deepEqual(
      (await store.readLog(0, 10)).map(({ n, head }) => [n, head]),
      [
        [1, again.head],
        [2, (await getRun(store, "order-1")).head],
      ],
    );
  }),

  storeCase("records are numbered from 1 in the order in which they are appended", async (store) => {
    const worker = await federated(store);
    const one = await startEnded(store, worker, "order-1");
    await startEnded(store, worker, "order-2");
    await sequence(store);
    assert.deepEqual(await store.readLog(0, 1), [
      { n: 1, rec: '{"run":"order-1","size":2}', run: one.run, head: one.head },
    ]);
    const rest = [{ rec: '{"key":"ä"}' }, { rec: "x".repeat(65_535), run: one.run }];
    const [outcome] = await store.write([{ write: "sequence", expect: 2, records: rest, done: [] }]);
    assert.deepEqual(outcome, { status: "committed", size: 4 });
    assert.deepEqual(
      (await store.readLog(1, 10)).map(({ n, rec, run, head }) => [n, rec, run, head]),
      [
        [2, '{"run":"order-2","size":2}', (await getRun(store, "order-2")).run, 2],
        [3, '{"key":"ä"}', undefined, undefined],
        [4, "x".repeat(65_535), one.run, undefined],
      ],
    );
    assert.deepEqual([await store.logSize(), await noted(store)], [4, []]);
  }),

  storeCase("nothing is appended to a log that has more or fewer records than expected", async (store) => {
    const worker = await federated(store);
    await startEnded(store, worker, "order-1");
    await sequence(store);
    await startEnded(store, worker, "order-2");
    const ended = await store.listEnded(10);
    for (const expect of [0, 2]) {
      const [outcome] = await store.write([sequenceWrite(expect, ended)]);
      assert.deepEqual(outcome, { status: "stale", size: 1 });
    }
    assert.deepEqual([await store.logSize(), await noted(store)], [1, ["order-2#0 completed"]]);
  }),

  storeCase("nothing is appended for an end that is not noted, or that the run has left behind", async (store) => {
    const worker = await federated(store);
    const failed = await commitTurn(store, await startHeld(store, worker, "order-1"), FAILS);
    const first = await store.listEnded(10);
    await retry(store, failed);
    const stale = { status: "stale", size: 0 };
    assert.deepEqual(await store.write([sequenceWrite(0, first)]), [stale]);
    await commitTurn(store, await takeTurn(store, worker), COMPLETES);
    assert.deepEqual(await store.write([sequenceWrite(0, first)]), [stale]);
    const second = await store.listEnded(10);
    assert.deepEqual(await store.write([sequenceWrite(0, second, true)]), [{ status: "committed", size: 1 }]);
    assert.deepEqual(await store.write([sequenceWrite(1, second)]), [{ status: "stale", size: 1 }]);
    assert.deepEqual(
      texts(await store.readLog(0, 10)),
      second.map(recordOf).map(({ rec }) => rec),
    );
  }),

  storeCase("of several sequencers one appends each record", async (store, t) => {
    const worker = await federated(store);
    const others = [store, await t.openAgain(), await t.openAgain()];
    for (let n = 0; n < 9; n++) await startEnded(store, worker, `order-${n}`);
    for (let round = 0; round < 9; round++) {
      const lists = await Promise.all(
        others.map(async (one) => [await one.listEnded(2), await one.logSize()] as const),
      );
      await Promise.all(others.map((one, n) => one.write([sequenceWrite(lists[n]![1], lists[n]![0])])));
    }
    const log = await store.readLog(0, 100);
    assert.deepEqual(
      log.map(({ n }) => n),
      Array.from({ length: 9 }, (_, n) => n + 1),
    );
    assert.equal(new Set(texts(log)).size, 9);
    assert.deepEqual(await noted(store), []);
  }),

  storeCase("a run is kept while its end is noted or it is pinned, with its family", async (store, { clock }) => {
    const worker = await federated(store);
    const [parent, child] = await startChild(store, worker, await startHeld(store, worker, "parent"), "child");
    await commitTurn(store, child, COMPLETES);
    await commitTurn(store, parent, COMPLETES);
    const [first, second] = await store.listEnded(10);
    clock.advance(HOUR);
    const stays = async (status: "logging" | "pinned", run: string): Promise<void> => {
      assert.deepEqual(await store.deleteRun("parent"), { status, run });
      assert.deepEqual(await store.prune(store.now(), { dryRun: true }), { runs: 0 });
      assert.deepEqual(await store.prune(store.now()), { runs: 0 });
      const expired = await store.expire({ definition: "checkout", status: "completed", endedBefore: store.now() });
      assert.deepEqual([expired.runs, expired.kept], [0, 1]);
      assert.equal((await store.listRuns({ limit: 10 })).length, 2);
    };
    await stays("logging", "parent");
    const [run] = [first!, second!].map(({ record }) => record).filter(({ id }) => id === "child");
    const [other] = [first!, second!].filter(({ record }) => record.id === "parent");
    await store.write([sequenceWrite(0, [other!])]);
    await stays("logging", "child");
    await sequence(store, true);
    await stays("pinned", "child");
    assert.deepEqual(await store.write([{ write: "release", runs: [run!.run, other!.record.run] }]), [
      { status: "committed", released: 1 },
    ]);
    assert.deepEqual(await store.prune(store.now()), { runs: 2 });
    assert.equal((await store.readLog(0, 10)).length, 2);
  }),

  storeCase("a release leaves a noted run noted", async (store) => {
    const worker = await federated(store);
    const { run } = await startEnded(store, worker, "order-1");
    const [outcome] = await store.write([{ write: "release", runs: [run, run + 100] }]);
    assert.deepEqual(outcome, { status: "committed", released: 0 });
    assert.deepEqual(await noted(store), ["order-1#0 completed"]);
  }),

  storeCase("a family is forgotten whatever keeps its records, and its records stay in the log", async (store) => {
    const worker = await federated(store);
    const [parent, child] = await startChild(store, worker, await startHeld(store, worker, "parent"), "child");
    await commitTurn(store, child, COMPLETES);
    assert.deepEqual(await store.forget("parent"), { status: "live", run: "parent", as: "running" });
    await sequence(store, true);
    await commitTurn(store, parent, COMPLETES);
    assert.deepEqual(await store.forget("parent"), { status: "deleted", runs: 2 });
    assert.deepEqual([await noted(store), await store.listRuns({ limit: 10 })], [[], []]);
    assert.deepEqual(await store.readJournal(child.run, 0), []);
    assert.deepEqual(texts(await store.readLog(0, 10)), ['{"run":"child","size":2}']);
    assert.deepEqual(await store.forget("parent"), { status: "no_run" });
  }),

  storeCase("a sweep adopts the runs that ended before the store was federated", async (store, { clock }) => {
    const worker = await registerWorker(store);
    for (let n = 0; n < 5; n++) await startEnded(store, worker, `old-${n}`);
    await startHeld(store, worker, "live");
    await startRun(store, "queued");
    clock.advance(1);
    await store.setFederated(true);
    await store.setFederated(true);
    await startEnded(store, worker, "new");
    assert.deepEqual([await sweep(store, 2), await sweep(store, 3)], [5, 0]);
    const ended = await store.listEnded(10);
    assert.deepEqual(
      ended.map(({ record, adopted }) => [record.id, adopted]),
      [...Array.from({ length: 5 }, (_, n) => [`old-${n}`, true]), ["new", false]],
    );
    await sequence(store);
    assert.deepEqual([await sweep(store), await noted(store)], [0, []]);
  }),

  storeCase("several sweeps at the same time note each run once", async (store, t) => {
    const worker = await registerWorker(store);
    for (let n = 0; n < 10; n++) await startEnded(store, worker, `old-${n}`);
    const others = [await t.openAgain(), await t.openAgain()];
    await store.setFederated(true);
    const counts = await Promise.all([store, ...others].map((one) => sweep(one, 3)));
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      10,
    );
    assert.equal((await noted(store)).length, 10);
  }),

  storeCase("what ends while federation is switched off is found when it is on again", async (store, { clock }) => {
    const worker = await federated(store);
    const failed = await commitTurn(store, await startHeld(store, worker, "order-1"), FAILS);
    await sequence(store, true);
    await startEnded(store, worker, "noted");
    const held = await startHeld(store, worker, "order-2");
    await store.setFederated(false);
    assert.equal(await store.isFederated(), false);
    await commitTurn(store, held, COMPLETES);
    await retry(store, failed);
    await commitTurn(store, await takeTurn(store, worker), COMPLETES);
    assert.deepEqual(await noted(store), ["noted#0 completed"]);
    clock.advance(1);
    await store.setFederated(true);
    assert.equal(await sweep(store), 2);
    assert.deepEqual(
      (await store.listEnded(10))
        .map(({ record, adopted }) => [record.id, adopted])
        .toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
      [
        ["noted", false],
        ["order-1", true],
        ["order-2", true],
      ],
    );
    await sequence(store);
    assert.equal(await store.logSize(), 4);
  }),

  storeCase("a store that is not federated any more keeps no run for the log", async (store, { clock }) => {
    const worker = await federated(store);
    await startEnded(store, worker, "order-1");
    await startEnded(store, worker, "order-2");
    clock.advance(HOUR);
    await store.setFederated(false);
    assert.deepEqual(await store.deleteRun("order-1"), { status: "deleted", runs: 1 });
    assert.deepEqual(await store.prune(store.now()), { runs: 1 });
    assert.deepEqual(await noted(store), []);
  }),

  storeCase("a process notes ends from the heartbeat on that follows the switch of another", async (store, t) => {
    const other = await t.openAgain();
    const worker = await registerWorker(other);
    const held = await startHeld(other, worker, "order-1");
    await store.setFederated(true);
    assert.equal(await other.renewLease(worker, LEASE_MS), true);
    await commitTurn(other, held, COMPLETES);
    assert.deepEqual(await noted(store), ["order-1#0 completed"]);
    await store.setFederated(false);
    const second = await startHeld(other, await registerWorker(other), "order-2");
    await commitTurn(other, second, COMPLETES);
    assert.deepEqual(await noted(store), ["order-1#0 completed"]);
  }),

  storeCase("runs are read by number, in the order of the numbers", async (store) => {
    const worker = await registerWorker(store);
    const one = await startEnded(store, worker, "order-1", { tags: ["vip", "web"] });
    const two = await startHeld(store, worker, "order-2");
    assert.deepEqual(await store.readRuns([two.run, one.run + 100, one.run]), [
      await getRun(store, "order-2"),
      undefined,
      await getRun(store, "order-1"),
    ]);
  }),
];
