// How a run ends: its last entry, and the answer to its parent.

import type { Arrival, EndStatus, NextGeneration } from "../kernel/index.ts";
import { entryData, type CodeOutcome, type Execution } from "../workflow/index.ts";
import type { Delivery } from "./batch.ts";
import type { Draft } from "./draft.ts";

/** Appends the end of a run whose code has ended. */
export function appendEnd(draft: Draft, execution: Execution): EndStatus {
  const { outcome, endStatus } = execution;
  if (outcome?.status === "continued" && endStatus === "continued") {
    // The parent hears of the last generation only.
    draft.append("RunContinued", "", entryData.runContinuedData(outcome.version, outcome.given));
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
  if (status === "completed") draft.append("RunCompleted", "", entryData.runCompletedData(output));
  else if (status === "cancelled")
    draft.append("RunCancelled", "", entryData.cancelRequestedData(execution.cancellation.reason));
  else draft.append("RunFailed", "", entryData.runFailedData(error, failedFields(execution, error)));
  answerParent(draft, status, output, error);
  return status;
}

/** What a retry needs to know (V1). */
function failedFields(execution: Execution, error: unknown): entryData.FailedFields {
  if (execution.undone) return { undone: true };
  return execution.findFailure(error) ?? { commands: execution.commands.issued };
}

/** The end of code that goes on in another generation. */
export type Continued = Extract<CodeOutcome, { status: "continued" }>;

/** N3. What is journaled and not delivered comes too late for this generation; undefined when it was a cancel. */
export function nextGeneration(
  execution: Execution,
  outcome: Continued,
  late: readonly Delivery[],
  make: (outcome: Continued) => Omit<NextGeneration, "carried">,
): NextGeneration | undefined {
  for (const { type, command, data, at } of late) execution.deliver(type, command, data, at);
  return execution.endStatus === "continued" ? { ...make(outcome), carried: execution.unused() } : undefined;
}

export function answerParent(draft: Draft, status: EndStatus, output: string | undefined, error: unknown): void {
  const { parent, parentCommand, id } = draft.record;
  if (parent === undefined || parentCommand === undefined) return;
  const arrival: Arrival =
    status === "completed"
      ? { type: "ChildWorkflowCompleted", target: parentCommand, data: entryData.childCompletedData(id, output) }
      : { type: "ChildWorkflowFailed", target: parentCommand, data: entryData.childFailedData(id, error) };
  draft.send(parent, arrival);
}
