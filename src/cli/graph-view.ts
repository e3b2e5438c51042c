// Graph view: texts and JSON of a graph's run: a row per step, then the nodes of the current step.

import { formatMs } from "../base/index.ts";
import { hasEnded, type RunRecord } from "../kernel/index.ts";
import {
  tallyOf,
  type GraphRun,
  type GraphStep,
  type CurrentNode,
  type GraphNodeState,
  type StepRange,
} from "../explain/index.ts";
import { bytesOf, changedText, nodesText, placeText } from "../explain/index.ts";
import { paint, type Paint } from "./output.ts";
import { isoOf, jsonOf } from "./run-format.ts";
import { Table, type Cell } from "./table.ts";
import { pluralize, plain, showValue } from "./text.ts";

/** Nodes of a step that get a line each; the others are counted. */
const MAX_NODES = 20;
const KEY_SHOWN = 8;

export function stepTable(): Table {
  return new Table([
    { title: "STEP", right: true },
    { title: "TOOK", right: true },
    { title: "NODES", minWidth: 12 },
    { title: "CHANGED", minWidth: 10 },
    { title: "BYTES", right: true },
    { title: "LABEL", minWidth: 5 },
    { title: "KEY" },
  ]);
}

function stepCells({ step, tookMs, nodes, changed, label, key }: GraphStep, forked: GraphRun["forked"]): Cell[] {
  const dim = (content: string): Cell => ({ text: content, paint: (text) => paint("dim", text) });
  const origin = forked?.step === step ? dim(`fork of ${forked.run}`) : step === 0 ? dim("input") : undefined;
  return [
    String(step),
    tookMs === undefined ? "" : formatMs(tookMs),
    origin ?? nodesText(nodes),
    changedText(changed),
    String(bytesOf(changed)),
    label ?? "",
    dim(key.replace(/^sha256:/, "").slice(0, KEY_SHOWN)),
  ];
}

export function stepLines({ steps, last, forked }: GraphRun, { from }: StepRange, table = stepTable()): string[] {
  if (last < 0) return [paint("dim", "no step has been committed")];
  const [first] = steps;
  const final = steps.at(-1);
  if (first === undefined || final === undefined)
    return [paint("dim", `there is no step ${from}; the last committed step is ${last}`)];
  const begin = forked?.step ?? 0;
  const note = (count: number, where: string, range: string): string[] =>
    count <= 0 ? [] : [paint("dim", `… ${pluralize(count, "step", "steps")} ${where}; show with --steps ${range}`)];
  return [
    ...(first.step === forked?.step ? [] : note(first.step - begin, "earlier", `${begin}..${first.step - 1}`)),
    ...table.render(steps.map((step) => stepCells(step, forked))),
    ...note(last - final.step, "later", `${final.step + 1}..${last}`),
  ];
}

/** The nodes of the current step by state, and the errors of those that failed. `explain` says what the others wait for. */
export function currentStepLines(record: RunRecord, graph: GraphRun, painted: Paint = paint): string[] {
  const { last, current } = graph;
  const hasOwnLines = (node: CurrentNode): boolean => node.state === "failed" && !wasStopped(node);
  const listed = current.filter(hasOwnLines);
  const lines = listed.slice(0, MAX_NODES).map((node) => failedNodeLine(node, painted));
  const counted = current.filter((node) => !hasOwnLines(node)).concat(listed.slice(MAX_NODES));
  const stateOf = (node: CurrentNode): string => (wasStopped(node) ? "stopped" : stateText(node.state, record));
  for (const [state, nodes] of Map.groupBy(counted, stateOf))
    lines.push(`${painted("dim", `${state}:`)} ${nodesText(tallyOf(nodes))}`);
  return lines.length === 0 ? [] : [painted("bold", `step ${last + 1}`), ...lines.map((line) => `  ${line}`)];
}

/** The engine stopped it because another node of its step failed. */
function wasStopped({ error }: CurrentNode): boolean {
  return (error as { code?: unknown } | undefined)?.code === "NODE_STOPPED";
}

function stateText(state: GraphNodeState, { status }: RunRecord): string {
  switch (state) {
    case "pending":
      if (hasEnded(status)) return "unfinished";
      return status === "running" ? "running or pending" : "pending";
    case "running":
      return hasEnded(status) ? "unfinished" : "running";
    case "waiting":
    case "retrying":
    case "completed":
    case "failed":
      return state;
  }
}

function failedNodeLine({ node, command, attempt, error }: CurrentNode, painted: Paint): string {
  const name = `${painted("bold", plain(node))} ${painted("dim", placeText(command))}`;
  return `${name} ${painted("red", "failed")}${attempt > 1 ? `, attempt ${attempt}` : ""}: ${showValue(error)}`;
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
    nodes: graph.current.map(({ command, node, state, attempt, error, dueAt, waits }) => ({
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
