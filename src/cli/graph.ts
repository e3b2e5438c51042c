// reprise graph: draws the graphs and flows of a file; with --run, marks what a run did.

import { writeFileSync } from "node:fs";
import { RepriseError } from "../base/index.ts";
import { describeFlow, flowBody, isFlow, type FlowBody, type FlowDescription } from "../flow/index.ts";
import { describeGraph, isGraph, type GraphDescription } from "../graph/index.ts";
import {
  decodeData,
  nodeItemOf,
  type Entry,
  type FrontierItemData,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { dotOf } from "./dot.ts";
import { flowDiagramOf, flowTraceOf } from "./flow-diagram.ts";
import { readFlowRun } from "../explain/index.ts";
import { flowNodesJson } from "./flow-view.ts";
import type { GlobalOptions } from "./global-options.ts";
import { eachEntry, readGraphRun, tallyOf, type GraphRun } from "../explain/index.ts";
import { loadDefinitions, type Loaded } from "./load-definitions.ts";
import { mermaidOf } from "./mermaid.ts";
import { shellWord } from "./next-command.ts";
import { getRun, withStoreToRead } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paintError, print, remark } from "./output.ts";
import { graphDiagramOf, type Diagram, type GraphTrace } from "./diagram.ts";
import { redactedStore } from "./redacted-store.ts";
import { jsonText, plain } from "./text.ts";

export const FORMATS = ["mermaid", "dot", "json"] as const;

export interface GraphOptions extends GlobalOptions {
  readonly format?: (typeof FORMATS)[number];
  readonly out?: string;
  readonly run?: string;
  readonly generation?: number;
}

type Drawable =
  | { readonly kind: "graph"; readonly described: GraphDescription }
  | { readonly kind: "flow"; readonly described: FlowDescription; readonly body: FlowBody };

export async function graph(file: string, name: string | undefined, options: GraphOptions): Promise<number> {
  const format = formatOf(options);
  if (options.run === undefined && options.generation !== undefined)
    throw new RepriseError("USAGE", "--generation needs --run <id>.");
  const drawables = drawablesIn(await loadDefinitions(file), file);
  if (options.run === undefined) {
    const chosen = name === undefined ? drawables : [getDrawable(drawables, name, file)];
    const text =
      format === "json"
        ? `${jsonText({ ...jsonOf(chosen), run: null })}\n`
        : renderDiagrams(format, chosen.map(diagramOf));
    return writeOutput(text, options);
  }
  const id = options.run;
  return withStoreToRead(options.store, async (store) => {
    const record = await getRun(store, id, options.generation);
    const drawn = drawableOfRun(drawables, record, name, file);
    const { diagram, json } = await traceRun(store, record, drawn);
    if (format !== "json") return writeOutput(renderDiagrams(format, [diagram]), options);
    return writeOutput(`${jsonText({ ...jsonOf([drawn]), run: json })}\n`, options);
  });
}

function formatOf({ format, json }: GraphOptions): (typeof FORMATS)[number] {
  if (!json) return format ?? "mermaid";
  if (format === undefined || format === "json") return "json";
  throw new RepriseError("USAGE", `--json cannot be combined with --format ${format}. Remove one of them.`);
}

function renderDiagrams(format: "mermaid" | "dot", diagrams: readonly Diagram[]): string {
  return format === "dot" ? dotOf(diagrams) : mermaidOf(diagrams);
}

function diagramOf(drawn: Drawable, place: number): Diagram {
  return drawn.kind === "graph" ? graphDiagramOf(drawn.described, place) : flowDiagramOf(drawn.described, place);
}

function jsonOf(all: readonly Drawable[]): { readonly graphs: object; readonly flows: object } {
  const of = (kind: Drawable["kind"]): object => all.flatMap((one) => (one.kind === kind ? [one.described] : []));
  return { graphs: of("graph"), flows: of("flow") };
}

async function traceRun(
  store: Store,
  record: RunRecord,
  drawn: Drawable,
): Promise<{ readonly diagram: Diagram; readonly json: object }> {
  if (drawn.kind === "graph") {
    const trace = await traceOf(store, record, drawn.described);
    return { diagram: graphDiagramOf(drawn.described, 0, trace), json: traceJson(record, trace) };
  }
  const flow = await readFlowRun(redactedStore(store), record, Number.MAX_SAFE_INTEGER);
  const { id, status } = flow.record;
  const diagram = flowDiagramOf(drawn.described, 0, flowTraceOf(flow, drawn.body));
  return { diagram, json: { id, status, nodes: flowNodesJson(flow) } };
}

/** The latest version of each definition. */
function drawablesIn(definitions: Loaded, file: string): readonly Drawable[] {
  const found = new Map<string, Drawable>();
  for (const definition of definitions) {
    const drawn = drawableOf(definition);
    if (drawn === undefined) continue;
    const { name, version } = drawn.described;
    if ((found.get(name)?.described.version ?? 0) < version) found.set(name, drawn);
  }
  if (found.size > 0) return [...found.values()];
  throw new RepriseError("UNKNOWN_DEFINITION", `${file} exports no graph or flow. Export one, or name another file.`);
}

function drawableOf(definition: Loaded[number]): Drawable | undefined {
  if (isGraph(definition))
    return { kind: "graph", described: describeGraph(definition as Parameters<typeof describeGraph>[0]) };
  if (!isFlow(definition)) return undefined;
  const described = describeFlow(definition as Parameters<typeof describeFlow>[0]);
  return { kind: "flow", described, body: flowBody(definition) };
}

function getDrawable(all: readonly Drawable[], name: string, file: string): Drawable {
  const found = all.find(({ described }) => described.name === name);
  if (found !== undefined) return found;
  const names = all.map(({ described }) => plain(described.name)).join(", ");
  throw new RepriseError("UNKNOWN_DEFINITION", `${file} exports no graph or flow named ${name}. It exports: ${names}.`);
}

function drawableOfRun(
  all: readonly Drawable[],
  { id, kind, definition, version }: RunRecord,
  name: string | undefined,
  file: string,
): Drawable {
  if (kind === "workflow")
    throw new RepriseError(
      "USAGE",
      `Run ${id} is a run of the ${kind} ${definition}. Only runs of graphs and flows can be drawn; use \`reprise show ${shellWord(id)}\`.`,
    );
  if (name !== undefined && name !== definition)
    throw new RepriseError(
      "USAGE",
      `Run ${id} is a run of the ${kind} ${definition}, not of ${name}. Remove the name from the command.`,
    );
  const drawn = getDrawable(
    all.filter((one) => one.kind === kind),
    definition,
    file,
  );
  if (drawn.described.version !== version)
    remark(`note: the run uses version ${version} of the ${kind}; the file has version ${drawn.described.version}`);
  return drawn;
}

/** Reads the whole journal page by page and keeps only counts. */
async function traceOf(store: Store, record: RunRecord, { nodes, edges }: GraphDescription): Promise<GraphTrace> {
  const done = new Map<string, number>();
  const known = new Set(nodes.map(({ name }) => name));
  const gotos = new Map<string, { from: string; to: string; count: number }>();
  const children = new Map<string, Set<string>>();
  const declared = (node: string): number => edges.filter(({ from }) => from === node).length;
  let frontier: readonly FrontierItemData[] = [];
  await eachEntry(store, record, 0, record.head, (entry) => {
    if (entry.type === "ChildWorkflowInitiated") noteChild(children, frontier, entry);
    if (entry.type !== "StepCommitted") return;
    // The commit of a step means that all items of the previous frontier have ended.
    for (const { node, count } of tallyOf(frontier)) done.set(node, (done.get(node) ?? 0) + count);
    ({ frontier } = decodeData("StepCommitted", entry.data));
    for (const { node, parent, edge } of frontier) {
      // rules.G1: goto targets are numbered after the edges.
      if (parent === "" || edge < declared(parent) || !known.has(parent) || !known.has(node)) continue;
      const key = JSON.stringify([parent, node]);
      gotos.set(key, { from: parent, to: node, count: (gotos.get(key)?.count ?? 0) + 1 });
    }
  });
  const current = await readGraphRun(store, record, { from: 0, to: -1 });
  return { ...traceWith(record, current), done, children, gotos: [...gotos.values()] };
}

/** The command contains the position of its item in the last committed frontier. */
function noteChild(
  children: Map<string, Set<string>>,
  frontier: readonly FrontierItemData[],
  { command, data }: Entry,
): void {
  const node = frontier[nodeItemOf(command)?.position ?? -1]?.node;
  const { childExecutionName: name } = decodeData("ChildWorkflowInitiated", data);
  if (node !== undefined) children.set(node, (children.get(node) ?? new Set()).add(name));
}

function traceWith(record: RunRecord, run: GraphRun): Omit<GraphTrace, "done" | "children" | "gotos"> {
  const { id, definition, status } = record;
  const open = run.current.filter(({ state }) => state !== "completed" && state !== "failed");
  return {
    title: `${definition}: ${id}, ${status}${run.last < 0 ? "" : ` after step ${run.last}`}`,
    now: new Map(tallyOf(open).map(({ node, count }) => [node, count])),
    failed: new Set(run.current.filter(({ state }) => state === "failed").map(({ node }) => node)),
    waiting: new Map(run.joins.map(({ node, arrived }) => [node, arrived])),
    hasEnded: status === "completed",
  };
}

function traceJson({ id, status }: RunRecord, trace: GraphTrace): object {
  const counts = (map: ReadonlyMap<string, number>): object[] => [...map].map(([node, count]) => ({ node, count }));
  return {
    id,
    status,
    done: counts(trace.done),
    now: counts(trace.now),
    failed: [...trace.failed],
    waiting: [...trace.waiting].map(([node, arrived]) => ({ node, arrived })),
    children: [...trace.children].map(([node, names]) => ({ node, names: [...names] })),
    gotos: trace.gotos,
  };
}

/** Refuses to overwrite a file. */
async function writeOutput(text: string, { out }: GraphOptions): Promise<number> {
  if (out === undefined) {
    await print(text.trimEnd());
    return EXIT.ok;
  }
  try {
    writeFileSync(out, text, { flag: "wx" });
  } catch (cause) {
    const { code } = cause as { code?: string };
    const why =
      code === "EEXIST" ? "already exists. Name another file, or overwrite it with > instead" : "cannot be written";
    throw new RepriseError("USAGE", `--out: ${out} ${why}.`, { cause });
  }
  remark(`${paintError("green", "wrote")} ${plain(out)}`);
  return EXIT.ok;
}
