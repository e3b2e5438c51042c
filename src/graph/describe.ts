// Describe graph: a graph as plain data, for diagrams and tools. It runs no user code, so it does not know the targets of
// `goto` or the children that a node starts.

import { describeFunction } from "../base/index.ts";
import { graphBody, type End, type GraphBody, type GraphEdge } from "./definition.ts";

/** A node, as `describeGraph` returns it. */
export interface GraphNodeDescription {
  readonly name: string;
  /** The node runs once per item of a spread. */
  readonly takesItems: boolean;
  /** The nodes it waits for; empty if it is not a join. */
  readonly waitsFor: readonly string[];
  /** A node without edges ends its branch, or continues with its `goto`. */
  readonly hasEdges: boolean;
}

/** An edge between two nodes, as `describeGraph` returns it. */
export interface GraphEdgeDescription {
  /** A node, or null for START. */
  readonly from: string | null;
  /** A node, or null for END. */
  readonly to: string | null;
  /** `always`: without a condition. */
  readonly kind: "always" | "conditional" | "spread";
  /** Its place among the targets of `from`; the first edge whose condition is true is taken. */
  readonly index: number;
  /** The name of its condition or of its items function; without a name, the source text if it is short. */
  readonly by: string | null;
  /** The edge leads to a join. */
  readonly joins: boolean;
}

/** A graph as plain data, as `describeGraph` returns it. */
export interface GraphDescription {
  readonly name: string;
  readonly version: number;
  readonly channels: readonly string[];
  readonly maxSteps: number;
  readonly nodes: readonly GraphNodeDescription[];
  readonly edges: readonly GraphEdgeDescription[];
}

/**
 * Describes a graph as plain data: its channels, its nodes, and its edges in written order.
 *
 * @example
 * ```ts
 * import { END, graph, last, START } from "reprise";
 * import { describeGraph } from "reprise/describe";
 * const ask = graph("ask", { state: { n: last(0) } })
 *   .node("count", async (_ctx, { n }) => ({ n: n + 1 }))
 *   .edge(START, "count")
 *   .edge("count", END, ({ n }) => n > 2)
 *   .edge("count", "count");
 * const names = describeGraph(ask).nodes.map(({ name }) => name);
 * ```
 */
export function describeGraph(definition: { readonly kind: "graph"; readonly name: string }): GraphDescription {
  return describeGraphBody(graphBody(definition));
}

export function describeGraphBody(body: GraphBody): GraphDescription {
  const edges = [...body.edges].flatMap(([from, written]) => edgesOf(body, from, written));
  return {
    name: body.name,
    version: body.version,
    channels: Object.keys(body.channels),
    maxSteps: body.maxSteps,
    nodes: [...body.nodes.keys()].map((name) => ({
      name,
      takesItems: edges.some(({ kind, to }) => kind === "spread" && to === name),
      waitsFor: body.joins.get(name) ?? [],
      hasEdges: (body.edges.get(name) ?? []).length > 0,
    })),
    edges,
  };
}

function edgesOf(body: GraphBody, from: string, written: readonly GraphEdge[]): GraphEdgeDescription[] {
  let index = 0;
  return written.flatMap((edge) => {
    const targets: readonly (string | End)[] = edge.edge === "spread" ? [edge.target] : edge.targets;
    const deciding = edge.edge === "spread" ? edge.items : edge.when;
    return targets.map((target) => {
      const to = typeof target === "string" ? target : null;
      return {
        from: from === "" ? null : from,
        to,
        kind: kindOf(edge),
        index: index++,
        by: deciding === undefined ? null : describeFunction(deciding),
        joins: to !== null && body.joins.get(to)?.includes(from) === true,
      };
    });
  });
}

function kindOf(edge: GraphEdge): GraphEdgeDescription["kind"] {
  if (edge.edge === "spread") return "spread";
  return edge.when === undefined ? "always" : "conditional";
}
