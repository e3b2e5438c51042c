// Flow retry: plans the retry of a failed flow from its journal and counters. It needs no code of the flow.
//
// flow.T1. A retry makes void what the failing commit has written, and nothing before it.
// flow.T2. Every node that was ready and has not ended is queued again: the failure removed all nodes from the queue.
// flow.T3. A node that has its value does not run again: only the nodes derived from it do.
// flow.T4. Failed children are retried with the flow. Cancelled children are started again, because a cancelled run cannot
//   be retried; a failing flow cancels its children.

import {
  isOfType,
  nodeRoute,
  type DecodedEntry,
  type Entry,
  type NewItem,
  type Readiness,
  type RunRecord,
} from "../kernel/index.ts";
import type { PlannedRetry } from "../workflow/index.ts";
import { portionItemName, rederiveItemName, spreadItemName } from "./items.ts";
import { SPREAD_SUFFIX } from "./node.ts";
import { effectiveFlowEntries, isNodeEnd } from "./recorded-nodes.ts";

export interface FailedFlow {
  readonly record: Pick<RunRecord, "definition" | "version" | "priority">;
  readonly entries: readonly Entry[];
  readonly readiness: readonly Readiness[];
}

export function planFlowRetry({ record, entries, readiness }: FailedFlow): PlannedRetry {
  const all = effectiveFlowEntries(entries);
  const last = all.at(-1);
  if (last?.type !== "RunFailed") return { status: "refused", reason: "its last entry is not RunFailed" };
  const { entries: count = 0, again, begun } = last.data;
  // flow.T1
  const from = begun === false ? last.seq - 1 : last.seq - count;
  const effective = all.filter(({ seq }) => seq < from);
  const named = (item: string, seq: number): NewItem => ({
    item,
    kind: "node",
    name: nodeRoute(record.definition, record.version),
    priority: record.priority,
    seq,
  });
  const hasStarted = begun !== false && (readiness.length > 0 || again !== "input");
  const [started] = all;
  return {
    status: "ready",
    from,
    commands: 0,
    tasks: [],
    items: [
      ...openNodes(effective, readiness, again).map(({ item, seq }) => named(item, seq)),
      // flow.T3
      ...(again === undefined && hasStarted
        ? []
        : [named(rederiveItemName(again ?? "input"), again === "input" || again === undefined ? 1 : from)]),
    ],
    children: openChildren(effective).map((child) => {
      const [, spread, index] = /^(.*)\[(\d+)\]$/s.exec(child.command) ?? [];
      const seq = spread === undefined ? 1 : entryOf(chunksOf(effective, `${spread}${SPREAD_SUFFIX}`), Number(index));
      // flow.T4
      return { ...child, item: named(child.command, seq) };
    }),
    deadlineMs: started?.type === "RunStarted" ? started.data.deadline : undefined,
    reopened: [],
    promises: [],
    settlements: [],
    step: undefined,
    kept: [],
  };
}

/** The last child of each node that has not ended. */
function openChildren(
  effective: readonly DecodedEntry[],
): readonly { readonly command: string; readonly id: string }[] {
  const done = endedNodes(effective);
  const open = new Map<string, string>();
  for (const { type, command, data } of effective)
    if (type === "ChildWorkflowInitiated" && !done.has(command)) open.set(command, data.childExecutionId);
  return [...open].map(([command, id]) => ({ command, id }));
}

/** flow.T2 */
function openNodes(
  effective: readonly DecodedEntry[],
  readiness: readonly Readiness[],
  again: string | undefined,
): readonly { readonly item: string; readonly seq: number }[] {
  const done = endedNodes(effective);
  for (const { command } of openChildren(effective)) done.add(command);
  if (again !== undefined) done.add(again);
  const open: { item: string; seq: number }[] = [];
  for (const { node, required, completed, queued } of readiness) {
    if (completed === required && !done.has(node)) open.push({ item: node, seq: 1 });
    if (queued === undefined) continue;
    const chunks = chunksOf(effective, `${node}${SPREAD_SUFFIX}`);
    for (let index = 0; index < queued; index += 1) {
      const item = spreadItemName(node, index);
      if (!done.has(item)) open.push({ item, seq: entryOf(chunks, index) });
    }
    // keys.K2
    if (queued < required && chunks[0]?.data.keys !== undefined)
      open.push({ item: portionItemName(node), seq: entryOf(chunks, queued) });
  }
  return open;
}

type Chunk = DecodedEntry<"ItemsSpread">;

/** The entries that hold the items of a spread, in order. */
function chunksOf(effective: readonly DecodedEntry[], spread: string): readonly Chunk[] {
  return effective.filter((entry) => isOfType(entry, "ItemsSpread")).filter(({ command }) => command === spread);
}

/** The `seq` of the entry that holds an item. */
function entryOf(chunks: readonly Chunk[], index: number): number {
  return chunks.findLast(({ data }) => data.from <= index)?.seq ?? 1;
}

function endedNodes(effective: readonly DecodedEntry[]): Set<string> {
  return new Set(effective.filter(isNodeEnd).map(({ command }) => command));
}
