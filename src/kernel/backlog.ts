// Backlog: what waits to be taken, by what a worker must have to take it. For people.

import type { EpochMs } from "../base/index.ts";

export interface Backlog {
  /** `turn`: a run that may go on. `start`: one that its queue has not let in yet. `node`: of a flow. */
  readonly kind: "turn" | "start" | "task" | "node";
  /** A definition, or a task. */
  readonly name: string;
  /** Of a definition. */
  readonly version: number | undefined;
  /** Undefined: the default one. A turn waits for no queue. */
  readonly queue: string | undefined;
  /** What else is in the name it is claimed by. */
  readonly label: string | undefined;
  readonly count: number;
  /**
   * Since when the oldest waits: where more wait than are counted, of the most and of the least urgent. Of turns, only those
   * of runs that have not begun.
   */
  readonly oldestAt: EpochMs | undefined;
}
