// How a flow's run is described to people: a row per node, then what failed, then what it waits for.

import { formatMs } from "../base/index.ts";
import { hasEnded, type RunRecord } from "../kernel/index.ts";
import { type FlowNodeState, type FlowRow, type FlowRun, type SpreadCounts } from "./flow-run.ts";
import { itemText, turnLines, type Holding } from "./holding.ts";
import { paint, type Paint } from "./output.ts";
import { isoOf, jsonOf } from "./shown-run.ts";
import { Table, type Cell } from "./table.ts";
import { countOf, plain, showValue } from "./text.ts";

/** Where nothing is cut to the width of a terminal. */
const VALUE_WIDTH = 100;

/** The counts of a spread have room, before values have. */
const STATE_WIDTH = 42;

const STYLES: Readonly<Record<FlowNodeState, Parameters<Paint>[0]>> = {
  done: "green",
  skipped: "dim",
  failed: "red",
  "at work": "cyan",
  queued: "cyan",
  retries: "yellow",
  waiting: "dim",
  child: "cyan",
  left: "dim",
};

export function nodeLines({ record, rows }: FlowRun, limit: number): string[] {
  if (rows.length === 0) return [paint("dim", "no node has come to anything yet")];
  const hasAttempts = rows.some(({ attempts }) => attempts > 1);
  const table = new Table([
    { title: "NODE", least: 8 },
    { title: "KIND" },
    { title: "STATE", least: STATE_WIDTH },
    ...(hasAttempts ? [{ title: "ATTEMPTS", right: true }] : []),
    { title: "TOOK", right: true },
    { title: "VALUE", least: 8 },
  ]);
  const shown = rows.slice(-limit);
  const left = rows.length - shown.length;
  return [
    ...(left > 0 ? [paint("dim", `… ${countOf(left, "node", "nodes")} before: --limit ${rows.length}`)] : []),
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

export function stateText({ state, items, got, child, isCaught }: FlowRow, { status }: RunRecord): string {
  if (items !== undefined) return spreadText(state, items);
  switch (state) {
    case "done":
      return isCaught ? "done, caught" : "done";
    case "waiting":
      return `${hasEnded(status) ? "got" : "waiting"} ${got?.completed} of ${got?.required}`;
    case "child":
      return `waits for child ${child}`;
    case "retries":
      return "to be tried again";
    case "queued":
      return status === "paused" ? "queued, paused" : "queued";
    case "left":
      return "not run to its end";
    case "skipped":
    case "failed":
    case "at work":
      return state;
  }
}

/** `341 of 500, 2 failed, 8 at work, 42 queued` */
function spreadText(
  state: FlowNodeState,
  { total, done, failed, atWork, queued, retrying, children }: SpreadCounts,
): string {
  const isDone = state === "done";
  const parts = [isDone ? `done, ${countOf(total, "item", "items")}` : `${done + failed} of ${total}`];
  if (failed > 0) parts.push(`${failed} failed`);
  if (atWork > 0) parts.push(`${atWork} at work`);
  if (queued > 0) parts.push(`${queued} queued`);
  if (retrying > 0) parts.push(`${retrying} to be tried again`);
  if (children > 0) parts.push(`${children} with a child`);
  return parts.join(", ");
}

/** Nodes and items that failed, with attempt and error, also where that was caught or settled; `told` is told elsewhere. */
export function failedLines({ rows }: FlowRun, limit: number, told?: string): string[] {
  const lines: string[] = [];
  for (const { node, state, items, attempts, error, isCaught } of rows.slice(-limit)) {
    if (items !== undefined) {
      for (const { item, attempts: tries, error: why } of items.failures)
        if (item !== told) lines.push(failedLine(item, tries, why));
      const more = items.failed - items.failures.length;
      if (more > 0) lines.push(paint("dim", `… and ${more} more of ${plain(node)}; \`reprise journal\` has them all`));
    } else if (state === "failed" && node !== told) lines.push(failedLine(node, attempts, error));
    else if (isCaught) lines.push(`${failedLine(node, attempts, error)} ${paint("dim", "(caught)")}`);
  }
  return lines.length === 0 ? [] : [paint("bold", "failed"), ...lines.map((line) => `  ${line}`)];
}

function failedLine(item: string, attempts: number, error: unknown): string {
  return `${paint("bold", plain(item))}, attempt ${attempts}: ${showValue(error)}`;
}

/** What its nodes do now, for somebody who watches. */
export function standingLines({ record, rows }: Omit<FlowRun, "events">): string[] {
  const open: readonly FlowNodeState[] = ["at work", "queued", "retries", "child", "waiting"];
  return rows
    .filter(({ state }) => open.includes(state))
    .map((row) => `${plain(row.node)}: ${plain(stateText(row, record))}`);
}

/** When nodes are tried again, and why. */
function retryLines(rows: readonly FlowRow[], now: number): string[] {
  return rows.flatMap(({ node, state, attempts, dueAt, error }) => {
    if (state !== "retries" || dueAt === undefined) return [];
    const when = dueAt > now ? `in ${formatMs(dueAt - now)}` : "now";
    return [`attempt ${attempts} of ${plain(node)}, ${when}; ${showValue(error)}`];
  });
}

/** Who holds its nodes: a few of them. */
function heldLines(holding: Holding, now: number): string[] {
  const lines = holding.items
    .slice(0, MAX_HELD)
    .map(({ item }) => `node ${plain(item)}: ${itemText(holding, item, now)}`);
  const more = holding.items.length - lines.length;
  return more > 0 ? [...lines, `… and ${more} more that workers hold`] : lines;
}
const MAX_HELD = 6;

/** What it waits for besides its nodes, and who is at them, or that nobody is. */
export function flowWaits(record: RunRecord, rows: readonly FlowRow[], now: number, holding?: Holding): string[] {
  const { status, definition, version, arrivals, read } = record;
  const worker = `a worker that has the definition ${plain(definition)}, version ${version}`;
  const isAtWork = rows.some(({ state, items }) => state === "at work" || (items?.atWork ?? 0) > 0);
  const isQueued = rows.some(({ state, items }) => state === "queued" || (items?.queued ?? 0) > 0);
  switch (status) {
    case "queued":
      return [worker];
    case "paused":
      return ["somebody who resumes it"];
    case "running":
    case "waiting":
      return [
        ...(status === "running" && holding?.turn !== undefined ? turnLines(holding, now) : []),
        ...(arrivals > read ? [`${worker}, to take in ${countOf(arrivals - read, "message", "messages")}`] : []),
        ...(isQueued && !isAtWork && arrivals === read ? [`${worker}, to run what is queued`] : []),
        ...(holding === undefined ? [] : heldLines(holding, now)),
        ...(arrivals > read ? [] : retryLines(rows, now)),
      ];
    default:
      return [];
  }
}

export function flowJson(flow: FlowRun, limit: number): object {
  return { count: flow.rows.length, nodes: flowNodesJson(flow).slice(-limit) };
}

export function flowNodesJson({ rows }: FlowRun): readonly object[] {
  return rows.map(({ node, kind, state, attempts, tookMs, seq, value, error, child, dueAt, got, items }) => ({
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
    got: got ?? null,
    items:
      items === undefined
        ? null
        : {
            ...items,
            failures: items.failures.map(({ item, attempts: tries, error: why }) => ({
              item,
              attempts: tries,
              error: jsonOf(why),
            })),
          },
  }));
}
