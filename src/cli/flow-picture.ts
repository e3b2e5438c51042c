// A flow as boxes and arrows, and what a run of it did laid over them (PI1, PI2).

import { formatMs } from "../base/index.ts";
import { OUTPUT, type FlowBody, type FlowDescription, type FlowNodeDescription, type Region } from "../flow/index.ts";
import type { FlowNodeState, FlowRow, FlowRun } from "./flow-run.ts";
import { stateText } from "./flow-view.ts";
import { idsOf, terminalBox, type Arrow, type Box, type Mark, type Picture } from "./picture.ts";

/** How the nodes of a run stand, by id; without those that nothing is known of. */
export interface FlowTrace {
  readonly title: string;
  readonly nodes: ReadonlyMap<string, { readonly mark: Mark; readonly text: string | undefined }>;
  readonly hasEnded: boolean;
}

export function flowPictureOf(flow: FlowDescription, place: number, trace?: FlowTrace): Picture {
  const ids = flow.nodes.map(({ id }) => id);
  const idOf = idsOf(ids, place);
  const hasBegun = trace !== undefined && (trace.hasEnded || trace.nodes.size > 0);
  return {
    title: trace?.title ?? flow.name,
    boxes: [
      terminalBox(idOf(null), "INPUT", hasBegun ? "done" : undefined),
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

/** What is worth knowing of a node besides its name. */
function aboutOf(node: FlowNodeDescription): string[] {
  const { kind, by, calls, maxAttempts, timeoutMs, concurrency, settle, catches, queue } = node;
  const lines: string[] = [];
  if (kind === "when" && by !== null) lines.push(by);
  if (kind === "spread") lines.push("once per item");
  if (calls !== null) lines.push(`calls ${calls.kind} ${calls.name}`);
  if (concurrency !== null) lines.push(`${concurrency} at once`);
  if (settle) lines.push("keeps failures");
  if (maxAttempts === null) lines.push("tried again without end");
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

/** Behind another node of its own branch: that it is in it can be seen. */
function isFollower({ branch, needs }: FlowNodeDescription, byId: ReadonlyMap<string, FlowNodeDescription>): boolean {
  return needs.some((need) => {
    const other = byId.get(need)?.branch;
    return other !== undefined && other !== null && other.when === branch?.when && other.side === branch.side;
  });
}

// ── what a run did ──

const MARKS: Readonly<Record<FlowNodeState, Mark>> = {
  done: "done",
  skipped: "skipped",
  failed: "failed",
  "at work": "now",
  queued: "now",
  retries: "now",
  child: "now",
  waiting: "waiting",
  left: "waiting",
};

/** What is derived in memory has no entry of its own: it was run, or skipped, with the head it stands behind. */
export function flowTraceOf({ record, rows }: FlowRun, { regions }: FlowBody): FlowTrace {
  const known = new Map(rows.map((row) => [row.node, row]));
  const nodes = new Map<string, { mark: Mark; text: string | undefined }>();
  const note = (id: string, row: Pick<FlowRow, "state">, text: string): void =>
    void nodes.set(id, { mark: MARKS[row.state], text: row.state === "done" && text === "done" ? undefined : text });
  for (const row of rows) if (row.node !== OUTPUT) note(row.node, row, stateText(row, record));
  const hasBegun = rows.length > 0 || record.status === "completed";
  for (const { region } of regions.values()) {
    const state = region.head.id === "input" ? (hasBegun ? "done" : undefined) : known.get(region.head.id)?.state;
    if (state === "done" || state === "skipped") for (const id of derivedIn(region, known)) note(id, { state }, state);
  }
  return {
    title: `${record.definition}: ${record.id}, ${record.status}`,
    nodes,
    hasEnded: record.status === "completed",
  };
}

/** Up to the one that failed, where one did. */
function derivedIn({ inline }: Region, known: ReadonlyMap<string, FlowRow>): readonly string[] {
  const failed = inline.findIndex(({ id }) => known.get(id)?.state === "failed");
  const ran = failed === -1 ? inline : inline.slice(0, failed);
  return ran.flatMap(({ id }) => (id === OUTPUT || known.has(id) ? [] : [id]));
}
