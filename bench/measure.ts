// Measure: one measurement: a rig, a warm-up, the workload, and the raw limit of the rows it wrote.

import { measureFsyncMs, percentile, round } from "./statistics.ts";
import type { Position } from "./database.ts";
import type { Federated } from "./federated.ts";
import { Rig } from "./rig.ts";
import type { Plan, Workload } from "./workload.ts";

export interface BenchResult {
  readonly workload: string;
  readonly variant: string;
  readonly store: string;
  readonly workers: number;
  /** Steps per second, from the first start to the last result. A figure that a workload does not have is null. */
  readonly perSecond: number | null;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly rawPerSecond: number | null;
  readonly ratio: number | null;
  readonly bytesPerStep: number | null;
  readonly rssMb: number | null;
  readonly fsyncMs: number | null;
  /** Of all processes; more reliable than `perSecond` on a shared machine. */
  readonly cpuUsPerStep: number | null;
  readonly runs: number;
  readonly steps: number;
  readonly elapsedMs: number | null;
  readonly [extra: string]: unknown;
}

const BATCH = 200;
/** Rows committed one step at a time; each step costs an fsync. */
const SEQUENTIAL_ROWS = 2_000;

export async function measure(
  workload: Workload,
  plan: Plan,
  store: string,
  workers: number,
  isApart: boolean,
  federated?: Federated,
): Promise<BenchResult> {
  await using rig = await Rig.open(store, workload.withoutWorker === true ? 0 : workers, isApart, federated);
  const fsyncMs = measureFsyncMs(rig.database.folder);
  if (workload.warmUp > 0) await workload.run(rig, { ...plan, scale: plan.scale * workload.warmUp });

  const before = await rig.database.position();
  const usageBefore = await rig.usage();
  const measured = await workload.run(rig, plan);
  const { peakRssMb, cpuMs } = await rig.usage();
  const after = await rig.database.position();

  const { runs, steps, elapsedMs, latenciesMs, extra = {}, skipped } = measured;
  const perSecond = workload.hasNoRate ? undefined : (steps / elapsedMs) * 1_000;
  const hasRawLimit = !workload.hasNoRate && !workload.hasNoRawLimit;
  const raw = !hasRawLimit ? undefined : await measureRawLimits(rig, before, steps, workload);
  return {
    workload: workload.name,
    variant: plan.variant,
    store: rig.database.kind,
    workers,
    ...(isApart && { apart: true }),
    ...(federated && { federated }),
    perSecond: round(perSecond),
    p50Ms: round(percentile(latenciesMs, 0.5)),
    p99Ms: round(percentile(latenciesMs, 0.99)),
    rawPerSecond: round(raw?.batched),
    ratio: round(raw && perSecond && perSecond / raw.batched),
    // Without a raw limit, the rows include those of preparations.
    bytesPerStep: workload.hasNoRawLimit ? null : round((after.bytes - before.bytes) / steps),
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
    ...(skipped !== undefined && { skipped }),
    ...Object.fromEntries(Object.entries(extra).map(([name, value]) => [name, round(value)])),
  };
}

interface RawLimits {
  readonly batched: number;
  readonly sequential: number | undefined;
}

/** In steps per second, as for the workload. */
async function measureRawLimits(rig: Rig, before: Position, steps: number, workload: Workload): Promise<RawLimits> {
  let stepsPerRow = 0;
  const [batched = 0, sequential] = await rig.database.measureRaw(before, (rows) => {
    stepsPerRow = steps / rows;
    // A step of a graph is two rows of one commit.
    const batchSize = Math.max(1, Math.round(1 / stepsPerRow));
    return [
      { batchSize: BATCH, maxRows: Number.POSITIVE_INFINITY },
      ...(workload.isSequential ? [{ batchSize, maxRows: SEQUENTIAL_ROWS }] : []),
    ];
  });
  return { batched: batched * stepsPerRow, sequential: sequential && sequential * stepsPerRow };
}
