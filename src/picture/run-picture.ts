// Run picture: what a run did with the nodes and edges of its definition, as of now or after a step. Pure.
//
// run-picture.R1. The picture of an earlier step follows from steps up to it, and from nothing later.
// run-picture.R2. A run marks the nodes and edges of the definition, in their order. It adds what the definition does not know: targets of
//   `goto`, and the children that nodes start.

import type { Picture, RunPictureEdge, RunPictureNode } from "../contract/index.ts";
import type { FlowNodeState, FlowRow } from "../explain/index.ts";
import { OUTPUT, type FlowBody, type Region } from "../flow/index.ts";
import type { GraphDescription } from "../graph/index.ts";
import { hasEnded, type RunRecord } from "../kernel/index.ts";
import { stateText } from "./flow-text.ts";
import type { GraphTrail, TakenEdge, TrailStep } from "./graph-trail.ts";
import type { RawRow } from "./timeline-rows.ts";

type NodeState = RunPictureNode["state"];

export interface DrawnRun {
  readonly nodes: readonly RunPictureNode[];
  readonly edges: readonly RunPictureEdge[];
}

const ACTIVE: readonly NodeState[] = ["queued", "running", "waiting", "retrying"];

// ── graphs ──

interface GraphFacts {
  readonly picture: Picture;
  readonly described: GraphDescription;
  readonly record: RunRecord;
  readonly trail: Pick<GraphTrail, "steps" | "children" | "frontier">;
  /** The rows of the timeline, for the step that is not committed. */
  readonly rows: readonly RawRow[];
  /** The step that is looked at; undefined: now. */
  readonly step: number | undefined;
}

export function drawGraph(facts: GraphFacts): DrawnRun {
  const { picture, record, trail, step } = facts;
  const steps = trail.steps.filter((one) => step === undefined || one.step <= step);
  const last = steps.at(-1);
  const current = step === undefined ? currentNodes(facts, last) : new Map<string, readonly CurrentItem[]>();
  const joins = new Map(isOver(record) ? [] : (last?.waiting ?? []).map(({ node, arrived }) => [node, arrived]));
  const nodes = picture.nodes.map((node): RunPictureNode => {
    const ran = steps.flatMap((one) =>
      one.ran.flatMap((tally) => (tally.node === node.id ? [{ ...tally, at: one.step }] : [])),
    );
    const items = current.get(node.id) ?? [];
    const arrived = joins.get(node.id);
    const names = new Set(
      trail.children.flatMap((one) =>
        one.node === node.id && (step === undefined || one.step <= step) ? [one.name] : [],
      ),
    );
    const latest = ran.at(-1);
    const state =
      stateOfItems(items) ?? (arrived !== undefined ? "pending" : latest !== undefined ? "completed" : "idle");
    const active = items.filter((item) => ACTIVE.includes(item.state)).length;
    const ranIn = items.length > 0 ? (last?.step ?? 0) + 1 : latest?.at;
    const text = graphText(state, active, arrived);
    return {
      ...node,
      state,
      ...(text !== undefined && { text }),
      runs: ran.reduce((sum, { count }) => sum + count, 0),
      active,
      attempts: Math.max(1, ...(items.length > 0 ? items.map(({ attempts }) => attempts) : [latest?.attempts ?? 1])),
      ...(ranIn !== undefined && { step: ranIn }),
      ...(items.length === 0 && latest?.tookMs !== undefined && { tookMs: Math.round(latest.tookMs) }),
      ...(arrived !== undefined && { arrived }),
      ...(names.size > 0 && { children: [...names] }),
    };
  });
  const isActive = (name: string): boolean => current.get(name)?.some(({ state }) => ACTIVE.includes(state)) === true;
  return { nodes, edges: graphEdges(facts, steps, isActive) };
}

function isOver({ status }: RunRecord): boolean {
  return hasEnded(status) && status !== "failed";
}

function graphText(state: NodeState, active: number, arrived: readonly string[] | undefined): string | undefined {
  if (state === "pending") return `has ${(arrived ?? []).join(", ")}`;
  if (state === "completed" || state === "idle") return undefined;
  return `${state}${active > 1 ? ` ×${active}` : ""}`;
}

interface CurrentItem {
  readonly state: NodeState;
  readonly attempts: number;
}

/** The items of the step that is not committed, by node. */
function currentNodes(
  { trail, rows, record }: GraphFacts,
  last: TrailStep | undefined,
): ReadonlyMap<string, readonly CurrentItem[]> {
  if (last === undefined || record.status === "completed") return new Map();
  const known = new Map(rows.map((row) => [row.draft.command, row]));
  const items = trail.frontier.map((node, position) => {
    const row = known.get(`Node(${last.step + 1}.${position})`);
    const item: CurrentItem = {
      state: row === undefined ? (hasEnded(record.status) ? "cancelled" : "queued") : stateOfRow(row),
      attempts:
        row === undefined
          ? 1
          : Math.max(row.draft.attempts, row.draft.executions.length + Number(row.state === "running")),
    };
    return { node, item };
  });
  return new Map([...Map.groupBy(items, ({ node }) => node)].map(([node, all]) => [node, all.map(({ item }) => item)]));
}

function stateOfRow({ state, spans }: RawRow): NodeState {
  if (state === "timed_out") return "failed";
  if (state !== "open") return state;
  return spans.at(-1)?.kind === "backoff" ? "retrying" : "waiting";
}

/** Of several items of a node, the one that says most about it. */
const RANK: readonly NodeState[] = ["failed", "running", "retrying", "waiting", "queued", "cancelled", "completed"];

function stateOfItems(items: readonly CurrentItem[]): NodeState | undefined {
  return RANK.find((state) => items.some((item) => item.state === state));
}

/** graph-trail.T3 */
function graphEdges(
  { picture, described, record, step }: GraphFacts,
  steps: readonly TrailStep[],
  isActive: (node: string) => boolean,
): readonly RunPictureEdge[] {
  const last = steps.at(-1);
  const joins = new Set(described.nodes.flatMap(({ name, waitsFor }) => (waitsFor.length > 0 ? [name] : [])));
  const all = steps.flatMap(({ taken }) => taken);
  const timesRun = (node: string): number => steps.reduce((sum, { next }) => sum + countOf(next, node), 0);
  const hasEndedHere = step === undefined && record.status === "completed";
  const declared = picture.edges.map((edge, place): RunPictureEdge => {
    const { from, to, index, joins: leadsToJoin } = described.edges[place]!;
    const isTaken = (one: TakenEdge): boolean => one.from === (from ?? "") && one.edge === index && one.to === to;
    const waits = last?.waiting.some(({ node, arrived }) => node === to && arrived.includes(from ?? "")) === true;
    const taken =
      to === null
        ? Number(hasEndedHere && last?.ran.some(({ node }) => node === from) === true)
        : leadsToJoin
          ? timesRun(to) + Number(waits)
          : sumOf(all.filter(isTaken));
    const isLive = to !== null && isActive(to) && (leadsToJoin || last?.taken.some(isTaken) === true);
    return { ...edge, taken, live: isLive };
  });
  // rules.G1: goto targets are numbered after the edges.
  const edgesOf = (node: string): number => described.edges.filter(({ from }) => from === node).length;
  const known = new Set(picture.nodes.map(({ id }) => id));
  const isGoto = ({ from, to, edge }: TakenEdge): boolean =>
    from !== "" && edge >= edgesOf(from) && known.has(from) && known.has(to) && !joins.has(to);
  const gotos = Map.groupBy(all.filter(isGoto), ({ from, to }) => JSON.stringify([from, to]));
  return [
    ...declared,
    ...[...gotos.values()].map((taken): RunPictureEdge => {
      const { from, to } = taken[0]!;
      const isLast = last?.taken.some((one) => isGoto(one) && one.from === from && one.to === to) === true;
      return { from, to, kind: "goto", label: "goto", taken: sumOf(taken), live: isLast && isActive(to) };
    }),
  ];
}

function sumOf(taken: readonly TakenEdge[]): number {
  return taken.reduce((sum, { count }) => sum + count, 0);
}

function countOf(tallies: TrailStep["next"], node: string): number {
  return tallies.find((one) => one.node === node)?.count ?? 0;
}

// ── flows ──

interface FlowFacts {
  readonly picture: Picture;
  readonly record: RunRecord;
  readonly rows: readonly FlowRow[];
  readonly body: Pick<FlowBody, "regions">;
  /** How long the code of a node ran. */
  readonly tookMs: (node: string) => number | undefined;
}

const STATES: Readonly<Record<FlowNodeState, NodeState>> = {
  completed: "completed",
  skipped: "skipped",
  failed: "failed",
  running: "running",
  queued: "queued",
  retrying: "retrying",
  awaiting_child: "waiting",
  waiting: "pending",
  unfinished: "cancelled",
};

export function drawFlow({ picture, record, rows, body, tookMs }: FlowFacts): DrawnRun {
  const known = new Map(rows.map((row) => [row.node, row]));
  const derived = derivedStates(record, known, body);
  const nodes = picture.nodes.map((node): RunPictureNode => {
    const row = known.get(node.id);
    const state = row === undefined ? (derived.get(node.id) ?? "idle") : stateOfFlowRow(row, record);
    const words = row === undefined ? state : stateText(row, record);
    const took = row?.tookMs ?? tookMs(node.id);
    return {
      ...node,
      state,
      ...(words !== "completed" && words !== "idle" && { text: words }),
      runs: Number(state === "completed"),
      active: row?.items === undefined ? Number(ACTIVE.includes(state)) : activeItems(row.items),
      attempts: row?.attempts ?? 1,
      ...(took !== undefined && { tookMs: Math.round(took) }),
      ...(row?.items !== undefined && { progress: progressOf(row.items) }),
      ...(row?.inputs !== undefined && { inputs: row.inputs }),
      ...(row?.child !== undefined && { child: row.child }),
    };
  });
  const stateOf = new Map(nodes.map(({ id, state }) => [id, state]));
  const edges = picture.edges.map((edge): RunPictureEdge => {
    const source = edge.from === undefined ? "completed" : stateOf.get(edge.from);
    const target =
      edge.to === undefined ? (record.status === "completed" ? "completed" : "idle") : stateOf.get(edge.to);
    const isTaken = source === "completed" && target !== "idle" && target !== "skipped";
    return { ...edge, taken: Number(isTaken), live: isTaken && target !== undefined && ACTIVE.includes(target) };
  });
  return { nodes, edges };
}

/** When the run has ended, a node that waits for inputs gets no more of them. */
function stateOfFlowRow({ state }: FlowRow, { status }: RunRecord): NodeState {
  return state === "waiting" && hasEnded(status) ? "cancelled" : STATES[state];
}

function activeItems({ running, queued, retrying, awaitingChild }: NonNullable<FlowRow["items"]>): number {
  return running + queued + retrying + awaitingChild;
}

function progressOf({
  completed,
  total,
  failed,
  running,
}: NonNullable<FlowRow["items"]>): NonNullable<RunPictureNode["progress"]> {
  return { done: completed, total, failed, running };
}

/** A node that is derived in memory has no entry: it completed, or was skipped, with the head of its region. */
function derivedStates(
  { status }: RunRecord,
  known: ReadonlyMap<string, FlowRow>,
  { regions }: Pick<FlowBody, "regions">,
): ReadonlyMap<string, NodeState> {
  const states = new Map<string, NodeState>();
  const hasStarted = known.size > 0 || status === "completed";
  for (const { region } of regions.values()) {
    const { id } = region.head;
    const state = id === "input" ? (hasStarted ? "completed" : undefined) : known.get(id)?.state;
    if (state === "completed" || state === "skipped")
      for (const node of derivedIn(region, known)) states.set(node, state);
  }
  return states;
}

/** The derived nodes up to the one that failed, if one did. */
function derivedIn({ inline }: Region, known: ReadonlyMap<string, FlowRow>): readonly string[] {
  const failed = inline.findIndex(({ id }) => known.get(id)?.state === "failed");
  const ran = failed === -1 ? inline : inline.slice(0, failed);
  return ran.flatMap(({ id }) => (id === OUTPUT || known.has(id) ? [] : [id]));
}
