// Scope: whose code is calling. Workflow code, the function of a step, or neither.
//
// What the function of an operation or a task does is one step; a step inside it would be journaled or not depending on
// when it is replayed. A step is kept as its name, workflow code as one of two objects: entering a scope allocates nothing.

import { AsyncLocalStorage } from "node:async_hooks";
import { RepriseError } from "../base/index.ts";

interface WorkflowScope {
  readonly shielded: boolean;
}
const WORKFLOW: WorkflowScope = { shielded: false };
const SHIELDED: WorkflowScope = { shielded: true };

const scope = new AsyncLocalStorage<string | WorkflowScope>();

/** Calls the function of a step; whatever it awaits belongs to it. */
export function callInStep<T>(step: string, call: () => T): T {
  return scope.run(step, call);
}

/** Calls workflow code, which may be set going from anywhere, also from the end of a step. */
export function callWorkflow<T>(call: () => T): T {
  return scope.run(WORKFLOW, call);
}

/** Calls workflow code that a cancel leaves alone. */
export function callShielded<T>(call: () => T): T {
  return scope.run(SHIELDED, call);
}

export function isShielded(): boolean {
  return scope.getStore() === SHIELDED;
}

export function refuseInsideStep(
  instead = "A step is one call to the outside: take the inner step out of it and await them one after the other, or start a child.",
): void {
  const step = scope.getStore();
  if (typeof step === "string")
    throw new RepriseError("USAGE", `ctx of the workflow was used inside the function of the step ${step}. ${instead}`);
}
