// Run picture: which node of a picture did what in a run, as of a step or now. Pure.
//
// run-picture.R1. A node's state follows from committed steps and the timeline alone; looking at an earlier step uses earlier steps only.

import type { CheckpointBody } from "../../../src/contract/history.ts";
import type { Picture } from "../../../src/contract/definition.ts";
import type { TimelineRow } from "../../../src/contract/timeline.ts";

export type NodeStatus = "completed" | "running" | "waiting" | "failed" | "queued" | "cancelled" | "idle";

export interface NodeState {
  readonly status: NodeStatus;
  /** The newest step of a graph in which it ran or runs. */
  readonly step?: number;
  /** How often it ran. */
  readonly runs: number;
  readonly tookMs?: number;
  readonly attempts: number;
  readonly progress?: TimelineRow["progress"];
  /** It ran in the step that is looked at. */
  readonly current: boolean;
  /** Who decided, and after how long: of a node that waited for a person. */
  readonly note?: string;
}

export interface RunPicture {
  readonly nodes: ReadonlyMap<string, NodeState>;
  /** How often each edge was taken, by its place in the picture. */
  readonly edges: ReadonlyMap<number, number>;
  /** Edges that lead to what runs now. */
  readonly live: ReadonlySet<number>;
}

interface GraphFacts {
  readonly picture: Picture;
  /** In order, from step 0. */
  readonly checkpoints: readonly CheckpointBody[];
  /** The step that is looked at; undefined: now. */
  readonly step: number | undefined;
  /** Rows of the timeline, for what runs now. */
  readonly rows: readonly TimelineRow[];
  readonly isLive: boolean;
}

const STATUS_OF_ROW: Readonly<Record<TimelineRow["state"], NodeStatus>> = {
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  timed_out: "failed",
  open: "waiting",
  running: "running",
  queued: "queued",
  skipped: "cancelled",
};

export function pictureOfGraph({ picture, checkpoints, step, rows, isLive }: GraphFacts): RunPicture {
  const seen = step === undefined ? checkpoints : checkpoints.filter((one) => one.step <= step);
  const last = seen.at(-1);
  const nodes = new Map<string, NodeState>();
  for (const checkpoint of seen)
    for (const { name, tookMs, attempts } of checkpoint.nodes) {
      const before = nodes.get(name);
      nodes.set(name, {
        status: "completed",
        step: checkpoint.step,
        runs: (before?.runs ?? 0) + 1,
        ...(tookMs !== undefined && { tookMs }),
        attempts: Math.max(1, attempts),
        current: step !== undefined && checkpoint.step === step,
      });
    }
  const nowRunning = step === undefined ? activeNodes(rows, last, isLive) : new Map<string, NodeStatus>();
  for (const [name, status] of nowRunning) {
    const before = nodes.get(name);
    nodes.set(name, {
      status,
      step: (last?.step ?? 0) + 1,
      runs: (before?.runs ?? 0) + 1,
      attempts: rows.findLast((row) => row.name === name && row.kind === "node")?.attempts ?? 1,
      current: false,
    });
  }
  const hasEnded = last !== undefined && last.next.length === 0 && step === undefined && !isLive;
  return { nodes, ...edgesTaken(picture, seen, new Set(nowRunning.keys()), hasEnded) };
}

/** The nodes of the step that has not been committed, with their state. */
function activeNodes(
  rows: readonly TimelineRow[],
  last: CheckpointBody | undefined,
  isLive: boolean,
): Map<string, NodeStatus> {
  const active = new Map<string, NodeStatus>();
  const step = (last?.step ?? 0) + 1;
  for (const row of rows)
    if (row.kind === "node" && row.step === step && !(row.state === "completed" && !isLive))
      active.set(row.name, STATUS_OF_ROW[row.state]);
  if (isLive && last !== undefined) for (const name of last.next) if (!active.has(name)) active.set(name, "queued");
  return active;
}

function edgesTaken(
  { edges }: Picture,
  checkpoints: readonly CheckpointBody[],
  running: ReadonlySet<string>,
  hasEnded: boolean,
): { edges: Map<number, number>; live: Set<number> } {
  const taken = new Map<number, number>();
  const live = new Set<number>();
  // In order, from START on: a node of a step comes from the nodes of the step before.
  const steps = checkpoints.map(({ nodes }) => nodes.map(({ name }) => name));
  let before: readonly string[] | undefined;
  const take = (names: readonly string[], isRunning: boolean): void => {
    edges.forEach(({ from, to }, index) => {
      if (to === undefined) return;
      const comes = from === undefined ? before === undefined : before?.includes(from) === true;
      const times = comes ? names.filter((name) => name === to).length : 0;
      if (times === 0) return;
      taken.set(index, (taken.get(index) ?? 0) + times);
      if (isRunning) live.add(index);
    });
    if (names.length > 0) before = names;
  };
  for (const names of steps) take(names, false);
  take([...running], true);
  if (hasEnded)
    edges.forEach(({ from, to }, index) => {
      if (to === undefined && from !== undefined && before?.includes(from) === true)
        taken.set(index, (taken.get(index) ?? 0) + 1);
    });
  return { edges: taken, live };
}

/** A flow has no steps: the rows of its timeline are its nodes. */
export function pictureOfFlow(picture: Picture, rows: readonly TimelineRow[], isCompleted: boolean): RunPicture {
  const nodes = new Map<string, NodeState>();
  for (const node of picture.nodes) {
    const row = rows.find(
      ({ command, name, kind, parent }) =>
        parent === undefined &&
        (kind === "node" || kind === "spread" || kind === "child" || kind === "task") &&
        (command === node.id || name === node.id || name === node.name),
    );
    if (row === undefined) continue;
    const took = tookOf(row);
    nodes.set(node.id, {
      status: STATUS_OF_ROW[row.state],
      runs: 1,
      attempts: Math.max(1, row.attempts),
      current: false,
      ...(took !== undefined && { tookMs: took }),
      ...(row.progress !== undefined && { progress: row.progress }),
    });
  }
  addDerived(picture, nodes, isCompleted);
  const edges = new Map<number, number>();
  const live = new Set<number>();
  picture.edges.forEach(({ from, to }, index) => {
    const source = from === undefined ? "completed" : nodes.get(from)?.status;
    const target = to === undefined ? (isCompleted ? "completed" : undefined) : nodes.get(to)?.status;
    if (source !== "completed" || target === undefined || target === "cancelled" || target === "idle") return;
    edges.set(index, 1);
    if (target === "running") live.add(index);
  });
  return { nodes, edges, live };
}

const DERIVED: ReadonlySet<string> = new Set(["inline", "parallel", "when"]);

/** A derived value that succeeded has no entry in the journal: it exists as soon as everything that it is derived from exists. */
function addDerived({ nodes: all, edges }: Picture, nodes: Map<string, NodeState>, isCompleted: boolean): void {
  const isDone = (id: string | undefined): boolean => id === undefined || nodes.get(id)?.status === "completed";
  const isSkipped = (id: string | undefined): boolean => id !== undefined && nodes.get(id)?.status === "cancelled";
  let hasAdded = true;
  while (hasAdded) {
    hasAdded = false;
    for (const { id, kind } of all) {
      if (nodes.has(id) || !DERIVED.has(kind)) continue;
      const needs = edges.filter(({ to }) => to === id).map(({ from }) => from);
      // A branch that was not taken leaves its value undefined, which the code of a completed run has read.
      if (needs.length === 0 || !needs.some(isDone)) continue;
      if (!needs.every((need) => isDone(need) || (isCompleted && isSkipped(need)))) continue;
      nodes.set(id, { status: "completed", runs: 1, attempts: 1, current: false });
      hasAdded = true;
    }
  }
}

/** How long it worked, in ms. */
export function tookOf({ spans }: TimelineRow): number | undefined {
  const done = spans.filter(({ kind, to }) => (kind === "work" || kind === "failed") && to !== undefined);
  if (done.length === 0) return undefined;
  return done.reduce((sum, { from, to }) => sum + Math.max(0, Date.parse(to!) - Date.parse(from)), 0);
}
