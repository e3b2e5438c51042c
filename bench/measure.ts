// One measurement: a rig, a warm-up, the workload, and the raw limit of the rows it wrote.

import { join } from "node:path";
import { measureFsyncMs, percentile, round } from "./numbers.ts";
import { measureRaw, positionOf, readWritten, type Position } from "./raw-sqlite.ts";
import { Rig } from "./rig.ts";
import type { Plan, Workload } from "./workload.ts";

export interface Line {
  readonly workload: string;
  readonly variant: string;
  readonly store: string;
  readonly workers: number;
  /** Steps per second, from the first start to the last result. What a workload does not have is null. */
  readonly perSecond: number | null;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly rawPerSecond: number | null;
  readonly ratio: number | null;
  readonly bytesPerStep: number | null;
  readonly rssMb: number | null;
  readonly fsyncMs: number | null;
  /** Of all processes; says more than `perSecond` on a machine that others use too. */
  readonly cpuUsPerStep: number | null;
  readonly runs: number;
  readonly steps: number;
  readonly elapsedMs: number | null;
  readonly [extra: string]: unknown;
}

const BATCH = 200;
/** Rows that are committed step by step; each step costs an fsync. */
const SEQUENTIAL_ROWS = 2_000;

export async function measure(workload: Workload, plan: Plan, workers: number): Promise<Line> {
  await using rig = await Rig.open(workers);
  const fsyncMs = measureFsyncMs(rig.folder);
  if (workload.warmUp > 0) await workload.run(rig, { ...plan, scale: plan.scale * workload.warmUp });

  const before = positionOf(rig.path);
  const usageBefore = await rig.usage();
  const measured = await workload.run(rig, plan);
  const { peakRssMb, cpuMs } = await rig.usage();
  const after = positionOf(rig.path);

  const { runs, steps, elapsedMs, latenciesMs, extra = {} } = measured;
  const perSecond = workload.isIdle ? undefined : (steps / elapsedMs) * 1_000;
  const raw = workload.isIdle ? undefined : measureRawLimits(rig, before, steps, workload);
  return {
    workload: workload.name,
    variant: plan.variant,
    store: "sqlite",
    workers,
    perSecond: round(perSecond),
    p50Ms: round(percentile(latenciesMs, 0.5)),
    p99Ms: round(percentile(latenciesMs, 0.99)),
    rawPerSecond: round(raw?.batched),
    ratio: round(raw && perSecond && perSecond / raw.batched),
    bytesPerStep: round((after.bytes - before.bytes) / steps),
    rssMb: round(peakRssMb),
    fsyncMs: round(fsyncMs),
    cpuUsPerStep: round(((cpuMs - usageBefore.cpuMs) / steps) * 1_000),
    runs,
    steps,
    elapsedMs: round(elapsedMs),
    ...(raw?.sequential !== undefined && {
      rawSequentialPerSecond: round(raw.sequential),
      sequentialRatio: round(perSecond && perSecond / raw.sequential),
    }),
    ...Object.fromEntries(Object.entries(extra).map(([name, value]) => [name, round(value)])),
  };
}

interface RawLimits {
  readonly batched: number;
  readonly sequential: number | undefined;
}

/** In steps per second, as the workload itself. */
function measureRawLimits(rig: Rig, before: Position, steps: number, { isSequential }: Workload): RawLimits {
  const written = readWritten(rig.path, before);
  const path = join(rig.folder, "raw.db");
  const stepsPerRow = steps / written.journal.length;
  return {
    batched: measureRaw(path, written, BATCH) * stepsPerRow,
    // A step of a graph is two rows of one commit.
    sequential:
      isSequential &&
      measureRaw(path, written, Math.max(1, Math.round(1 / stepsPerRow)), SEQUENTIAL_ROWS) * stepsPerRow,
  };
}
