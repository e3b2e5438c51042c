// Workload: a number of runs on an open rig, and their durations.

import type { Rig } from "./rig.ts";

export interface Plan {
  /** One of the workload's variants, or a wait such as "3ms" if the workload supports one. */
  readonly variant: string;
  /** Multiplies all sizes; less than 1 for a short run. */
  readonly scale: number;
}

export interface Measured {
  readonly runs: number;
  readonly steps: number;
  readonly elapsedMs: number;
  /** The latency of each run, from start to result. */
  readonly latenciesMs: readonly number[];
  /** Figures of this workload only. */
  readonly extra?: Readonly<Record<string, number>>;
  /** Why nothing was measured. */
  readonly skipped?: string;
}

export interface Workload {
  readonly name: string;
  readonly variants: readonly string[];
  /** The relative size of the warm-up; 0: none. */
  readonly warmUp: number;
  /** Each step waits until the last one is durable: the relevant raw limit commits row by row. */
  readonly isSequential?: true;
  /** It has no rate and no raw limit. */
  readonly hasNoRate?: true;
  /** It has a rate, but no raw limit: its rows are too many, and some belong to preparations. */
  readonly hasNoRawLimit?: true;
  /** It uses the store directly: no worker may run. */
  readonly withoutWorker?: true;
  run(rig: Rig, plan: Plan): Promise<Measured>;
}

/** A size multiplied by the scale; at least one. */
export function scaled(size: number, { scale }: Plan): number {
  return Math.max(1, Math.round(size * scale));
}
