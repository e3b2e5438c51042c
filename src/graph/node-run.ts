// One item of a step: the node's function, run as a command of its own, with the context it is given.

import type { EpochMs } from "../base/index.ts";
import {
  isViolation,
  never,
  nodeScope,
  type Execution,
  type OperationContext,
  type StoppedNode,
} from "../workflow/index.ts";
import { storedOf, type Stored } from "./check-result.ts";
import { contextOfNode } from "./context-of-node.ts";
import { END, type End, type GraphBody, type GraphNode } from "./definition.ts";
import type { Item } from "./item.ts";
import { keyOfItem } from "./key-of-item.ts";
import type { Change, GraphState } from "./state.ts";

/** What a node's entry holds. */
export interface Labelled extends Stored {
  readonly label?: string;
}

export interface NodeResult {
  readonly change: Change;
  readonly goto: readonly (string | End)[] | undefined;
  readonly label: string | undefined;
}

export const DEFAULT_NODE_TIMEOUT_MS = 30_000;

/** `Node(3.0)`: the first item of step 3. */
export function commandOf(step: number, position: number): string {
  return `Node(${step}.${position})`;
}

export interface StartedNode extends StoppedNode {
  /** The first that is made in this process. */
  readonly attempt: number;
  /** Settles when the node has ended for good, and that is durable. */
  readonly result: Promise<NodeResult>;
}

/** `freedAt`: when the item ended whose place it takes; undefined for one that had not to wait for a place. */
export function startNode(
  execution: Execution,
  body: GraphBody,
  step: number,
  position: number,
  item: Item,
  state: GraphState,
  freedAt?: EpochMs,
): StartedNode {
  const { node: name } = item;
  const id = commandOf(step, position);
  const { refusal } = execution;
  if (refusal !== undefined) return { command: id, name, index: -1, attempt: 0, result: Promise.reject(refusal) };
  const node = body.nodes.get(name) as GraphNode;
  const command = execution.commands.named(id, "Node", "RunNode", { operationName: name });
  if (isViolation(command)) {
    execution.violate(command);
    return { command: id, name, index: -1, attempt: 0, result: never() };
  }
  const { index, known, retried } = command;
  const dueAt = retried === undefined ? undefined : retried.at + Number(retried.data["delay"]);
  const attempt = retried === undefined ? 0 : Number(retried.data["attempt"] ?? 0) + 1;
  if (!known) {
    const key = keyOfItem(body, node, item, state.values);
    execution.asks.push({
      ask: "operation",
      command: id,
      name,
      index,
      input: undefined,
      call: (op) => callNode(execution, body, node, { id, step, item, state, key, begunAt: dueAt ?? freedAt }, op),
      database: undefined,
      policy: { timeout: DEFAULT_NODE_TIMEOUT_MS, ...node.policy },
      isNode: true,
      // The key it hands to the outside is that of every attempt, also in another life (A2).
      life: 0,
      attempt,
      dueAt,
    });
  }
  return { command: id, name, index, attempt, result: execution.open("Node", id, name, false).then(resultOf) };
}

function resultOf(stored: unknown): NodeResult {
  const { change = {}, goto: to, label } = (stored ?? {}) as Labelled;
  return { change, goto: to?.map((target) => target ?? END), label };
}

export interface Place {
  readonly id: string;
  readonly step: number;
  readonly item: Item;
  readonly state: GraphState;
  readonly key: (() => string) | undefined;
  /** What its code takes for the time when it begins: undefined for that of the checkpoint before. */
  readonly begunAt: EpochMs | undefined;
  /** V4. Of what its code asks for, where a replay knows better than the run: a kept result is of an earlier one. */
  readonly life?: number;
}

export async function callNode(
  execution: Execution,
  body: GraphBody,
  node: GraphNode,
  place: Place,
  op: OperationContext,
): Promise<Labelled> {
  const { id, step, item, state, key, life = execution.lifeOfStep(step) } = place;
  const { values } = state;
  // Before anything is done that would need it.
  if (node.effects.requiresIdempotency === true) key?.();
  let label: string | undefined;
  const ctx = contextOfNode(execution.context, op, step, key, (name) => (label = name));
  const time = execution.nodes?.dueAt(id) ?? place.begunAt ?? execution.steppedAt ?? execution.time;
  const scope = nodeScope(id, node.name, life, op.attempt, item.path, time);
  // Only a graph's execution calls this, and it has nodes.
  const result = await execution
    .nodes!.call(scope, () => Promise.resolve(node.run(ctx, values, item.input)))
    .catch(hintAtFrozen);
  return { ...storedOf(body, node.name, result), ...(label !== undefined && { label }) };
}

const WRITES_FROZEN = /^Cannot (?:assign to read only|add|delete|define|redefine) property|object is not extensible$/;

/** State and items are frozen; what the language says about writing to it does not tell a beginner what to do. */
function hintAtFrozen(error: unknown): never {
  if (error instanceof TypeError && WRITES_FROZEN.test(error.message))
    error.message += ". What a node gets is frozen: return the channels it changes instead.";
  throw error;
}
