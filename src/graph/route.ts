// Routing: which items follow from a step, decided on the folded state.
//
// GR1. Parents in fold order, each by the first of its edges, in written order, whose condition holds (P2).
// GR2. Two parents that lead to the same node without an input of its own activate it once, with the first one's path.
// GR3. A join is activated when every node it waits for has arrived. Its r-th activation takes the r-th arrival of each, and
//      the path of the earliest of them. A node arrives once per step, however many items it had. What has not all
//      arrived waits in the checkpoint (G13).

import { RepriseError } from "../base/index.ts";
import { END, type End, type GraphBody, type GraphEdge } from "./definition.ts";
import { itemOf, type Item } from "./item.ts";
import { Joins, type WaitingJoin } from "./joins.ts";
import type { Path } from "./order-key.ts";

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
    const taken = findEdge(edges, state);
    if (taken === undefined) continue;
    const { edge, index } = taken;
    if (edge.edge === "to") edge.targets.forEach((target, offset) => go(target, parent, index + offset));
    else
      for (const [spread, input] of listOf(body, edge, state).entries()) {
        active.add(edge.target);
        items.push(itemOf(edge.target, parent, index, { index: spread, input }));
      }
  }
  joins.open(active, activate);
  return { items, waiting: joins.waiting() };
}

function widthOf(edge: GraphEdge): number {
  return edge.edge === "to" ? edge.targets.length : 1;
}

/** GR1, with the index of the edge among its node's targets. */
function findEdge(
  edges: readonly GraphEdge[],
  state: unknown,
): { readonly edge: GraphEdge; readonly index: number } | undefined {
  let index = 0;
  for (const edge of edges) {
    if (edge.edge === "spread" || edge.when === undefined || edge.when(state)) return { edge, index };
    index += widthOf(edge);
  }
  return undefined;
}

function listOf(body: GraphBody, edge: Extract<GraphEdge, { edge: "spread" }>, state: unknown): readonly unknown[] {
  const items = edge.items(state);
  if (Array.isArray(items)) return items;
  throw new RepriseError("BAD_GRAPH", `Graph ${body.name}: spread to ${edge.target} gave ${typeof items}, not a list.`);
}

export function checkTarget(body: GraphBody, from: string, target: unknown): asserts target is string {
  if (target === END || (typeof target === "string" && body.nodes.has(target))) return;
  throw new RepriseError(
    "BAD_GRAPH",
    `Graph ${body.name}: node ${from} went to ${typeof target === "string" ? target : typeof target}, which is not a node; there are: ${[...body.nodes.keys()].join(", ")}.`,
  );
}
