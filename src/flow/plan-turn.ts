// Plan turn: the plan for a turn of a flow, which starts the run or takes messages from its inbox.

import { CancelledError, invariant, RepriseError } from "../base/index.ts";
import { errorOf, decodeData, type InboxRow, type NewEntry, type NodeArrival } from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import type { FlowBody } from "./definition.ts";
import { requireRef } from "./items.ts";
import { planEnd, planCompletion, type NodeOutcome, type CompletionPlan, type PlanHost } from "./plan.ts";

export interface FlowTurn {
  /** No turn of the run has been committed yet. */
  readonly isNew: boolean;
  readonly input: unknown;
  readonly inbox: readonly InboxRow[];
}

/** One plan for all rows; rows after the end of the run are ignored. */
export function planTurn(body: FlowBody, { isNew, input, inbox }: FlowTurn, host: PlanHost): CompletionPlan {
  let plan: CompletionPlan = { entries: [], arrivals: [], advances: [], children: [], messages: [], then: "continue" };
  if (isNew)
    plan = planCompletion(body, requireRef(body, "input"), { outcome: "value", value: input, attempt: 0 }, host);
  for (const row of inbox) {
    if (plan.then !== "continue") break;
    plan = merged(plan, planRow(body, row, host));
  }
  return plan;
}

function planRow(body: FlowBody, { type, target, data }: InboxRow, host: PlanHost): CompletionPlan | undefined {
  const received: NewEntry = { type, command: "", data };
  switch (type) {
    case "CancelRequested": {
      const { reason } = decodeData(type, data);
      const error = new CancelledError(`The run was cancelled${reason === undefined ? "." : `: ${reason}`}`);
      const last: NewEntry = { type: "RunCancelled", command: "", data: entryData.cancelRequestedData(reason) };
      return planEnd(host, "cancelled", [received], last, error);
    }
    case "DeadlineExceeded": {
      const error = new RepriseError(
        "DEADLINE_EXCEEDED",
        `Run ${host.record.id} exceeded its deadline. Find out what it waited for, or set a longer \`deadline\`.`,
      );
      const last: NewEntry = {
        type: "RunFailed",
        command: "",
        data: entryData.runFailedData(error, { at: "Deadline", entries: 1 }),
      };
      return planEnd(host, "failed", [received], last, error);
    }
    case "BudgetRaised":
    case "BudgetDeclined":
      return { entries: [received], arrivals: [], advances: [], children: [], messages: [], then: "continue" };
    case "ChildWorkflowCompleted":
    case "ChildWorkflowFailed":
      return planCompletion(body, requireRef(body, target), answerOf(type, data), host);
    default:
      // A flow takes no other messages; this one only made the turn due.
      return undefined;
  }
}

function answerOf(type: "ChildWorkflowCompleted" | "ChildWorkflowFailed", data: string): NodeOutcome {
  return type === "ChildWorkflowCompleted"
    ? { outcome: "value", value: decodeData(type, data).output, attempt: 0 }
    : { outcome: "failure", error: errorOf(decodeData(type, data)), attempt: 0 };
}

function merged(first: CompletionPlan, second: CompletionPlan | undefined): CompletionPlan {
  if (second === undefined) return first;
  const before = first.entries.length;
  invariant(first.spread === undefined || second.spread === undefined, "A commit has at most one spread.");
  const moved = (arrival: NodeArrival): NodeArrival =>
    arrival.cause === undefined ? arrival : { ...arrival, cause: arrival.cause + before };
  const spread = second.spread && { ...second.spread, cause: second.spread.cause + before };
  return {
    entries: [...first.entries, ...second.entries],
    arrivals: [...first.arrivals, ...second.arrivals.map(moved)],
    ...((spread ?? first.spread) && { spread: (spread ?? first.spread)! }),
    advances: [...first.advances, ...second.advances],
    children: [...first.children, ...second.children],
    messages: [...first.messages, ...second.messages],
    then: second.then,
    ...(second.cancel !== undefined && { cancel: second.cancel }),
  };
}
