import assert from "node:assert/strict";
import { findJournalFault, nodeRoute, type MigrateWrite, type RunRecord, type Store } from "../../kernel/index.ts";
import { completed, MAIL_ROUTE, ROUTE, startFlow, startWithNodes, takeNodes, arrival, NODE } from "./flow-actions.ts";
import {
  claimItems,
  claimTurns,
  commitTurn,
  COMPLETES,
  endItemWrite,
  getRun,
  heldAfter,
  registerWorker,
  send,
  startEnded,
  startHeld,
  startRun,
  startWaiting,
  startWithTasks,
  takeItem,
  takeTurn,
  turnWrite,
  WAITS_AGAIN,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";
import { assertNothingWritten } from "./store-dump.ts";

const SECOND = { name: "checkout", version: 2 };
const COMMITTED = [{ status: "committed" }];

function migrate({ run, head, chain }: RunRecord, more: Partial<MigrateWrite> = {}): MigrateWrite {
  return { write: "migrate", run, head, chain, version: 2, data: '{"from":1,"to":2}', ...more };
}

async function migrateRun(store: Store, id: string, more?: Partial<MigrateWrite>): Promise<RunRecord> {
  assert.deepEqual(await store.write([migrate(await getRun(store, id), more)]), COMMITTED);
  return getRun(store, id);
}

export const migrateCases: readonly StoreCase[] = [
  storeCase(
    "a migrated run has the new version and a due turn, and its journal continues with RunMigrated",
    async (store) => {
      const worker = await registerWorker(store);
      await startWaiting(store, worker, "order-1");
      const before = await getRun(store, "order-1");
      const record = await migrateRun(store, "order-1");
      assert.deepEqual([record.version, record.status, record.head], [2, "queued", before.head + 1]);
      const journal = await store.readJournal(record.run, 0);
      assert.deepEqual([journal.at(-1)?.type, journal.at(-1)?.data], ["RunMigrated", '{"from":1,"to":2}']);
      assert.equal(findJournalFault(journal, record), undefined);
      assert.deepEqual(await claimTurns(store, worker), []);
      const turn = await takeTurn(store, worker, [SECOND]);
      assert.deepEqual([turn.run, turn.head, turn.chain], [record.run, record.head, record.chain]);
    },
  ),

  storeCase(
    "a migration revokes the turn: the holder's next commit is rejected, and the turn counts as returned",
    async (store) => {
      const worker = await registerWorker(store);
      const held = await startHeld(store, worker, "order-1");
      const { run, lostTurns } = await migrateRun(store, "order-1");
      const [outcome] = await store.write([turnWrite(store, held, { entries: [WAITS_AGAIN] })]);
      assert.equal(outcome.status, "lease_lost");
      assert.equal(lostTurns, 1);
      assert.deepEqual(
        (await store.readAttempts(run)).map(({ step, outcome: end, worker: name }) => [step, end, name]),
        [["", "returned", "worker"]],
      );
    },
  ),

  storeCase("a run that has moved on, has ended or does not exist is not migrated", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const before = await getRun(store, "order-1");
    const write = turnWrite(store, held, { entries: [WAITS_AGAIN] });
    await store.write([write]);
    await startEnded(store, worker, "ended");
    const ended = await getRun(store, "ended");
    const now = await getRun(store, "order-1");
    await assertNothingWritten(store, async () => {
      const writes = [migrate(before), migrate(ended), migrate({ ...now, run: now.run + 1_000 })];
      for (const one of [...writes, migrate({ ...now, chain: before.chain })])
        assert.deepEqual(await store.write([one]), [{ status: "moved" }]);
    });
    await commitTurn(store, heldAfter(held, write), COMPLETES);
  }),

  storeCase(
    "a paused run stays paused when it is migrated; a run that was stopped is due, without its evidence",
    async (store) => {
      const worker = await registerWorker(store);
      await startWaiting(store, worker, "paused");
      await store.write([{ write: "pause", id: "paused" }]);
      assert.deepEqual([(await migrateRun(store, "paused")).status], ["paused"]);
      await send(store, "paused");
      assert.deepEqual(await claimTurns(store, worker, [SECOND]), []);
      const { run, token } = await startHeld(store, worker, "stopped");
      await store.write([{ write: "stop", run, token, status: "determinism_violation", evidence: '{"code":"x"}' }]);
      const stopped = await migrateRun(store, "stopped");
      assert.deepEqual([stopped.status, stopped.evidence], ["queued", undefined]);
      assert.equal((await takeTurn(store, worker, [SECOND])).id, "stopped");
    },
  ),

  storeCase("a task keeps its lease when its run is migrated, and its result arrives", async (store) => {
    const worker = await registerWorker(store);
    await startWithTasks(store, worker, "order-1", 1);
    const item = await takeItem(store, worker);
    const { run } = await migrateRun(store, "order-1");
    assert.deepEqual(await store.write([endItemWrite(item)]), COMMITTED);
    assert.deepEqual(
      (await takeTurn(store, worker, [SECOND])).inbox.map(({ target }) => target),
      ["Task(0)"],
    );
    assert.equal(item.run, run);
  }),

  storeCase(
    "a run that waits for room in its queue is migrated with its place, and starts with the new version",
    async (store) => {
      const worker = await registerWorker(store);
      await store.write([{ write: "declare-queue", name: "mail", limits: { concurrency: 1 } }]);
      await startRun(store, "order-1", { slot: { queue: "mail" } });
      const record = await migrateRun(store, "order-1");
      assert.deepEqual(await claimTurns(store, worker, [SECOND]), []);
      const admit = (version: number) =>
        store.write([{ write: "admit", definitions: [{ name: "checkout", version }], limit: 9 }]);
      assert.deepEqual((await admit(1))[0].runs, []);
      assert.deepEqual((await admit(2))[0].runs, [record.run]);
      assert.equal((await takeTurn(store, worker, [SECOND])).head, 2);
    },
  ),

  storeCase(
    "the queued nodes of a migrated flow wait for the new version, and the leases of running ones are void",
    async (store) => {
      const worker = await registerWorker(store);
      await startWithNodes(store, worker, "import-1", "x", "y");
      const [x] = await claimItems(store, worker, [ROUTE], 1);
      const routes = [nodeRoute("import", 2)];
      const { run } = await migrateRun(store, "import-1", { routes });
      assert.deepEqual(await store.write([completed(x!, [])]), [{ status: "stale" }]);
      await takeNodes(store, worker);
      const items = await claimItems(store, worker, routes);
      assert.deepEqual(
        items.map(({ item, execution }) => [item, execution]).toSorted(([a], [b]) => (a! < b! ? -1 : 1)),
        [
          ["x", x?.item === "x" ? 2 : 1],
          ["y", x?.item === "y" ? 2 : 1],
        ],
      );
      assert.deepEqual(
        (await store.readAttempts(run)).map(({ step, outcome }) => [step, outcome]),
        [[x?.item, "returned"]],
      );
    },
  ),

  storeCase(
    "a flow whose node waits under a route that the new version does not have is not migrated",
    async (store) => {
      const worker = await registerWorker(store);
      await store.write([{ write: "declare-queue", name: "mail", limits: { concurrency: 1 } }]);
      const node = { ...NODE, name: MAIL_ROUTE, slot: { queue: "mail" } };
      await startFlow(store, worker, "import-1", { arrivals: [arrival("x", "input", 1, { cause: undefined, node })] });
      const record = await getRun(store, "import-1");
      const route = nodeRoute("import", 2, "mail");
      await assertNothingWritten(store, async () => {
        const routes = [nodeRoute("import", 2)];
        assert.deepEqual(await store.write([migrate(record, { routes })]), [{ status: "no_route", item: "x", route }]);
      });
      await migrateRun(store, "import-1", { routes: [route] });
      const [x] = await claimItems(store, worker, [route]);
      assert.deepEqual([x?.item, x?.slot], ["x", { queue: "mail" }]);
    },
  ),
];
