import assert from "node:assert/strict";
import { DEDUP_MS, type Arrival, type MessageWrite } from "../../kernel/index.ts";
import {
  commitTurn,
  COMPLETES,
  getRun,
  inboxData,
  message,
  newRun,
  registerWorker,
  startHeld,
  startRun,
  turnWrite,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

function signalled(data: string, target = "add"): Arrival {
  return { type: "SignalReceived", target, data };
}

function withId(dedupId: string, to: string, arrival: Arrival): MessageWrite {
  return { ...message(to, arrival), dedupId };
}

export const messageCases: readonly StoreCase[] = [
  storeCase("a second message with the same dedup id is a duplicate, with any content", async (store) => {
    const run = await startRun(store, "order-1");
    const other = await startRun(store, "order-2");
    const outcomes = await store.write([
      withId("a", "order-1", signalled("1")),
      withId("a", "order-1", signalled("2", "remove")),
      withId("b", "order-1", signalled("3")),
      withId("a", "order-2", signalled("4")),
    ]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["committed", "duplicate", "committed", "committed"],
    );
    assert.deepEqual(await inboxData(store, run.run), ["1", "3"]);
    assert.deepEqual(await inboxData(store, other.run), ["4"]);
  }),

  storeCase("the dedup id of a message does not collide with the name of a target", async (store) => {
    await startRun(store, "order-1");
    const once: MessageWrite = { ...message("order-1"), once: true };
    const outcomes = await store.write([withId("approval", "order-1", signalled("1")), once]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["committed", "committed"],
    );
  }),

  storeCase("the dedup id of a message is stored for a day", async (store, { clock }) => {
    await startRun(store, "order-1");
    const once: MessageWrite = { ...message("order-1"), once: true };
    const statuses = async (): Promise<readonly string[]> =>
      (await store.write([withId("a", "order-1", signalled("1")), once])).map(({ status }) => status);
    assert.deepEqual(await statuses(), ["committed", "committed"]);
    clock.advance(DEDUP_MS - 1);
    await store.reap(0);
    assert.deepEqual(await statuses(), ["duplicate", "duplicate"]);
    clock.advance(2);
    await store.reap(0);
    assert.deepEqual(await statuses(), ["committed", "duplicate"]);
  }),

  storeCase("the end of a run counts messages that the code never took as unread", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await store.write([1, 2, 3].map((n) => message("order-1", signalled(`${n}`))));
    const read = await commitTurn(store, held, { entries: [["SignalReceived", "", "1"]], read: 1 });
    await commitTurn(store, read, { ...COMPLETES, unread: 1 });
    assert.equal((await getRun(store, "order-1")).unread, 3);
  }),

  storeCase("a run's record counts its received and its read messages", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await store.write([1, 2, 3].map((n) => message("order-1", signalled(`${n}`))));
    await commitTurn(store, held, { entries: [["SignalReceived", "", "1"]], read: 1 });
    const { arrivals, read } = await getRun(store, "order-1");
    assert.deepEqual([arrivals, read], [3, 1]);
  }),

  storeCase("a turn returns the children that its messages by id have reached", async (store) => {
    const worker = await registerWorker(store);
    await startRun(store, "stranger");
    const held = await startHeld(store, worker, "parent");
    const taken = { type: "ChildWorkflowFailed", target: "ChildWorkflow(0)", data: "{}" } as const;
    const write = turnWrite(store, held, {
      entries: [["ChildWorkflowInitiated", "ChildWorkflow(0)"]],
      children: [{ run: newRun("child"), command: "ChildWorkflow(0)", detached: false, taken }],
      messages: ["child", "stranger", "unknown"].map((to) => ({ to, arrival: signalled("1") })),
      then: "release",
    });
    const [outcome] = await store.write([write]);
    assert.equal(outcome.status, "committed");
    assert.deepEqual(outcome.reached, [(await getRun(store, "child")).run]);
  }),

  storeCase("a run that accepts updates may wait without an open command in its journal", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "door", { started: '{"input":1,"updates":true}' });
    await commitTurn(store, held, { then: "release" });
    assert.deepEqual(await store.check(), []);
  }),
];
