// How a graph's run is described to people: a row per step, then what the nodes of the next one do.

import { formatMs } from "../base/index.ts";
import { hasEnded, type RunRecord } from "../kernel/index.ts";
import { tallyOf, type GraphRun, type GraphStep, type NodeNow, type NodeState, type StepRange } from "./graph-run.ts";
import { bytesOf, changedText, nodesText, placeText } from "./node-lines.ts";
import { paint, type Paint } from "./output.ts";
import { waitLine } from "./run-view.ts";
import { isoOf, jsonOf } from "./shown-run.ts";
import { Table, type Cell } from "./table.ts";
import { countOf, plain, showValue } from "./text.ts";

/** Nodes of a step that are told one by one; of more there is a count. */
const MAX_NODES = 20;
const KEY_SHOWN = 8;

export function stepTable(): Table {
  return new Table([
    { title: "STEP", right: true },
    { title: "TOOK", right: true },
    { title: "NODES", least: 12 },
    { title: "CHANGED", least: 10 },
    { title: "BYTES", right: true },
    { title: "LABEL", least: 5 },
    { title: "KEY" },
  ]);
}

function stepCells({ step, tookMs, nodes, changed, label, key }: GraphStep, forked: GraphRun["forked"]): Cell[] {
  const dim = (words: string): Cell => ({ text: words, paint: (text) => paint("dim", text) });
  const begun = forked?.step === step ? dim(`fork of ${forked.run}`) : step === 0 ? dim("input") : undefined;
  return [
    String(step),
    tookMs === undefined ? "" : formatMs(tookMs),
    begun ?? nodesText(nodes),
    changedText(changed),
    String(bytesOf(changed)),
    label ?? "",
    dim(key.replace(/^sha256:/, "").slice(0, KEY_SHOWN)),
  ];
}

export function stepLines({ steps, last, forked }: GraphRun, { from }: StepRange, table = stepTable()): string[] {
  if (last < 0) return [paint("dim", "no step is complete")];
  const [first] = steps;
  const final = steps.at(-1);
  if (first === undefined || final === undefined)
    return [paint("dim", `no step from ${from} on; the last one that is complete is ${last}`)];
  const begin = forked?.step ?? 0;
  const note = (count: number, where: string, range: string): string[] =>
    count <= 0 ? [] : [paint("dim", `… ${countOf(count, "step", "steps")} ${where}: --steps ${range}`)];
  return [
    ...(first.step === forked?.step ? [] : note(first.step - begin, "before", `${begin}..${first.step - 1}`)),
    ...table.render(steps.map((step) => stepCells(step, forked))),
    ...note(last - final.step, "after", `${final.step + 1}..${last}`),
  ];
}

/** The step that is not complete: its nodes and what they wait for, then joins that wait for more. */
export function nowLines(record: RunRecord, graph: GraphRun, at: number, painted: Paint = paint): string[] {
  const { last, now, joins } = graph;
  const isTold = (node: NodeNow): boolean =>
    node.state !== "completed" && node.state !== "open" && node.state !== "at work" && !wasStopped(node);
  const told = now.filter(isTold);
  const lines = told.slice(0, MAX_NODES).flatMap((node) => nodeLines(node, at, painted));
  const more = now.filter((node) => !isTold(node)).concat(told.slice(MAX_NODES));
  const stateOf = (node: NodeNow): string => (wasStopped(node) ? "told to stop" : stateText(node.state, record));
  for (const [state, nodes] of Map.groupBy(more, stateOf))
    lines.push(`${painted("dim", `${state}:`)} ${nodesText(tallyOf(nodes))}`);
  if (!hasEnded(record.status))
    for (const { node, arrived } of joins)
      lines.push(`${painted("bold", plain(node))} waits for others to join; has ${arrived.map(plain).join(", ")}`);
  return lines.length === 0 ? [] : [painted("bold", `step ${last + 1}`), ...lines.map((line) => `  ${line}`)];
}

/** It failed of nothing but another node of its step. */
function wasStopped({ error }: NodeNow): boolean {
  return (error as { code?: unknown } | undefined)?.code === "NODE_STOPPED";
}

function stateText(state: NodeState, { status }: RunRecord): string {
  switch (state) {
    case "open":
      if (hasEnded(status)) return "not run to their end";
      return status === "running" ? "at work, or to do" : "to do";
    case "at work":
      return hasEnded(status) ? "not run to their end" : "at work";
    case "waits":
      return "waiting";
    case "retries":
      return "to be tried again";
    case "completed":
    case "failed":
      return state;
  }
}

function nodeLines(node: NodeNow, at: number, painted: Paint): string[] {
  const name = `${painted("bold", plain(node.node))} ${painted("dim", placeText(node.command))}`;
  const attempt = node.attempt > 0 ? `, attempt ${node.attempt + 1}` : "";
  const [first = "something", ...others] = node.waits.map((step) => waitLine(step, at, painted));
  if (node.state === "waits")
    return [`${name} waits${attempt} for ${first}`, ...others.map((line) => `    and ${line}`)];
  if (node.state === "failed") return [`${name} ${painted("red", "failed")}${attempt}: ${showValue(node.error)}`];
  const ms = (node.dueAt?.getTime() ?? at) - at;
  return [`${name} is tried again ${ms > 0 ? `in ${formatMs(ms)}` : "now"}${attempt}; ${showValue(node.error)}`];
}

export function graphJson(graph: GraphRun): object {
  return {
    step: graph.last,
    steps: graph.steps.map((step) => ({
      ...step,
      at: isoOf(step.at),
      tookMs: step.tookMs ?? null,
      label: step.label ?? null,
      bytes: bytesOf(step.changed),
    })),
    nodes: graph.now.map(({ command, node, state, attempt, error, dueAt, waits }) => ({
      command,
      node,
      state,
      attempt,
      error: jsonOf(error),
      dueAt: isoOf(dueAt),
      waitsFor: waits.map((wait) => wait.command),
    })),
    joins: graph.joins,
    forked: graph.forked === undefined ? null : { run: graph.forked.run, step: graph.forked.step },
  };
}
