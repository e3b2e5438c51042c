// Graph canvas: the picture of a graph or flow as SVG, with the state of every node. The table view has the same data.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunPicture, RunPictureNode } from "../../../../src/contract/picture.ts";
import { statusShape } from "../../components/status.tsx";
import { count, duration, plural } from "../../format.ts";
import { layoutPicture, NODE_HEIGHT, type Direction, type PlacedEdge, type PlacedNode } from "../../graph/layout.ts";

interface CanvasProps {
  readonly picture: RunPicture;
  /** The step that is looked at; undefined: now. */
  readonly step: number | undefined;
  readonly label: string;
}

const NARROW = 560;
/** A large picture scrolls rather than becoming smaller than this. */
const SMALLEST = 0.88;

export function GraphCanvas({ picture, step, label }: CanvasProps): JSX.Element {
  const [direction, setDirection] = useState<Direction>("right");
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      if (entry !== undefined) setDirection(entry.contentRect.width < NARROW ? "down" : "right");
    });
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const { nodes } = picture;
  // Targets of `goto` are found at run time, and a live page moves no node: the table has them.
  const edges = picture.edges.filter(({ kind }) => kind !== "goto");
  const drawing = {
    nodes: nodes.map(({ id, name }) => ({ id, name })),
    edges: edges.map(({ from, to, label: words }) => ({ from, to, label: words })),
  };
  const layout = useMemo(() => layoutPicture(drawing, direction), [JSON.stringify(drawing), direction]);
  return (
    <div class="cv" ref={box} tabIndex={0} role="region" aria-label="Canvas">
      <svg
        class={`gsvg ${direction}`}
        viewBox={`0 0 ${layout.width} ${layout.height}`}
        width={layout.width}
        height={layout.height}
        style={{ minWidth: `${Math.round(layout.width * SMALLEST)}px` }}
        role="img"
        aria-label={`${label}. ${describe(picture)}`}
      >
        <defs>
          {(["ar", "an", "al"] as const).map((id) => (
            <marker
              key={id}
              id={id}
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="7"
              markerHeight="7"
              orient="auto-start-reverse"
            >
              <path class={id} d="M0 .8 7 4 0 7.2z" />
            </marker>
          ))}
        </defs>
        {layout.edges.map((edge, index) => (
          <Edge key={edge.id} edge={edge} taken={edges[index]!.taken} live={edges[index]!.live} />
        ))}
        {layout.ends.map(({ kind, x, y }) => (
          <g key={kind}>
            <circle class={kind === "start" ? "start-dot" : "end-ring"} cx={x} cy={y} r="6" />
            {kind === "end" && <circle class="end-dot" cx={x} cy={y} r="2.5" />}
            <text class="m" x={x} y={y + 23} text-anchor="middle">
              {kind}
            </text>
          </g>
        ))}
        {layout.nodes.map((node, index) => (
          <Node
            key={node.id}
            node={node}
            state={nodes[index]!}
            isCurrent={step !== undefined && nodes[index]!.step === step}
          />
        ))}
        {layout.edges.map((edge, index) => (
          <EdgeLabel key={edge.id} edge={edge} taken={edges[index]!.taken} />
        ))}
      </svg>
    </div>
  );
}

function Edge({
  edge,
  taken,
  live,
}: {
  readonly edge: PlacedEdge;
  readonly taken: number;
  readonly live: boolean;
}): JSX.Element {
  const kind = live ? "live flow" : taken > 0 ? "" : "n";
  const marker = live ? "al" : taken > 0 ? "ar" : "an";
  return <path class={`ge ${kind}`} d={edge.path} marker-end={`url(#${marker})`} />;
}

function EdgeLabel({ edge, taken }: { readonly edge: PlacedEdge; readonly taken: number }): JSX.Element | null {
  const { x, y } = edge.middle;
  const label = edge.label === undefined ? "" : cut(edge.label, 24);
  if (label === "" && taken < 2) return null;
  const text = taken > 1 ? (label === "" ? `×${count(taken)}` : `${label} ×${count(taken)}`) : label;
  const width = text.length * 6.2 + 12;
  return (
    <g class={taken > 0 ? "gel" : "gel n"}>
      <rect x={x - width / 2} y={y - 8} width={width} height="16" rx="8" />
      <text class="m" x={x} y={y + 3.8} text-anchor="middle">
        {text}
      </text>
    </g>
  );
}

/** The shape and color of a state. */
const STYLES: Readonly<Record<RunPictureNode["state"], { readonly style: string; readonly glyph: string }>> = {
  completed: { style: "", glyph: "completed" },
  running: { style: "run", glyph: "running" },
  retrying: { style: "run", glyph: "waiting" },
  waiting: { style: "wait", glyph: "waiting" },
  pending: { style: "wait", glyph: "waiting" },
  failed: { style: "fail", glyph: "failed" },
  queued: { style: "idle", glyph: "queued" },
  skipped: { style: "idle", glyph: "cancelled" },
  cancelled: { style: "idle", glyph: "cancelled" },
  idle: { style: "idle", glyph: "queued" },
};

interface NodeProps {
  readonly node: PlacedNode;
  readonly state: RunPictureNode;
  /** It ran in the step that is looked at. */
  readonly isCurrent: boolean;
}

function Node({ node, state, isCurrent }: NodeProps): JSX.Element {
  const { x, y, width } = node;
  const { style, glyph } = STYLES[state.state];
  const room = Math.floor((width - 44) / 7.2);
  const notes = [nodeText(state), ...state.notes].join(", ");
  return (
    <g class={`nd ${style} ${isCurrent ? "sel" : ""}`} data-node={node.id} data-status={state.state}>
      <title>{`${node.name}: ${notes}`}</title>
      {isCurrent && <rect class="ring" x={x - 4} y={y - 4} width={width + 8} height={NODE_HEIGHT + 8} rx="11" />}
      <rect class="box" x={x} y={y} width={width} height={NODE_HEIGHT} rx="8" />
      <g class={`glyph s-${glyph}`} transform={`translate(${x + 11} ${y + 9})`}>
        {statusShape(glyph)}
      </g>
      <text class="b" x={x + 32} y={y + 20.5}>
        {cut(node.name, room)}
      </text>
      <text class="m" x={x + 32} y={y + 36}>
        {cut(nodeText(state), Math.floor((width - 38) / 5.5))}
      </text>
      {state.progress !== undefined && <Progress node={node} progress={state.progress} />}
    </g>
  );
}

function Progress({
  node,
  progress,
}: {
  readonly node: PlacedNode;
  readonly progress: NonNullable<RunPictureNode["progress"]>;
}): JSX.Element {
  const { x, y, width } = node;
  const share = (part: number): number => (progress.total === 0 ? 0 : (part / progress.total) * (width - 16));
  return (
    <g class="gp">
      <rect class="whole" x={x + 8} y={y + NODE_HEIGHT - 5} width={width - 16} height="3" rx="1.5" />
      <rect class="part" x={x + 8} y={y + NODE_HEIGHT - 5} width={share(progress.done)} height="3" rx="1.5" />
      {progress.failed > 0 && (
        <rect
          class="lost"
          x={x + 8 + share(progress.done)}
          y={y + NODE_HEIGHT - 5}
          width={Math.max(1.5, share(progress.failed))}
          height="3"
        />
      )}
    </g>
  );
}

const cut = (text: string, room: number): string =>
  text.length > room ? `${text.slice(0, Math.max(1, room - 1))}…` : text;

const WORDS: Readonly<Record<RunPictureNode["state"], string>> = {
  completed: "",
  running: "running",
  retrying: "retrying",
  waiting: "waits",
  pending: "waits for inputs",
  failed: "failed",
  queued: "next",
  skipped: "not taken",
  cancelled: "cancelled",
  idle: "not reached",
};

/** `step 8 · 10.8 s · ×4`. */
export function nodeText({ state, step, runs, active, tookMs, attempts, progress }: RunPictureNode): string {
  if (progress !== undefined && progress.total > 0) {
    const failed = progress.failed > 0 ? ` · ${count(progress.failed)} failed` : "";
    return `${count(progress.done)} of ${count(progress.total)}${failed}`;
  }
  const times = runs + active;
  const parts = [
    ...(step !== undefined && times > 0 ? [`step ${count(step)}`] : []),
    ...(WORDS[state] === "" ? [] : [WORDS[state]]),
    ...(tookMs !== undefined ? [duration(tookMs)] : []),
    ...(times > 1 ? [`×${count(times)}`] : []),
    ...(attempts > 1 ? [plural(attempts, "attempt")] : []),
  ];
  return parts.length === 0 ? "done" : parts.join(" · ");
}

function describe({ nodes }: RunPicture): string {
  return nodes
    .slice(0, 30)
    .map((node) => `${node.name}: ${nodeText(node)}`)
    .join("; ");
}

/** The same data as a table. */
export function GraphTable({ picture }: { readonly picture: RunPicture }): JSX.Element {
  const { nodes, edges } = picture;
  const name = (id: string | undefined): string =>
    id === undefined ? "end" : (nodes.find((node) => node.id === id)?.name ?? id);
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="Nodes and edges">
      <table class="tbl tight">
        <thead>
          <tr>
            <th>Node</th>
            <th>State</th>
            <th class="num">Runs</th>
            <th>Leads to</th>
          </tr>
        </thead>
        <tbody>
          {nodes.map((node) => (
            <tr key={node.id}>
              <td class="strong any">{node.name}</td>
              <td>{node.state === "idle" ? "not reached" : `${node.state}, ${nodeText(node)}`}</td>
              <td class="num">{count(node.runs + node.active)}</td>
              <td class="soft any">
                {edges
                  .filter(({ from }) => from === node.id)
                  .map(({ to, kind, taken }) => {
                    const how = taken === 0 ? "not taken" : `×${count(taken)}`;
                    return `${name(to)} (${kind === "goto" ? "goto, " : ""}${how})`;
                  })
                  .join(", ") || "—"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
