// Regions: which nodes are run together, computed once per definition (seed 001, "Analyze Subgraph").
//
// A region is a head and the nodes behind it that can be derived in memory from it alone. A head is whatever has to be
// waited for: an action, a call, a spread, its barrier, and a node whose needs come from several regions (F2).
//
// RG1. Every node is in exactly one region; heads alone are counted and queued.
// RG2. An edge within a region never leaves memory. An edge out of it becomes an arrival at another region's head.
// RG3. A value is kept with the head's entry only when another region needs it.

import { edgesInto, type FlowEdge, type FlowNode } from "./node.ts";

export interface Region {
  readonly head: FlowNode;
  /** Behind the head, in an order in which each has what it needs. */
  readonly inline: readonly FlowNode[];
  /** RG2. To heads of other regions. */
  readonly exits: readonly FlowEdge[];
  /** RG3. Of the nodes behind the head. */
  readonly kept: readonly string[];
}

export interface Head {
  readonly region: Region;
  /** Arrivals it waits for; a barrier's number is known when its spread has run. */
  readonly required: number;
}

export type Regions = ReadonlyMap<string, Head>;

/** `nodes` in an order in which each stands behind what it needs. */
export function regionsOf(nodes: readonly FlowNode[]): Regions {
  const headOf = new Map<string, string>();
  const inline = new Map<string, FlowNode[]>();
  for (const node of nodes) {
    const home = isDerived(node) ? homeOf(node, headOf) : undefined;
    headOf.set(node.id, home ?? node.id);
    if (home === undefined) inline.set(node.id, []);
    else inline.get(home)?.push(node);
  }
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const exits = new Map<string, FlowEdge[]>();
  for (const node of nodes)
    for (const edge of edgesInto(node)) {
      const from = headOf.get(edge.source) as string;
      // RG2
      if (from === headOf.get(node.id)) continue;
      exits.set(from, [...(exits.get(from) ?? []), edge]);
    }
  return new Map(
    [...inline].map(([id, behind]): [string, Head] => {
      const out = exits.get(id) ?? [];
      const needed = new Set(out.flatMap(({ side, source }) => (side === undefined ? [source] : [])));
      const head = byId.get(id) as FlowNode;
      const region: Region = {
        head,
        inline: behind,
        exits: out,
        kept: behind.flatMap((node) => (needed.has(node.id) ? [node.id] : [])),
      };
      return [id, { region, required: edgesInto(head).length }];
    }),
  );
}

function isDerived({ work }: FlowNode): boolean {
  return work.kind === "inline" || work.kind === "when" || work.kind === "output";
}

/** The one region all of its edges come from. */
function homeOf(node: FlowNode, headOf: ReadonlyMap<string, string>): string | undefined {
  const homes = new Set(edgesInto(node).map(({ source }) => headOf.get(source)));
  return homes.size === 1 ? [...homes][0] : undefined;
}
