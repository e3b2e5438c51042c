// Check graph: the checks that need a complete graph (graph.D2).

import { RepriseError } from "../base/index.ts";
import type { GraphBody, GraphEdge } from "./definition.ts";

export function checkGraph(body: GraphBody): GraphBody {
  const refuse = (problem: string): never => {
    throw new RepriseError("BAD_GRAPH", `Graph ${body.name}: ${problem}`);
  };
  if (body.nodes.size === 0) refuse("it has no nodes. Add one with .node(name, function).");
  if ((body.edges.get("") ?? []).length === 0) refuse("no edge leaves START. Add .edge(START, …) to its first node.");
  for (const [from, edges] of body.edges) {
    const always = edges.findIndex(isAlwaysTaken);
    if (always >= 0 && always < edges.length - 1)
      refuse(
        `the edges of ${from === "" ? "START" : from} after its ${ordinal(always)} one are never taken, because that one has no condition. Add a condition to it, or pass all targets to one .edge() as an array.`,
      );
  }
  for (const edge of [...body.edges.values()].flat())
    for (const target of edge.edge === "to" ? edge.targets : [])
      if (typeof target === "string" && body.itemNodes.has(target))
        refuse(
          `node ${target} runs once per item of a spread, and an edge to it has no item. Add a separate node for the edge.`,
        );
  return body;
}

function isAlwaysTaken(edge: GraphEdge): boolean {
  return edge.edge === "spread" || edge.when === undefined;
}

function ordinal(index: number): string {
  return ["first", "second", "third"][index] ?? `${index + 1}th`;
}
