import assert from "node:assert/strict";
import type { NewChild, NewItem, QueueLimits, Store } from "../../kernel/index.ts";
import { arrival, startFlow } from "./flow-actions.ts";
import {
  claimItems,
  commitTurn,
  COMPLETES,
  DONE,
  LEASE_MS,
  newRun,
  newToken,
  newTokens,
  registerWorker,
  startHeld,
  startWithTasks,
  taskParts,
  timerParts,
  turnWrite,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const declare = (store: Store, limits: QueueLimits): Promise<unknown> =>
  store.write([{ write: "declare-queue", name: "mail", limits }]);

const inMail = (key?: string) => (): Partial<NewItem> => ({
  slot: { queue: "mail", ...(key !== undefined && { key }) },
});

export const runWorkCases: readonly StoreCase[] = [
  storeCase("the work of a run lists its turn, its holder and its items, leased ones first", async (store, t) => {
    const [worker, other] = [await registerWorker(store), await registerWorker(store)];
    const held = await startHeld(store, worker, "order-1");
    const claimedAt = store.now();
    assert.deepEqual((await store.readRunWork(held.run))?.turn, { due: "no", worker, since: claimedAt, takeovers: 0 });
    t.clock.advance(1_000);
    const released = await commitTurn(store, held, {
      ...taskParts(held, 2, (n) => (n === 1 ? { claim: { worker: other, token: newToken() } } : {})),
      then: "release",
    });
    const work = await store.readRunWork(released.run);
    assert.deepEqual(work?.turn, { due: "no", worker: undefined, since: undefined, takeovers: 0 });
    const task = { kind: "task", name: "charge", attempt: 0, takeovers: 0, availableAt: store.now() };
    const none = { queue: undefined, key: undefined, failures: undefined };
    assert.deepEqual(work?.items, [
      { ...task, ...none, item: "Task(1)", state: "leased", worker: other, since: store.now() },
      { ...task, ...none, item: "Task(0)", state: "ready", worker: undefined, since: undefined },
    ]);
    assert.deepEqual([work?.itemCount, work?.children, work?.messages, work?.nodes], [2, [], [], []]);
    assert.equal(await store.readRunWork(released.run + 1_000), undefined);
  }),

  storeCase("the work of a run says that a worker lost its turn, and how often", async (store, t) => {
    const worker = await registerWorker(store);
    const { run } = await startHeld(store, worker, "order-1");
    t.clock.advance(LEASE_MS + 1);
    await store.reap(await registerWorker(store));
    assert.deepEqual((await store.readRunWork(run))?.turn, {
      due: "yes",
      worker: undefined,
      since: undefined,
      takeovers: 1,
    });
  }),

  storeCase("the work of a run lists timers, and starts that have not begun", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, { ...timerParts(held, store.now() + 60_000), then: "release" });
    const [timer] = (await store.readRunWork(held.run))?.items ?? [];
    assert.deepEqual([timer?.kind, timer?.state, timer?.availableAt], ["timer", "delayed", store.now() + 60_000]);
    const [{ record }] = await store.write([{ write: "start", run: newRun("later"), delayMs: 5_000 }]);
    const later = await store.readRunWork(record.run);
    assert.deepEqual(
      [later?.turn.due, later?.items.map(({ item, kind, state }) => [item, kind, state])],
      ["not_started", [["Start", "start", "delayed"]]],
    );
  }),

  storeCase("the work of a run lists its live children; ended ones only count", async (store) => {
    const worker = await registerWorker(store);
    const parent = await startHeld(store, worker, "parent");
    const children = [0, 1].map((n): NewChild => {
      const command = `ChildWorkflow(${n})`;
      const claim = { worker, token: newToken() };
      const taken = { type: "ChildWorkflowFailed", target: command, data: "{}" } as const;
      return { run: newRun(`child-${n}`, { definition: "child" }), command, detached: false, taken, claim };
    });
    const entries = children.map(({ command }) => ["ChildWorkflowInitiated", command, "{}"] as const);
    const write = turnWrite(store, parent, { entries, children, then: "release" });
    const [outcome] = await store.write([write]);
    assert.equal(outcome.status, "committed");
    const [first] = outcome.children;
    assert.ok(first !== undefined);
    const list = async (): Promise<unknown> => (await store.readRunWork(parent.run))?.children;
    const child = (n: number): object => ({
      id: `child-${n}`,
      definition: "child",
      status: "running",
      command: `ChildWorkflow(${n})`,
    });
    assert.deepEqual(await list(), [child(0), child(1)]);
    assert.equal((await store.readRunWork(first.run))?.parent, "parent");
    const { run, id, head, chain } = first;
    const token = children[0]?.claim?.token ?? "";
    await commitTurn(store, { run, id, head, chain, token, read: 0, inbox: [] }, COMPLETES);
    assert.deepEqual(await list(), [child(1)]);
    assert.equal(await store.countChildren(parent.run), 2);
    assert.equal(await store.countChildren(run), 0);
  }),

  storeCase("the work of a run lists undelivered messages, in order", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, {
      entries: [["MessageSent", "Message(0)", "{}"], ["MessageSent", "Message(1)", "{}"], DONE],
      outgoing: [
        { seq: held.head + 1, destination: "mail" },
        { seq: held.head + 2, destination: "chat" },
      ],
      then: "completed",
    });
    const sent = { sentAt: store.now(), availableAt: store.now(), attempt: 0, worker: undefined };
    assert.deepEqual((await store.readRunWork(held.run))?.messages, [
      { ...sent, destination: "mail" },
      { ...sent, destination: "chat" },
    ]);
  }),

  storeCase("the work of a flow's run lists the nodes that wait, and what arrived", async (store) => {
    const worker = await registerWorker(store);
    const { run } = await startFlow(store, worker, "import-1", {
      arrivals: [arrival("total", "tax", 2, { cause: undefined }), arrival("price", "input", 1, { cause: undefined })],
    });
    assert.deepEqual((await store.readRunWork(run))?.nodes, [
      { node: "total", required: 2, completed: 1, arrived: ["tax"] },
    ]);
  }),

  storeCase("the use of a queue names who holds its slots, as a whole and for a key", async (store) => {
    const worker = await registerWorker(store);
    assert.equal(await store.readQueueUse("task", "mail"), undefined);
    await declare(store, { concurrency: 2, perKey: { concurrency: 1 } });
    const held = await startWithTasks(store, worker, "order-1", 2, inMail("acme"));
    await startWithTasks(store, worker, "order-2", 1, inMail("other"));
    await claimItems(store, worker);
    const use = await store.readQueueUse("task", "mail", "acme");
    assert.deepEqual([use?.paused, use?.limits.concurrency, use?.whole.held], [false, 2, 2]);
    assert.deepEqual(use?.whole.holders.map(({ id }) => id).sort(), ["order-1", "order-2"]);
    assert.deepEqual(use?.ofKey, {
      held: 1,
      holders: [{ run: held.run, id: "order-1", item: "Task(0)" }],
      admitted: undefined,
      opensAt: undefined,
    });
    const states = (await store.readRunWork(held.run))?.items.map(({ item, state }) => [item, state]);
    assert.deepEqual(states, [
      ["Task(0)", "leased"],
      ["Task(1)", "parked"],
    ]);
    assert.equal((await store.readQueueUse("start", "mail"))?.whole.held, 0);
  }),

  storeCase("the use of a queue says when its rate opens, also after the rate was lowered", async (store, t) => {
    const worker = await registerWorker(store);
    await declare(store, { rate: { limit: 2, perMs: 60_000 } });
    await startWithTasks(store, worker, "order-1", 3, inMail());
    const claim = (): Promise<unknown> =>
      store.write([{ write: "claim-items", worker, tokens: newTokens(1), names: ["charge"] }]);
    await claim();
    const first = store.now();
    const opening = async (): Promise<unknown> => {
      const { admitted, opensAt } = (await store.readQueueUse("task", "mail"))?.whole ?? {};
      return [admitted, opensAt];
    };
    assert.deepEqual(await opening(), [1, undefined]);
    t.clock.advance(1_000);
    await claim();
    const second = store.now();
    assert.deepEqual(await opening(), [2, first + 60_000]);
    await store.write([
      { write: "change-queue", name: "mail", paused: true, limits: { rate: { limit: 1, perMs: 60_000 } } },
    ]);
    assert.deepEqual(await opening(), [2, second + 60_000]);
    const { paused, pausedAt } = (await store.readQueueUse("task", "mail")) ?? {};
    assert.deepEqual([paused, pausedAt], [true, second]);
  }),
];
