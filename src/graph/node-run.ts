// Node run: runs the function of one item as a command.

import type { EpochMs } from "../base/index.ts";
import {
  callInStep,
  isViolation,
  never,
  nodeScope,
  type Execution,
  type OperationContext,
  type StoppedNode,
} from "../workflow/index.ts";
import { checkResult, type StoredResult } from "./check-result.ts";
import { createNodeContext } from "./create-node-context.ts";
import { END, type End, type GraphBody, type GraphNode } from "./definition.ts";
import type { StepItem } from "./step-item.ts";
import { nodeIdempotencyKey } from "./node-idempotency-key.ts";
import type { StateChange, GraphState } from "./state.ts";

/** The result in a node's entry. */
export interface LabeledResult extends StoredResult {
  readonly label?: string;
}

export interface NodeResult {
  readonly change: StateChange;
  readonly goto: readonly (string | End)[] | undefined;
  readonly label: string | undefined;
}

/** `Node(3.0)`: the first item of step 3. */
export function commandOf(step: number, position: number): string {
  return `Node(${step}.${position})`;
}

/** Of a command that `commandOf` made. */
export function placeOfCommand(command: string): { readonly step: number; readonly position: number } {
  const dot = command.indexOf(".");
  return { step: Number(command.slice(5, dot)), position: Number(command.slice(dot + 1, -1)) };
}

export interface StartedNode extends StoppedNode {
  /** The first attempt made by this process, from 0. */
  readonly attempt: number;
  /** The stored result (`resultOf`). Settles when the last attempt has ended and its entry is durable. */
  readonly result: Promise<unknown>;
}

/** `freedAt`: when the item ended whose slot this one takes; undefined if it did not wait for a slot. */
export function startNode(
  execution: Execution,
  body: GraphBody,
  step: number,
  position: number,
  item: StepItem,
  state: GraphState,
  freedAt?: EpochMs,
): StartedNode {
  const { node: name } = item;
  const id = commandOf(step, position);
  const { refusal } = execution;
  if (refusal !== undefined) return { command: id, name, index: -1, attempt: 0, result: Promise.reject(refusal) };
  const node = body.nodes.get(name) as GraphNode;
  const command = execution.commands.issueNamed(id, "Node", "RunNode", { operationName: name });
  if (isViolation(command)) {
    execution.violate(command);
    return { command: id, name, index: -1, attempt: 0, result: never() };
  }
  const { index, known, retried } = command;
  const dueAt = retried === undefined ? undefined : retried.at + retried.data.delay;
  const attempt = retried === undefined ? 0 : (retried.data.attempt ?? 0) + 1;
  if (!known) {
    const key = nodeIdempotencyKey(body, node, item, state.values);
    const { deliveredSeq: requestedAfter } = execution.lostTurns;
    execution.requests.push({
      kind: "operation",
      command: id,
      name,
      index,
      input: undefined,
      call: (op) =>
        callNode(
          execution,
          body,
          node,
          { id, step, item, state, key, startedAt: dueAt ?? freedAt, requestedAfter },
          op,
        ),
      database: undefined,
      policy: node.policy,
      isNode: true,
      isRecordable: node.effects.recordable !== false,
      // Every attempt passes the same key to services, also after a retry of the run (rules.A2).
      epoch: 0,
      attempt,
      dueAt,
      lostTurns: execution.lostTurns.countNow(id, index),
      isReplayed: requestedAfter !== undefined,
    });
  }
  return { command: id, name, index, attempt, result: execution.open("Node", id, name, false) };
}

export function resultOf(stored: unknown): NodeResult {
  const { change = {}, goto: to, label } = (stored ?? {}) as LabeledResult;
  return { change, goto: to?.map((target) => target ?? END), label };
}

export interface GraphNodeCall {
  readonly id: string;
  readonly step: number;
  readonly item: StepItem;
  readonly state: GraphState;
  readonly key: (() => string) | undefined;
  /** The time that its code reads first; undefined for the time of the checkpoint before it. */
  readonly startedAt: EpochMs | undefined;
  /** The entry after which the code requested it, in a replay (attempts.X1). */
  readonly requestedAfter?: number | undefined;
  /** The epoch in the ids of its code's commands (retry-record.V4); a replay sets it for a result of an earlier epoch. */
  readonly epoch?: number;
}

/** Not `async`: its frame takes 0.5 KB more per node (2.6 instead of 2.1 KB, with all that it calls). */
export function callNode(
  execution: Execution,
  body: GraphBody,
  node: GraphNode,
  call: GraphNodeCall,
  op: OperationContext,
): Promise<LabeledResult> {
  const { id, step, item, state, key, epoch = execution.epochs.ofStep(step) } = call;
  const { values } = state;
  // A key function that throws must throw before the node does anything.
  if (node.effects.requiresIdempotency === true && key !== undefined) {
    try {
      callInStep(node.name, key);
    } catch (error) {
      return Promise.reject(error);
    }
  }
  let label: string | undefined;
  const ctx = createNodeContext(execution.context, op, step, key, (name) => (label = name));
  const time = execution.nodes?.dueAt(id) ?? call.startedAt ?? execution.steppedAt ?? execution.deliveries.time;
  // The journal counts attempts from 0, the context from 1.
  const scope = nodeScope(id, node.name, epoch, op.attempt - 1, item.path, time, call.requestedAfter);
  let returned: Promise<unknown>;
  try {
    // Only the execution of a graph calls this, and it always has nodes.
    returned = execution.nodes!.call(scope, () => Promise.resolve(node.run(ctx, values, item.input)));
  } catch (error) {
    return Promise.reject(hintAtFrozen(error));
  }
  const stored = (result: unknown): LabeledResult => {
    const checked = checkResult(body, node.name, result);
    return label === undefined ? checked : { ...checked, label };
  };
  return returned.then(stored, (error: unknown) => {
    throw hintAtFrozen(error);
  });
}

const WRITES_FROZEN = /^Cannot (?:assign to read only|add|delete|define|redefine) property|object is not extensible$/;

/** State and items are frozen; the language's error for writing to them does not say what to do instead. */
function hintAtFrozen(error: unknown): unknown {
  if (error instanceof TypeError && WRITES_FROZEN.test(error.message))
    error.message += ". The state and the item of a node are frozen: return the channels it changes instead.";
  return error;
}
