// Backlog: unclaimed work, grouped by what a worker needs to claim it. For `top`, `doctor` and `show`.

import type { EpochMs } from "../base/index.ts";

export interface Backlog {
  /** `turn`: a due turn of a run. `start`: a run that waits for room in its queue. `node`: a node of a flow. */
  readonly kind: "turn" | "start" | "task" | "node";
  /** The name of the definition or the task. */
  readonly name: string;
  /** Of a definition; undefined: a task. */
  readonly version: number | undefined;
  /** Undefined: the default queue. A turn waits in no queue. */
  readonly queue: string | undefined;
  /** The label that a worker must have. */
  readonly label: string | undefined;
  readonly count: number;
  /**
   * How long the oldest has been waiting. If more wait than are counted, the oldest of the most and of the least urgent. For
   * turns, only runs that have not started.
   */
  readonly oldestAt: EpochMs | undefined;
}
