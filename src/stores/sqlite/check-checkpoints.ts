// Check checkpoints: every StepCommitted entry has a row in `checkpoints` with the same content, and every row an entry (rules.A1).
// The journal can restore every row (checkpoint.C1): a wrong row loses nothing.

import { CheckpointFold, type Entry, type NewCheckpoint, type RunNumber } from "../../kernel/index.ts";
import type { CheckStatements } from "./check-store.ts";
import type { Fault } from "./check-journal.ts";
import { StepCheck } from "./check-steps.ts";

const INVARIANT = "I12 committed rows never change";
const COMPARED = ["seq", "key", "label", "chain", "state"] as const;

export class CheckpointCheck {
  readonly #sql: CheckStatements;
  readonly #run: RunNumber;
  readonly #fold = new CheckpointFold();
  readonly #faults: Fault[] = [];
  readonly #steps = new StepCheck();
  /** After a step that cannot be folded, the following steps prove nothing. */
  #broken = false;

  constructor(sql: CheckStatements, run: RunNumber) {
    this.#sql = sql;
    this.#run = run;
  }

  see(entry: Entry, chain: string): void {
    this.#steps.see(entry);
    if (this.#broken) return;
    let expected: NewCheckpoint | undefined;
    try {
      expected = this.#fold.add(entry, chain);
    } catch (error) {
      // A damaged payload: the check of the journal reports the entry.
      this.#broken = true;
      this.#fault(entry.seq, `The step in entry ${entry.seq} cannot be read: ${(error as Error).message}`);
      return;
    }
    if (expected === undefined) return;
    const { step } = expected;
    const row = this.#sql.rows.get("checkpoints", [this.#run, step], COMPARED);
    if (row === undefined) return this.#fault(entry.seq, `Step ${step} is in the journal but has no checkpoint row.`);
    const wrong = COMPARED.find((field) => (row[field] ?? undefined) !== expected[field]);
    if (wrong !== undefined)
      this.#fault(entry.seq, `The checkpoint of step ${step} has another ${wrong} than the journal.`);
  }

  finish(): readonly Fault[] {
    const { first = 0, last = -1 } = this.#steps;
    if (!this.#broken)
      for (const { step } of this.#sql.strayCheckpoints.all(this.#run, first, last) as unknown as { step: number }[])
        this.#fault(undefined, `The checkpoint of step ${step} has no entry in the journal.`);
    return [...this.#steps.faults, ...this.#faults];
  }

  #fault(seq: number | undefined, message: string): void {
    this.#faults.push({ invariant: INVARIANT, seq, message });
  }
}
