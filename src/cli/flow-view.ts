// Flow view: texts and JSON of a flow's run: a row per node, then failures.

import { formatMs } from "../base/index.ts";
import type { RunRecord } from "../kernel/index.ts";
import type { FlowNodeState, FlowRow, FlowRun } from "../explain/index.ts";
import { stateText } from "../picture/index.ts";
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

export function flowJson({ rows }: FlowRun, limit: number): object {
  return { count: rows.length, nodes: nodesJson(rows.slice(-limit)) };
}

function nodesJson(rows: FlowRun["rows"]): readonly object[] {
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
