// Checkpoint walk: every StepCommitted entry has its row and every row its entry, and each says what the journal says (A1).
// A row says nothing the journal does not (CP1): a wrong one loses nothing, and its run goes on from the journal.

import { CheckpointFold, type Entry, type NewCheckpoint, type RunNumber } from "../../kernel/index.ts";
import type { CheckStatements } from "./check-store.ts";
import type { Fault } from "./check-journal.ts";
import { StepCheck } from "./check-steps.ts";

const INVARIANT = "I12 committed rows never change";

export class CheckpointCheck {
  readonly #sql: CheckStatements;
  readonly #run: RunNumber;
  readonly #fold = new CheckpointFold();
  readonly #faults: Fault[] = [];
  readonly #steps = new StepCheck();
  /** What comes after a step that cannot be folded says nothing any more. */
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
      // A damaged payload: the journal's own check says which entry it is.
      this.#broken = true;
      this.#fault(entry.seq, `The step of entry ${entry.seq} cannot be read: ${(error as Error).message}`);
      return;
    }
    if (expected === undefined) return;
    const { step } = expected;
    const row = this.#sql.checkpoint.get(this.#run, step) as Record<string, unknown> | undefined;
    if (row === undefined) return this.#fault(entry.seq, `Step ${step} is in the journal and has no checkpoint.`);
    const wrong = (["seq", "key", "label", "chain", "state"] as const).find(
      (field) => (row[field] ?? undefined) !== expected[field],
    );
    if (wrong !== undefined)
      this.#fault(entry.seq, `The checkpoint of step ${step} has another ${wrong} than its journal says.`);
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
