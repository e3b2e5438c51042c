// Flow text: the state of a flow's node in words, for tables and pictures.

import { pluralize } from "../base/index.ts";
import type { FlowNodeState, FlowRow, SpreadCounts } from "../explain/index.ts";
import { hasEnded, type RunRecord } from "../kernel/index.ts";

export function stateText(
  { state, items, inputs, child, isCaught }: FlowRow,
  { status }: Pick<RunRecord, "status">,
): string {
  if (items !== undefined) return spreadText(state, items);
  switch (state) {
    case "completed":
      return isCaught ? "completed, caught" : "completed";
    case "waiting":
      return `${hasEnded(status) ? "unfinished" : "waiting"}, ${inputs?.completed} of ${inputs?.required} inputs`;
    case "awaiting_child":
      return `waiting for child ${child}`;
    case "queued":
      return status === "paused" ? "queued, paused" : "queued";
    case "retrying":
    case "unfinished":
    case "skipped":
    case "failed":
    case "running":
      return state;
  }
}

/** `341 of 500, 2 failed, 8 running, 42 queued` */
export function spreadText(
  state: FlowNodeState,
  { total, completed, failed, running, queued, retrying, awaitingChild }: SpreadCounts,
): string {
  const parts = [
    state === "completed" ? `completed, ${pluralize(total, "item", "items")}` : `${completed + failed} of ${total}`,
  ];
  if (failed > 0) parts.push(`${failed} failed`);
  if (running > 0) parts.push(`${running} running`);
  if (queued > 0) parts.push(`${queued} queued`);
  if (retrying > 0) parts.push(`${retrying} retrying`);
  if (awaitingChild > 0) parts.push(`${awaitingChild} waiting for a child`);
  return parts.join(", ");
}
