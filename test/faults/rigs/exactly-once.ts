// Exactly once. ACC 10: many writers of one checkpoint. ACC 11: a worker that dies just before, or just after, the commit of each step.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { startGraph, step } from "../../../src/testing/store-cases/checkpoints.ts";
import { registerWorker, turnWrite } from "../../../src/testing/store-cases/store-actions.ts";
import { marked } from "../definitions.ts";
import { WorkerProcess } from "../fleet.ts";
import type { Rig } from "../rig.ts";
import { ALL, openStore, openSubject } from "../subject.ts";
import { checkRun, openClient } from "../workload.ts";

const WRITERS = 100;
const CONNECTIONS = 10;

export const race: Rig = {
  name: "race",
  title: `${WRITERS} writers commit the same checkpoint at once`,
  shows: "ACC 10",
  stores: ALL,
  tested: ALL,
  rounds: 2,
  async run(world) {
    await using subject = await openSubject(world.store);
    const stores = await Promise.all(Array.from({ length: CONNECTIONS }, () => openStore(subject)));
    const [first] = stores as [(typeof stores)[0], ...typeof stores];
    const worker = await registerWorker(first);
    for (let round = 0; world.more(); round += 1) {
      const held = await startGraph(first, worker, `race-${round}`);
      const write = turnWrite(first, held, step(held, 1));
      const outcomes = await Promise.all(
        Array.from({ length: WRITERS }, async (_, n) => (await stores[n % CONNECTIONS]!.write([write]))[0].status),
      );
      const committed = outcomes.filter((status) => status === "committed").length;
      const refused = outcomes.filter((status) => status === "already_committed").length;
      world.tally.add("commits tried", WRITERS);
      world.tally.add("committed", committed);
      world.tally.add("refused as committed already", refused);
      if (committed === 0) world.tally.lost(`the checkpoint of race-${round}`);
      if (committed > 1) world.tally.doubled(`the checkpoint of race-${round}: ${committed} times`);
      if (committed + refused !== WRITERS) world.tally.broken(`other outcomes: ${[...new Set(outcomes)].join(", ")}`);
    }
    await first.releaseWorker(worker);
    for (const { invariant, message } of await first.check()) world.tally.broken(`${invariant}: ${message}`);
    for (const store of stores) await store.close();
  },
};

const STEPS = 6;

export const crashMatrix: Rig = {
  name: "crash-matrix",
  title: "SIGKILL just before and just after the commit of each step",
  shows: "F2, ACC 11",
  stores: ALL,
  tested: ALL,
  rounds: 2,
  async run(world) {
    await using subject = await openSubject(world.store);
    await using client = await openClient(subject.url);
    const store = await openStore(subject);
    for (let round = 0; world.more(); round += 1) {
      const when = round % 2 === 0 ? "before" : "after";
      const commit = 1 + ((world.isShort ? 1 + round : Math.floor(round / 2)) % STEPS);
      const file = join(subject.folder, `executed-${round}`);
      const run = await client.start(marked, { count: STEPS, file }, { id: `marked-${round}` });
      const [dies, goesOn] = [new WorkerProcess({}), new WorkerProcess({})];
      dies.send({ url: subject.url, kill: { when, commit } });
      await dies.ended();
      goesOn.send({ url: subject.url });
      await run.result({ timeout: "120 s" });
      await goesOn.kill();
      world.tally.add("kills");
      world.tally.add("acknowledged");
      const expected = Array.from({ length: STEPS }, (_, n) => (n + 1) ** 2);
      await checkRun(store, run.id, expected, world.tally);
      const executed = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").map(Number) : [];
      for (let n = 1; n <= STEPS; n += 1) {
        const times = executed.filter((each) => each === n).length;
        // Only a step that was executed and not committed is executed again.
        const allowed = when === "before" && n === commit ? 2 : 1;
        if (times !== allowed)
          world.tally.broken(`step ${n} was executed ${times} times, killed ${when} commit ${commit}`);
      }
    }
    for (const { invariant, message } of await store.check()) world.tally.broken(`${invariant}: ${message}`);
    await store.close();
  },
};
