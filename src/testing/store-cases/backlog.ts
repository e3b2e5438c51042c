import assert from "node:assert/strict";
import { nodeRoute, SUSPECT_AFTER, type Backlog, type NewItem, type Store } from "../../kernel/index.ts";
import {
  claimItems,
  claimTurns,
  commitTurn,
  fireDue,
  LEASE_MS,
  registerWorker,
  taskParts,
  timerParts,
  startHeld,
  startRun,
  startWaiting,
  startWithTasks,
  startWrite,
  takeItem,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

async function declare(store: Store): Promise<void> {
  await store.write([{ write: "declare-queue", name: "mail", limits: { perKey: { concurrency: 1 } } }]);
}

const NONE = { version: undefined, queue: undefined, label: undefined };

/** `turn checkout@1: 2` */
function texts(backlog: readonly Backlog[]): readonly string[] {
  return backlog.map(({ kind, name, version, queue, label, count }) => {
    const where = [...(queue === undefined ? [] : [queue]), ...(label === undefined ? [] : [`#${label}`])];
    return [kind, version === undefined ? name : `${name}@${version}`, ...where].join(" ") + `: ${count}`;
  });
}

export const backlogCases: readonly StoreCase[] = [
  storeCase("the backlog is listed by what a worker needs to claim it", async (store, t) => {
    const worker = await registerWorker(store);
    await declare(store);
    const slot = { queue: "mail", key: "a" };
    const overrides = (n: number): Partial<NewItem> =>
      [{}, { name: "refund" }, { slot }, { slot, name: "refund" }, { name: nodeRoute("import", 2) }, route][n] ?? {};
    const route = { name: nodeRoute("import", 2, undefined, "gpu") };
    await startWithTasks(store, worker, "order-1", 6, overrides);
    await startRun(store, "order-2");
    t.clock.advance(5);
    for (const [id, version] of [
      ["order-3", 1],
      ["order-4", 2],
    ] as const)
      await startRun(store, id, { version });
    await store.write([startWrite("order-5", { version: 3, slot: { queue: "mail" } })]);
    const backlog = await store.readBacklog();
    assert.deepEqual(texts(backlog), [
      "node import@2: 1",
      "node import@2 #gpu: 1",
      "start checkout@3 mail: 1",
      "task charge: 1",
      "task charge mail: 1",
      "task refund: 1",
      "task refund mail: 1",
      "turn checkout@1: 2",
      "turn checkout@2: 1",
    ]);
    assert.deepEqual(backlog[3], { ...NONE, kind: "task", name: "charge", count: 1, oldestAt: store.now() - 5 });
    assert.deepEqual([backlog[7]?.oldestAt, backlog[8]?.oldestAt], [store.now() - 5, store.now()]);
  }),

  storeCase("a node with the longest possible route is listed and claimed", async (store) => {
    const worker = await registerWorker(store);
    const long = "€".repeat(133);
    const longest = "€".repeat(134);
    const last = `${longest.slice(1)}!`;
    const [name, other] = [last, longest].map((label) => nodeRoute(long, Number.MAX_SAFE_INTEGER, longest, label));
    assert.ok(name !== undefined && other !== undefined);
    assert.equal(Buffer.byteLength(other), 1_222);
    const line = { queue: longest };
    await startWithTasks(store, worker, "order-1", 2, (n) => ({ slot: line, name: n === 0 ? name : other }));
    assert.deepEqual(
      (await store.readBacklog()).map(({ label, count }) => [label, count]),
      [
        [last, 1],
        [longest, 1],
      ],
    );
    assert.equal((await takeItem(store, worker, [name])).name, name);
    assert.equal((await takeItem(store, worker, [other])).name, other);
  }),

  storeCase("leased, delayed and stopped work is not part of the backlog", async (store, t) => {
    const worker = await registerWorker(store);
    await startWaiting(store, worker, "waits");
    const held = await startHeld(store, worker, "order-1");
    const later = { availableAt: store.now() + 1_000 };
    await commitTurn(
      store,
      held,
      taskParts(held, 2, (n) => (n === 1 ? later : {})),
    );
    await claimItems(store, worker);
    const asleep = await startHeld(store, worker, "asleep");
    await commitTurn(store, asleep, { ...timerParts(asleep, store.now() + 500), then: "release" });
    await store.write([{ ...startWrite("delayed"), delayMs: 1_000 }]);
    await startRun(store, "paused");
    await store.write([{ write: "pause", id: "paused" }]);
    assert.deepEqual(await store.readBacklog(), []);
    t.clock.advance(1_000);
    await fireDue(store);
    assert.deepEqual(texts(await store.readBacklog()), ["task charge: 1", "turn checkout@1: 2"]);
  }),

  storeCase("suspects and parked items are part of the backlog", async (store, t) => {
    await declare(store);
    const starter = await registerWorker(store);
    await startWithTasks(store, starter, "order-1", 1);
    await startRun(store, "order-2");
    for (let takeovers = 1; takeovers <= SUSPECT_AFTER; takeovers++) {
      const worker = await registerWorker(store);
      await claimTurns(store, worker);
      await claimItems(store, worker);
      t.clock.advance(LEASE_MS);
      await store.reap(await registerWorker(store, "reaper"));
    }
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "order-3", 3, () => ({ name: "mail", slot: { queue: "mail", key: "a" } }));
    assert.equal((await claimItems(store, worker, ["mail"])).length, 1);
    assert.deepEqual(texts(await store.readBacklog()), ["task charge: 1", "task mail mail: 2", "turn checkout@1: 1"]);
  }),

  storeCase("counts stop at the given limit and include the lowest priority", async (store, t) => {
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "order-1", 1, () => ({ priority: -1 }));
    await startRun(store, "first", { priority: -1 });
    const oldest = store.now();
    t.clock.advance(60_000);
    await startWithTasks(store, worker, "order-2", 5);
    for (let n = 0; n < 5; n++) await startRun(store, `run-${n}`);
    const waiting = (count: number) => [
      { ...NONE, kind: "task", name: "charge", count, oldestAt: oldest },
      { ...NONE, kind: "turn", name: "checkout", version: 1, count, oldestAt: oldest },
    ];
    assert.deepEqual(await store.readBacklog(3), waiting(3));
    assert.deepEqual(await store.readBacklog(), waiting(6));
    const [queue] = await store.listQueues(3);
    assert.deepEqual([queue?.ready, queue?.oldestReadyAt], [3, oldest]);
  }),
];
