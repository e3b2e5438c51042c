// BudgetWaits: the operations of a run in memory that wait for its budget. They have no attempt, and the worker may release the
// turn meanwhile. An answer arrives as a message: the worker then tries to reserve again.

import { decodeData } from "../kernel/index.ts";
import type { OperationRequest } from "../workflow/index.ts";
import type { HotRun, HotRunParts } from "./hot-run.ts";
import type { OpenOperations } from "./open-operations.ts";
import { runOperation } from "./run-operation.ts";

export class BudgetWaits {
  readonly #run: HotRun;
  readonly #parts: HotRunParts;
  readonly #operations: OpenOperations;

  constructor(run: HotRun, parts: HotRunParts, operations: OpenOperations) {
    this.#run = run;
    this.#parts = parts;
    this.#operations = operations;
  }

  add(request: OperationRequest): void {
    const run = this.#run;
    if (!run.acceptsResults || !this.#operations.has(request.command)) return;
    this.#operations.waitForBudget(request);
    run.execution.nodes?.setUnfunded(request.command, true);
    this.#parts.pump.markDirty(run);
  }

  /**
   * A person raised the budget or declined: each operation reserves again. Or others left room for some: only these do, because
   * each of many that wait would otherwise be refused again whenever one of them is woken.
   */
  answer(type: "BudgetRaised" | "BudgetDeclined", data: string): void {
    const run = this.#run;
    run.journal.append(type, "", data);
    const { woken = this.#operations.unfunded } = decodeData(type, data);
    for (const request of this.#operations.takeUnfunded(woken)) {
      run.execution.nodes?.setUnfunded(request.command, false);
      runOperation(this.#parts, run, request);
    }
  }

  /** Operations that the code no longer waits for: the next commit removes their requests. */
  drop(isKept: (command: string) => boolean): void {
    for (const command of this.#operations.unfunded) if (!isKept(command)) this.#run.journal.drop(command);
  }
}
