import assert from "node:assert/strict";
import { assertNothingWritten } from "./store-dump.ts";
import {
  claimItems,
  commitTurn,
  COMPLETES,
  fireDue,
  endItemWrite,
  LEASE_MS,
  newToken,
  registerWorker,
  taskParts,
  send,
  startHeld,
  takeItem,
  takeTurn,
  turnWrite,
  WAITS,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

export const fenceCases: readonly StoreCase[] = [
  storeCase("finished items are deleted by the commit", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const tokens = [newToken(), newToken()];
    const busy = await commitTurn(
      store,
      held,
      taskParts(held, 2, (n) => ({ claim: { worker, token: tokens[n] ?? "" } })),
    );
    const finished = tokens.map((token, n) => ({ item: `Task(${n})`, token }));
    const done = await commitTurn(store, busy, {
      entries: [
        ["TaskCompleted", "Task(0)"],
        ["TaskCompleted", "Task(1)"],
      ],
      finished,
    });
    assert.deepEqual((await store.info()).items, { ready: 0, leased: 0, delayed: 0 });
    const [late] = await store.write([endItemWrite({ run: held.run, item: "Task(0)", token: tokens[0] ?? "" })]);
    assert.equal(late.status, "lease_lost");
    await commitTurn(store, done, COMPLETES);
  }),

  storeCase("one stale finished item rejects the whole commit, the other finished items included", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const tokens = [newToken(), newToken()];
    const busy = await commitTurn(
      store,
      held,
      taskParts(held, 2, (n) => ({ claim: { worker, token: tokens[n] ?? "" } })),
    );
    const [first, second] = tokens.map((token, n) => ({ item: `Task(${n})`, token }));
    assert.ok(first !== undefined && second !== undefined);
    const entries = [
      ["TaskCompleted", "Task(0)"],
      ["TaskCompleted", "Task(1)"],
    ] as const;
    for (const finished of [
      [first, { ...second, token: newToken() }],
      [{ ...first, token: newToken() }, second],
      [first, { item: "Task(9)", token: second.token }],
    ]) {
      await assertNothingWritten(store, async () => {
        assert.deepEqual(await store.write([turnWrite(store, busy, { entries, finished })]), [
          { status: "lease_lost" },
        ]);
      });
    }
    await commitTurn(store, busy, { entries, finished: [first, second] });
  }),

  storeCase("an item that another worker took over rejects the commit of the worker that lost it", async (store, t) => {
    const slow = await registerWorker(store, "slow");
    const held = await startHeld(store, slow, "order-1");
    const busy = await commitTurn(store, held, { ...taskParts(held, 1), then: "release" });
    const mine = await takeItem(store, slow);
    t.clock.advance(LEASE_MS);
    const next = await registerWorker(store, "next");
    await store.reap(next);
    const theirs = await takeItem(store, next);
    await send(store, "order-1");
    const turn = await takeTurn(store, next);
    const entries = [["TaskCompleted", "Task(0)"]] as const;
    await assertNothingWritten(store, async () => {
      const [outcome] = await store.write([turnWrite(store, turn, { entries, finished: [mine] })]);
      assert.equal(outcome.status, "lease_lost");
    });
    assert.equal(turn.head, busy.head);
    await commitTurn(store, turn, { entries, finished: [theirs] });
  }),

  storeCase("dropped items are deleted, also when another worker holds them", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const busy = await commitTurn(
      store,
      held,
      taskParts(held, 3, (n) => (n === 2 ? { availableAt: store.now() + 5 } : {})),
    );
    const [claimed] = await claimItems(store, worker, ["charge"], 1);
    assert.ok(claimed !== undefined);
    await commitTurn(store, busy, {
      entries: [WAITS],
      dropped: ["Task(0)", "Task(1)", "Task(2)", "Task(9)"],
      then: "release",
    });
    t.clock.advance(10);
    await fireDue(store);
    assert.deepEqual(await claimItems(store, worker), []);
    assert.equal((await store.write([endItemWrite(claimed)]))[0].status, "lease_lost");
    assert.deepEqual(await store.readInbox(held.run, 0), []);
  }),
];
