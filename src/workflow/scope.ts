// Scope: which code is calling: workflow code, the function of a step, or neither.
//
// The function of an operation or a task is one step. A step inside it would be recorded or not depending on when the outer
// step is replayed, so it is refused. The scope of a step is its name, and that of workflow code an object of its engine's guard:
// entering one of them allocates nothing here.

import { AsyncLocalStorage } from "node:async_hooks";
import { RepriseError, type EpochMs } from "../base/index.ts";
import { stepPath } from "../kernel/index.ts";
import type { Guard } from "./guard.ts";
import type { LibraryValues } from "./library-values.ts";

/** A message of `ctx.send`, encoded by the call. */
export interface NodeMessage {
  readonly destination: string;
  readonly payload: string | undefined;
}

/** The code of one attempt of a graph's node. It numbers its commands separately. */
export interface NodeScope {
  /** `Node(3.0)` */
  readonly command: string;
  /** Its name in the graph. */
  readonly name: string;
  readonly attempt: number;
  /** The prefix of its command ids: `Node(3.0)#0/`, in the second epoch of the run `Node(3.0)~1#0/`. */
  readonly prefix: string;
  /** The path of its item, which seeds its random numbers. */
  readonly path: string;
  /** Undefined for a node that has requested nothing yet. */
  counts: Map<string, number> | undefined;
  randomCount: number;
  /** The number of its calls of `ctx.deterministic`. */
  libraryCount: number;
  /** The result of `ctx.now`: when it started, then when the code received its last completion. */
  time: EpochMs;
  /**
   * attempts.X1. The last entry that its code received in a replay, or the one after which it was requested. Undefined: it was
   * requested, or received an answer, after the replay.
   */
  answeredSeq: number | undefined;
  /** Sent with its result. Undefined for most nodes. */
  messages: NodeMessage[] | undefined;
  /** How many promises its code waits for, and how many of them can settle while no worker holds the run. */
  open: number;
  waiting: number;
  /** Set when another node of its step failed permanently; further requests are refused with it. */
  stopped: RepriseError | undefined;
  /** The attempt has ended; further requests are ignored. */
  isOver: boolean;
}

export function nodeScope(
  command: string,
  name: string,
  life: number,
  attempt: number,
  path: string,
  time: EpochMs,
  requestedAfter?: number,
): NodeScope {
  return {
    command,
    name,
    attempt,
    prefix: nodePrefix(command, life, attempt),
    path,
    counts: undefined,
    randomCount: 0,
    libraryCount: 0,
    time,
    answeredSeq: requestedAfter,
    messages: undefined,
    open: 0,
    waiting: 0,
    stopped: undefined,
    isOver: false,
  };
}

/** The code of a node receives a recorded answer, of this time and entry. */
export function noteAnswer(node: NodeScope, at: EpochMs, seq: number | undefined): void {
  node.time = Math.max(node.time, at);
  if (node.answeredSeq !== undefined && seq !== undefined) node.answeredSeq = Math.max(node.answeredSeq, seq);
}

/** The prefix of the commands of one attempt of a node (retry-record.V4). */
export function nodePrefix(command: string, life: number, attempt: number): string {
  return `${stepPath(command, life)}#${attempt}/`;
}

export interface WorkflowScope {
  readonly shielded: boolean;
  readonly node?: NodeScope | undefined;
  /** Undefined: no guard. */
  readonly guard: Guard | undefined;
  /** The query that is executing. */
  readonly query: string | undefined;
  /** Inside `ctx.deterministic`. */
  readonly library?: LibraryValues | undefined;
}

const scope = new AsyncLocalStorage<string | WorkflowScope | undefined>();

/** Calls the function of a step. What it awaits stays in its scope. */
export function callInStep<T>(step: string, call: () => T): T {
  return scope.run(step, call);
}

const UNGUARDED: WorkflowScope = { shielded: false, guard: undefined, query: undefined };

/** Calls workflow code. The caller may be in any scope, also in that of a step. */
export function callWorkflow<T>(guard: Guard | undefined, call: () => T): T {
  return scope.run(guard === undefined ? UNGUARDED : guard.scope, call);
}

/** Undefined unless workflow code is the caller. */
export function workflowOfCaller(): Pick<WorkflowScope, "guard" | "library"> | undefined {
  const caller = scope.getStore();
  return typeof caller === "object" ? caller : undefined;
}

/** Calls library code that gets these values. What it awaits stays in its scope. */
export function callLibrary<T>(library: LibraryValues, call: () => T): T {
  const caller = scope.getStore();
  const outer = typeof caller === "object" ? caller : { shielded: false, guard: undefined, query: undefined };
  return scope.run({ ...outer, library }, call);
}

/** Calls engine code on behalf of workflow code: a log line. */
export function callOutside<T>(call: () => T): T {
  return scope.run(undefined, call);
}

/** Calls workflow code that survives a cancel. */
export function callShielded<T>(guard: Guard | undefined, call: () => T): T {
  const library = workflowOfCaller()?.library;
  return scope.run({ shielded: true, guard, query: undefined, node: nodeOfCaller(), library }, call);
}

/** Calls the code of a node. It has a guard only in a replay: its result is recorded, so it need not be deterministic. */
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

/** Calls the handler of a query, which may request nothing. */
export function callQuery<T>(query: string, call: () => T): T {
  return scope.run({ shielded: false, guard: undefined, query }, call);
}

export function refuseInsideStep(
  instead = "Move the inner call out of the step and await one after the other, or start a child with ctx.child().",
): void {
  const caller = scope.getStore();
  if (typeof caller === "string")
    throw new RepriseError("USAGE", `The function of step \`${caller}\` used the ctx of its workflow. ${instead}`);
  if (caller?.query !== undefined)
    throw new RepriseError(
      "USAGE",
      `Query \`${caller.query}\` used the ctx of its workflow. A query only reads. Use an update to request steps.`,
    );
}
