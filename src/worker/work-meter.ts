// WorkMeter: counts what this worker commits, for people who watch it. What it counted goes out with the heartbeat.

import type { EpochMs } from "../base/index.ts";
import {
  isTerminal,
  type CompleteOutcome,
  type EntryType,
  type Outcome,
  type TurnOutcome,
  type WorkerDoing,
  type Write,
} from "../kernel/index.ts";

export class WorkMeter {
  #since: EpochMs;
  #begun = 0;
  #ended = 0;
  #steps = 0;

  constructor(now: EpochMs) {
    this.#since = now;
  }

  note(write: Write, outcome: Outcome): void {
    if (write.write === "turn") {
      if ((outcome as TurnOutcome).status !== "committed") return;
      if (write.head === 1 && write.entries.length > 0) this.#begun += 1;
      this.#count(write.entries);
      if (write.then !== "hold" && write.then !== "release") this.#ended += 1;
    } else if (write.write === "complete") {
      const completed = outcome as CompleteOutcome;
      if (completed.status !== "committed") return;
      if ("turn" in write.fence && completed.seq === 2) this.#begun += 1;
      this.#count(write.entries);
      if (write.then !== "go on") this.#ended += 1;
    }
  }

  #count(entries: readonly { readonly type: EntryType }[]): void {
    for (const { type } of entries) if (isTerminal(type)) this.#steps += 1;
  }

  /** What was counted since this was last asked, and what is in hand. */
  text(now: EpochMs, inHand: Pick<WorkerDoing, "runsHeld" | "atWork" | "isDraining">): string {
    const counted = { runsBegun: this.#begun, runsEnded: this.#ended, steps: this.#steps };
    const doing: WorkerDoing = { overMs: Math.max(1, now - this.#since), ...counted, ...inHand };
    this.#since = now;
    this.#begun = this.#ended = this.#steps = 0;
    return JSON.stringify(doing);
  }
}
