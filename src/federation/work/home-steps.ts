// HomeSteps: keeps in the home what peers say about steps beside the runs: late results, and results that differ.
//
// home-steps.K1. A late statement is a content under its key, pinned by the name of its step; the value that it names is pinned with it.

import { mediaType } from "../../base/index.ts";
import type { Home } from "../home/home.ts";
import { contentOf } from "../log/content.ts";
import type { StepKeeper } from "./federation-worker.ts";
import type { DivergentStep } from "./offer-book.ts";
import { checkStepStatement, STEP_STATEMENT, type ExecutedStep } from "./step-statement.ts";

const LATE = "late:";

/** A statement that came too late. */
export interface LateStep extends ExecutedStep {
  /** The key of the signed statement. */
  readonly key: string;
}

export class HomeSteps implements StepKeeper {
  readonly #home: Home;

  constructor(home: Home) {
    this.#home = home;
  }

  /** home-steps.K1 */
  keepLate(peer: string, envelope: string, executed: ExecutedStep, result: string | undefined): void {
    const contents = [contentOf(STEP_STATEMENT, envelope)];
    if (result !== undefined) contents.push(contentOf(mediaType("value"), result));
    this.#home.putContents(contents, { from: peer });
    const { run, generation, step } = executed;
    for (const { key } of contents) this.#home.pin(key, `${LATE}${run}#${generation}/${step.command}`);
  }

  addDivergence({ run, command, ends }: DivergentStep): void {
    this.#home.addConflict({ kind: "divergence", cell: `run:${run}/${command}`, evidence: { ends } });
  }

  /** The late statements that are here, of all runs. */
  late(): readonly LateStep[] {
    return this.#home.pins().flatMap(({ key, name }) => {
      const content = name.startsWith(LATE) ? this.#home.content(key) : undefined;
      if (content?.type !== STEP_STATEMENT) return [];
      const check = checkStepStatement(Buffer.from(content.bytes).toString("utf8"), undefined);
      return check.status === "valid" ? [{ key, ...check.executed }] : [];
    });
  }
}
