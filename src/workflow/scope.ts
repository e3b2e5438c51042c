// Scope: whose code is calling. Workflow code, the function of a step, or neither.
//
// What the function of an operation or a task does is one step; a step inside it would be journaled or not depending on
// when it is replayed. A step is kept as its name, workflow code as an object made when the run begins: entering a step allocates nothing.

import { AsyncLocalStorage } from "node:async_hooks";
import { RepriseError } from "../base/index.ts";
import type { Guard } from "./guard.ts";

interface WorkflowScope {
  readonly shielded: boolean;
  /** Undefined where nobody watches. */
  readonly guard: Guard | undefined;
  /** The query that is being answered. */
  readonly query: string | undefined;
}

const scope = new AsyncLocalStorage<string | WorkflowScope | undefined>();

/** Calls the function of a step; whatever it awaits belongs to it. */
export function callInStep<T>(step: string, call: () => T): T {
  return scope.run(step, call);
}

/** Calls workflow code, which may be set going from anywhere, also from the end of a step. */
export function callWorkflow<T>(guard: Guard | undefined, call: () => T): T {
  return scope.run({ shielded: false, guard, query: undefined }, call);
}

/** The guard that watches the caller; undefined unless it is workflow code. */
export function guardOfCaller(): Guard | undefined {
  const caller = scope.getStore();
  return typeof caller === "object" ? caller.guard : undefined;
}

/** For what the engine does on behalf of workflow code and does not belong to it: a log line. */
export function callOutside<T>(call: () => T): T {
  return scope.run(undefined, call);
}

/** Calls workflow code that a cancel leaves alone. */
export function callShielded<T>(guard: Guard | undefined, call: () => T): T {
  return scope.run({ shielded: true, guard, query: undefined }, call);
}

export function isShielded(): boolean {
  const caller = scope.getStore();
  return typeof caller === "object" && caller.shielded;
}

/** Calls what answers a query: it may look at everything and ask for nothing. */
export function callQuery<T>(query: string, call: () => T): T {
  return scope.run({ shielded: false, guard: undefined, query }, call);
}

export function refuseInsideStep(
  instead = "A step is one call to the outside: take the inner step out of it and await them one after the other, or start a child.",
): void {
  const caller = scope.getStore();
  if (typeof caller === "string")
    throw new RepriseError(
      "USAGE",
      `ctx of the workflow was used inside the function of the step ${caller}. ${instead}`,
    );
  if (caller?.query !== undefined)
    throw new RepriseError(
      "USAGE",
      `ctx of the workflow was asked for something inside the query ${caller.query}. A query only looks: use an update where something must be done.`,
    );
}
