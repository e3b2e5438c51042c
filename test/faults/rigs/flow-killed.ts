// Flow killed. ACC 22: a flow of 200 nodes whose worker is killed just before or after a commit, 50 times.

import { createTestEngine } from "reprise/testing";
import { SPREAD, twoHundred } from "../../slow/sigkill/flow-definitions.ts";
import { WorkerProcess } from "../fleet.ts";
import { until, type Rig, type World } from "../rig.ts";
import { ALL, openStore, openSubject, type Subject } from "../subject.ts";
import { checkRun, openClient } from "../workload.ts";

const INPUT = 7;

async function undisturbed(): Promise<unknown> {
  await using engine = await createTestEngine({ definitions: [twoHundred] });
  const run = await engine.start(twoHundred, INPUT as never);
  return await run.result();
}

export const flowKilled: Rig = {
  name: "flow-killed",
  title: "SIGKILL just before or after a commit, up to 50 times during one flow of 200 nodes",
  shows: "F1, ACC 22",
  stores: ALL,
  tested: [],
  rounds: 1,
  async run(world) {
    const expected = await undisturbed();
    while (world.more()) {
      await using subject = await openSubject(world.store);
      await killOften(world, subject, world.isShort ? 12 : 50);
      await compare(world, subject, expected);
      world.tally.add("acknowledged");
    }
  },
};

function isStuck(status: string): boolean {
  return status === "blocked" || status === "completed";
}

/** The next worker is started in advance, so that it is ready when needed. */
async function killOften(world: World, subject: Subject, kills: number): Promise<void> {
  await using client = await openClient(subject.url);
  const run = await client.start(twoHundred, INPUT as never, { id: "the run" });
  let next = new WorkerProcess({});
  try {
    for (let n = 0; n < kills && (await run.info()).status !== "completed"; n += 1) {
      const worker = next;
      // A run whose workers never commit would be blocked as poison, so every second worker commits once.
      const commit = 1 + world.chance.below(3);
      const when = n % 2 === 0 ? ("after" as const) : world.chance.pick(["before", "after"] as const);
      const kill = { when, commit };
      worker.send({ url: subject.url, lease: 500, concurrency: 2, kill });
      next = new WorkerProcess({});
      await until("a worker to be killed", async () => worker.isOver || isStuck((await run.info()).status));
      await worker.kill();
      if (worker.signalCode !== "SIGKILL") throw new Error(`A worker ended without a kill:\n${worker.said}`);
      world.tally.add("kills");
    }
    next.send({ url: subject.url, lease: 500, concurrency: 2 });
    await run.result({ timeout: "120 s" });
  } finally {
    await next.kill();
  }
}

async function compare({ tally }: World, subject: Subject, expected: unknown): Promise<void> {
  const store = await openStore(subject);
  try {
    for (const { invariant, message } of await store.check()) tally.broken(`${invariant}: ${message}`);
    await checkRun(store, "the run", expected, tally);
    const { run = 0 } = (await store.findRun("the run")) ?? {};
    const ends = (await store.readJournal(run, 0)).filter(({ type }) => type === "NodeCompleted");
    const items = ends.filter(({ command }) => command.startsWith("each["));
    if (items.length < SPREAD + 1) tally.lost(`${SPREAD + 1 - items.length} items of the spread`);
    if (items.length > SPREAD + 1) tally.doubled(`${items.length - SPREAD - 1} items of the spread`);
  } finally {
    await store.close();
  }
}
