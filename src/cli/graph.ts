// reprise graph: draws the graphs and flows of a file; with --run, marks what a run did.

import { writeFileSync } from "node:fs";
import { RepriseError } from "../base/index.ts";
import type { Picture } from "../contract/index.ts";
import { describeFlow, flowBody, isFlow, type FlowDescription } from "../flow/index.ts";
import { describeGraph, isGraph, type GraphDescription } from "../graph/index.ts";
import type { RunRecord } from "../kernel/index.ts";
import { pictureOfFlow, pictureOfGraph, readRunPicture, type Drawable as DrawableCode } from "../picture/index.ts";
import { diagramOf, type Diagram } from "./diagram.ts";
import { dotOf } from "./dot.ts";
import type { GlobalOptions } from "./global-options.ts";
import { loadDefinitions, type Loaded } from "./load-definitions.ts";
import { mermaidOf } from "./mermaid.ts";
import { shellWord } from "./next-command.ts";
import { getRun, withStoreToRead } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paintError, print, remark } from "./output.ts";
import { redactedStore } from "./redacted-store.ts";
import { jsonText, plain } from "./text.ts";

export const FORMATS = ["mermaid", "dot", "json"] as const;

export interface GraphOptions extends GlobalOptions {
  readonly format?: (typeof FORMATS)[number];
  readonly out?: string;
  readonly run?: string;
  readonly generation?: number;
}

interface Drawable {
  readonly described: GraphDescription | FlowDescription;
  readonly code: DrawableCode;
  readonly picture: Picture;
}

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
        : renderDiagrams(format, chosen.map(definitionDiagram));
    return writeOutput(text, options);
  }
  const id = options.run;
  return withStoreToRead(options.store, async (store) => {
    const record = await getRun(store, id, options.generation);
    const drawn = drawableOfRun(drawables, record, name, file);
    const run = await readRunPicture(redactedStore(store), record, drawn.code);
    if (format === "json") return writeOutput(`${jsonText({ ...jsonOf([drawn]), run })}\n`, options);
    const after = run.step === undefined ? "" : ` after step ${run.step}`;
    const title = `${run.definition}: ${run.id}, ${run.status}${after}`;
    return writeOutput(renderDiagrams(format, [diagramOf({ title, kind: run.kind, picture: run }, 0)]), options);
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

function definitionDiagram({ described, code, picture }: Drawable, place: number): Diagram {
  return diagramOf({ title: described.name, kind: code.kind, picture }, place);
}

function jsonOf(all: readonly Drawable[]): { readonly graphs: object; readonly flows: object } {
  const of = (kind: DrawableCode["kind"]): object =>
    all.flatMap(({ code, described }) => (code.kind === kind ? [described] : []));
  return { graphs: of("graph"), flows: of("flow") };
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
  if (isGraph(definition)) {
    const described = describeGraph(definition as Parameters<typeof describeGraph>[0]);
    return { described, code: { kind: "graph", described }, picture: pictureOfGraph(described) };
  }
  if (!isFlow(definition)) return undefined;
  const described = describeFlow(definition as Parameters<typeof describeFlow>[0]);
  return { described, code: { kind: "flow", body: flowBody(definition) }, picture: pictureOfFlow(described) };
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
    all.filter(({ code }) => code.kind === kind),
    definition,
    file,
  );
  if (drawn.described.version !== version)
    remark(`note: the run uses version ${version} of the ${kind}; the file has version ${drawn.described.version}`);
  return drawn;
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
