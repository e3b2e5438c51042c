// Batched runs: batches of concurrent runs, each timed from start to result.

import { performance } from "node:perf_hooks";
import type { Run } from "reprise";
import type { Measured } from "./workload.ts";

/** Starts batches of `size` runs, one after the other, until `runs` are done; `start` returns a run whose result is `count`. */
export async function measureBatches<D>(
  { runs, size, count }: { readonly runs: number; readonly size: number; readonly count: number },
  start: () => Promise<Run<D>>,
): Promise<Measured> {
  const latenciesMs: number[] = [];
  const one = async (): Promise<void> => {
    const startedAt = performance.now();
    const run = await start();
    const result: unknown = await run.result();
    latenciesMs.push(performance.now() - startedAt);
    if (result !== count) throw new Error(`Run ${run.id}: expected ${count}, got ${String(result)}.`);
  };
  const startedAt = performance.now();
  for (let done = 0; done < runs; done += size)
    await Promise.all(Array.from({ length: Math.min(size, runs - done) }, one));
  return { runs, steps: runs * count, elapsedMs: performance.now() - startedAt, latenciesMs };
}
