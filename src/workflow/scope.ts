// Scope: whose code is calling. Workflow code, the function of a step, or neither.
//
// What the function of an operation or a task does is one step; a step inside it would be journaled or not depending on
// when it is replayed. A step is kept as its name, workflow code as an object made when the run begins: entering a step allocates nothing.

import { AsyncLocalStorage } from "node:async_hooks";
import { RepriseError, type EpochMs } from "../base/index.ts";
import { stepPath } from "../kernel/index.ts";
import type { Guard } from "./guard.ts";

/** A message of `ctx.send`, encoded when it was called. */
export interface NodeMessage {
  readonly destination: string;
  readonly payload: string | undefined;
}

/** The code of one attempt of a graph's node: its commands are counted by themselves. */
export interface NodeScope {
  /** `Node(3.0)` */
  readonly command: string;
  /** As the graph calls it. */
  readonly name: string;
  readonly attempt: number;
  /** `Node(3.0)#0/`, in another life of its run `Node(3.0)~1#0/`: what its commands begin with. */
  readonly prefix: string;
  /** Where its chance comes from: the path of its item. */
  readonly path: string;
  readonly counts: Map<string, number>;
  draws: number;
  /** What `ctx.now` answers: when it began, then when the last thing came that its code waited for. */
  time: EpochMs;
  /** What it sends to the outside once it has a result; most send nothing. */
  messages: NodeMessage[] | undefined;
  /** How much its code waits for, and how much of it may come while nobody holds the run. */
  open: number;
  waiting: number;
  /** Another node of its step failed for good: nothing more is done for it. */
  stopped: RepriseError | undefined;
  /** The attempt has ended: whatever its code still asks for is not heard. */
  over: boolean;
}

export function nodeScope(
  command: string,
  name: string,
  life: number,
  attempt: number,
  path: string,
  time: EpochMs,
): NodeScope {
  return {
    command,
    name,
    attempt,
    prefix: nodePrefix(command, life, attempt),
    path,
    counts: new Map(),
    draws: 0,
    time,
    messages: undefined,
    open: 0,
    waiting: 0,
    stopped: undefined,
    over: false,
  };
}

/** V4. What the commands of one attempt of a node begin with. */
export function nodePrefix(command: string, life: number, attempt: number): string {
  return `${stepPath(command, life)}#${attempt}/`;
}

interface WorkflowScope {
  readonly shielded: boolean;
  readonly node?: NodeScope | undefined;
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
  return scope.run({ shielded: true, guard, query: undefined, node: nodeOfCaller() }, call);
}

/** Calls the code of a node. Nobody watches it but in a replay: what it does besides `ctx` is its own business, its result is kept. */
export function callInNode<T>(node: NodeScope, guard: Guard | undefined, call: () => T): T {
  return scope.run({ shielded: false, guard, query: undefined, node }, call);
}

/** The node whose code is calling. */
export function nodeOfCaller(): NodeScope | undefined {
  const caller = scope.getStore();
  return typeof caller === "object" ? caller.node : undefined;
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
