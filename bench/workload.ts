// What a workload is: a number of runs on an open rig, and how long they took.

import type { Rig } from "./rig.ts";

export interface Plan {
  /** One of the workload's variants, or a wait such as "3ms" where the workload takes one. */
  readonly variant: string;
  /** 1, or less for a trial: sizes are multiplied by it. */
  readonly scale: number;
}

export interface Measured {
  readonly runs: number;
  readonly steps: number;
  readonly elapsedMs: number;
  /** Of each run, from start to result. */
  readonly latenciesMs: readonly number[];
  /** What only this workload knows. */
  readonly extra?: Readonly<Record<string, number>>;
}

export interface Workload {
  readonly name: string;
  readonly variants: readonly string[];
  /** The size of the warm-up; 0: nothing worth warming. */
  readonly warmUp: number;
  /** One step can begin only when the one before is durable: the raw limit of interest commits row by row. */
  readonly isSequential?: true;
  /** Nothing to be compared with a bare loop: there is no rate and no raw limit. */
  readonly hasNoRate?: true;
  /** It works on the store itself: no worker may come between. */
  readonly withoutWorker?: true;
  run(rig: Rig, plan: Plan): Promise<Measured>;
}

/** A size of the plan; at least one. */
export function scaled(size: number, { scale }: Plan): number {
  return Math.max(1, Math.round(size * scale));
}
