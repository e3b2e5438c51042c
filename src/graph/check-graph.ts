// What can only be seen when a graph is complete (D2).

import { RepriseError } from "../base/index.ts";
import type { GraphBody, GraphEdge } from "./definition.ts";

export function checkGraph(body: GraphBody): GraphBody {
  const refuse = (problem: string): never => {
    throw new RepriseError("BAD_GRAPH", `Graph ${body.name}: ${problem}`);
  };
  if (body.nodes.size === 0) refuse("it has no node. Add one with .node(name, function).");
  if ((body.edges.get("") ?? []).length === 0)
    refuse("nothing leads from START. Add .edge(START, …) to the node it begins with.");
  for (const [from, edges] of body.edges) {
    const always = edges.findIndex(isAlwaysTaken);
    if (always >= 0 && always < edges.length - 1)
      refuse(
        `the edges of ${from === "" ? "START" : from} after its ${ordinal(always)} are never taken: that one has no condition. Give it one, or name all targets in one array.`,
      );
  }
  for (const edge of [...body.edges.values()].flat())
    for (const target of edge.edge === "to" ? edge.targets : [])
      if (typeof target === "string" && body.itemNodes.has(target))
        refuse(`node ${target} takes the items of a spread; an edge would give it none. Make it a node of its own.`);
  return body;
}

function isAlwaysTaken(edge: GraphEdge): boolean {
  return edge.edge === "spread" || edge.when === undefined;
}

function ordinal(index: number): string {
  return ["first", "second", "third"][index] ?? `${index + 1}th`;
}
