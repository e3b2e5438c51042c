// BudgetWaits: the operations of a run in memory that wait for its budget. They have no attempt, and the worker may release the
// turn meanwhile. The answer of a person arrives as a message: the worker then tries to reserve again.

import type { EntryType } from "../kernel/index.ts";
import type { OperationRequest } from "../workflow/index.ts";
import type { HotRun } from "./hot-run.ts";
import type { HotRunHost } from "./hot-run-host.ts";
import type { OpenOperations } from "./open-operations.ts";

export class BudgetWaits {
  readonly #run: HotRun;
  readonly #host: HotRunHost;
  readonly #operations: OpenOperations;

  constructor(run: HotRun, host: HotRunHost, operations: OpenOperations) {
    this.#run = run;
    this.#host = host;
    this.#operations = operations;
  }

  add(request: OperationRequest): void {
    const run = this.#run;
    if (!run.acceptsResults || !this.#operations.has(request.command)) return;
    this.#operations.waitForBudget(request);
    run.execution.nodes?.setUnfunded(request.command, true);
    this.#host.markDirty(run);
  }

  /** The budget was raised, or a person declined: each operation reserves again. */
  answer(type: EntryType, data: string): void {
    const run = this.#run;
    run.journal.append(type, "", data);
    for (const request of this.#operations.takeUnfunded()) {
      run.execution.nodes?.setUnfunded(request.command, false);
      this.#host.runOperation(run, request);
    }
  }

  /** Operations that the code no longer waits for: the next commit removes their requests. */
  drop(isKept: (command: string) => boolean): void {
    for (const command of this.#operations.unfunded) if (!isKept(command)) this.#run.journal.drop(command);
  }
}
