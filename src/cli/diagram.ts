// Diagram: the picture of a definition or a run as boxes and arrows, before it is rendered as Mermaid or DOT.
//
// diagram.D1. Ids are generated (`g0n3`), so that no name can be a keyword or break the syntax. Names are labels only.
// diagram.D2. The state of a run marks boxes and does not move them.

import type { Picture, PictureEdge, PictureNode, RunPicture, RunPictureNode } from "../contract/index.ts";

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
  readonly style: PictureEdge["kind"];
}

export interface Diagram {
  readonly title: string;
  readonly boxes: readonly Box[];
  readonly arrows: readonly Arrow[];
}

export interface DrawnPicture {
  readonly title: string;
  readonly kind: "graph" | "flow";
  readonly picture: Picture | RunPicture;
}

const TERMINALS = { graph: ["START", "END"], flow: ["INPUT", "OUTPUT"] } as const;

/** `place`: the index of the picture in its file. */
export function diagramOf({ title, kind, picture }: DrawnPicture, place: number): Diagram {
  const places = new Map(picture.nodes.map(({ id }, index) => [id, index]));
  const idOf = (name: string | undefined, terminal: "start" | "end"): string =>
    `g${place}${name === undefined ? terminal : `n${places.get(name)}`}`;
  const arrows = picture.edges.map((edge): Arrow => ({
    from: idOf(edge.from, "start"),
    to: idOf(edge.to, "end"),
    label: `${edge.label ?? ""}${edge.kind === "goto" && "taken" in edge ? countText(edge.taken as number) : ""}`,
    style: edge.kind,
  }));
  const [start, end] = TERMINALS[kind];
  const run = "status" in picture ? picture : undefined;
  const hasEnd = kind === "flow" || picture.edges.some(({ to }) => to === undefined);
  return {
    title,
    boxes: [
      terminalBox(idOf(undefined, "start"), start, run?.started === true),
      ...picture.nodes.map((node) => boxOf(node, idOf(node.id, "start"))),
      ...(hasEnd ? [terminalBox(idOf(undefined, "end"), end, run?.ended === true)] : []),
    ],
    arrows,
  };
}

function terminalBox(id: string, name: string, isDone: boolean): Box {
  return { id, lines: [name], shape: "terminal", mark: isDone ? "done" : undefined, isOpen: false };
}

const SHAPES: Readonly<Record<PictureNode["kind"], Box["shape"]>> = {
  node: "node",
  items: "items",
  join: "join",
  action: "node",
  part: "node",
  call: "node",
  inline: "derived",
  parallel: "derived",
  spread: "items",
  when: "choice",
};

const MARKS: Readonly<Record<RunPictureNode["state"], Mark | undefined>> = {
  idle: undefined,
  pending: "waiting",
  queued: "now",
  running: "now",
  waiting: "now",
  retrying: "now",
  completed: "done",
  failed: "failed",
  skipped: "skipped",
  cancelled: "skipped",
};

function boxOf(node: PictureNode | RunPictureNode, id: string): Box {
  const { name, kind, notes, open } = node;
  const run = "state" in node ? node : undefined;
  return {
    id,
    lines: [
      `${name}${countText(run?.runs ?? 0)}`,
      ...notes,
      ...(run?.children ?? []).map((child) => `child ${child}`),
      ...(run?.text === undefined ? [] : [run.text]),
    ],
    shape: SHAPES[kind],
    mark: run && MARKS[run.state],
    isOpen: open,
  };
}

function countText(count: number): string {
  return count > 1 ? ` ×${count}` : "";
}
