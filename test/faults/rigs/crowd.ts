// Crowd. ACC 45: runs that wait for each other, in both directions, on four workers. ACC 46: one busy run beside ordinary ones.

import { hither, steps, thither } from "../definitions.ts";
import { findEarlyAnswers } from "../early-answers.ts";
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
    const { answers, problems } = await findEarlyAnswers(store);
    for (const problem of problems) world.tally.broken(problem);
    // Each run but the last of a chain has the answer of one child.
    if (answers !== begun.length * DEPTH)
      world.tally.broken(`${answers} children answered, not ${begun.length * DEPTH}`);
    world.tally.add("answers of children", answers);
    world.tally.add("acknowledged", begun.length);
    await store.close();
  },
};

const ORDINARY = 200;
const FEEDERS = 20;
/**
 * How much longer the median ordinary run may take beside a hot run (ACC 46). Workers that serve runs in turn need 1.0 to 1.9 times
 * as long, on two cores; a worker that prefers the run it has just served needs as long as the hot run.
 */
const MOST_SLOWDOWN = 3;
/** On a busy machine one measurement says little: the least slowdown counts. */
const MEASUREMENTS = 3;

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
        world.tally.add("acknowledged", ORDINARY);
        return times.toSorted((a, b) => a - b)[ORDINARY / 2]!;
      };
      const measure = async (attempt: number): Promise<number> => {
        const alone = await ordinary(`alone-${attempt}`);
        const hot = await client.start(steps, 1_000_000, { id: `hot-${round}-${attempt}` });
        const beside = await ordinary(`beside-${attempt}`);
        const { entries, status } = await hot.info();
        if (status !== "running" || entries < ORDINARY / FEEDERS)
          world.tally.broken(`the hot run is ${status} after ${entries} entries, so nothing ran beside it`);
        world.tally.add("steps of the hot run meanwhile", entries);
        await hot.terminate();
        return beside / alone;
      };
      await ordinary("warm");
      let least = Number.POSITIVE_INFINITY;
      for (let attempt = 0; attempt < MEASUREMENTS && least > MOST_SLOWDOWN; attempt += 1)
        least = Math.min(least, await measure(attempt));
      world.tally.note("p50 beside a hot run, against alone", least.toFixed(2));
      if (least > MOST_SLOWDOWN)
        world.tally.broken(
          `ordinary runs took ${least.toFixed(1)} times as long beside a hot run, at most ${MOST_SLOWDOWN}`,
        );
    }
  },
};
