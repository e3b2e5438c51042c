// Growth of queues: the rate of a queue with a concurrency limit while many runs wait, and the memory for 8,000 of them.

import { performance } from "node:perf_hooks";
import { queuedFour, queuedSixtyFour } from "./growth-definitions.ts";
import type { Rig } from "./rig.ts";
import { scaled, type Measured, type Plan } from "./workload.ts";

const MEASURED_RUNS = 4_000;
/** A slow queue is measured for as long as this, with the runs that have ended by then. */
const LONGEST_MS = 30_000;

/** As soon as a run ends the next one starts, so that `waiting` runs are always there. */
export async function measureLimited(rig: Rig, plan: Plan, concurrency: 4 | 64, waiting: number): Promise<Measured> {
  const size = scaled(waiting, plan);
  // All runs that were there at the beginning have ended before the measurement, so that it includes no first turns of others.
  const warmUp = Math.max(scaled(MEASURED_RUNS / 4, plan), size);
  const goal = Math.max(scaled(MEASURED_RUNS, plan), size);
  const latenciesMs: number[] = [];
  let phase: "fill" | "warm-up" | "measure" | "over" = "fill";
  let ended = 0;
  let goOn = (): void => {};
  let failed: (error: unknown) => void = () => {};
  const over = new Promise<never>((_, reject) => (failed = reject));
  const start = (index: number) =>
    concurrency === 4 ? rig.engine.start(queuedFour, index) : rig.engine.start(queuedSixtyFour, index);
  const one = async (started: () => void): Promise<void> => {
    for (let index = 0; phase !== "over"; index += 1) {
      const startedAt = performance.now();
      const run = await start(index);
      started();
      const result = await run.result();
      if (result !== index) throw new Error(`Run ${run.id}: expected ${index}, got ${String(result)}.`);
      if (phase === "measure") latenciesMs.push(performance.now() - startedAt);
      ended += 1;
      goOn();
    }
  };
  /** Until so many more runs have ended, or until the time is up. */
  const untilEnded = async (count: number): Promise<void> => {
    const from = ended;
    let timer: NodeJS.Timeout | undefined;
    const reached = new Promise<void>((resolve) => {
      goOn = () => {
        if (ended - from >= count) resolve();
      };
      timer = setTimeout(resolve, LONGEST_MS);
    });
    await Promise.race([reached, over]);
    clearTimeout(timer);
  };

  const loops: Promise<void>[] = [];
  await Promise.race([
    over,
    Promise.all(
      Array.from(
        { length: size },
        () =>
          new Promise<void>((resolve) => {
            loops.push(
              one(resolve).catch((error: unknown) => {
                // Closing the engine rejects the results of the runs that still wait.
                if (phase !== "over") failed(error);
              }),
            );
          }),
      ),
    ),
  ]);
  phase = "warm-up";
  await untilEnded(warmUp);
  phase = "measure";
  const before = await rig.usage();
  const [startedAt, endedBefore] = [performance.now(), ended];
  await untilEnded(goal);
  const elapsedMs = performance.now() - startedAt;
  const runs = ended - endedBefore;
  const after = await rig.usage();
  phase = "over";
  return {
    runs,
    steps: runs,
    elapsedMs,
    latenciesMs,
    extra: { waiting: size, cpuUsPerStep: ((after.cpuMs - before.cpuMs) / Math.max(1, runs)) * 1_000 },
  };
}

/** All started at once, and each awaited. See rssMb. */
export async function measureQueued(rig: Rig, plan: Plan): Promise<Measured> {
  const runs = scaled(8_000, plan);
  const startedAt = performance.now();
  const started = await Promise.all(Array.from({ length: runs }, (_, index) => rig.engine.start(queuedFour, index)));
  const startMs = performance.now() - startedAt;
  await Promise.all(started.map((run) => run.result()));
  const elapsedMs = performance.now() - startedAt;
  const endRssMb = process.memoryUsage.rss() / 1_048_576;
  return { runs, steps: runs, elapsedMs, latenciesMs: [], extra: { startMs, endRssMb } };
}
