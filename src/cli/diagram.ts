// Diagram: a graph or a flow as boxes and arrows, before it is rendered as Mermaid or DOT.
//
// diagram.D1. Ids are generated (`g0n3`), so that no name can be a keyword or break the syntax. Names are labels only.
// diagram.D2. A trace of a run marks the boxes of the definition and does not move them. It adds what the definition does
//   not know: the targets of `goto` and the children that nodes start.

import type { GraphEdgeDescription, GraphDescription, GraphNodeDescription } from "../graph/index.ts";

export type Mark = "done" | "now" | "failed" | "waiting" | "skipped";

export interface Box {
  readonly id: string;
  readonly lines: readonly string[];
  readonly shape: "terminal" | "node" | "derived" | "items" | "join" | "choice";
  readonly mark: Mark | undefined;
  /** It has no edges: it ends the run, or `goto` decides at run time. */
  readonly isOpen: boolean;
}

export interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly label: string;
  readonly style: GraphEdgeDescription["kind"] | "goto" | "branch";
}

export interface Diagram {
  readonly title: string;
  readonly boxes: readonly Box[];
  readonly arrows: readonly Arrow[];
}

/** What a run did, by node. */
export interface GraphTrace {
  readonly title: string;
  readonly done: ReadonlyMap<string, number>;
  readonly now: ReadonlyMap<string, number>;
  readonly failed: ReadonlySet<string>;
  /** Waiting joins, with the nodes that have arrived. */
  readonly waiting: ReadonlyMap<string, readonly string[]>;
  /** The definitions of the children that the node started. */
  readonly children: ReadonlyMap<string, ReadonlySet<string>>;
  readonly gotos: readonly { readonly from: string; readonly to: string | null; readonly count: number }[];
  readonly hasEnded: boolean;
}

/** `place`: the index of the graph in its file. */
export function graphDiagramOf(graph: GraphDescription, place: number, trace?: GraphTrace): Diagram {
  const idOf = idsOf(
    graph.nodes.map(({ name }) => name),
    place,
  );
  const gotos = (trace?.gotos ?? []).map(({ from, to, count }) => ({
    from: idOf(from),
    to: idOf(to, "END"),
    label: `goto${countText(count)}`,
    style: "goto" as const,
  }));
  const arrows = [...graph.edges.map((edge) => arrowOf(edge, graph, idOf)), ...gotos];
  const end = idOf(null, "END");
  const hasEnd = arrows.some(({ to }) => to === end);
  return {
    title: trace?.title ?? graph.name,
    boxes: [
      terminalBox(idOf(null), "START", trace === undefined ? undefined : "done"),
      ...graph.nodes.map((node) => boxOf(node, idOf(node.name), trace)),
      ...(hasEnd ? [terminalBox(end, "END", trace?.hasEnded === true ? "done" : undefined)] : []),
    ],
    arrows,
  };
}

export function terminalBox(id: string, name: string, mark: Mark | undefined): Box {
  return { id, lines: [name], shape: "terminal", mark, isOpen: false };
}

type IdOf = (name: string | null, otherwise?: "START" | "END") => string;

/** diagram.D1. An unknown node is a node of another version of the graph; a run can contain it. */
export function idsOf(names: readonly string[], place: number): IdOf {
  const places = new Map(names.map((name, index) => [name, index]));
  return (name, otherwise = "START") =>
    name === null ? `g${place}${otherwise.toLowerCase()}` : `g${place}n${places.get(name) ?? "x"}`;
}

function boxOf(node: GraphNodeDescription, id: string, trace: GraphTrace | undefined): Box {
  const { name, takesItems, waitsFor, hasEdges } = node;
  const lines = [`${name}${countText(trace?.done.get(name) ?? 0)}`];
  if (waitsFor.length > 0) lines.push("waits for all");
  if (takesItems) lines.push("once per item");
  if (!hasEdges) lines.push("ends, or goto");
  for (const child of trace?.children.get(name) ?? []) lines.push(`child ${child}`);
  const now = trace?.now.get(name) ?? 0;
  const arrived = trace?.waiting.get(name);
  if (trace?.failed.has(name) === true) lines.push("failed");
  else if (now > 0) lines.push(`running${countText(now)}`);
  else if (arrived !== undefined) lines.push(`has ${arrived.join(", ")}`);
  return { id, lines, shape: shapeOf(node), mark: markOf(name, trace), isOpen: !hasEdges };
}

function shapeOf({ takesItems, waitsFor }: GraphNodeDescription): Box["shape"] {
  if (waitsFor.length > 0) return "join";
  return takesItems ? "items" : "node";
}

function markOf(name: string, trace: GraphTrace | undefined): Mark | undefined {
  if (trace === undefined) return undefined;
  if (trace.failed.has(name)) return "failed";
  if (trace.now.has(name)) return "now";
  if (trace.waiting.has(name)) return "waiting";
  return trace.done.has(name) ? "done" : undefined;
}

function countText(count: number): string {
  return count > 1 ? ` ×${count}` : "";
}

function arrowOf(edge: GraphEdgeDescription, { edges }: GraphDescription, idOf: IdOf): Arrow {
  const { from, to, kind } = edge;
  return { from: idOf(from), to: idOf(to, "END"), label: labelOf(edge, edges), style: kind };
}

/** Labels show the order in which the engine evaluates edges, which arrows alone do not. */
function labelOf({ from, kind, by, index }: GraphEdgeDescription, edges: readonly GraphEdgeDescription[]): string {
  const isAfterOther = edges.some(
    (other) => other.from === from && other.kind === "conditional" && other.index < index && other.by !== by,
  );
  const words = by === null ? "" : ` ${by}`;
  if (kind === "conditional") return `${isAfterOther ? "else if" : "if"}${words}`;
  const otherwise = isAfterOther ? "else" : "";
  return kind === "spread" ? `${otherwise}${otherwise && " "}each of${words || " its items"}` : otherwise;
}
