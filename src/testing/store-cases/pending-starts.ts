import assert from "node:assert/strict";
import type { AdmitOutcome, NewRun, QueueLimits, StartWrite, Store } from "../../kernel/index.ts";
import {
  claimTurns,
  commitTurn,
  COMPLETES,
  fireDue,
  getRun,
  registerWorker,
  send,
  startHeld,
  startWrite,
  takeTurn,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const CANCEL = { type: "CancelRequested", target: "", data: "{}" } as const;

async function declare(store: Store, limits: QueueLimits): Promise<void> {
  await store.write([{ write: "declare-queue", name: "builds", limits }]);
}

async function start(store: Store, id: string, parts: Partial<StartWrite>, run?: Partial<NewRun>) {
  const [outcome] = await store.write([{ ...startWrite(id, run), ...parts }]);
  assert.ok(outcome.status !== "other_definition");
  return outcome;
}

async function startInLine(store: Store, id: string, key?: string, run: Partial<NewRun> = {}): Promise<void> {
  const line = { queue: "builds", ...(key !== undefined && { key }) };
  const outcome = await start(store, id, {}, { slot: line, ...run });
  assert.deepEqual([outcome.status, outcome.record.status], ["started", "queued"]);
}

async function admit(store: Store, limit = 100, version = 1): Promise<AdmitOutcome> {
  const [outcome] = await store.write([{ write: "admit", definitions: [{ name: "checkout", version }], limit }]);
  return outcome;
}

async function claimIds(store: Store, worker: number): Promise<readonly string[]> {
  return (await claimTurns(store, worker)).map(({ record }) => record.id);
}

export const pendingStartCases: readonly StoreCase[] = [
  storeCase("a delayed run starts when its delay is over, and no message starts it earlier", async (store, t) => {
    const worker = await registerWorker(store);
    const begin = store.now();
    const { record } = await start(store, "order-1", { delayMs: 1_000 });
    assert.equal(record.status, "queued");
    await send(store, "order-1");
    assert.deepEqual(await fireDue(store), { runs: [], ready: 0, nextAt: begin + 1_000 });
    t.clock.advance(999);
    await fireDue(store);
    assert.deepEqual(await claimTurns(store, worker), []);
    t.clock.advance(1);
    assert.deepEqual(await fireDue(store), { runs: [record.run], ready: 0, nextAt: undefined });
    const turn = await takeTurn(store, worker);
    assert.equal(turn.inbox.length, 1);
    // The time of the run's code starts with the code. The run's row holds the time of the call.
    assert.equal((await store.readJournal(record.run, 0))[0]?.at, begin + 1_000);
    assert.equal((await getRun(store, "order-1")).createdAt, begin);
  }),

  storeCase("a queue starts as many runs as it has slots, and a run that ends frees its slot", async (store) => {
    const worker = await registerWorker(store);
    await declare(store, { concurrency: 2 });
    for (const id of ["a", "b", "c"]) await startInLine(store, id);
    await startInLine(store, "urgent", undefined, { priority: 5 });
    assert.deepEqual(await claimIds(store, worker), []);
    assert.equal((await admit(store, 1)).runs.length, 1);
    const second = await admit(store);
    assert.deepEqual([second.runs.length, second.held], [1, true]);
    assert.deepEqual(await admit(store), { runs: [], nextAt: undefined, held: true });
    const [urgent, a] = await claimTurns(store, worker);
    assert.deepEqual([urgent?.record.id, a?.record.id], ["urgent", "a"]);
    const held = { ...(await getRun(store, "a")), token: a?.token ?? "", read: 0, inbox: [] };
    // A waiting run keeps its slot.
    const waiting = await commitTurn(store, held, { entries: [["PromiseCreated", "Promise(0)"]], then: "release" });
    assert.deepEqual((await admit(store)).runs, []);
    await send(store, "a");
    const again = await takeTurn(store, worker);
    await commitTurn(store, { ...again, head: waiting.head }, { ...COMPLETES, read: 1 });
    assert.equal((await admit(store)).runs.length, 1);
    assert.deepEqual(await claimIds(store, worker), ["b"]);
    assert.deepEqual((await store.listQueues())[1], {
      name: "builds",
      limits: { concurrency: 2 },
      paused: false,
      pausedAt: undefined,
      ready: 1,
      leased: 2,
      delayed: 0,
      oldestReadyAt: (await getRun(store, "c")).createdAt,
    });
  }),

  storeCase(
    "a run whose key has no free slot does not block other runs, and starts when the key has one",
    async (store) => {
      const worker = await registerWorker(store);
      await declare(store, { perKey: { concurrency: 1 } });
      for (const [id, key] of [
        ["a1", "a"],
        ["a2", "a"],
        ["b1", "b"],
      ] as const)
        await startInLine(store, id, key);
      assert.equal((await admit(store)).runs.length, 2);
      const turns = await claimTurns(store, worker);
      assert.deepEqual(
        turns.map(({ record }) => record.id),
        ["a1", "b1"],
      );
      assert.deepEqual(await admit(store), { runs: [], nextAt: undefined, held: true });
      const [a1] = turns;
      assert.ok(a1 !== undefined);
      await commitTurn(store, { ...a1.record, token: a1.token, read: 0, inbox: [] }, COMPLETES);
      assert.equal((await admit(store)).runs.length, 1);
      assert.deepEqual(await claimIds(store, worker), ["a2"]);
    },
  ),

  storeCase("a run of a version that the worker lacks is not started and takes no slot", async (store, t) => {
    const worker = await registerWorker(store);
    await declare(store, { concurrency: 1 });
    await startInLine(store, "v2", undefined, { version: 2, priority: 9 });
    await startInLine(store, "v1");
    assert.equal((await admit(store, 100, 1)).runs.length, 1);
    assert.deepEqual(await claimIds(store, worker), ["v1"]);
    assert.deepEqual(await admit(store, 100, 2), { runs: [], nextAt: undefined, held: true });
    assert.deepEqual(await admit(store, 100, 3), { runs: [], nextAt: undefined, held: false });
    await store.write([{ write: "change-queue", name: "builds", limits: {} }]);
    assert.equal((await admit(store, 100, 2)).runs.length, 1);
    // The start that replaces another may be of another version.
    const debounce = { debounce: "doc", delayMs: 1_000 };
    const line = { queue: "builds" };
    await start(store, "late", debounce, { slot: line });
    await start(store, "later", debounce, { slot: line, version: 3 });
    t.clock.advance(1_000);
    await fireDue(store);
    assert.deepEqual((await admit(store, 100, 1)).runs, []);
    assert.equal((await admit(store, 100, 3)).runs.length, 1);
  }),

  storeCase("children in a queue wait for a slot like other runs", async (store) => {
    const worker = await registerWorker(store);
    await declare(store, { concurrency: 1 });
    await startInLine(store, "first");
    await admit(store);
    const parent = await startHeld(store, worker, "parent", { definition: "parent" });
    const run = { ...startWrite("child").run, slot: { queue: "builds" } };
    const taken = { type: "ChildWorkflowFailed", target: "ChildWorkflow(0)", data: "{}" } as const;
    const children = [{ run, command: "ChildWorkflow(0)", detached: false, taken }];
    const entries = [["ChildWorkflowInitiated", "ChildWorkflow(0)"]] as const;
    await commitTurn(store, parent, { entries, children, then: "release" });
    assert.deepEqual(await admit(store), { runs: [], nextAt: undefined, held: true });
    await commitTurn(store, await takeTurn(store, worker), COMPLETES);
    await admit(store);
    assert.deepEqual(await claimIds(store, worker), ["child"]);
  }),

  storeCase(
    "a run that is cancelled before it starts leaves its queue, and its holder learns that its code never ran",
    async (store) => {
      const worker = await registerWorker(store);
      await declare(store, { perKey: { concurrency: 1 } });
      for (const id of ["a1", "a2"]) await startInLine(store, id, "a");
      await start(store, "later", { delayMs: 60_000 });
      await admit(store);
      await admit(store);
      assert.deepEqual(await claimIds(store, worker), ["a1"]);
      for (const id of ["a1", "a2", "later"]) await send(store, id, CANCEL);
      const turns = await claimTurns(store, worker);
      assert.deepEqual(
        turns.map(({ record, inbox }) => [record.id, inbox[0]?.target]),
        [
          ["a2", "Start"],
          ["later", "Start"],
        ],
      );
      const [, inbox] = [0, await store.readInbox((await getRun(store, "a1")).run, 0)];
      assert.equal(inbox[0]?.target, "");
      assert.deepEqual((await fireDue(store)).nextAt, undefined);
    },
  ),

  storeCase("a singleton start returns the live run with its key, for every caller", async (store, t) => {
    const other = await t.openAgain();
    const worker = await registerWorker(store);
    const claim = { worker, token: "the first" };
    const first = await start(store, "one", { singleton: "acme", claim });
    assert.equal(first.status, "started");
    const outcomes = await Promise.all([
      start(other, "two", { singleton: "acme" }, { started: '{"input":"other"}' }),
      start(store, "three", { singleton: "acme" }),
    ]);
    for (const { status, record, first: entry } of outcomes) {
      assert.deepEqual([status, record.id], ["singleton", "one"]);
      assert.equal(entry.data, first.first.data);
    }
    assert.equal(await store.findRun("two"), undefined);
    assert.equal((await start(store, "four", { singleton: "other" })).status, "started");
    assert.equal((await start(store, "five", { singleton: "acme" }, { definition: "refund" })).status, "started");
    assert.equal((await start(store, "one", { singleton: "acme" })).status, "exists");
    await commitTurn(store, { ...first.record, token: claim.token, read: 0, inbox: [] }, COMPLETES);
    assert.equal((await start(store, "six", { singleton: "acme" })).status, "started");
    assert.equal((await start(store, "seven", { singleton: "acme" })).record.id, "six");
  }),

  storeCase(
    "a debounced start replaces the input and the start time of a run that has not started",
    async (store, t) => {
      const worker = await registerWorker(store);
      const debounce = { debounce: "doc", delayMs: 1_000 };
      await start(store, "one", debounce, { started: '{"input":1}', tags: ["old"] });
      t.clock.advance(900);
      const second = await start(store, "two", debounce, { started: '{"input":2}', tags: ["new"], priority: 3 });
      assert.deepEqual([second.status, second.record.id, second.first.data], ["debounced", "one", '{"input":2}']);
      assert.deepEqual([second.record.tags, second.record.priority], [["new"], 3]);
      assert.equal(await store.findRun("two"), undefined);
      assert.deepEqual(await store.check(), []);
      t.clock.advance(999);
      await fireDue(store);
      assert.deepEqual(await claimTurns(store, worker), []);
      t.clock.advance(1);
      await fireDue(store);
      const turn = await takeTurn(store, worker);
      assert.equal((await store.readJournal(turn.run, 0))[0]?.data, '{"input":2}');
      // The run has started: the next start creates another run.
      const third = await start(store, "three", debounce, { started: '{"input":3}' });
      assert.deepEqual([third.status, third.record.id], ["started", "three"]);
      assert.equal((await store.readJournal(turn.run, 0))[0]?.data, '{"input":2}');
    },
  ),
];
