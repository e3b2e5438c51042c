// Describe: a graph as plain data, for pictures and tools. Nothing here runs any of the user's code.
//
// What cannot be known without running is not guessed: where a node goes by `goto`, which children it starts.

import { functionWords } from "../base/index.ts";
import { graphBody, type End, type GraphBody, type GraphEdge } from "./definition.ts";

/** A node, as `describeGraph` gives it. */
export interface NodeDescription {
  readonly name: string;
  /** It runs once per item of a spread. */
  readonly takesItems: boolean;
  /** The nodes it waits for, as a join; empty where it is none. */
  readonly waitsFor: readonly string[];
  /** Without an edge it ends the run, or goes where its `goto` says. */
  readonly hasEdges: boolean;
}

/** A way from one node to another, as `describeGraph` gives it. */
export interface EdgeDescription {
  /** A node, or null for START. */
  readonly from: string | null;
  /** A node, or null for END. */
  readonly to: string | null;
  /** `always`: without a condition. */
  readonly kind: "always" | "conditional" | "spread";
  /** Its place among the targets of `from`; the first whose condition holds is taken. */
  readonly index: number;
  /** The name of its condition, or of the function that gives the items; else its text, where that is short. */
  readonly by: string | null;
  /** It arrives at a join, which waits for the others. */
  readonly joins: boolean;
}

/** A graph as plain data. */
export interface GraphDescription {
  readonly name: string;
  readonly version: number;
  readonly channels: readonly string[];
  readonly maxSteps: number;
  readonly nodes: readonly NodeDescription[];
  readonly edges: readonly EdgeDescription[];
}

/**
 * A graph as plain data: its channels, its nodes, and the edges between them in the order written.
 *
 * @example
 * ```ts
 * import { describeGraph, END, graph, last, START } from "reprise";
 * const ask = graph("ask", { state: { n: last(0) } })
 *   .node("count", async (_ctx, { n }) => ({ n: n + 1 }))
 *   .edge(START, "count")
 *   .edge("count", END, ({ n }) => n > 2)
 *   .edge("count", "count");
 * const names = describeGraph(ask).nodes.map(({ name }) => name);
 * ```
 */
export function describeGraph(definition: { readonly kind: "graph"; readonly name: string }): GraphDescription {
  const body = graphBody(definition);
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

function edgesOf(body: GraphBody, from: string, written: readonly GraphEdge[]): EdgeDescription[] {
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
        by: deciding === undefined ? null : functionWords(deciding),
        joins: to !== null && body.joins.get(to)?.includes(from) === true,
      };
    });
  });
}

function kindOf(edge: GraphEdge): EdgeDescription["kind"] {
  if (edge.edge === "spread") return "spread";
  return edge.when === undefined ? "always" : "conditional";
}
