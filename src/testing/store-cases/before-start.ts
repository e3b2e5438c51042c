import assert from "node:assert/strict";
import type { Arrival, ExpectedRun, MessageWrite } from "../../kernel/index.ts";
import {
  claimTurns,
  commitTurn,
  COMPLETES,
  getRun,
  inboxData,
  message,
  newRun,
  newToken,
  registerWorker,
  resolved,
  startHeld,
  startRun,
  startWrite,
  takeTurn,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const EXPECTED: ExpectedRun = { definition: "checkout", kind: "workflow", version: 1, runtime: "somewhere" };
const CANCEL: Arrival = { type: "CancelRequested", target: "", data: "{}" };

function early(to: string, data: string, target?: string): MessageWrite {
  return { ...message(to, resolved(data, target)), beforeStart: EXPECTED };
}

export const beforeStartCases: readonly StoreCase[] = [
  storeCase(
    "a message before the start creates an expected run: a row without a journal that is not due",
    async (store) => {
      const worker = await registerWorker(store);
      const [outcome] = await store.write([early("order-1", "1")]);
      const record = await getRun(store, "order-1");
      assert.deepEqual(outcome, { status: "committed", run: record.run });
      const { status, definition, head, arrivals } = record;
      assert.deepEqual(
        { status, definition, head, arrivals },
        { status: "expected", definition: "checkout", head: 0, arrivals: 1 },
      );
      assert.deepEqual(await store.readJournal(record.run, 0), []);
      assert.deepEqual(await claimTurns(store, worker), []);
      assert.deepEqual(
        (await store.listRuns({ statuses: ["expected"], limit: 10 })).map(({ id }) => id),
        ["order-1"],
      );
    },
  ),

  storeCase("a start turns an expected run into a run that has its messages in order", async (store) => {
    const worker = await registerWorker(store);
    const expected = await store.write([early("order-1", "1"), early("order-1", "2", "other")]);
    assert.deepEqual(
      expected.map(({ status }) => status),
      ["committed", "committed"],
    );
    const claim = { worker, token: newToken() };
    const run = newRun("order-1", { version: 3, priority: 7, tags: ["late"] });
    const [outcome] = await store.write([{ write: "start", run, claim, messages: [resolved("3", "third")] }]);
    assert.equal(outcome.status, "started");
    const { record } = outcome;
    assert.deepEqual([record.status, record.head, record.version, record.priority], ["running", 1, 3, 7]);
    assert.deepEqual(await getRun(store, "order-1"), record);
    assert.deepEqual(await inboxData(store, record.run), ["1", "2", "3"]);
    assert.equal((await store.readJournal(record.run, 0))[0]?.data, run.started);
    const held = {
      run: record.run,
      id: record.id,
      token: claim.token,
      head: 1,
      chain: record.chain,
      read: 0,
      inbox: [],
    };
    await commitTurn(store, held, { ...COMPLETES, read: 3 });
  }),

  storeCase("an expected run that is started without a claim is due, with its messages", async (store) => {
    const worker = await registerWorker(store);
    await store.write([early("order-1", "1")]);
    await startRun(store, "order-1");
    const held = await takeTurn(store, worker);
    assert.deepEqual([held.head, held.inbox.map(({ data }) => data)], [1, ["1"]]);
  }),

  storeCase("a target that accepts one message accepts only one, also before the start", async (store) => {
    const once: MessageWrite = { ...early("order-1", "1"), once: true };
    assert.deepEqual(
      (await store.write([once, once])).map(({ status }) => status),
      ["committed", "duplicate"],
    );
    await startRun(store, "order-1");
    assert.deepEqual(await store.write([once]), [{ status: "duplicate", settled: "1" }]);
  }),

  storeCase("a message without beforeStart is refused when there is no run, and nothing is written", async (store) => {
    assert.deepEqual(await store.write([message("order-1")]), [{ status: "no_run" }]);
    assert.equal(await store.findRun("order-1"), undefined);
  }),

  storeCase("a run expected with one definition cannot be started with another", async (store) => {
    await store.write([early("order-1", "1")]);
    const [outcome] = await store.write([startWrite("order-1", { definition: "refund" })]);
    assert.deepEqual(outcome, { status: "other_definition", record: await getRun(store, "order-1") });
    assert.equal((await getRun(store, "order-1")).status, "expected");
  }),

  storeCase("a message to a run of another definition is refused", async (store) => {
    const run = await startRun(store, "order-1");
    const outcomes = await store.write([
      { ...message("order-1"), definition: "refund" },
      { ...message("order-1"), definition: "checkout" },
    ]);
    assert.deepEqual(outcomes, [
      { status: "other_definition", definition: "checkout" },
      { status: "committed", run: run.run },
    ]);
  }),

  storeCase("a cancelled expected run is deleted, and its id is free", async (store) => {
    await store.write([early("order-1", "1")]);
    const { run } = await getRun(store, "order-1");
    assert.equal((await store.write([message("order-1", CANCEL)]))[0].status, "committed");
    assert.equal(await store.findRun("order-1"), undefined);
    const started = await startRun(store, "order-1");
    assert.ok(started.run > run, "numbers are never used again");
    assert.deepEqual(await inboxData(store, started.run), []);
  }),

  storeCase("an expected run that is never started is pruned when it is old enough", async (store, { clock }) => {
    await store.write([early("order-1", "1")]);
    assert.deepEqual(await store.prune(store.now()), { runs: 0 });
    clock.advance(1_000);
    assert.deepEqual(await store.prune(store.now()), { runs: 1 });
    assert.equal(await store.findRun("order-1"), undefined);
  }),

  storeCase("a child accepts messages before it is started", async (store) => {
    const worker = await registerWorker(store);
    const parent = await startHeld(store, worker, "parent");
    await store.write([early("child", "1")]);
    const taken = { type: "ChildWorkflowFailed", target: "ChildWorkflow(0)", data: "{}" } as const;
    await commitTurn(store, parent, {
      entries: [["ChildWorkflowInitiated", "ChildWorkflow(0)"]],
      children: [{ run: newRun("child"), command: "ChildWorkflow(0)", detached: false, taken }],
      then: "release",
    });
    const held = await takeTurn(store, worker);
    assert.deepEqual([held.id, held.inbox.map(({ data }) => data)], ["child", ["1"]]);
    assert.equal((await getRun(store, "child")).parent, parent.run);
  }),

  storeCase("no message is lost when a start and messages race for one id", async (store, t) => {
    const other = await t.openAgain();
    for (let n = 0; n < 10; n += 1) {
      const id = `order-${n}`;
      const sent = ["1", "2"].map((data) => other.write([early(id, data)]));
      const [started] = await Promise.all([store.write([startWrite(id)]), ...sent]);
      assert.equal(started[0].status, "started");
      const { run, arrivals } = await getRun(store, id);
      assert.equal(arrivals, 2);
      assert.deepEqual([...(await inboxData(store, run))].toSorted(), ["1", "2"]);
    }
  }),
];
