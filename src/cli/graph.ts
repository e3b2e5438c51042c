// reprise graph: the graphs and flows of a file as a picture; with --run, what a run of one of them did.

import { writeFileSync } from "node:fs";
import { decode, RepriseError } from "../base/index.ts";
import { describeFlow, flowBody, isFlow, type FlowBody, type FlowDescription } from "../flow/index.ts";
import { describeGraph, isGraph, type GraphDescription } from "../graph/index.ts";
import { itemOfCommand, type Entry, type RunRecord, type Store } from "../kernel/index.ts";
import { dotOf } from "./dot.ts";
import { flowPictureOf, flowTraceOf } from "./flow-picture.ts";
import { readFlowRun } from "./flow-run.ts";
import { flowNodesJson } from "./flow-view.ts";
import type { GlobalOptions } from "./global-options.ts";
import { eachEntry, readGraphRun, tallyOf, type GraphRun, type StepData } from "./graph-run.ts";
import { loadDefinitions, type Loaded } from "./load-definitions.ts";
import { mermaidOf } from "./mermaid.ts";
import { getRun, reading } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, print, remark } from "./output.ts";
import { pictureOf, type Picture, type Trace } from "./picture.ts";
import { shownStore } from "./shown-store.ts";
import { jsonText, plain } from "./text.ts";

export const FORMATS = ["mermaid", "dot", "json"] as const;

export interface GraphOptions extends GlobalOptions {
  readonly format?: (typeof FORMATS)[number];
  readonly out?: string;
  readonly run?: string;
  readonly generation?: number;
}

/** What can be drawn. */
type Drawn =
  | { readonly kind: "graph"; readonly described: GraphDescription }
  | { readonly kind: "flow"; readonly described: FlowDescription; readonly body: FlowBody };

export async function graph(file: string, name: string | undefined, options: GraphOptions): Promise<number> {
  const format = formatOf(options);
  if (options.run === undefined && options.generation !== undefined)
    throw new RepriseError("USAGE", "--generation is that of a run: name it with --run.");
  const there = drawnIn(await loadDefinitions(file), file);
  if (options.run === undefined) {
    const chosen = name === undefined ? there : [getDrawn(there, name, file)];
    const text =
      format === "json" ? `${jsonText({ ...jsonOf(chosen), run: null })}\n` : textOf(format, chosen.map(plainPicture));
    return write(text, options);
  }
  const id = options.run;
  return reading(options.store, async (store) => {
    const record = await getRun(store, id, options.generation);
    const drawn = drawnOfRun(there, record, name, file);
    const { picture, json } = await traced(store, record, drawn);
    if (format !== "json") return write(textOf(format, [picture]), options);
    return write(`${jsonText({ ...jsonOf([drawn]), run: json })}\n`, options);
  });
}

function formatOf({ format, json }: GraphOptions): (typeof FORMATS)[number] {
  if (!json) return format ?? "mermaid";
  if (format === undefined || format === "json") return "json";
  throw new RepriseError("USAGE", `--json and --format ${format} contradict each other; leave out one.`);
}

function textOf(format: "mermaid" | "dot", pictures: readonly Picture[]): string {
  return format === "dot" ? dotOf(pictures) : mermaidOf(pictures);
}

function plainPicture(drawn: Drawn, place: number): Picture {
  return drawn.kind === "graph" ? pictureOf(drawn.described, place) : flowPictureOf(drawn.described, place);
}

function jsonOf(all: readonly Drawn[]): { readonly graphs: object; readonly flows: object } {
  const of = (kind: Drawn["kind"]): object => all.flatMap((one) => (one.kind === kind ? [one.described] : []));
  return { graphs: of("graph"), flows: of("flow") };
}

async function traced(
  store: Store,
  record: RunRecord,
  drawn: Drawn,
): Promise<{ readonly picture: Picture; readonly json: object }> {
  if (drawn.kind === "graph") {
    const trace = await traceOf(store, record, drawn.described);
    return { picture: pictureOf(drawn.described, 0, trace), json: traceJson(record, trace) };
  }
  const flow = await readFlowRun(shownStore(store), record, Number.MAX_SAFE_INTEGER);
  const { id, status } = flow.record;
  const picture = flowPictureOf(drawn.described, 0, flowTraceOf(flow, drawn.body));
  return { picture, json: { id, status, nodes: flowNodesJson(flow) } };
}

/** Of each name the newest version. */
function drawnIn(definitions: Loaded, file: string): readonly Drawn[] {
  const found = new Map<string, Drawn>();
  for (const definition of definitions) {
    const drawn = drawnOf(definition);
    if (drawn === undefined) continue;
    const { name, version } = drawn.described;
    if ((found.get(name)?.described.version ?? 0) < version) found.set(name, drawn);
  }
  if (found.size > 0) return [...found.values()];
  throw new RepriseError("UNKNOWN_DEFINITION", `${file} exports no graph and no flow.`);
}

function drawnOf(definition: Loaded[number]): Drawn | undefined {
  if (isGraph(definition))
    return { kind: "graph", described: describeGraph(definition as Parameters<typeof describeGraph>[0]) };
  if (!isFlow(definition)) return undefined;
  const described = describeFlow(definition as Parameters<typeof describeFlow>[0]);
  return { kind: "flow", described, body: flowBody(definition) };
}

function getDrawn(all: readonly Drawn[], name: string, file: string): Drawn {
  const found = all.find(({ described }) => described.name === name);
  if (found !== undefined) return found;
  const names = all.map(({ described }) => plain(described.name)).join(", ");
  throw new RepriseError("UNKNOWN_DEFINITION", `${file} exports no graph or flow called ${name}; it has: ${names}.`);
}

function drawnOfRun(
  all: readonly Drawn[],
  { id, kind, definition, version }: RunRecord,
  name: string | undefined,
  file: string,
): Drawn {
  if (kind === "workflow")
    throw new RepriseError(
      "USAGE",
      `Run ${id} is of the ${kind} ${definition}; only runs of graphs and flows can be drawn.`,
    );
  if (name !== undefined && name !== definition)
    throw new RepriseError("USAGE", `Run ${id} is of the ${kind} ${definition}, not of ${name}. Leave out the name.`);
  const drawn = getDrawn(
    all.filter((one) => one.kind === kind),
    definition,
    file,
  );
  if (drawn.described.version !== version)
    remark(`The run has version ${version} of the ${kind}, the file version ${drawn.described.version}.`);
  return drawn;
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
