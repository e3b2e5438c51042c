// One item of a step: the node's function, run as a command of its own, with the context it is given.

import { RepriseError } from "../base/index.ts";
import {
  isViolation,
  never,
  nodeScope,
  type Execution,
  type OperationContext,
  type StoppedNode,
} from "../workflow/index.ts";
import { contextOfNode } from "./context-of-node.ts";
import { END, type End, type GraphBody, type GraphNode } from "./definition.ts";
import type { Item } from "./item.ts";
import { checkTarget } from "./route.ts";
import { noChannel, type Change, type GraphState } from "./state.ts";

/** What a node's entry holds; END is null there. */
export interface Stored {
  readonly change?: Change;
  readonly goto?: readonly (string | null)[];
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

export function startNode(
  execution: Execution,
  body: GraphBody,
  step: number,
  position: number,
  item: Item,
  state: GraphState,
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
  const attempt = retried === undefined ? 0 : Number(retried.data["attempt"] ?? 0) + 1;
  if (!known)
    execution.asks.push({
      ask: "operation",
      command: id,
      name,
      index,
      input: undefined,
      call: (op) => callNode(execution, body, node, { id, step, item, state }, op),
      database: undefined,
      policy: { timeout: DEFAULT_NODE_TIMEOUT_MS, ...node.policy },
      isNode: true,
      // The key it hands to the outside is that of every attempt, also in another life (A2).
      life: 0,
      attempt,
      dueAt: retried === undefined ? undefined : retried.at + Number(retried.data["delay"]),
    });
  return { command: id, name, index, attempt, result: execution.open("Node", id, name, false).then(resultOf) };
}

function resultOf(stored: unknown): NodeResult {
  const { change = {}, goto: to, label } = (stored ?? {}) as Stored;
  return { change, goto: to?.map((target) => target ?? END), label };
}

export interface Place {
  readonly id: string;
  readonly step: number;
  readonly item: Item;
  readonly state: GraphState;
  /** V4. Of what its code asks for, where a replay knows better than the run: a kept result is of an earlier one. */
  readonly life?: number;
}

export async function callNode(
  execution: Execution,
  body: GraphBody,
  node: GraphNode,
  place: Place,
  op: OperationContext,
): Promise<Stored> {
  const { id, step, item, state, life = execution.lifeOfStep(step) } = place;
  const { values } = state;
  let label: string | undefined;
  const ctx = contextOfNode(execution.context, op, step, node, values, (name) => (label = name));
  const scope = nodeScope(id, life, op.attempt, item.path);
  // Only a graph's execution calls this, and it has nodes.
  const result = await execution.nodes!.call(scope, () => Promise.resolve(node.run(ctx, values, item.input)));
  return { ...storedOf(body, node.name, result), ...(label !== undefined && { label }) };
}

/** What no step could go on from fails the node, not the fold: then a retry runs the node again. */
function storedOf(body: GraphBody, node: string, result: unknown): Stored {
  if (result === undefined) return {};
  if (typeof result !== "object" || result === null)
    throw new RepriseError(
      "BAD_GRAPH",
      `Node ${node} returned ${typeof result}; expected a change of channels, goto(…), or nothing.`,
    );
  if (!("goto" in result)) return { change: checkChange(body, result as Change) };
  const { goto: to, change } = result as { goto: unknown; change?: Change };
  const targets = (Array.isArray(to) ? to : [to]) as (string | End)[];
  for (const target of targets) checkTarget(body, node, target);
  return {
    goto: targets.map((target) => (typeof target === "string" ? target : null)),
    ...(change !== undefined && { change: checkChange(body, change) }),
  };
}

function checkChange({ name, channels }: GraphBody, change: Change): Change {
  for (const channel of Object.keys(change))
    if (!Object.hasOwn(channels, channel)) throw noChannel(name, channel, channels);
  return change;
}
