// Decide: sends answers to promises. An answer is held for 5 s with Undo, then sent once; the commit's event confirms it, and a refusal
// brings the row back.
//
// decide.D1. Nothing is sent before the time is over or the person confirms; Undo means that the server never hears of it.

import { signal } from "@preact/signals";
import { approvalAnswer } from "../../../../src/contract/approval-answer.ts";
import type { CostBody, OpenPromiseBody } from "../../../../src/contract/run.ts";
import { at, post } from "../../api.ts";
import { showProblem } from "../../components/controls.tsx";
import { toast } from "../../components/toast.tsx";
import { plural } from "../../format.ts";
import { can, site } from "../../site.ts";
import { idOf, missingCost, pathOf, textOfPromise, type Answer } from "./promise-text.ts";

export type Decision = "approve" | "reject";
export type Progress = { readonly decision: Decision; readonly state: "held" | "sending" | "sent" };

/** Answers of this page, by the id of the promise. */
export const progress = signal<ReadonlyMap<string, Progress>>(new Map());

function setProgress(ids: readonly string[], one: Progress | undefined): void {
  const next = new Map(progress.peek());
  for (const id of ids) {
    if (one === undefined) next.delete(id);
    else next.set(id, one);
  }
  progress.value = next;
}

/** What a button sends; undefined: the person must write the value. */
export function answerFor(schema: unknown, decision: Decision, reason: string): Answer | undefined {
  const by = site.peek()?.caller.name ?? "";
  const answer = approvalAnswer(schema, decision === "approve", { by, reason });
  if (answer !== undefined || decision === "approve") return answer;
  return { reject: reason === "" ? "rejected in the dashboard" : reason };
}

/** How a decision is called when it is made. */
export function wordOf(decision: Decision, kind: OpenPromiseBody["kind"]): string {
  if (kind === "budget") return decision === "approve" ? "Raised" : "Declined";
  return decision === "approve" ? "Approved" : "Rejected";
}

/** The answer of a button to this promise; a budget is raised by what is missing, or not. */
export function answerTo(
  promise: OpenPromiseBody,
  schema: unknown,
  decision: Decision,
  reason: string,
): Answer | undefined {
  if (promise.kind !== "budget") return answerFor(schema, decision, reason);
  return decision === "approve" ? { value: missingCost(promise.show) } : { reject: reason };
}

/** Raising a budget is a control of its run. */
export function canAnswer({ kind }: Pick<OpenPromiseBody, "kind">): boolean {
  return can(kind === "budget" ? "operator" : "approver");
}

export interface Decided {
  readonly promise: OpenPromiseBody;
  readonly answer: Answer;
}

/** Holds the answers for 5 s, then sends them. */
export function decide(decision: Decision, answers: readonly Decided[], reason: string): void {
  const [first] = answers;
  if (first === undefined) return;
  const ids = answers.map(({ promise }) => idOf(promise));
  setProgress(ids, { decision, state: "held" });
  const word = wordOf(decision, answers.length === 1 ? first.promise.kind : "promise");
  const what = answers.length === 1 ? textOfPromise(first.promise).title : plural(answers.length, "promise");
  toast({
    tone: "good",
    text: `${word}: ${what}`,
    held: {
      label: "Send now",
      undo: () => setProgress(ids, undefined),
      run: () => void send(decision, answers, reason),
    },
  });
}

/** Raises the budget of a run; without an amount, declines to. */
export async function answerBudget(run: string, add: CostBody | undefined, reason: string): Promise<void> {
  const by = site.peek()?.caller.name;
  const who = { ...(by !== undefined && by !== "" && { by }), ...(reason !== "" && { reason }) };
  await post(at`/v1/runs/${run}/` + (add === undefined ? "decline-budget" : "raise"), { add, ...who });
}

async function send(decision: Decision, answers: readonly Decided[], reason: string): Promise<void> {
  // One after the other: many at once would take the place of other requests of this caller.
  for (const { promise, answer } of answers) {
    const id = idOf(promise);
    setProgress([id], { decision, state: "sending" });
    try {
      if (promise.kind === "budget")
        await answerBudget(promise.run, "value" in answer ? (answer.value as CostBody) : undefined, reason);
      else await post(pathOf(promise), { ...answer, ...(reason !== "" && { reason }) });
      setProgress([id], { decision, state: "sent" });
    } catch (thrown) {
      setProgress([id], undefined);
      showProblem(thrown);
    }
  }
}
