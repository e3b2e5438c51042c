// Operation scope: whether the code that calls is the function of an operation or a task.
//
// What such a function does is one step; a step inside it would be journaled or not depending on when it is replayed.

import { AsyncLocalStorage } from "node:async_hooks";
import { RepriseError } from "../base/index.ts";

const scope = new AsyncLocalStorage<string | undefined>();

/** Calls the function of a step; whatever it awaits belongs to it. */
export function callInStep<T>(step: string, call: () => T): T {
  return scope.run(step, call);
}

/** Calls workflow code, which may be set going from anywhere, also from the end of a step. */
export function callOutsideSteps<T>(call: () => T): T {
  return scope.run(undefined, call);
}

export function refuseInsideStep(): void {
  const step = scope.getStore();
  if (step !== undefined)
    throw new RepriseError(
      "USAGE",
      `ctx of the workflow was used inside the function of the step ${step}. A step is one call to the outside: take the inner step out of it and await them one after the other, or start a child.`,
    );
}
