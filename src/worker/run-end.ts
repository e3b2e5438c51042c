// Run end: the last entry of a run, and the reply to its parent.

import type { Arrival, Delivery, EndedRunStatus, NextGeneration, PromiseChanges, TurnWrite } from "../kernel/index.ts";
import { entryData, type CodeOutcome, type Execution } from "../workflow/index.ts";
import type { JournalWriter } from "./journal-writer.ts";

/** Appends the last entry of a run whose code has ended. */
export function appendEnd(journal: JournalWriter, execution: Execution): EndedRunStatus {
  const { outcome, endStatus } = execution;
  if (outcome?.status === "continued" && endStatus === "continued") {
    // Only the last generation replies to the parent.
    journal.append("RunContinued", "", entryData.runContinuedData(outcome.version, outcome.given));
    return "continued";
  }
  let status = endStatus ?? "failed";
  let error: unknown = outcome?.status === "threw" ? outcome.error : execution.cancellation.error;
  let output: string | undefined;
  if (outcome?.status === "returned")
    try {
      output = entryData.encodeInput(outcome.value, execution.limits);
    } catch (notData) {
      status = "failed";
      error = notData;
    }
  if (status === "completed") journal.append("RunCompleted", "", entryData.runCompletedData(output));
  else if (status === "cancelled")
    journal.append("RunCancelled", "", entryData.cancelRequestedData(execution.cancellation.reason));
  else journal.append("RunFailed", "", entryData.runFailedData(error, failedFields(execution, error)));
  answerParent(journal, status, output, error);
  return status;
}

/** What a retry of the run needs (retry-record.V1). */
function failedFields(execution: Execution, error: unknown): entryData.FailedFields {
  if (execution.undone) return { undone: true };
  return execution.deliveries.findFailureOrigin(error) ?? { commands: execution.commands.issued };
}

const NO_PROMISES: PromiseChanges = { opened: [], closed: [] };

/** Undefined: the code cannot have opened a promise, so the end of the run deletes none. */
function promisesAtEnd({ body }: Execution): PromiseChanges | undefined {
  return Object.values(body.ports).some(({ port }) => port === "promise") ? NO_PROMISES : undefined;
}

/** What the last commit of a run says beside its entries. */
export function endFields(
  execution: Execution,
  next: NextGeneration | undefined,
): Pick<TurnWrite, "next" | "promises" | "unread"> {
  const promises = promisesAtEnd(execution);
  return next === undefined ? { promises, unread: execution.unreceived } : { promises, next };
}

/** The code continues in another generation. */
export type Continued = Extract<CodeOutcome, { status: "continued" }>;

/** generation.N3. `late` is journaled and not delivered, so the next generation gets it; undefined when it was a cancel. */
export function nextGeneration(
  execution: Execution,
  outcome: Continued,
  late: readonly Delivery[],
  make: (outcome: Continued) => Omit<NextGeneration, "carried">,
): NextGeneration | undefined {
  for (const delivery of late) execution.deliveries.deliver(delivery);
  return execution.endStatus === "continued"
    ? { ...make(outcome), carried: execution.deliveries.unusedMessages() }
    : undefined;
}

export function answerParent(
  journal: JournalWriter,
  status: EndedRunStatus,
  output: string | undefined,
  error: unknown,
): void {
  const { parent, parentCommand, id } = journal.record;
  if (parent === undefined || parentCommand === undefined) return;
  const arrival: Arrival =
    status === "completed"
      ? { type: "ChildWorkflowCompleted", target: parentCommand, data: entryData.childCompletedData(id, output) }
      : { type: "ChildWorkflowFailed", target: parentCommand, data: entryData.childFailedData(id, error) };
  journal.send(parent, arrival);
}
