// Definition picture: a graph or a flow as nodes and edges, with the words that people read about them. It runs no user code.

import { formatMs } from "../base/index.ts";
import type { Picture, PictureEdge, PictureNode } from "../contract/index.ts";
import type { FlowDescription, FlowNodeDescription } from "../flow/index.ts";
import type { GraphDescription, GraphEdgeDescription, GraphNodeDescription } from "../graph/index.ts";

export function pictureOfGraph({ nodes, edges }: GraphDescription): Picture {
  return {
    nodes: nodes.map(graphNode),
    edges: edges.map((edge) => edgeOf(edge, edge.kind, graphLabel(edge, edges))),
  };
}

function graphNode({ name, takesItems, waitsFor, hasEdges }: GraphNodeDescription): PictureNode {
  const isJoin = waitsFor.length > 0;
  const notes: string[] = [];
  if (isJoin) notes.push("waits for all");
  if (takesItems) notes.push("once per item");
  if (!hasEdges) notes.push("ends, or goto");
  return { id: name, name, kind: isJoin ? "join" : takesItems ? "items" : "node", notes, open: !hasEdges };
}

/** Labels show the order in which the engine evaluates edges, which arrows alone do not. */
function graphLabel({ from, kind, by, index }: GraphEdgeDescription, edges: readonly GraphEdgeDescription[]): string {
  const isAfterOther = edges.some(
    (other) => other.from === from && other.kind === "conditional" && other.index < index && other.by !== by,
  );
  const words = by === null ? "" : ` ${by}`;
  if (kind === "conditional") return `${isAfterOther ? "else if" : "if"}${words}`;
  const otherwise = isAfterOther ? "else" : "";
  return kind === "spread" ? `${otherwise}${otherwise && " "}each of${words || " its items"}` : otherwise;
}

function edgeOf(
  { from, to }: { readonly from: string | null; readonly to: string | null },
  kind: PictureEdge["kind"],
  label: string,
): PictureEdge {
  return { ...(from !== null && { from }), ...(to !== null && { to }), kind, ...(label !== "" && { label }) };
}

export function pictureOfFlow({ nodes, edges }: FlowDescription): Picture {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  return {
    nodes: nodes.map((node) => ({ id: node.id, name: node.id, kind: node.kind, notes: flowNotes(node), open: false })),
    edges: edges.flatMap((edge): PictureEdge[] => {
      const target = edge.to === null ? undefined : byId.get(edge.to);
      if (edge.kind === "branch")
        return target !== undefined && isFollower(target, byId)
          ? []
          : [edgeOf(edge, "branch", edge.side === true ? "then" : "otherwise")];
      if (target?.kind !== "spread") return [edgeOf(edge, "value", "")];
      return [edgeOf(edge, "spread", target.by === null ? "each" : `each of ${target.by}`)];
    }),
  };
}

function flowNotes(node: FlowNodeDescription): string[] {
  const { kind, by, calls, maxAttempts, timeoutMs, concurrency, settle, catches, queue } = node;
  const notes: string[] = [];
  if (kind === "when" && by !== null) notes.push(by);
  if (kind === "spread") notes.push("once per item");
  if (calls !== null) notes.push(`calls ${calls.kind} ${calls.name}`);
  if (concurrency !== null) notes.push(`${concurrency} at once`);
  if (settle) notes.push("collects failures");
  if (maxAttempts === null) notes.push("unlimited attempts");
  else if (maxAttempts > 1) notes.push(`up to ${maxAttempts} attempts`);
  if (timeoutMs !== null) notes.push(`timeout ${formatMs(timeoutMs)}`);
  if (catches) notes.push("catches");
  if (queue !== null) notes.push(`queue ${queue}`);
  return notes;
}

/** It needs a node of the same branch, so it needs no arrow from the `when`. */
function isFollower({ branch, needs }: FlowNodeDescription, byId: ReadonlyMap<string, FlowNodeDescription>): boolean {
  return needs.some((need) => {
    const other = byId.get(need)?.branch;
    return other !== undefined && other !== null && other.when === branch?.when && other.side === branch.side;
  });
}
