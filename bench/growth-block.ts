// Growth of payloads: the longest turn of the event loop while large parallel results are committed.

import { performance } from "node:perf_hooks";
import { measureBatches } from "./batched-runs.ts";
import { largeResults } from "./growth-definitions.ts";
import type { Rig } from "./rig.ts";
import { percentile } from "./statistics.ts";
import { scaled, type Measured, type Plan } from "./workload.ts";

const BYTES = 75_000;
const ROUNDS = 7;

interface Block {
  readonly ms: number;
  /** Of this thread: other programs on the machine do not add to it, but waiting for the disk does not count either. */
  readonly cpuMs: number;
}

export async function measureBlock(
  rig: Rig,
  plan: Plan,
  { runs, count: size }: { readonly runs: number; readonly count: number },
): Promise<Measured> {
  const count = scaled(size, plan);
  const batch = { runs, size: runs, count };
  const start = () => rig.engine.start(largeResults, { count, bytes: BYTES });
  await measureBatches(batch, start);
  const all: Measured[] = [];
  const blocks: Block[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const stop = watchLoop();
    all.push(await measureBatches(batch, start));
    blocks.push(stop());
  }
  return {
    runs: runs * ROUNDS,
    steps: runs * count * ROUNDS,
    elapsedMs: all.reduce((sum, { elapsedMs }) => sum + elapsedMs, 0),
    latenciesMs: all.flatMap(({ latenciesMs }) => latenciesMs),
    extra: {
      blockMs: percentile(
        blocks.map(({ ms }) => ms),
        0.5,
      )!,
      longestBlockMs: Math.max(...blocks.map(({ ms }) => ms)),
      blockCpuMs: percentile(
        blocks.map(({ cpuMs }) => cpuMs),
        0.5,
      )!,
    },
  };
}

/** Runs once per turn of the loop; the time between two calls is a block. Returns how to stop it, which returns the longest. */
function watchLoop(): () => Block {
  let [ms, cpuMs] = [0, 0];
  let [lastMs, lastCpuMs] = [performance.now(), threadCpuMs()];
  let isOver = false;
  const sample = (): void => {
    const [nowMs, nowCpuMs] = [performance.now(), threadCpuMs()];
    ms = Math.max(ms, nowMs - lastMs);
    cpuMs = Math.max(cpuMs, nowCpuMs - lastCpuMs);
    [lastMs, lastCpuMs] = [nowMs, nowCpuMs];
    if (!isOver) setImmediate(sample);
  };
  setImmediate(sample);
  return () => {
    isOver = true;
    sample();
    return { ms, cpuMs };
  };
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
