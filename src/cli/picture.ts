// Picture: a graph or a flow as boxes and arrows, before it is written as Mermaid or DOT.
//
// PI1. Ids are ours (`g0n3`), so that no name can be a keyword or break the syntax; names are labels only.
// PI2. What a run did is laid over the same picture: the boxes and arrows of the definition do not change; what it cannot
//      know, the ways of `goto` and the children that nodes start, is added.

import type { EdgeDescription, GraphDescription, NodeDescription } from "../graph/index.ts";

export type Mark = "done" | "now" | "failed" | "waiting" | "skipped";

export interface Box {
  readonly id: string;
  readonly lines: readonly string[];
  readonly shape: "terminal" | "node" | "derived" | "items" | "join" | "choice";
  readonly mark: Mark | undefined;
  /** Where it leads is not known: it ends the run, or goes where its `goto` says. */
  readonly isOpen: boolean;
}

export interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly label: string;
  readonly style: EdgeDescription["kind"] | "goto" | "branch";
}

export interface Picture {
  readonly title: string;
  readonly boxes: readonly Box[];
  readonly arrows: readonly Arrow[];
}

/** What a run did, by node. */
export interface Trace {
  readonly title: string;
  readonly done: ReadonlyMap<string, number>;
  readonly now: ReadonlyMap<string, number>;
  readonly failed: ReadonlySet<string>;
  /** Joins, with the nodes that have arrived. */
  readonly waiting: ReadonlyMap<string, readonly string[]>;
  /** The definitions of the children that its code started. */
  readonly children: ReadonlyMap<string, ReadonlySet<string>>;
  readonly gotos: readonly { readonly from: string; readonly to: string | null; readonly count: number }[];
  readonly hasEnded: boolean;
}

/** `place`: which of the graphs of a file it is. */
export function pictureOf(graph: GraphDescription, place: number, trace?: Trace): Picture {
  const idOf = idsOf(
    graph.nodes.map(({ name }) => name),
    place,
  );
  const gotos = (trace?.gotos ?? []).map(({ from, to, count }) => ({
    from: idOf(from),
    to: idOf(to, "END"),
    label: `goto${timesText(count)}`,
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

/** PI1. A node that is not of this graph belongs to another version of it; a run may have gone there. */
export function idsOf(names: readonly string[], place: number): IdOf {
  const places = new Map(names.map((name, index) => [name, index]));
  return (name, otherwise = "START") =>
    name === null ? `g${place}${otherwise.toLowerCase()}` : `g${place}n${places.get(name) ?? "x"}`;
}

function boxOf(node: NodeDescription, id: string, trace: Trace | undefined): Box {
  const { name, takesItems, waitsFor, hasEdges } = node;
  const lines = [`${name}${timesText(trace?.done.get(name) ?? 0)}`];
  if (waitsFor.length > 0) lines.push("waits for all");
  if (takesItems) lines.push("once per item");
  if (!hasEdges) lines.push("ends, or goto");
  for (const child of trace?.children.get(name) ?? []) lines.push(`child ${child}`);
  const now = trace?.now.get(name) ?? 0;
  const arrived = trace?.waiting.get(name);
  if (trace?.failed.has(name) === true) lines.push("failed");
  else if (now > 0) lines.push(`at work${timesText(now)}`);
  else if (arrived !== undefined) lines.push(`has ${arrived.join(", ")}`);
  return { id, lines, shape: shapeOf(node), mark: markOf(name, trace), isOpen: !hasEdges };
}

function shapeOf({ takesItems, waitsFor }: NodeDescription): Box["shape"] {
  if (waitsFor.length > 0) return "join";
  return takesItems ? "items" : "node";
}

function markOf(name: string, trace: Trace | undefined): Mark | undefined {
  if (trace === undefined) return undefined;
  if (trace.failed.has(name)) return "failed";
  if (trace.now.has(name)) return "now";
  if (trace.waiting.has(name)) return "waiting";
  return trace.done.has(name) ? "done" : undefined;
}

function timesText(count: number): string {
  return count > 1 ? ` ×${count}` : "";
}

function arrowOf(edge: EdgeDescription, { edges }: GraphDescription, idOf: IdOf): Arrow {
  const { from, to, kind } = edge;
  return { from: idOf(from), to: idOf(to, "END"), label: labelOf(edge, edges), style: kind };
}

/** Edges are asked in the order written, which a picture does not show by itself. */
function labelOf({ from, kind, by, index }: EdgeDescription, edges: readonly EdgeDescription[]): string {
  const isAfterOther = edges.some(
    (other) => other.from === from && other.kind === "conditional" && other.index < index && other.by !== by,
  );
  const words = by === null ? "" : ` ${by}`;
  if (kind === "conditional") return `${isAfterOther ? "else if" : "if"}${words}`;
  const otherwise = isAfterOther ? "else" : "";
  return kind === "spread" ? `${otherwise}${otherwise && " "}each of${words || " its items"}` : otherwise;
}
