// WorkMeter: counts the runs and steps this worker commits. Each heartbeat reports the counts.

import type { EpochMs } from "../base/index.ts";
import {
  isTerminal,
  type CompleteOutcome,
  type EntryType,
  type Outcome,
  type TurnOutcome,
  type WorkerActivity,
  type Write,
} from "../kernel/index.ts";

export class WorkMeter {
  #since: EpochMs;
  #started = 0;
  #ended = 0;
  #steps = 0;

  constructor(now: EpochMs) {
    this.#since = now;
  }

  note(write: Write, outcome: Outcome): void {
    if (write.write === "turn") {
      if ((outcome as TurnOutcome).status !== "committed") return;
      if (write.head === 1 && write.entries.length > 0) this.#started += 1;
      this.#count(write.entries);
      if (write.then !== "hold" && write.then !== "release") this.#ended += 1;
    } else if (write.write === "complete") {
      const completed = outcome as CompleteOutcome;
      if (completed.status !== "committed") return;
      if ("turn" in write.fence && completed.seq === 2) this.#started += 1;
      this.#count(write.entries);
      if (write.then !== "continue") this.#ended += 1;
    }
  }

  #count(entries: readonly { readonly type: EntryType }[]): void {
    for (const { type } of entries) if (isTerminal(type)) this.#steps += 1;
  }

  /** The counts since the last call, with the current load. */
  text(now: EpochMs, load: Pick<WorkerActivity, "runsHeld" | "running" | "isDraining">): string {
    const counted = { runsStarted: this.#started, runsEnded: this.#ended, steps: this.#steps };
    const activity: WorkerActivity = { overMs: Math.max(1, now - this.#since), ...counted, ...load };
    this.#since = now;
    this.#started = this.#ended = this.#steps = 0;
    return JSON.stringify(activity);
  }
}
