import assert from "node:assert/strict";
import { assertNothingWritten } from "./store-dump.ts";
import {
  claimTurns,
  commitTurn,
  COMPLETES,
  getRun,
  registerWorker,
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

export const stopCases: readonly StoreCase[] = (["blocked", "determinism_violation"] as const)
  .flatMap((status) => [
    storeCase(`a run stopped as ${status} keeps its evidence, and nothing of the turn is written`, async (store) => {
      const worker = await registerWorker(store);
      const held = await commitTurn(store, await startHeld(store, worker, "order-1"), { entries: [WAITS] });
      await send(store, "order-1");
      const before = await getRun(store, "order-1");
      const [outcome] = await store.write([
        { write: "stop", run: held.run, token: held.token, status, evidence: '{"expected":"a","actual":"b\u2028"}' },
      ]);
      assert.deepEqual(outcome, { status: "committed" });
      assert.deepEqual(await getRun(store, "order-1"), {
        ...before,
        status,
        evidence: '{"expected":"a","actual":"b\u2028"}',
      });
      assert.equal((await store.readInbox(held.run, 0)).length, 1);
      assert.equal((await store.readJournal(held.run, 0)).length, 2);
      await assertNothingWritten(store, async () => {
        const [late] = await store.write([turnWrite(store, held, COMPLETES)]);
        assert.equal(late.status, "lease_lost");
      });
    }),

    storeCase(
      `messages to a run stopped as ${status} are stored, and only a resume makes its turn due`,
      async (store) => {
        const worker = await registerWorker(store);
        const held = await commitTurn(store, await startHeld(store, worker, "order-1"), { entries: [WAITS] });
        await store.write([{ write: "stop", run: held.run, token: held.token, status, evidence: "{}" }]);
        await send(store, "order-1");
        assert.deepEqual(await claimTurns(store, worker), []);
        await store.reap(worker);
        assert.deepEqual(await claimTurns(store, worker), []);
        assert.equal((await getRun(store, "order-1")).status, status);

        assert.deepEqual(await store.write([{ write: "resume", id: "order-1" }]), [
          { status: "committed", run: held.run },
        ]);
        const taken = await takeTurn(store, worker);
        assert.deepEqual([taken.run, taken.inbox.length, taken.head], [held.run, 1, held.head]);
        await commitTurn(store, taken, { ...COMPLETES, read: 1 });
      },
    ),
  ])
  .concat(
    storeCase("a stop with a wrong token writes nothing", async (store) => {
      const worker = await registerWorker(store);
      const held = await startWaiting(store, worker, "order-1");
      await assertNothingWritten(store, async () => {
        const [outcome] = await store.write([
          { write: "stop", run: held.run, token: held.token, status: "blocked", evidence: "{}" },
        ]);
        assert.deepEqual(outcome, { status: "lease_lost" });
      });
    }),

    storeCase("resume refuses a run that is not stopped", async (store) => {
      const worker = await registerWorker(store);
      await startRun(store, "queued", { definition: "other" });
      await startEnded(store, worker, "ended");
      await assertNothingWritten(store, async () => {
        assert.deepEqual(
          await store.write([
            { write: "resume", id: "unknown" },
            { write: "resume", id: "queued" },
            { write: "resume", id: "ended" },
          ]),
          [{ status: "no_run" }, { status: "not_stopped", as: "queued" }, { status: "not_stopped", as: "completed" }],
        );
      });
    }),
  );
