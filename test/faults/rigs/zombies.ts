// Zombies: a worker is stopped (SIGSTOP) beyond its lease and taken over; its results after SIGCONT must be rejected.

import { hostname } from "node:os";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import type { Store } from "../../../src/kernel/index.ts";
import { anyTransfer, auditBank, foundBank, stoppedOn } from "../bank.ts";
import { Fleet, type WorkerProcess } from "../fleet.ts";
import { until, type Rig } from "../rig.ts";
import { ALL, openStore, openSubject, type StoreKind } from "../subject.ts";
import { checkRun, openClient, Workload } from "../workload.ts";

/** How long a stopped process may block others: SQLite has no server that ends its transaction. */
const LOCK_TIMEOUT_MS: Readonly<Record<StoreKind, number>> = { sqlite: 3_000, postgres: 60_000, mysql: 60_000 };

async function isKnown(store: Store, worker: WorkerProcess): Promise<boolean> {
  const name = `${hostname()}/${worker.pid}`;
  return (await store.listWorkers()).some((row) => row.name === name);
}

export const zombies: Rig = {
  name: "zombies",
  title: "SIGSTOP of workers until others have taken over, then SIGCONT",
  shows: "F9",
  stores: ALL,
  tested: ALL,
  rounds: 2,
  async run(world) {
    await using subject = await openSubject(world.store);
    await using work = await Workload.begin(world, subject);
    await using fleet = await Fleet.of(2, { url: subject.url });
    const store = await openStore(subject);
    while (world.more()) {
      await world.sometime(20, 220);
      const worker = fleet.workers[world.chance.below(2)]!;
      worker.signal("SIGSTOP");
      const isTakenOver = await until(
        "a takeover",
        async () => !(await isKnown(store, worker)),
        LOCK_TIMEOUT_MS[world.store],
      )
        .then(() => true)
        .catch(() => false);
      worker.signal("SIGCONT");
      world.tally.add("stops");
      world.tally.add(isTakenOver ? "takeovers" : "stopped inside a transaction");
      if (!isTakenOver && world.store !== "sqlite") world.tally.broken("no worker took over from a stopped worker");
      await until("its return", () => isKnown(store, worker));
    }
    await store.close();
    await work.finish();
    await fleet[Symbol.asyncDispose]();
    await work.check();
  },
};

/** The transaction of a stopped process keeps its locks: a server ends it; on a file, others wait. */
export const stoppedInside: Rig = {
  name: "stopped-inside",
  title: "SIGSTOP inside a transaction of the user's, then SIGCONT",
  shows: "F10",
  stores: ALL,
  tested: ALL,
  rounds: 1,
  async run(world) {
    await using subject = await openSubject(world.store);
    await using client = await openClient(subject.url);
    await foundBank(subject);
    const ids: string[] = [];
    while (world.more()) {
      const id = `stopped-${ids.length}`;
      const file = join(subject.folder, id);
      closeSync(openSync(file, "w"));
      await using fleet = await Fleet.of(1, { url: subject.url, lease: 1_000 });
      const [first] = fleet.workers as [WorkerProcess];
      const run = await client.start(stoppedOn(world.store), { transfer: anyTransfer(world.chance), file }, { id });
      ids.push(id);
      await until("the worker to stop itself", () => first.isStopped);
      world.tally.add("stops");
      if (world.store === "sqlite") {
        const refused = await client
          .start(stoppedOn(world.store), { transfer: anyTransfer(world.chance), file }, { id })
          .then(
            () => "a start",
            (error: unknown) => (error as { code?: string }).code ?? "an error",
          );
        if (refused !== "STORE_BUSY") world.tally.broken(`a locked file answered ${refused}, not STORE_BUSY`);
        first.signal("SIGCONT");
      } else {
        await fleet.add();
        await run.result({ timeout: "120 s" });
        world.tally.add("takeovers");
        first.signal("SIGCONT");
      }
      await run.result({ timeout: "120 s" });
    }
    const store = await openStore(subject);
    for (const { invariant, message } of await store.check()) world.tally.broken(`${invariant}: ${message}`);
    for (const id of ids) await checkRun(store, id, id, world.tally);
    await store.close();
    await auditBank(subject, ids, world.tally);
    world.tally.add("acknowledged", ids.length);
  },
};
