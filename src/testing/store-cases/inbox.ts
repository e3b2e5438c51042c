import assert from "node:assert/strict";
import type { MessageWrite, Write } from "../../kernel/index.ts";
import {
  heldAfter,
  claimTurns,
  commitTurn,
  COMPLETES,
  getRun,
  message,
  newRun,
  registerWorker,
  resolved,
  send,
  startEnded,
  startHeld,
  startRun,
  startWaiting,
  takeTurn,
  turnWrite,
  WAITS,
  WAITS_AGAIN,
  type EntryParts,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

export const inboxCases: readonly StoreCase[] = [
  storeCase("messages are numbered from 1 in the order of their arrival", async (store) => {
    const run = await startRun(store, "order-1");
    await startRun(store, "order-2");
    await store.write([
      message("order-1", resolved("1")),
      message("order-2", resolved("x")),
      message("order-1", resolved("2")),
    ]);
    await send(store, "order-1", resolved("3", "other"));
    assert.deepEqual(await store.readInbox(run.run, 0), [
      { arrival: 1, type: "PromiseResolved", target: "approval", data: "1" },
      { arrival: 2, type: "PromiseResolved", target: "approval", data: "2" },
      { arrival: 3, type: "PromiseResolved", target: "other", data: "3" },
    ]);
    assert.deepEqual(
      (await store.readInbox(run.run, 2)).map((row) => row.arrival),
      [3],
    );
    assert.equal((await getRun(store, "order-1")).arrivals, 3);
  }),

  storeCase("a message returns the number of the run that received it", async (store) => {
    const worker = await registerWorker(store);
    const run = await startRun(store, "order-1");
    await commitTurn(store, await startHeld(store, worker, "gone"), { entries: [["RunFailed", ""]], then: "failed" });
    assert.deepEqual(await store.write([message("order-1"), message("unknown"), message("gone")]), [
      { status: "committed", run: run.run },
      { status: "no_run" },
      { status: "ended", as: "failed" },
    ]);
  }),

  storeCase("a turn is claimed with its unread messages, and a commit deletes those it has read", async (store) => {
    const worker = await registerWorker(store);
    await startWaiting(store, worker, "order-1");
    for (const data of ["1", "2", "3"]) await send(store, "order-1", resolved(data));
    let held = await takeTurn(store, worker);
    assert.deepEqual(
      held.inbox.map((row) => [row.arrival, row.data]),
      [
        [1, "1"],
        [2, "2"],
        [3, "3"],
      ],
    );
    held = await commitTurn(store, held, { entries: [["PromiseResolved", "Promise(0)", "1"]], read: 2 });
    assert.deepEqual(
      (await store.readInbox(held.run, 0)).map((row) => row.arrival),
      [3],
    );
    await commitTurn(store, held, { then: "release" });
    assert.deepEqual(
      (await takeTurn(store, worker)).inbox.map((row) => row.arrival),
      [3],
    );
  }),

  storeCase("`more` is true exactly when there are unread messages", async (store) => {
    const worker = await registerWorker(store);
    let held = await commitTurn(store, await startHeld(store, worker, "order-1"), { entries: [WAITS] });
    let states = 0;
    const moreAfter = async (read: number, then: "hold" | "release"): Promise<boolean> => {
      const write = turnWrite(store, held, { entries: [["StateSet", `State(${states++})`]], read, then });
      const [outcome] = await store.write([write]);
      assert.equal(outcome.status, "committed");
      held = heldAfter(held, write);
      return outcome.more;
    };
    assert.equal(await moreAfter(0, "hold"), false);
    await send(store, "order-1");
    await send(store, "order-1");
    assert.equal(await moreAfter(0, "hold"), true);
    assert.equal(await moreAfter(1, "hold"), true);
    assert.equal(await moreAfter(2, "hold"), false);
    await send(store, "order-1");
    assert.equal(await moreAfter(2, "release"), true);
    held = { ...(await takeTurn(store, worker)), read: 2 };
    assert.equal(await moreAfter(3, "release"), false);
    assert.deepEqual(await claimTurns(store, worker), []);
  }),

  storeCase(
    "a message in the batch of the run's end is counted as unread or returns ended, and is never stored",
    async (store) => {
      const worker = await registerWorker(store);
      const held = await startHeld(store, worker, "order-1");
      const [before, end, late] = await store.write([
        message("order-1"),
        turnWrite(store, held, COMPLETES),
        message("order-1"),
      ]);
      assert.deepEqual([before.status, end.status], ["committed", "committed"]);
      assert.deepEqual(late, { status: "ended", as: "completed" });
      assert.deepEqual(await store.readInbox(held.run, 0), []);
      assert.equal((await getRun(store, "order-1")).unread, 1);
    },
  ),

  storeCase("a second message to a target that accepts one is a duplicate", async (store) => {
    const run = await startRun(store, "order-1");
    await startRun(store, "order-2");
    const once = { ...message("order-1"), once: true };
    const reject = { ...once, arrival: { ...resolved("2"), type: "PromiseRejected" as const } };
    const statuses = async (writes: readonly Write[]) =>
      (await store.write(writes)).map((outcome) => "status" in outcome && outcome.status);
    assert.deepEqual(await statuses([once, once]), ["committed", "duplicate"]);
    assert.deepEqual(await statuses([once, reject]), ["duplicate", "duplicate"]);
    assert.deepEqual(
      await statuses([
        { ...once, arrival: resolved("{}", "other") },
        { ...once, to: "order-2" },
      ]),
      ["committed", "committed"],
    );
    assert.equal((await store.readInbox(run.run, 0)).length, 2);
  }),

  storeCase("a target that accepts one message accepts no other after that one was read", async (store) => {
    const worker = await registerWorker(store);
    await startWaiting(store, worker, "order-1");
    const once = { ...message("order-1"), once: true };
    assert.equal((await store.write([once]))[0].status, "committed");
    const held = await takeTurn(store, worker);
    await commitTurn(store, held, {
      entries: [["PromiseResolved", "Promise(0)"], WAITS_AGAIN],
      read: 1,
      then: "release",
    });
    assert.equal((await store.write([once]))[0].status, "duplicate");
    assert.deepEqual(await store.readInbox(held.run, 0), []);
  }),

  storeCase("the refusal of a second settlement has the first one, before and after it was read", async (store) => {
    const worker = await registerWorker(store);
    await startWaiting(store, worker, "order-1");
    const settle = (data: string): MessageWrite => ({ ...message("order-1", resolved(data)), once: true });
    const refused = { status: "duplicate", settled: '{"value":1}' };
    assert.equal((await store.write([settle('{"value":1}')]))[0].status, "committed");
    assert.deepEqual(await store.write([settle('{"value":2}')]), [refused]);
    const entries: readonly EntryParts[] = [["PromiseResolved", "Promise(0)"], WAITS_AGAIN];
    await commitTurn(store, await takeTurn(store, worker), { entries, read: 1, then: "release" });
    assert.deepEqual(await store.write([settle('{"value":2}')]), [refused]);
  }),

  storeCase("of concurrent messages to a target that accepts one, one is stored", async (store) => {
    const run = await startRun(store, "order-1");
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, n) => store.write([{ ...message("order-1", resolved(`${n}`)), once: true }])),
    );
    assert.equal(outcomes.filter(([outcome]) => outcome.status === "committed").length, 1);
    assert.equal((await store.readInbox(run.run, 0)).length, 1);
  }),

  storeCase("a message to a target that accepts several is never a duplicate", async (store) => {
    const run = await startRun(store, "order-1");
    await store.write([message("order-1"), message("order-1")]);
    assert.equal((await store.readInbox(run.run, 0)).length, 2);
  }),

  storeCase(
    "a turn's messages reach other runs in the same commit, by number, and its children by id",
    async (store) => {
      const worker = await registerWorker(store);
      const stranger = await startWaiting(store, worker, "stranger");
      const byNumber = await startWaiting(store, worker, "by-number");
      const held = await startHeld(store, worker, "sender");
      const taken = { type: "ChildWorkflowFailed", target: "ChildWorkflow(0)", data: "{}" } as const;
      await commitTurn(store, held, {
        ...COMPLETES,
        children: [{ run: newRun("by-id"), command: "ChildWorkflow(0)", detached: false, taken }],
        messages: [
          { to: "by-id", arrival: resolved('"id"') },
          { to: "stranger", arrival: resolved('"not its child"') },
          { to: byNumber.run, arrival: resolved('"number"') },
          { to: byNumber.run, arrival: resolved('"again"') },
        ],
      });
      assert.deepEqual(
        (await store.readInbox((await getRun(store, "by-id")).run, 0)).map((row) => row.data),
        ['"id"'],
      );
      assert.deepEqual(await store.readInbox(stranger.run, 0), []);
      assert.deepEqual(
        (await store.readInbox(byNumber.run, 0)).map((row) => row.data),
        ['"number"', '"again"'],
      );
      assert.equal((await claimTurns(store, worker)).length, 2);
    },
  ),

  storeCase("a turn's messages to ended and unknown runs are dropped", async (store) => {
    const worker = await registerWorker(store);
    const ended = await startEnded(store, worker, "ended");
    const held = await startHeld(store, worker, "sender");
    await commitTurn(store, held, {
      ...COMPLETES,
      messages: [
        { to: ended.run, arrival: resolved() },
        { to: "ended", arrival: resolved() },
        { to: "unknown", arrival: resolved() },
        { to: 4_711, arrival: resolved() },
      ],
    });
    assert.deepEqual(await store.readInbox(ended.run, 0), []);
    assert.equal((await getRun(store, "ended")).arrivals, 0);
    assert.deepEqual(await claimTurns(store, worker), []);
  }),
];
