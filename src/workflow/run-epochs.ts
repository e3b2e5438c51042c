// Run epochs: the epoch of a retried run that a command belongs to (retry-record.V3).

import { epochOf, type RetryRecord } from "../kernel/index.ts";
import type { RecordedJournal } from "./recorded-journal.ts";

export class RunEpochs {
  readonly #retries: readonly RetryRecord[];
  readonly #isGraph: boolean;

  constructor(retries: readonly RetryRecord[], isGraph: boolean) {
    this.#retries = retries;
    this.#isGraph = isGraph;
  }

  /** The newest epoch: how often the run was retried. */
  get last(): number {
    return this.#retries.length;
  }

  /** The epoch of the command with this index. Commands of nodes have theirs in their id (retry-record.V4). */
  of(index: number): number {
    return this.#retries.length === 0 || this.#isGraph ? 0 : epochOf(this.#retries, index);
  }

  /** How often a retry gave up the items of a step that have no result (retry-record.V4). */
  ofStep(step: number): number {
    return this.#retries.length === 0 ? 0 : this.#retries.filter((retry) => retry.step === step).length;
  }
}

const NEVER_RETRIED = new RunEpochs([], false);

/** Runs that were never retried share their epochs. */
export function runEpochsOf({ runRetries }: RecordedJournal, isGraph: boolean): RunEpochs {
  return runRetries.length === 0 ? NEVER_RETRIED : new RunEpochs(runRetries, isGraph);
}
