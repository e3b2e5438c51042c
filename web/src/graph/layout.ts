// Layout: places the nodes of a picture and routes its edges. A pure function: the same picture gives the same drawing, so that a
// live page never moves a node.
//
// layout.L1. Every node and every edge of the picture is placed exactly once; start and end are added only where an edge needs them.
// layout.L2. All coordinates are finite, and inside `width` × `height`.

import { Graph, layout as place } from "@dagrejs/dagre";
import { loopOf, loopRoom, type Box } from "./loop.ts";

interface DrawnNode {
  readonly id: string;
  readonly name: string;
}

interface DrawnEdge {
  /** Undefined: the start. */
  readonly from?: string | undefined;
  /** Undefined: the end. */
  readonly to?: string | undefined;
  readonly label?: string | undefined;
}

/** What a drawing depends on: not the state of a run. */
export interface Picture {
  readonly nodes: readonly DrawnNode[];
  readonly edges: readonly DrawnEdge[];
}

export interface PlacedNode extends DrawnNode {
  /** The upper left corner. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface PlacedEdge extends DrawnEdge {
  readonly id: string;
  /** The `d` of an SVG path, from the border of one node to the border of the other. */
  readonly path: string;
  /** Where a count or a label stands. */
  readonly middle: Point;
}

/** Start or end: a dot with a word. */
export interface PlacedEnd {
  readonly kind: "start" | "end";
  readonly x: number;
  readonly y: number;
}

export interface GraphLayout {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
  readonly ends: readonly PlacedEnd[];
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** `right`: for wide screens. `down`: for phones. */
export type Direction = "right" | "down";

export const NODE_HEIGHT = 46;
const MIN_WIDTH = 158;
const MAX_WIDTH = 232;
const CHAR_WIDTH = 7.4;
const ICON_AND_PADDING = 46;
const DOT = 14;
const MARGIN = 18;
/** Below a dot stands a word. */
const WORD_HEIGHT = 22;

/** A node cannot have these ids: names of nodes have no spaces. */
const START = " start";
const END = " end";

export function layoutPicture(picture: Picture, direction: Direction = "right"): GraphLayout {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({
    rankdir: direction === "right" ? "LR" : "TB",
    nodesep: direction === "right" ? 28 : 22,
    ranksep: direction === "right" ? 58 : 40,
    edgesep: 18,
    marginx: MARGIN,
    marginy: MARGIN,
  });
  graph.setDefaultEdgeLabel(() => ({}));
  const rooms = new Map(picture.nodes.map(({ id }) => [id, roomOf(picture, id, direction)]));
  for (const { id, name } of picture.nodes) {
    const [width, height] = [widthOf(name), NODE_HEIGHT];
    const room = 2 * rooms.get(id)!;
    graph.setNode(id, direction === "right" ? { width, height: height + room } : { width: width + room, height });
  }
  if (picture.edges.some(({ from }) => from === undefined)) graph.setNode(START, { width: DOT, height: DOT });
  if (picture.edges.some(({ to }) => to === undefined)) graph.setNode(END, { width: DOT, height: DOT });
  const known = picture.edges.filter(
    ({ from, to }) => (from === undefined || graph.hasNode(from)) && (to === undefined || graph.hasNode(to)),
  );
  for (const [index, edge] of known.entries()) {
    if (isLoop(edge)) continue;
    graph.setEdge(
      edge.from ?? START,
      edge.to ?? END,
      { minlen: 1, width: labelWidth(edge.label), height: edge.label === undefined ? 0 : 16, labelpos: "c" },
      String(index),
    );
  }
  place(graph);
  trim(graph, rooms, direction);
  const boxes = new Map(
    [...picture.nodes.map(({ id }) => id), START, END]
      .filter((id) => graph.hasNode(id))
      .map((id) => {
        const { x, y, width, height } = graph.node(id) as Box;
        const room = 2 * (rooms.get(id) ?? 0);
        return [
          id,
          direction === "right" ? { x, y, width, height: height - room } : { x, y, width: width - room, height },
        ];
      }),
  );
  const nodes = picture.nodes.map((node) => {
    const { x, y, width, height } = boxes.get(node.id)!;
    return { ...node, x: round(x - width / 2), y: round(y - height / 2), width, height };
  });
  const routed = known.flatMap((edge, index): Route[] => {
    if (isLoop(edge)) return [];
    const [from, to] = [edge.from ?? START, edge.to ?? END];
    const { points } = graph.edge(from, to, String(index)) as { points: Point[] };
    return [{ index, from: boxes.get(from)!, to: boxes.get(to)!, points }];
  });
  const routes = new Map(attach(routed, direction).map((points, index) => [routed[index]!.index, points]));
  const edges = known.map((edge, index) => {
    const points = routes.get(index);
    if (points !== undefined)
      return { ...edge, id: `${index}`, path: smooth(points, direction), middle: middleOf(points) };
    const before = known.slice(0, index).filter((other) => isLoop(other) && other.from === edge.from);
    return {
      ...edge,
      id: `${index}`,
      ...loopOf(boxes.get(edge.from!)!, direction, before.length, labelWidth(edge.label)),
    };
  });
  const ends = ([START, END] as const)
    .filter((id) => graph.hasNode(id))
    .map((id) => {
      const { x, y } = boxes.get(id)!;
      return { kind: id === START ? ("start" as const) : ("end" as const), x: round(x), y: round(y) };
    });
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const below = Math.max(0, ...ends.map(({ y }) => y + DOT + WORD_HEIGHT));
  return {
    width: Math.ceil(finite(width)) || MARGIN * 2,
    height: Math.ceil(Math.max(finite(height), below)) || MARGIN * 2,
    nodes,
    edges,
    ends,
  };
}

/** Removes the room that is kept for loops where there are none: before everything that is drawn. */
function trim(graph: Graph, rooms: ReadonlyMap<string, number>, direction: Direction): void {
  const [across, size] = direction === "right" ? (["y", "height"] as const) : (["x", "width"] as const);
  const boxes = (graph.nodes() as string[]).map((id) => ({ id, box: graph.node(id) as Writable<Box> }));
  const routes = (graph.edges() as { v: string; w: string; name?: string }[]).map(
    (edge) => (graph.edge(edge) as { points: Writable<Point>[] }).points,
  );
  const first = Math.min(
    ...boxes.map(({ id, box }) => box[across] - box[size] / 2 + (rooms.get(id) ?? 0)),
    ...routes.flat().map((point) => point[across]),
  );
  const free = finite(first) - MARGIN;
  if (free <= 0) return;
  for (const { box } of boxes) box[across] -= free;
  for (const point of routes.flat()) point[across] -= free;
  (graph.graph() as Record<typeof size, number>)[size] -= free;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

function isLoop({ from, to }: DrawnEdge): boolean {
  return from !== undefined && from === to;
}

/** loop.L1 */
function roomOf({ edges }: Picture, id: string, direction: Direction): number {
  const loops = edges.filter((edge) => edge.from === id && isLoop(edge));
  return loopRoom(
    loops.map(({ label }) => labelWidth(label)),
    direction,
  );
}

/** An edge between two nodes. */
interface Route {
  /** Of the edge among those that are drawn. */
  readonly index: number;
  readonly from: Box;
  readonly to: Box;
  readonly points: readonly Point[];
}

/** An end of an edge: on which side of its node it stands, and where its neighbor is, for the order along that side. */
interface End {
  readonly edge: number;
  readonly isStart: boolean;
  readonly box: Box;
  readonly side: -1 | 1;
  readonly neighbor: Point;
}

/** Moves the ends of edges to the sides that face the direction of the drawing, spread evenly, so that edges do not cross at a node. */
function attach(routes: readonly Route[], direction: Direction): readonly (readonly Point[])[] {
  const along = direction === "right" ? "x" : "y";
  const across = direction === "right" ? "y" : "x";
  const ends = routes.flatMap(({ from, to, points }, edge): End[] => {
    const [first, last] = [points[1] ?? points[0]!, points.at(-2) ?? points.at(-1)!];
    const side = (box: Box, neighbor: Point): -1 | 1 => (neighbor[along] > box[along] ? 1 : -1);
    return [
      { edge, isStart: true, box: from, side: side(from, first), neighbor: first },
      { edge, isStart: false, box: to, side: side(to, last), neighbor: last },
    ];
  });
  const moved = routes.map(({ points }) => [...points]);
  for (const group of Map.groupBy(ends, ({ box }) => box).values())
    for (const side of [-1, 1] as const) {
      const own = group.filter((end) => end.side === side).toSorted((a, b) => a.neighbor[across] - b.neighbor[across]);
      own.forEach(({ edge, isStart, box }, index) => {
        const [depth, length] = direction === "right" ? [box.width, box.height] : [box.height, box.width];
        const point = {
          [along]: box[along] + (side * depth) / 2,
          [across]: box[across] - length / 2 + (length * (index + 1)) / (own.length + 1),
        } as unknown as Point;
        moved[edge]![isStart ? 0 : moved[edge]!.length - 1] = point;
      });
    }
  return moved;
}

function widthOf(name: string): number {
  return Math.round(Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, name.length * CHAR_WIDTH + ICON_AND_PADDING)));
}

function labelWidth(label: string | undefined): number {
  return label === undefined ? 24 : Math.min(160, label.length * 6.2 + 12);
}

/** The picture of dagre may have a width of -Infinity if it has no node. */
function finite(value: number): number {
  return Number.isFinite(value) ? value : 0;
}

const round = (value: number): number => Math.round(value * 10) / 10;

function middleOf(points: readonly Point[]): Point {
  const at = points[Math.floor(points.length / 2)] ?? { x: 0, y: 0 };
  return { x: round(at.x), y: round(at.y) };
}

/** A curve through the points whose ends run in the direction of the drawing. */
function smooth(points: readonly Point[], direction: Direction): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  let path = `M${round(first.x)} ${round(first.y)}`;
  let from = first;
  for (const to of rest) {
    const [a, b] = controlsOf(from, to, direction);
    path += `C${round(a.x)} ${round(a.y)} ${round(b.x)} ${round(b.y)} ${round(to.x)} ${round(to.y)}`;
    from = to;
  }
  return path;
}

function controlsOf(from: Point, to: Point, direction: Direction): readonly [Point, Point] {
  if (direction === "right") {
    const half = (to.x - from.x) / 2;
    return [
      { x: from.x + half, y: from.y },
      { x: to.x - half, y: to.y },
    ];
  }
  const half = (to.y - from.y) / 2;
  return [
    { x: from.x, y: from.y + half },
    { x: to.x, y: to.y - half },
  ];
}
