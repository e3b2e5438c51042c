// Crowd. ACC 45: runs that wait for each other, in both directions, on four workers. ACC 46: one busy run beside ordinary ones.

import { hither, steps, thither } from "../definitions.ts";
import { Fleet } from "../fleet.ts";
import type { Rig } from "../rig.ts";
import { ALL, openStore, openSubject } from "../subject.ts";
import { checkRun, openClient } from "../workload.ts";

const PAIRS = 20;
const DEPTH = 3;

/** The expected lengths of the tasks' results. */
function expectedAfter(name: "hither" | "thither", n: number): number {
  return n === 0 ? 0 : `${name} ${n}!`.length + expectedAfter(name === "hither" ? "thither" : "hither", n - 1);
}

export const crossed: Rig = {
  name: "crossed",
  title: "runs that start each other as children, both ways round, on four workers",
  shows: "F13, ACC 45",
  stores: ALL,
  tested: ["sqlite", "postgres"],
  rounds: 1,
  async run(world) {
    await using subject = await openSubject(world.store);
    await using client = await openClient(subject.url);
    await using fleet = await Fleet.of(4, { url: subject.url, lease: 5_000 });
    const begun: { readonly id: string; readonly expected: number }[] = [];
    for (let round = 0; world.more(); round += 1) {
      const runs = await Promise.all(
        Array.from({ length: PAIRS * 2 }, async (_, n) => {
          const definition = n % 2 === 0 ? thither : hither;
          const id = `${definition.name}-${round}-${n}`;
          begun.push({ id, expected: expectedAfter(definition.name, DEPTH) });
          return client.start(definition, DEPTH, { id });
        }),
      );
      await Promise.all(runs.map((run) => run.result({ timeout: "200 s" })));
    }
    const errors = fleet.said.match(/^reprise (?:error|warn).*$/gm) ?? [];
    for (const line of errors.slice(0, 5)) world.tally.broken(`a worker said: ${line}`);
    await fleet[Symbol.asyncDispose]();
    const store = await openStore(subject);
    for (const { invariant, message } of await store.check()) world.tally.broken(`${invariant}: ${message}`);
    for (const { id, expected } of begun) await checkRun(store, id, expected, world.tally);
    // No parent gets a result before its child has ended.
    const all = await store.listRuns({ limit: 100_000 });
    world.tally.add("runs", all.length);
    const endOf = new Map<string, number>();
    for (const { id, run, head } of all) endOf.set(id, (await store.readJournal(run, head - 1, 1))[0]?.at ?? Infinity);
    for (const { id, run } of all) {
      for (const { type, at, command } of await store.readJournal(run, 0)) {
        if (type !== "ChildWorkflowCompleted") continue;
        const children = all.filter((each) => each.id.startsWith(`${id}/`) || each.id.startsWith(`${id}.`));
        if (children.length > 0 && children.every((child) => endOf.get(child.id)! > at))
          world.tally.broken(`${command} of ${id} was answered early`);
      }
    }
    world.tally.add("acknowledged", begun.length);
    await store.close();
  },
};

const ORDINARY = 200;
const FEEDERS = 20;

export const hotRun: Rig = {
  name: "hot-run",
  title: "one run with thousands of steps beside ordinary ones",
  shows: "ACC 46",
  stores: ALL,
  tested: [],
  rounds: 1,
  async run(world) {
    await using subject = await openSubject(world.store);
    await using client = await openClient(subject.url);
    await using _fleet = await Fleet.of(2, { url: subject.url, lease: 15_000, concurrency: 64 });
    for (let round = 0; world.more(); round += 1) {
      const ordinary = async (name: string): Promise<number> => {
        const times: number[] = [];
        const feed = async (feeder: number): Promise<void> => {
          for (let n = feeder; n < ORDINARY; n += FEEDERS) {
            const begun = performance.now();
            const run = await client.start(steps, 3, { id: `${name}-${round}-${n}` });
            if ((await run.result({ timeout: "200 s" })) !== 3) world.tally.lost(`the result of ${run.id}`);
            times.push(performance.now() - begun);
          }
        };
        await Promise.all(Array.from({ length: FEEDERS }, (_, feeder) => feed(feeder)));
        return times.toSorted((a, b) => a - b)[ORDINARY / 2]!;
      };
      await ordinary("warm");
      const alone = await ordinary("alone");
      const hot = await client.start(steps, 1_000_000, { id: `hot-${round}` });
      const beside = await ordinary("beside");
      world.tally.note("p50 beside a hot run, against alone", (beside / alone).toFixed(2));
      world.tally.add("steps of the hot run meanwhile", (await hot.info()).entries);
      await hot.terminate();
      world.tally.add("acknowledged", 3 * ORDINARY);
    }
  },
};
