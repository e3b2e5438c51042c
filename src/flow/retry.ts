// Retry: what it takes to bring a failed flow back to the nodes it failed at. No code of the flow's is needed.
//
// RT1. Void is what the commit that failed the run has written, and nothing before it.
// RT2. Queued again is every node that was ready and has not ended, wherever it stood: the end took them out of the queue.
// RT3. A node whose value is there is not run again: what follows from it is derived again.
// RT4. Children that failed are retried with the flow. Those that were cancelled, as a failing flow cancels all it has, are
//      started anew: a cancelled run is over for good.

import { nodeRoute, type Entry, type NewItem, type Readiness, type RunRecord } from "../kernel/index.ts";
import type { PlannedRetry } from "../workflow/index.ts";
import { rederiveItemName, spreadItemName } from "./items.ts";
import { SPREAD_SUFFIX } from "./node.ts";
import { effectiveEntries, type RecordedNode } from "./recorded-nodes.ts";

export interface FailedFlow {
  readonly record: Pick<RunRecord, "definition" | "version" | "priority">;
  readonly entries: readonly Entry[];
  readonly readiness: readonly Readiness[];
}

export function planFlowRetry({ record, entries, readiness }: FailedFlow): PlannedRetry {
  const all = effectiveEntries(entries);
  const last = all.at(-1);
  if (last?.type !== "RunFailed") return { status: "refused", reason: "its last entry is not RunFailed" };
  const { entries: count = 0, again, begun } = last.data as { entries?: number; again?: string; begun?: boolean };
  // RT1
  const from = begun === false ? last.seq - 1 : last.seq - count;
  const counting = all.filter(({ seq }) => seq < from);
  const named = (item: string, seq: number): NewItem => ({
    item,
    kind: "node",
    name: nodeRoute(record.definition, record.version),
    priority: record.priority,
    seq,
  });
  const isBegun = begun !== false && (readiness.length > 0 || again !== "input");
  const deadline = all[0]?.data["deadline"];
  return {
    status: "ready",
    from,
    commands: 0,
    tasks: [],
    items: [
      ...openNodes(counting, readiness, again).map(({ item, seq }) => named(item, seq)),
      // RT3
      ...(again === undefined && isBegun
        ? []
        : [named(rederiveItemName(again ?? "input"), again === "input" || again === undefined ? 1 : from)]),
    ],
    children: openChildren(counting).map((child) => {
      const [, spread, index] = /^(.*)\[(\d+)\]$/s.exec(child.command) ?? [];
      const entryOf = spread === undefined ? () => 1 : entriesOfItems(counting, `${spread}${SPREAD_SUFFIX}`);
      // RT4
      return { ...child, item: named(child.command, entryOf(Number(index))) };
    }),
    deadlineMs: typeof deadline === "number" ? deadline : undefined,
    reopened: [],
    step: undefined,
    kept: [],
  };
}

/** Of each node the last one. */
function openChildren(counting: readonly RecordedNode[]): readonly { readonly command: string; readonly id: string }[] {
  const done = doneIn(counting);
  const open = new Map<string, string>();
  for (const { type, command, data } of counting)
    if (type === "ChildWorkflowInitiated" && !done.has(command)) open.set(command, String(data["childExecutionId"]));
  return [...open].map(([command, id]) => ({ command, id }));
}

/** RT2 */
function openNodes(
  counting: readonly RecordedNode[],
  readiness: readonly Readiness[],
  again: string | undefined,
): readonly { readonly item: string; readonly seq: number }[] {
  const done = doneIn(counting);
  for (const { command } of openChildren(counting)) done.add(command);
  if (again !== undefined) done.add(again);
  const open: { item: string; seq: number }[] = [];
  for (const { node, required, completed, queued } of readiness) {
    if (completed === required && !done.has(node)) open.push({ item: node, seq: 1 });
    const entryOf = entriesOfItems(counting, `${node}${SPREAD_SUFFIX}`);
    for (let index = 0; index < (queued ?? 0); index += 1) {
      const item = spreadItemName(node, index);
      if (!done.has(item)) open.push({ item, seq: entryOf(index) });
    }
  }
  return open;
}

/** Where each item of a spread stands: its entries are few. */
function entriesOfItems(counting: readonly RecordedNode[], spread: string): (index: number) => number {
  const chunks = counting.filter(({ type, command }) => type === "ItemsSpread" && command === spread);
  return (index) => chunks.findLast(({ data }) => Number(data["from"]) <= index)?.seq ?? 1;
}

function doneIn(counting: readonly RecordedNode[]): Set<string> {
  const ends = new Set(["NodeCompleted", "NodeFailed", "NodeSkipped"]);
  return new Set(counting.flatMap(({ type, command }) => (ends.has(type) ? [command] : [])));
}
