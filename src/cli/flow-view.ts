// Flow view: texts and JSON of a flow's run: a row per node, then failures.

import { formatMs } from "../base/index.ts";
import { hasEnded, type RunRecord } from "../kernel/index.ts";
import { type FlowNodeState, type FlowRow, type FlowRun, type SpreadCounts } from "../explain/index.ts";
import { paint, type Paint } from "./output.ts";
import { isoOf, jsonOf } from "./run-format.ts";
import { Table, type Cell } from "./table.ts";
import { pluralize, plain, showValue } from "./text.ts";

/** The width of a value if the table is not clipped to a terminal. */
const VALUE_WIDTH = 100;

/** The counts of a spread are clipped after the values. */
const STATE_WIDTH = 42;

const STYLES: Readonly<Record<FlowNodeState, Parameters<Paint>[0]>> = {
  completed: "green",
  skipped: "dim",
  failed: "red",
  running: "cyan",
  queued: "cyan",
  retrying: "yellow",
  waiting: "dim",
  awaiting_child: "cyan",
  unfinished: "dim",
};

export function flowNodeLines({ record, rows }: FlowRun, limit: number): string[] {
  if (rows.length === 0) return [paint("dim", "no node has started yet")];
  const hasAttempts = rows.some(({ attempts }) => attempts > 1);
  const table = new Table([
    { title: "NODE", minWidth: 8 },
    { title: "KIND" },
    { title: "STATE", minWidth: STATE_WIDTH },
    ...(hasAttempts ? [{ title: "ATTEMPTS", right: true }] : []),
    { title: "TOOK", right: true },
    { title: "VALUE", minWidth: 8 },
  ]);
  const shown = rows.slice(-limit);
  const left = rows.length - shown.length;
  return [
    ...(left > 0
      ? [paint("dim", `… ${pluralize(left, "node", "nodes")} earlier; show with --limit ${rows.length}`)]
      : []),
    ...table.render(shown.map((row) => rowCells(row, record, hasAttempts))),
  ];
}

function rowCells(row: FlowRow, record: RunRecord, hasAttempts: boolean): Cell[] {
  const { node, kind, state, attempts, tookMs } = row;
  return [
    node,
    { text: kind === "node" ? "" : kind, paint: (text) => paint("dim", text) },
    { text: stateText(row, record), paint: (text) => paint(STYLES[state], text) },
    ...(hasAttempts ? [attempts > 1 ? String(attempts) : ""] : []),
    tookMs === undefined ? "" : formatMs(tookMs),
    valueText(row),
  ];
}

function valueText({ value, error, state }: FlowRow): string {
  if (value !== undefined) return showValue(value.value, VALUE_WIDTH);
  return state === "failed" && error !== undefined ? showValue(error, VALUE_WIDTH) : "";
}

export function stateText({ state, items, inputs, child, isCaught }: FlowRow, { status }: RunRecord): string {
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
function spreadText(
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

/** Failed nodes and items, also caught ones. `shownElsewhere`: the failure that the run error shows. */
export function failedLines({ rows }: FlowRun, limit: number, shownElsewhere?: string): string[] {
  const lines: string[] = [];
  for (const { node, state, items, attempts, error, isCaught } of rows.slice(-limit)) {
    if (items !== undefined) {
      for (const { item, attempts: itemAttempts, error: itemError } of items.failures)
        if (item !== shownElsewhere) lines.push(failedLine(item, itemAttempts, itemError));
      const more = items.failed - items.failures.length;
      if (more > 0) lines.push(paint("dim", `… and ${more} more of ${plain(node)}; list them with reprise journal`));
    } else if (state === "failed" && node !== shownElsewhere) lines.push(failedLine(node, attempts, error));
    else if (isCaught) lines.push(`${failedLine(node, attempts, error)} ${paint("dim", "(caught)")}`);
  }
  return lines.length === 0 ? [] : [paint("bold", "failed"), ...lines.map((line) => `  ${line}`)];
}

function failedLine(item: string, attempts: number, error: unknown): string {
  return `${paint("bold", plain(item))}, attempt ${attempts}: ${showValue(error)}`;
}

/** The open nodes, for `show --watch`. */
export function openNodeLines({ record, rows }: Omit<FlowRun, "events">): string[] {
  const open: readonly FlowNodeState[] = ["running", "queued", "retrying", "awaiting_child", "waiting"];
  return rows
    .filter(({ state }) => open.includes(state))
    .map((row) => `${plain(row.node)}: ${plain(stateText(row, record))}`);
}

export function flowJson(flow: FlowRun, limit: number): object {
  return { count: flow.rows.length, nodes: flowNodesJson(flow).slice(-limit) };
}

export function flowNodesJson({ rows }: FlowRun): readonly object[] {
  return rows.map(({ node, kind, state, attempts, tookMs, seq, value, error, child, dueAt, inputs, items }) => ({
    node,
    kind,
    state,
    attempts,
    tookMs: tookMs ?? null,
    seq: seq ?? null,
    value: value === undefined ? null : jsonOf(value.value),
    error: jsonOf(error),
    child: child ?? null,
    dueAt: isoOf(dueAt),
    inputs: inputs ?? null,
    items:
      items === undefined
        ? null
        : {
            ...items,
            failures: items.failures.map((failure) => ({ ...failure, error: jsonOf(failure.error) })),
          },
  }));
}
