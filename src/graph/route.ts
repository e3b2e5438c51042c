// Route: the items of the next step, decided by the folded state.
//
// route.R1. Parents are routed in fold order, each by the first of its edges in written order whose condition is true
//   (rules.P2).
// route.R2. Several parents that lead to the same node activate it once, with the path of the first. Items of a spread are
//   activated one by one.
// route.R3. A join is activated when every node it waits for has arrived. Its r-th activation consumes the r-th arrival of
//   each node and has the path of the earliest. A node arrives once per step, however many items it had. Arrivals of an
//   incomplete join wait in the checkpoint (rules.G13).
// route.R4. A run fails if its last nodes have edges and no condition is true: it can neither continue nor complete.

import { RepriseError } from "../base/index.ts";
import { isEnd, type End, type GraphBody, type GraphEdge } from "./definition.ts";
import { messageOf } from "./fold-errors.ts";
import { createItem, type StepItem } from "./step-item.ts";
import { Joins, type WaitingJoin } from "./joins.ts";
import type { Path } from "./order-key.ts";
import { ownData } from "./state.ts";

export type { WaitingJoin } from "./joins.ts";

/** An item of the step that has ended. */
export interface FinishedItem {
  readonly node: string;
  readonly path: Path;
  /** Chosen by its code; takes precedence over its edges. */
  readonly goto: readonly (string | End)[] | undefined;
}

export interface RouteResult {
  readonly items: readonly StepItem[];
  readonly waiting: readonly WaitingJoin[];
}

export function route(
  body: GraphBody,
  state: unknown,
  done: readonly FinishedItem[],
  waiting: readonly WaitingJoin[],
): RouteResult {
  const only = routeOnly(body, done, waiting);
  if (only !== undefined) return only;
  const items: StepItem[] = [];
  const active = new Set<string>();
  const joins = body.joins.size === 0 && waiting.length === 0 ? undefined : new Joins(body, waiting);
  const stranded: string[] = [];
  const activate = (target: string, parent: { readonly node: string; readonly path: Path }, edge: number): void => {
    // route.R2
    if (active.has(target)) return;
    active.add(target);
    items.push(createItem(target, parent, edge));
  };
  const go = (target: string | End, parent: FinishedItem, edge: number): void => {
    if (isEnd(target)) return;
    checkTarget(body, parent.node, target);
    if (joins !== undefined && body.joins.get(target)?.includes(parent.node) === true)
      joins.arrive(target, parent, edge);
    else activate(target, parent, edge);
  };
  for (const parent of done) {
    const edges = body.edges.get(parent.node) ?? NO_EDGES;
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
        items.push(createItem(edge.target, parent, index, { index: spread, input }));
      }
  }
  joins?.open(active, activate);
  if (items.length === 0 && stranded.length === done.length) throw strandedAt(body, stranded);
  return { items, waiting: joins?.waiting() ?? waiting };
}

const NO_EDGES: readonly GraphEdge[] = [];

/** The usual step of a graph without joins: one parent, whose edge has one target. Undefined for every other step. */
function routeOnly(
  body: GraphBody,
  done: readonly FinishedItem[],
  waiting: readonly WaitingJoin[],
): RouteResult | undefined {
  const parent = done[0];
  if (parent === undefined || done.length > 1 || parent.goto !== undefined) return undefined;
  const edges = body.edges.get(parent.node);
  if (edges?.length !== 1 || body.joins.size + waiting.length > 0) return undefined;
  const edge = edges[0]!;
  if (edge.edge === "spread" || edge.when !== undefined || edge.targets.length !== 1) return undefined;
  const target = edge.targets[0]!;
  if (isEnd(target)) return { items: [], waiting };
  checkTarget(body, parent.node, target);
  return { items: [createItem(target, parent, 0)], waiting };
}

function widthOf(edge: GraphEdge): number {
  return edge.edge === "to" ? edge.targets.length : 1;
}

/** route.R1. `index`: of the edge among the targets of its node. */
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
    throw new RepriseError("BAD_GRAPH", `${what()} threw: ${messageOf(error)}`, { cause: error });
  }
  // A promise is truthy.
  if (answer instanceof Promise)
    throw new RepriseError("BAD_GRAPH", `${what()} returned a promise; expected true or false. Make it synchronous.`);
  // So is the result of a router function, which names the next node.
  if (typeof answer === "string")
    throw new RepriseError(
      "BAD_GRAPH",
      `${what()} returned ${JSON.stringify(answer)}; expected true or false. Add one edge per target, or return goto(…) from the node.`,
    );
  return Boolean(answer);
}

/** Every item gets its own copy, so no node sees what another does to it. */
function listOf(body: GraphBody, { target, items }: Spread, state: unknown): readonly unknown[] {
  const what = `Graph ${body.name}: spread to ${target}`;
  let list: unknown;
  try {
    list = items(state);
  } catch (error) {
    throw new RepriseError("BAD_GRAPH", `${what} threw: ${messageOf(error)}`, { cause: error });
  }
  if (!Array.isArray(list))
    throw new RepriseError("BAD_GRAPH", `${what}: expected a list of items, got ${typeof list}.`);
  return list.map((item: unknown, index) => {
    try {
      return ownData(item);
    } catch (error) {
      if (!(error instanceof RepriseError)) throw error;
      throw new RepriseError(error.code, `${what}: item ${index} cannot be stored: ${error.message}`, { cause: error });
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

/** route.R4 */
function strandedAt({ name }: GraphBody, nodes: readonly string[]): RepriseError {
  const names = [...new Set(nodes)].map(shown);
  return new RepriseError(
    "NO_PROGRESS",
    `Graph ${name} cannot continue: no condition on the edges of ${names.join(", ")} is true, and no other node is active. Add a last edge without a condition, to a node or to END.`,
    { details: { nodes: names } },
  );
}

export function checkTarget(body: GraphBody, from: string, target: unknown): asserts target is string {
  if (typeof target === "string" && body.nodes.has(target)) return;
  throw new RepriseError(
    "BAD_GRAPH",
    `Graph ${body.name}: node ${from} leads to ${typeof target === "string" ? target : typeof target}, which is not a node; the nodes are: ${[...body.nodes.keys()].join(", ")}.`,
  );
}
