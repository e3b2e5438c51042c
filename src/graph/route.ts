// Routing: which items follow from a step, decided on the folded state.
//
// GR1. Parents in fold order, each by the first of its edges, in written order, whose condition holds (P2).
// GR2. Two parents that lead to the same node without an input of its own activate it once, with the first one's path.
// GR3. A join is activated when every node it waits for has arrived. Its r-th activation takes the r-th arrival of each, and
//      the path of the earliest of them. A node arrives once per step, however many items it had. What has not all
//      arrived waits in the checkpoint (G13).
// GR4. A run whose last nodes have edges, none of which holds, has not come to its end: it cannot go on.

import { RepriseError } from "../base/index.ts";
import { END, type End, type GraphBody, type GraphEdge } from "./definition.ts";
import { saidBy } from "./fold-faults.ts";
import { itemOf, type Item } from "./item.ts";
import { Joins, type WaitingJoin } from "./joins.ts";
import type { Path } from "./order-key.ts";
import { ownData } from "./state.ts";

export type { WaitingJoin } from "./joins.ts";

/** A node that has done its part of a step. */
export interface Done {
  readonly node: string;
  readonly path: Path;
  /** Where it said to go, instead of its edges. */
  readonly goto: readonly (string | End)[] | undefined;
}

export interface Routed {
  readonly items: readonly Item[];
  readonly waiting: readonly WaitingJoin[];
}

export function route(body: GraphBody, state: unknown, done: readonly Done[], waiting: readonly WaitingJoin[]): Routed {
  const items: Item[] = [];
  const active = new Set<string>();
  const joins = new Joins(body, waiting);
  const stranded: string[] = [];
  const activate = (target: string, parent: { readonly node: string; readonly path: Path }, edge: number): void => {
    // GR2
    if (active.has(target)) return;
    active.add(target);
    items.push(itemOf(target, parent, edge));
  };
  const go = (target: string | End, parent: Done, edge: number): void => {
    if (target === END) return;
    checkTarget(body, parent.node, target);
    if (body.joins.get(target)?.includes(parent.node) === true) joins.arrive(target, parent, edge);
    else activate(target, parent, edge);
  };
  for (const parent of done) {
    const edges = body.edges.get(parent.node) ?? [];
    if (parent.goto !== undefined) {
      const after = edges.reduce((sum, edge) => sum + widthOf(edge), 0);
      parent.goto.forEach((target, index) => go(target, parent, after + index));
      continue;
    }
    const taken = findEdge(body, parent.node, edges, state);
    if (taken === undefined) {
      if (edges.length > 0) stranded.push(parent.node);
      continue;
    }
    const { edge, index } = taken;
    if (edge.edge === "to") edge.targets.forEach((target, offset) => go(target, parent, index + offset));
    else
      for (const [spread, input] of listOf(body, edge, state).entries()) {
        active.add(edge.target);
        items.push(itemOf(edge.target, parent, index, { index: spread, input }));
      }
  }
  joins.open(active, activate);
  if (items.length === 0 && stranded.length === done.length) throw strandedAt(body, stranded);
  return { items, waiting: joins.waiting() };
}

function widthOf(edge: GraphEdge): number {
  return edge.edge === "to" ? edge.targets.length : 1;
}

/** GR1, with the index of the edge among its node's targets. */
function findEdge(
  body: GraphBody,
  from: string,
  edges: readonly GraphEdge[],
  state: unknown,
): { readonly edge: GraphEdge; readonly index: number } | undefined {
  let index = 0;
  for (const edge of edges) {
    if (edge.edge === "spread" || edge.when === undefined || holds(body, from, edge, state)) return { edge, index };
    index += widthOf(edge);
  }
  return undefined;
}

type Conditional = Extract<GraphEdge, { edge: "to" }>;

function holds(body: GraphBody, from: string, edge: Conditional, state: unknown): boolean {
  const what = (): string =>
    `Graph ${body.name}: the condition of the edge from ${shown(from)} to ${shownTargets(edge)}`;
  let answer: unknown;
  try {
    answer = edge.when?.(state);
  } catch (error) {
    throw new RepriseError("BAD_GRAPH", `${what()} threw: ${saidBy(error)}`, { cause: error });
  }
  // It would always hold.
  if (answer instanceof Promise)
    throw new RepriseError("BAD_GRAPH", `${what()} gave a promise; expected true or false at once.`);
  // So would a router's, which names the node to go to.
  if (typeof answer === "string")
    throw new RepriseError(
      "BAD_GRAPH",
      `${what()} gave ${JSON.stringify(answer)}; expected true or false. Write an edge for each way, or return goto(…) from the node.`,
    );
  return Boolean(answer);
}

/** Each item is its own: what one node does to it, no other sees. */
function listOf(body: GraphBody, { target, items }: Spread, state: unknown): readonly unknown[] {
  const what = `Graph ${body.name}: spread to ${target}`;
  let list: unknown;
  try {
    list = items(state);
  } catch (error) {
    throw new RepriseError("BAD_GRAPH", `${what} threw: ${saidBy(error)}`, { cause: error });
  }
  if (!Array.isArray(list)) throw new RepriseError("BAD_GRAPH", `${what} gave ${typeof list}, not a list.`);
  return list.map((item: unknown, index) => {
    try {
      return ownData(item);
    } catch (error) {
      if (!(error instanceof RepriseError)) throw error;
      throw new RepriseError(error.code, `${what}: item ${index} cannot be kept: ${error.message}`, { cause: error });
    }
  });
}
type Spread = Extract<GraphEdge, { edge: "spread" }>;

function shown(node: string): string {
  return node === "" ? "START" : node;
}

function shownTargets({ targets }: Conditional): string {
  return targets.map((target) => (typeof target === "string" ? target : "END")).join(", ");
}

/** GR4 */
function strandedAt({ name }: GraphBody, nodes: readonly string[]): RepriseError {
  const names = [...new Set(nodes)].map(shown);
  return new RepriseError(
    "NO_PROGRESS",
    `Graph ${name} cannot go on: none of the conditions of the edges of ${names.join(", ")} holds, and nothing else is left. Add an edge without a condition as the last one, to a node or to END.`,
    { details: { nodes: names } },
  );
}

export function checkTarget(body: GraphBody, from: string, target: unknown): asserts target is string {
  if (target === END || (typeof target === "string" && body.nodes.has(target))) return;
  throw new RepriseError(
    "BAD_GRAPH",
    `Graph ${body.name}: node ${from} went to ${typeof target === "string" ? target : typeof target}, which is not a node; there are: ${[...body.nodes.keys()].join(", ")}.`,
  );
}
