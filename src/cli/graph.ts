// reprise graph: the graphs of a file as a picture; with --run, what a run of one of them did.

import { writeFileSync } from "node:fs";
import { decode, RepriseError } from "../base/index.ts";
import { describeGraph, isGraph, type GraphDescription } from "../graph/index.ts";
import { itemOfCommand, type Entry, type RunRecord, type Store } from "../kernel/index.ts";
import { dotOf } from "./dot.ts";
import type { GlobalOptions } from "./global-options.ts";
import { eachEntry, readGraphRun, tallyOf, type GraphRun, type StepData } from "./graph-run.ts";
import { loadDefinitions, type Loaded } from "./load-definitions.ts";
import { mermaidOf } from "./mermaid.ts";
import { getRun, reading } from "./open-store.ts";
import { EXIT, paint, print, remark } from "./output.ts";
import { pictureOf, type Trace } from "./picture.ts";
import { jsonText, plain } from "./text.ts";

export const FORMATS = ["mermaid", "dot", "json"] as const;

export interface GraphOptions extends GlobalOptions {
  readonly format?: (typeof FORMATS)[number];
  readonly out?: string;
  readonly run?: string;
  readonly generation?: number;
}

export async function graph(file: string, name: string | undefined, options: GraphOptions): Promise<number> {
  const format = formatOf(options);
  if (options.run === undefined && options.generation !== undefined)
    throw new RepriseError("USAGE", "--generation is that of a run: name it with --run.");
  const graphs = graphsIn(await loadDefinitions(file), file);
  if (options.run === undefined) {
    const chosen = name === undefined ? graphs : [getGraph(graphs, name, file)];
    const text = format === "json" ? `${jsonText({ graphs: chosen, run: null })}\n` : textOf(format, chosen);
    return write(text, options);
  }
  const id = options.run;
  return reading(options.store, async (store) => {
    const record = await getRun(store, id, options.generation);
    const described = graphOfRun(graphs, record, name, file);
    const trace = await traceOf(store, record, described);
    if (format !== "json") return write(textOf(format, [described], trace), options);
    return write(`${jsonText({ graphs: [described], run: traceJson(record, trace) })}\n`, options);
  });
}

function formatOf({ format, json }: GraphOptions): (typeof FORMATS)[number] {
  if (!json) return format ?? "mermaid";
  if (format === undefined || format === "json") return "json";
  throw new RepriseError("USAGE", `--json and --format ${format} contradict each other; leave out one.`);
}

function textOf(format: "mermaid" | "dot", graphs: readonly GraphDescription[], trace?: Trace): string {
  const pictures = graphs.map((one, place) => pictureOf(one, place, trace));
  return format === "dot" ? dotOf(pictures) : mermaidOf(pictures);
}

/** Of each name the newest version. */
function graphsIn(definitions: Loaded, file: string): readonly GraphDescription[] {
  const found = new Map<string, GraphDescription>();
  for (const definition of definitions) {
    if (!isGraph(definition)) continue;
    const described = describeGraph(definition as Parameters<typeof describeGraph>[0]);
    if ((found.get(described.name)?.version ?? 0) < described.version) found.set(described.name, described);
  }
  if (found.size > 0) return [...found.values()];
  throw new RepriseError("UNKNOWN_DEFINITION", `${file} exports no graph.`);
}

function getGraph(graphs: readonly GraphDescription[], name: string, file: string): GraphDescription {
  const found = graphs.find((one) => one.name === name);
  if (found !== undefined) return found;
  const names = graphs.map((one) => plain(one.name)).join(", ");
  throw new RepriseError("UNKNOWN_DEFINITION", `${file} exports no graph called ${name}; it has: ${names}.`);
}

function graphOfRun(
  graphs: readonly GraphDescription[],
  { id, kind, definition, version }: RunRecord,
  name: string | undefined,
  file: string,
): GraphDescription {
  if (kind !== "graph")
    throw new RepriseError("USAGE", `Run ${id} is of the ${kind} ${definition}; only runs of graphs can be drawn.`);
  if (name !== undefined && name !== definition)
    throw new RepriseError("USAGE", `Run ${id} is of the graph ${definition}, not of ${name}. Leave out the name.`);
  const described = getGraph(graphs, definition, file);
  if (described.version !== version)
    remark(`The run has version ${version} of the graph, the file version ${described.version}.`);
  return described;
}

/** The whole journal is read, page by page; only counts are kept. */
async function traceOf(store: Store, record: RunRecord, { nodes, edges }: GraphDescription): Promise<Trace> {
  const done = new Map<string, number>();
  const known = new Set(nodes.map(({ name }) => name));
  const gotos = new Map<string, { from: string; to: string; count: number }>();
  const children = new Map<string, Set<string>>();
  const declared = (node: string): number => edges.filter(({ from }) => from === node).length;
  let frontier: StepData["frontier"] = [];
  await eachEntry(store, record, 0, record.head, (entry) => {
    if (entry.type === "ChildWorkflowInitiated") noteChild(children, frontier, entry);
    if (entry.type !== "StepCommitted") return;
    // A step is committed when all items of the frontier before it have ended.
    for (const { node, count } of tallyOf(frontier)) done.set(node, (done.get(node) ?? 0) + count);
    ({ frontier } = decode(entry.data) as StepData);
    for (const { node, parent, edge } of frontier) {
      // G1: targets of goto are counted after those of the edges.
      if (parent === "" || edge < declared(parent) || !known.has(parent) || !known.has(node)) continue;
      const key = JSON.stringify([parent, node]);
      gotos.set(key, { from: parent, to: node, count: (gotos.get(key)?.count ?? 0) + 1 });
    }
  });
  const standing = await readGraphRun(store, record, { from: 0, to: -1 });
  return { ...traceWith(record, standing), done, children, gotos: [...gotos.values()] };
}

/** Its command names the item whose code asked for it: an item of the frontier that was committed last. */
function noteChild(children: Map<string, Set<string>>, frontier: StepData["frontier"], { command, data }: Entry): void {
  const node = frontier[itemOfCommand(command)?.position ?? -1]?.node;
  const { childExecutionName: name } = decode(data) as { childExecutionName?: string };
  if (node !== undefined && name !== undefined) children.set(node, (children.get(node) ?? new Set()).add(name));
}

function traceWith(record: RunRecord, standing: GraphRun): Omit<Trace, "done" | "children" | "gotos"> {
  const { id, definition, status } = record;
  const open = standing.now.filter(({ state }) => state !== "completed" && state !== "failed");
  return {
    title: `${definition}: ${id}, ${status}${standing.last < 0 ? "" : ` after step ${standing.last}`}`,
    now: new Map(tallyOf(open).map(({ node, count }) => [node, count])),
    failed: new Set(standing.now.filter(({ state }) => state === "failed").map(({ node }) => node)),
    waiting: new Map(standing.joins.map(({ node, arrived }) => [node, arrived])),
    hasEnded: status === "completed",
  };
}

function traceJson({ id, status }: RunRecord, trace: Trace): object {
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

/** Nothing that is there is overwritten. */
async function write(text: string, { out }: GraphOptions): Promise<number> {
  if (out === undefined) {
    await print(text.trimEnd());
    return EXIT.ok;
  }
  try {
    writeFileSync(out, text, { flag: "wx" });
  } catch (cause) {
    const { code } = cause as { code?: string };
    const why =
      code === "EEXIST" ? "is there already; name another file, or write over it with >" : "cannot be written";
    throw new RepriseError("USAGE", `--out: ${out} ${why}.`, { cause });
  }
  remark(`${paint("green", "written")} to ${plain(out)}`);
  return EXIT.ok;
}
