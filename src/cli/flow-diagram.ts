// Flow diagram: a flow as boxes and arrows, with what a run did (diagram.D1, diagram.D2).

import { formatMs } from "../base/index.ts";
import { OUTPUT, type FlowBody, type FlowDescription, type FlowNodeDescription, type Region } from "../flow/index.ts";
import type { FlowNodeState, FlowRow, FlowRun } from "../explain/index.ts";
import { stateText } from "./flow-view.ts";
import { idsOf, terminalBox, type Arrow, type Box, type Mark, type Diagram } from "./diagram.ts";

/** The state of the nodes of a run by id, without nodes whose state is not known. */
export interface FlowTrace {
  readonly title: string;
  readonly nodes: ReadonlyMap<string, { readonly mark: Mark; readonly text: string | undefined }>;
  readonly hasEnded: boolean;
}

export function flowDiagramOf(flow: FlowDescription, place: number, trace?: FlowTrace): Diagram {
  const ids = flow.nodes.map(({ id }) => id);
  const idOf = idsOf(ids, place);
  const hasStarted = trace !== undefined && (trace.hasEnded || trace.nodes.size > 0);
  return {
    title: trace?.title ?? flow.name,
    boxes: [
      terminalBox(idOf(null), "INPUT", hasStarted ? "done" : undefined),
      ...flow.nodes.map((node) => boxOf(node, idOf(node.id), trace)),
      terminalBox(idOf(null, "END"), "OUTPUT", trace?.hasEnded === true ? "done" : undefined),
    ],
    arrows: arrowsOf(flow, idOf),
  };
}

function boxOf(node: FlowNodeDescription, id: string, trace: FlowTrace | undefined): Box {
  const { mark, text } = trace?.nodes.get(node.id) ?? {};
  return {
    id,
    lines: [node.id, ...aboutOf(node), ...(text === undefined ? [] : [text])],
    shape: SHAPES[node.kind],
    mark,
    isOpen: false,
  };
}

const SHAPES: Readonly<Record<FlowNodeDescription["kind"], Box["shape"]>> = {
  action: "node",
  part: "node",
  call: "node",
  inline: "derived",
  parallel: "derived",
  spread: "items",
  when: "choice",
};

/** Label lines below the name of the node. */
function aboutOf(node: FlowNodeDescription): string[] {
  const { kind, by, calls, maxAttempts, timeoutMs, concurrency, settle, catches, queue } = node;
  const lines: string[] = [];
  if (kind === "when" && by !== null) lines.push(by);
  if (kind === "spread") lines.push("once per item");
  if (calls !== null) lines.push(`calls ${calls.kind} ${calls.name}`);
  if (concurrency !== null) lines.push(`${concurrency} at once`);
  if (settle) lines.push("collects failures");
  if (maxAttempts === null) lines.push("unlimited attempts");
  else if (maxAttempts > 1) lines.push(`up to ${maxAttempts} attempts`);
  if (timeoutMs !== null) lines.push(`timeout ${formatMs(timeoutMs)}`);
  if (catches) lines.push("catches");
  if (queue !== null) lines.push(`queue ${queue}`);
  return lines;
}

function arrowsOf(flow: FlowDescription, idOf: ReturnType<typeof idsOf>): Arrow[] {
  const byId = new Map(flow.nodes.map((node) => [node.id, node]));
  return flow.edges.flatMap(({ from, to, kind, side }): Arrow[] => {
    const target = to === null ? undefined : byId.get(to);
    const ends = { from: idOf(from), to: idOf(to, "END") };
    if (kind === "branch")
      return target !== undefined && isFollower(target, byId)
        ? []
        : [{ ...ends, label: side === true ? "then" : "otherwise", style: "branch" }];
    if (target?.kind !== "spread") return [{ ...ends, label: "", style: "always" }];
    return [{ ...ends, label: target.by === null ? "each" : `each of ${target.by}`, style: "spread" }];
  });
}

/** It needs a node of the same branch, so it needs no arrow from the `when`. */
function isFollower({ branch, needs }: FlowNodeDescription, byId: ReadonlyMap<string, FlowNodeDescription>): boolean {
  return needs.some((need) => {
    const other = byId.get(need)?.branch;
    return other !== undefined && other !== null && other.when === branch?.when && other.side === branch.side;
  });
}

// ── trace of a run ──

const MARKS: Readonly<Record<FlowNodeState, Mark>> = {
  completed: "done",
  skipped: "skipped",
  failed: "failed",
  running: "now",
  queued: "now",
  retrying: "now",
  awaiting_child: "now",
  waiting: "waiting",
  unfinished: "waiting",
};

/** A node that is derived in memory has no entry: it completed, or was skipped, with the head of its region. */
export function flowTraceOf({ record, rows }: FlowRun, { regions }: FlowBody): FlowTrace {
  const known = new Map(rows.map((row) => [row.node, row]));
  const nodes = new Map<string, { mark: Mark; text: string | undefined }>();
  const note = (id: string, row: Pick<FlowRow, "state">, text: string): void =>
    void nodes.set(id, {
      mark: MARKS[row.state],
      text: row.state === "completed" && text === "completed" ? undefined : text,
    });
  for (const row of rows) if (row.node !== OUTPUT) note(row.node, row, stateText(row, record));
  const hasStarted = rows.length > 0 || record.status === "completed";
  for (const { region } of regions.values()) {
    const state =
      region.head.id === "input" ? (hasStarted ? "completed" : undefined) : known.get(region.head.id)?.state;
    if (state === "completed" || state === "skipped")
      for (const id of derivedIn(region, known)) note(id, { state }, state);
  }
  return {
    title: `${record.definition}: ${record.id}, ${record.status}`,
    nodes,
    hasEnded: record.status === "completed",
  };
}

/** The derived nodes up to the one that failed, if one did. */
function derivedIn({ inline }: Region, known: ReadonlyMap<string, FlowRow>): readonly string[] {
  const failed = inline.findIndex(({ id }) => known.get(id)?.state === "failed");
  const ran = failed === -1 ? inline : inline.slice(0, failed);
  return ran.flatMap(({ id }) => (id === OUTPUT || known.has(id) ? [] : [id]));
}
