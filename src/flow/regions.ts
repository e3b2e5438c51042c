// Regions: the nodes that are derived together, computed once per definition (seed 001, "Analyze Subgraph").
//
// A region is a head and the nodes that can be derived in memory from it alone. A head is a node that a run waits for: an
// action, a call, a spread, its barrier, and a node whose needs come from several regions (rules.F2).
//
// regions.R1. Every node is in exactly one region. Only heads are counted and queued.
// regions.R2. An edge within a region stays in memory. An edge out of it becomes an arrival at another region's head.
// regions.R3. A value is kept with the head's entry only if another region needs it.

import { edgesInto, type FlowEdge, type FlowNode } from "./node.ts";

export interface Region {
  readonly head: FlowNode;
  /** The derived nodes, each after the nodes it needs. */
  readonly inline: readonly FlowNode[];
  /** regions.R2. To heads of other regions. */
  readonly exits: readonly FlowEdge[];
  /** regions.R3. Of the derived nodes. */
  readonly kept: readonly string[];
}

export interface Head {
  readonly region: Region;
  /** The number of arrivals it waits for; that of a barrier is known after its spread has run. */
  readonly required: number;
}

export type Regions = ReadonlyMap<string, Head>;

/** `nodes`: each after the nodes it needs. */
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
      // regions.R2
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

/** The region that all of its edges come from; undefined if there are several. */
function homeOf(node: FlowNode, headOf: ReadonlyMap<string, string>): string | undefined {
  const homes = new Set(edgesInto(node).map(({ source }) => headOf.get(source)));
  return homes.size === 1 ? [...homes][0] : undefined;
}
