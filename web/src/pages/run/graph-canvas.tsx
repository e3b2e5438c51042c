// Graph canvas: the picture of a graph or flow as SVG, with the state of every node. The table view has the same data.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Picture } from "../../../../src/contract/definition.ts";
import { statusShape } from "../../components/status.tsx";
import { count, duration, plural } from "../../format.ts";
import { layoutPicture, NODE_HEIGHT, type Direction, type PlacedEdge, type PlacedNode } from "../../graph/layout.ts";
import type { NodeState, RunPicture } from "../../graph/run-picture.ts";

interface CanvasProps {
  readonly picture: Picture;
  readonly state: RunPicture;
  readonly label: string;
}

const NARROW = 560;
/** A large picture scrolls rather than becoming smaller than this. */
const SMALLEST = 0.88;
const IDLE: NodeState = { status: "idle", runs: 0, attempts: 0, current: false };

export function GraphCanvas({ picture, state, label }: CanvasProps): JSX.Element {
  const [direction, setDirection] = useState<Direction>("right");
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      if (entry !== undefined) setDirection(entry.contentRect.width < NARROW ? "down" : "right");
    });
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const layout = useMemo(() => layoutPicture(picture, direction), [picture, direction]);
  return (
    <div class="cv" ref={box} tabIndex={0} role="region" aria-label="Canvas">
      <svg
        class={`gsvg ${direction}`}
        viewBox={`0 0 ${layout.width} ${layout.height}`}
        width={layout.width}
        height={layout.height}
        style={{ minWidth: `${Math.round(layout.width * SMALLEST)}px` }}
        role="img"
        aria-label={`${label}. ${describe(picture, state)}`}
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
          <Edge key={edge.id} edge={edge} taken={state.edges.get(index) ?? 0} live={state.live.has(index)} />
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
        {layout.nodes.map((node) => (
          <Node key={node.id} node={node} state={state.nodes.get(node.id) ?? IDLE} />
        ))}
        {layout.edges.map((edge, index) => (
          <EdgeLabel key={edge.id} edge={edge} taken={state.edges.get(index) ?? 0} />
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

const CLASS: Readonly<Record<NodeState["status"], string>> = {
  completed: "",
  running: "run",
  waiting: "wait",
  failed: "fail",
  queued: "idle",
  cancelled: "idle",
  idle: "idle",
};

function Node({ node, state }: { readonly node: PlacedNode; readonly state: NodeState }): JSX.Element {
  const { x, y, width } = node;
  const status = state.status === "idle" ? "queued" : state.status;
  const room = Math.floor((width - 44) / 7.2);
  return (
    <g class={`nd ${CLASS[state.status]} ${state.current ? "sel" : ""}`} data-node={node.id} data-status={state.status}>
      <title>{`${node.name}: ${nodeText(state)}`}</title>
      {state.current && <rect class="ring" x={x - 4} y={y - 4} width={width + 8} height={NODE_HEIGHT + 8} rx="11" />}
      <rect class="box" x={x} y={y} width={width} height={NODE_HEIGHT} rx="8" />
      <g class={`glyph s-${status}`} transform={`translate(${x + 11} ${y + 9})`}>
        {statusShape(status)}
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
  readonly progress: NonNullable<NodeState["progress"]>;
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

const WORDS: Readonly<Record<NodeState["status"], string>> = {
  completed: "",
  running: "running",
  waiting: "waits",
  failed: "failed",
  queued: "next",
  cancelled: "not taken",
  idle: "not reached",
};

/** `step 8 · 10.8 s · ×4`. */
export function nodeText({ status, step, runs, tookMs, attempts, progress }: NodeState): string {
  if (progress !== undefined && progress.total > 0) {
    const failed = progress.failed > 0 ? ` · ${count(progress.failed)} failed` : "";
    return `${count(progress.done)} of ${count(progress.total)}${failed}`;
  }
  const parts = [
    ...(step !== undefined && runs > 0 ? [`step ${count(step)}`] : []),
    ...(WORDS[status] === "" ? [] : [WORDS[status]]),
    ...(tookMs !== undefined ? [duration(tookMs)] : []),
    ...(runs > 1 ? [`×${count(runs)}`] : []),
    ...(attempts > 1 ? [plural(attempts, "attempt")] : []),
  ];
  return parts.length === 0 ? "done" : parts.join(" · ");
}

function describe(picture: Picture, { nodes }: RunPicture): string {
  return picture.nodes
    .slice(0, 30)
    .map(({ id, name }) => `${name}: ${nodeText(nodes.get(id) ?? IDLE)}`)
    .join("; ");
}

/** The same data as a table. */
export function GraphTable({ picture, state }: { readonly picture: Picture; readonly state: RunPicture }): JSX.Element {
  const name = (id: string | undefined, end: string): string =>
    id === undefined ? end : (picture.nodes.find((node) => node.id === id)?.name ?? id);
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
          {picture.nodes.map((node) => {
            const one = state.nodes.get(node.id) ?? IDLE;
            return (
              <tr key={node.id}>
                <td class="strong any">{node.name}</td>
                <td>
                  {one.status === "idle"
                    ? "not reached"
                    : `${one.status}${nodeText(one) === "" ? "" : `, ${nodeText(one)}`}`}
                </td>
                <td class="num">{count(one.runs)}</td>
                <td class="soft any">
                  {picture.edges
                    .map((edge, index) => ({ edge, taken: state.edges.get(index) ?? 0 }))
                    .filter(({ edge }) => edge.from === node.id)
                    .map(
                      ({ edge, taken }) =>
                        `${name(edge.to, "end")} (${taken === 0 ? "not taken" : `×${count(taken)}`})`,
                    )
                    .join(", ") || "—"}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
