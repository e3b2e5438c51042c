import assert from "node:assert/strict";
import type { EndedRunStatus, EntryType } from "../../kernel/index.ts";
import { assertNothingWritten } from "./store-dump.ts";
import {
  claimItems,
  claimTurns,
  commitTurn,
  COMPLETES,
  fireDue,
  getRun,
  endItemWrite,
  message,
  registerWorker,
  resolved,
  taskParts,
  send,
  startHeld,
  turnWrite,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

export const endCases: readonly StoreCase[] = [
  storeCase("every ended run has its status, its time and its last entry", async (store, t) => {
    const worker = await registerWorker(store);
    const ends: readonly [EndedRunStatus, EntryType][] = [
      ["completed", "RunCompleted"],
      ["failed", "RunFailed"],
      ["cancelled", "RunCancelled"],
    ];
    for (const [then, type] of ends) {
      t.clock.advance(10);
      const held = await startHeld(store, worker, then);
      t.clock.advance(10);
      await commitTurn(store, held, { entries: [[type, "", '{"why":1}']], then });
      const record = await getRun(store, then);
      assert.deepEqual([record.status, record.endedAt, record.createdAt], [then, store.now(), store.now() - 10]);
      const [last] = await store.readJournal(held.run, 1);
      assert.equal(last?.type, type);
      assert.deepEqual(await store.readEnd(held.run), { record, last });
      assert.deepEqual(
        (await store.readProgress([held.run])).map((progress) => [progress.status, progress.token]),
        [[then, undefined]],
      );
    }
  }),

  storeCase("the end of a live run has its row and no entry; that of an unknown run is undefined", async (store) => {
    const { run } = await startHeld(store, await registerWorker(store), "order-1");
    assert.deepEqual(await store.readEnd(run), { record: await getRun(store, "order-1"), last: undefined });
    assert.equal(await store.readEnd(4_711), undefined);
  }),

  storeCase("after the end every token is void, and a message returns ended", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const busy = await commitTurn(store, held, taskParts(held, 2));
    const [one] = await claimItems(store, worker, ["charge"], 1);
    assert.ok(one !== undefined);
    const ended = await commitTurn(store, busy, COMPLETES);
    await assertNothingWritten(store, async () => {
      const [turn, stop, item, back, sent, resumed] = await store.write([
        turnWrite(store, ended, { entries: [["StateSet", "State(0)"]] }),
        { write: "stop", run: ended.run, token: ended.token, status: "blocked", evidence: "{}" },
        endItemWrite(one),
        { write: "return-item", run: one.run, item: one.item, token: one.token, attempt: 1 },
        message("order-1"),
        { write: "resume", id: "order-1" },
      ]);
      assert.deepEqual([turn.status, stop.status, back.status], ["lease_lost", "lease_lost", "lease_lost"]);
      assert.deepEqual(item.status, "lease_lost");
      assert.deepEqual(sent, { status: "ended", as: "completed" });
      assert.deepEqual(resumed, { status: "not_stopped", as: "completed" });
    });
    assert.deepEqual(await claimTurns(store, worker), []);
  }),

  storeCase("the end of a run deletes its items, timers and inbox and counts the unread messages", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const tasks = taskParts(held, 3, (n) => (n === 2 ? { availableAt: store.now() + 50 } : {}));
    const busy = await commitTurn(store, held, {
      entries: [...tasks.entries, ["TimerStarted", "Timer(0)"]],
      items: [
        ...tasks.items,
        {
          item: "Timer(0)",
          kind: "timer",
          name: "TimerFired",
          priority: 0,
          availableAt: store.now() + 50,
          seq: held.head + 4,
        },
      ],
    });
    for (const data of ["1", "2", "3"]) await send(store, "order-1", resolved(data));
    await commitTurn(store, busy, { ...COMPLETES, read: 1 });

    t.clock.advance(1_000);
    assert.deepEqual(await fireDue(store), { runs: [], ready: 0, nextAt: undefined });
    assert.deepEqual(await claimItems(store, worker), []);
    assert.deepEqual(await store.readInbox(held.run, 0), []);
    assert.deepEqual((await store.info()).items, { ready: 0, leased: 0, delayed: 0 });
    const { arrivals, unread } = await getRun(store, "order-1");
    assert.deepEqual([arrivals, unread], [3, 2]);
  }),

  storeCase(
    "after the end of a run with more items than one transaction deletes, none can be claimed",
    async (store) => {
      const worker = await registerWorker(store);
      const held = await startHeld(store, worker, "order-1");
      await commitTurn(store, await commitTurn(store, held, taskParts(held, 1_500)), COMPLETES);
      assert.deepEqual(await claimItems(store, worker), []);
      for (let sweeps = 0; sweeps < 3; sweeps++) await store.reap(worker);
      assert.deepEqual((await store.info()).items, { ready: 0, leased: 0, delayed: 0 });
    },
  ),
];
