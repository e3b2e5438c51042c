import assert from "node:assert/strict";
import { CHAIN_START, chainAfter, findJournalFault, markOf } from "../../kernel/index.ts";
import {
  claimTurns,
  commitTurn,
  COMPLETES,
  getRun,
  message,
  newRun,
  newToken,
  newTokens,
  registerWorker,
  resolved,
  startHeld,
  startRun,
  startWrite,
  versioned,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

export const startCases: readonly StoreCase[] = [
  storeCase("a started run is queued, holds its first entry, and its turn is due", async (store) => {
    const worker = await registerWorker(store);
    const run = newRun("order-1", { version: 7, priority: 3, tags: ["vip", "eu"], runtime: "node 24" });
    const [outcome] = await store.write([{ write: "start", run }]);
    assert.equal(outcome.status, "started");

    const chain = chainAfter(CHAIN_START, "RunStarted", "", run.started);
    const { record, first } = outcome;
    assert.deepEqual(first, {
      seq: 1,
      type: "RunStarted",
      command: "",
      data: run.started,
      at: store.now(),
      mark: markOf(chain),
    });
    assert.deepEqual(record, {
      run: record.run,
      id: "order-1",
      generation: record.generation,
      definition: "checkout",
      kind: "workflow",
      version: 7,
      status: "queued",
      parent: undefined,
      parentCommand: undefined,
      priority: 3,
      tags: ["vip", "eu"],
      head: 1,
      chain,
      arrivals: 0,
      read: 0,
      unread: 0,
      createdAt: store.now(),
      lostTurns: 0,
      endedAt: undefined,
      errorCode: undefined,
      runtime: "node 24",
      budget: undefined,
      evidence: undefined,
    });
    assert.deepEqual(await getRun(store, "order-1"), record);
    assert.deepEqual(await store.readJournal(record.run, 0), [first]);
    assert.equal(findJournalFault([first], record), undefined);

    const turns = await claimTurns(store, worker, [{ name: "checkout", version: 7 }]);
    assert.deepEqual(
      turns.map((turn) => [turn.record.run, turn.record.head, turn.record.chain, turn.inbox]),
      [[record.run, 1, chain, []]],
    );
  }),

  storeCase("starting an id again returns exists with the first entry of the first start", async (store, t) => {
    const record = await startRun(store, "order-1", { started: '{"input":1}' });
    t.clock.advance(1_000);
    const [again] = await store.write([
      startWrite("order-1", { started: '{"input":2}', definition: "other", tags: ["x"] }),
    ]);
    assert.equal(again.status, "exists");
    assert.deepEqual(again.record, record);
    assert.equal(again.first.data, '{"input":1}');
    assert.deepEqual([again.first], await store.readJournal(record.run, 0));
  }),

  storeCase("of 100 concurrent starts of one id one starts the run", async (store) => {
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, n) => store.write([startWrite("order-1", { started: `{"input":${n}}` })])),
    );
    const starts = outcomes.map(([outcome]) => outcome);
    assert.equal(starts.filter((outcome) => outcome.status === "started").length, 1);
    assert.equal(new Set(starts.map((outcome) => outcome.record.run)).size, 1);
    assert.equal(new Set(starts.map((outcome) => "first" in outcome && outcome.first.data)).size, 1);
    assert.equal((await store.listRuns({ limit: 10 })).length, 1);
  }),

  storeCase("the same id twice in one batch starts once", async (store) => {
    const [first, second] = await store.write([
      startWrite("order-1", { started: '{"input":1}' }),
      startWrite("order-1", { started: '{"input":2}' }),
    ]);
    assert.equal(first.status, "started");
    assert.equal(second.status, "exists");
    assert.equal(second.first.data, '{"input":1}');
  }),

  storeCase("concurrent starts of one id on two connections start it once", async (store, t) => {
    const other = await t.openAgain();
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? store : other).write([startWrite(`order-${n >> 2}`)])),
    );
    assert.equal(outcomes.filter(([outcome]) => outcome.status === "started").length, 5);
    assert.equal((await other.listRuns({ limit: 10 })).length, 5);
  }),

  storeCase("a run started with a claim is leased to its starter, and no other worker can claim it", async (store) => {
    const [mine, other] = [await registerWorker(store), await registerWorker(store)];
    const held = await startHeld(store, mine, "order-1");
    assert.equal(held.head, 1);
    assert.deepEqual(await claimTurns(store, other), []);
    assert.deepEqual(await claimTurns(store, mine), []);
    assert.deepEqual(
      (await store.readProgress([held.run])).map((pulse) => pulse.token),
      [held.token],
    );
    await commitTurn(store, held, COMPLETES);
  }),

  storeCase("a start with a claim on an id that exists does not lease its turn", async (store) => {
    const [mine, other] = [await registerWorker(store), await registerWorker(store)];
    const held = await startHeld(store, mine, "order-1");
    const [again] = await store.write([{ ...startWrite("order-1"), claim: { worker: other, token: newToken() } }]);
    assert.equal(again.status, "exists");
    await commitTurn(store, held, COMPLETES);
  }),

  storeCase("an ended run keeps its id", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, COMPLETES);
    const [again] = await store.write([startWrite("order-1")]);
    assert.equal(again.status, "exists");
    assert.equal(again.record.status, "completed");
    assert.deepEqual(await claimTurns(store, worker), []);
  }),

  storeCase("the writes of a batch are applied in order", async (store) => {
    const worker = await registerWorker(store);
    const [early, started, sent, turns] = await store.write([
      message("order-1"),
      startWrite("order-1"),
      message("order-1", resolved('{"ok":true}')),
      { write: "claim-turns", worker, tokens: newTokens(5), definitions: [versioned("checkout")] },
    ]);
    assert.deepEqual([early.status, started.status, sent.status], ["no_run", "started", "committed"]);
    assert.deepEqual(
      turns.map((turn) => [turn.record.id, turn.inbox]),
      [["order-1", [{ arrival: 1, type: "PromiseResolved", target: "approval", data: '{"ok":true}' }]]],
    );
  }),

  storeCase("an empty batch returns an empty list", async (store) => {
    assert.deepEqual(await store.write([]), []);
  }),

  storeCase("an unknown id has no run", async (store) => {
    await startRun(store, "order-1");
    assert.equal(await store.findRun("order-2"), undefined);
    assert.deepEqual(await store.readJournal(4_711, 0), []);
  }),
];
