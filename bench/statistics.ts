// Statistics: percentiles, and the cost of a small durable write on this file system.

import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";

export function percentile(values: readonly number[], share: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

/** Four digits: more than any measurement reproduces. */
export function round(value: number | undefined): number | null {
  return value === undefined ? null : Number(value.toPrecision(4));
}

/** The median of 200 small writes, each synced. */
export function measureFsyncMs(folder: string): number | undefined {
  const file = openSync(join(folder, "fsync"), "w");
  const block = Buffer.alloc(4_096, 1);
  const timesMs = Array.from({ length: 200 }, () => {
    const startedAt = performance.now();
    writeSync(file, block);
    fsyncSync(file);
    return performance.now() - startedAt;
  });
  closeSync(file);
  return percentile(timesMs, 0.5);
}
