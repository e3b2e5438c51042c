// Poison: a run that kills every worker that claims it, and a run that blocks its process, beside ordinary runs.
//
// A blocked process cannot recover on its own. A supervisor restarts workers that do not respond, as an
// orchestrator does with a liveness probe; the store counts takeovers and blocks the run that causes them.

import { isDeepStrictEqual } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import { expectedOf, load } from "../../slow/sigkill/definitions.ts";
import { endless, poison } from "../definitions.ts";
import { Fleet } from "../fleet.ts";
import { until, type Rig, type World } from "../rig.ts";
import { ALL, openStore, openSubject } from "../subject.ts";
import { checkRun, openClient } from "../workload.ts";

const LEASE = 500;
const HONEST = 20;

/** Restarts workers that died, and kills workers that do not respond. */
async function supervise(fleet: Fleet, world: World, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    for (let n = 0; n < fleet.workers.length && !isOver(); n += 1) {
      const worker = fleet.workers[n]!;
      const answer = worker.isOver
        ? "dead"
        : await Promise.race([worker.time().catch(() => "dead"), sleep(8 * LEASE, "stuck", { ref: false })]);
      if (typeof answer === "number") continue;
      world.tally.add(`workers found ${answer}`);
      // It may die or block before it is ready.
      await Promise.race([fleet.replace(n).catch(() => undefined), sleep(8 * LEASE)]);
    }
    await sleep(50);
  }
}

export const poisonous: Rig = {
  name: "poison",
  title: "a run that kills its worker and a run that never returns, beside honest ones",
  shows: "F32, F33",
  stores: ALL,
  tested: ["sqlite"],
  rounds: 1,
  async run(world) {
    while (world.more()) {
      await using subject = await openSubject(world.store);
      await using client = await openClient(subject.url);
      await using fleet = await Fleet.of(2, { url: subject.url, lease: LEASE, concurrency: 8 });
      let isOver = false;
      const supervision = supervise(fleet, world, () => isOver);
      supervision.catch((error: unknown) => world.tally.broken(`the supervisor gave up: ${String(error)}`));
      const bad = [
        await client.start(poison, undefined, { id: "poison" }),
        await client.start(endless, undefined, { id: "endless" }),
      ];
      const honest = await Promise.all(
        Array.from({ length: HONEST }, (_, n) => client.start(load, n, { id: `load-${n}` })),
      );
      for (const [n, run] of honest.entries()) await run.resolve("go", n + 1);
      for (const [n, run] of honest.entries()) {
        if (!isDeepStrictEqual(await run.result({ timeout: "200 s" }), expectedOf(n, n + 1)))
          world.tally.lost(`the result of ${run.id}`);
      }
      for (const run of bad) {
        await until(`${run.id} to be stopped`, async () => (await run.info()).status === "blocked", 200_000);
        world.tally.add("blocked");
      }
      isOver = true;
      await supervision;
      await fleet[Symbol.asyncDispose]();
      const store = await openStore(subject);
      for (const { invariant, message } of await store.check()) world.tally.broken(`${invariant}: ${message}`);
      for (const [n, { id }] of honest.entries()) await checkRun(store, id, expectedOf(n, n + 1), world.tally);
      world.tally.add("acknowledged", HONEST);
      await store.close();
    }
  },
};
