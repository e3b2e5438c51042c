import assert from "node:assert/strict";
import { findJournalFault } from "../../kernel/index.ts";
import { assertNothingWritten, dumpStore } from "./store-dump.ts";
import {
  heldAfter,
  claimItems,
  claimTurns,
  commitTurn,
  COMPLETES,
  DONE,
  getRun,
  LEASE_MS,
  newRun,
  newToken,
  registerWorker,
  resolved,
  taskParts,
  send,
  startEnded,
  startHeld,
  startRun,
  startWaiting,
  takeTurn,
  turnWrite,
  WAITS,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

/** The chain of another history. */
const OTHER_CHAIN = "0123456789abcdef".repeat(4);

export const turnCases: readonly StoreCase[] = [
  storeCase("a commit appends its entries densely and moves head and chain", async (store, t) => {
    const worker = await registerWorker(store);
    let held = await startHeld(store, worker, "order-1");
    const first = turnWrite(store, held, { entries: [WAITS, ["StateSet", "State(0)", '{"k":1}']] });
    held = await commitTurn(store, held, { entries: [WAITS, ["StateSet", "State(0)", '{"k":1}']] });
    t.clock.advance(5);
    const second = turnWrite(store, held, { entries: [["OperationCompleted", "Operation(0)", '{"output":"ü"}']] });
    held = await commitTurn(store, held, { entries: [["OperationCompleted", "Operation(0)", '{"output":"ü"}']] });

    const record = await getRun(store, "order-1");
    const journal = await store.readJournal(held.run, 0);
    assert.deepEqual(
      journal.map((entry) => entry.seq),
      [1, 2, 3, 4],
    );
    assert.deepEqual(journal.slice(1), [...first.entries, ...second.entries]);
    assert.deepEqual([record.head, record.chain], [4, held.chain]);
    assert.equal(findJournalFault(journal, record), undefined);
  }),

  storeCase("a commit with a wrong token writes nothing anywhere", async (store) => {
    const worker = await registerWorker(store);
    const other = await startWaiting(store, worker, "other");
    const held = await startHeld(store, worker, "order-1");
    await send(store, "order-1");
    const wrong = { ...held, token: newToken() };
    const tasks = taskParts(held, 2);
    await assertNothingWritten(store, async () => {
      const [outcome] = await store.write([
        turnWrite(store, wrong, {
          entries: [...tasks.entries, ["ChildWorkflowInitiated", "ChildWorkflow(0)"], DONE],
          items: tasks.items,
          read: 1,
          children: [
            {
              run: newRun("child"),
              command: "ChildWorkflow(0)",
              detached: false,
              taken: { type: "ChildWorkflowFailed", target: "ChildWorkflow(0)", data: "{}" },
            },
          ],
          messages: [{ to: other.run, arrival: resolved() }],
          then: "completed",
        }),
      ]);
      assert.deepEqual(outcome, { status: "lease_lost" });
    });
    await commitTurn(store, held, { ...COMPLETES, read: 1 });
  }),

  storeCase("the token of one run is void for another", async (store) => {
    const worker = await registerWorker(store);
    const [one, two] = [await startHeld(store, worker, "order-1"), await startHeld(store, worker, "order-2")];
    await assertNothingWritten(store, async () => {
      const [outcome] = await store.write([turnWrite(store, { ...one, token: two.token }, COMPLETES)]);
      assert.equal(outcome.status, "lease_lost");
    });
  }),

  storeCase("the token of a returned turn is void", async (store) => {
    const worker = await registerWorker(store);
    const held = await startWaiting(store, worker, "order-1");
    await assertNothingWritten(store, async () => {
      const [outcome] = await store.write([turnWrite(store, held, COMPLETES)]);
      assert.equal(outcome.status, "lease_lost");
    });
  }),

  storeCase("a repeated commit returns already_committed and writes nothing twice", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    for (const then of ["hold", "release"] as const) {
      const run = await startHeld(store, worker, `order-${then}`);
      const write = turnWrite(store, run, { ...taskParts(run, 1), then });
      assert.equal((await store.write([write]))[0].status, "committed");
      await assertNothingWritten(store, async () => {
        assert.deepEqual(await store.write([write]), [{ status: "already_committed" }]);
      });
    }
    const end = turnWrite(store, held, COMPLETES);
    assert.equal((await store.write([end]))[0].status, "committed");
    await assertNothingWritten(store, async () => {
      assert.deepEqual(await store.write([end]), [{ status: "already_committed" }]);
    });
  }),

  storeCase("a repeated commit is recognized after the run has continued", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const write = turnWrite(store, held, { entries: [WAITS] });
    await store.write([write]);
    const later = await commitTurn(store, heldAfter(held, write), { entries: [["StateSet", "State(0)"]] });
    await assertNothingWritten(store, async () => {
      assert.deepEqual(await store.write([write]), [{ status: "already_committed" }]);
    });
    await commitTurn(store, later, COMPLETES);
  }),

  storeCase("a wrong head with the right token returns conflict and writes nothing", async (store) => {
    const worker = await registerWorker(store);
    const held = await commitTurn(store, await startHeld(store, worker, "order-1"), { entries: [WAITS] });
    await assertNothingWritten(store, async () => {
      const behind = turnWrite(store, { ...held, head: 1 }, { entries: [["StateSet", "State(0)"]] });
      const ahead = turnWrite(store, { ...held, head: 5 }, { entries: [["StateSet", "State(0)"]] });
      assert.deepEqual(await store.write([behind]), [{ status: "conflict" }]);
      assert.deepEqual(await store.write([ahead]), [{ status: "conflict" }]);
    });
    await commitTurn(store, held, COMPLETES);
  }),

  storeCase("a commit with another chain than the run's returns conflict and writes nothing", async (store) => {
    const worker = await registerWorker(store);
    const held = await commitTurn(store, await startHeld(store, worker, "order-1"), { entries: [WAITS] });
    await assertNothingWritten(store, async () => {
      const other = turnWrite(store, { ...held, chain: OTHER_CHAIN }, { entries: [["StateSet", "State(0)"]] });
      assert.deepEqual(await store.write([other]), [{ status: "conflict" }]);
      const idle = turnWrite(store, { ...held, chain: OTHER_CHAIN }, { then: "release" });
      assert.deepEqual(await store.write([idle]), [{ status: "conflict" }]);
    });
    await commitTurn(store, held, COMPLETES);
  }),

  storeCase("a commit without entries changes only the turn", async (store) => {
    const worker = await registerWorker(store);
    const held = await commitTurn(store, await startHeld(store, worker, "order-1"), { entries: [WAITS] });
    await commitTurn(store, held, { then: "release" });
    const record = await getRun(store, "order-1");
    assert.deepEqual([record.head, record.chain], [held.head, held.chain]);
    assert.deepEqual(
      (await store.readProgress([held.run])).map((pulse) => pulse.token),
      [undefined],
    );
  }),

  storeCase("a held turn cannot be claimed, and a turn without unread messages is not due", async (store) => {
    const worker = await registerWorker(store);
    const held = await commitTurn(store, await startHeld(store, worker, "order-1"), { entries: [WAITS] });
    assert.deepEqual(await claimTurns(store, worker), []);
    await commitTurn(store, held, { then: "release" });
    assert.deepEqual(await claimTurns(store, worker), []);
    await send(store, "order-1");
    assert.equal((await takeTurn(store, worker)).run, held.run);
  }),

  storeCase("rejected writes of a batch do not affect the others", async (store) => {
    const worker = await registerWorker(store);
    const good = await Promise.all([1, 2, 3].map((n) => startHeld(store, worker, `good-${n}`)));
    const bad = await Promise.all([1, 2, 3].map((n) => startHeld(store, worker, `bad-${n}`)));
    const writes = good.flatMap((held, n) => {
      const stale = { ...(bad[n] ?? held), token: newToken() };
      return [turnWrite(store, stale, COMPLETES), turnWrite(store, held, { ...taskParts(held, 1), then: "release" })];
    });
    const statuses = (await store.write(writes)).map((outcome) => outcome.status);
    assert.deepEqual(statuses, ["lease_lost", "committed", "lease_lost", "committed", "lease_lost", "committed"]);
    for (const n of [1, 2, 3]) {
      assert.equal((await getRun(store, `good-${n}`)).head, 2);
      assert.equal((await getRun(store, `bad-${n}`)).head, 1);
    }
    assert.equal((await claimItems(store, worker)).length, 3);
  }),

  storeCase("a rejected commit does not change the run", async (store, t) => {
    const worker = await registerWorker(store, "forgetful");
    const held = await startHeld(store, worker, "order-1");
    t.clock.advance(LEASE_MS);
    const reaper = await registerWorker(store, "reaper");
    await store.reap(reaper);
    const lost = turnWrite(store, held, { ...taskParts(held, 2), then: "release" });
    assert.equal((await store.write([lost]))[0].status, "lease_lost");

    const again = await registerWorker(store, "forgetful");
    const retaken = await takeTurn(store, again);
    assert.deepEqual([retaken.head, retaken.chain], [held.head, held.chain]);
    await commitTurn(store, retaken, { ...taskParts(retaken, 2), then: "release" });
    assert.equal((await claimItems(store, again)).length, 2);
    assert.equal((await store.readJournal(held.run, 0)).length, 3);
  }),

  storeCase("a committed write is visible to a connection opened later", async (store, t) => {
    const worker = await registerWorker(store);
    await startEnded(store, worker, "order-1");
    await startRun(store, "order-2");
    const before = await dumpStore(store);
    await t.close(store);
    assert.deepEqual(await dumpStore(await t.openAgain()), before);
  }),
];
