// A file of the user's: every export that is a workflow, a graph, a flow or a task is registered.

import { existsSync } from "node:fs";
import { relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { RepriseError } from "../base/index.ts";
import type { EngineOptions } from "../engine/index.ts";
import { flowBody, isFlow } from "../flow/index.ts";
import { isGraph } from "../graph/index.ts";
import { isTask, type AnyTask, type Definition } from "../kernel/index.ts";
import { isWorkflow } from "../workflow/index.ts";
import { isOwnFile } from "./own-files.ts";

export type Loaded = readonly (Definition | AnyTask)[];

export async function loadDefinitions(file: string): Promise<Loaded> {
  const path = resolve(file);
  if (!existsSync(path)) throw new RepriseError("USAGE", `There is no file ${path}.`);
  const exports = Object.values(await load(path));
  const found = new Set(exports.filter(isDefinition));
  for (const one of found) if (isFlow(one)) flowBody(one);
  if (found.size > 0) return [...found];
  const foreign = exports.some(looksLikeDefinition);
  throw new RepriseError(
    "UNKNOWN_DEFINITION",
    foreign
      ? `The workflows in ${path} were made by another copy of reprise than this command. Run the reprise command that is installed beside the file.`
      : `${path} exports neither workflows nor graphs, flows or tasks.`,
  );
}

function isDefinition(value: unknown): value is Definition | AnyTask {
  return isWorkflow(value) || isGraph(value) || isFlow(value) || isTask(value);
}

/** What else a module may export for the engine that works with it: `outbox`, the handlers of `ctx.send`. */
export async function loadEngineOptions(file: string): Promise<Pick<EngineOptions<Definition>, "outbox">> {
  const { outbox } = await load(resolve(file));
  return typeof outbox === "object" && outbox !== null
    ? { outbox: outbox as NonNullable<EngineOptions<Definition>["outbox"]> }
    : {};
}

async function load(path: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (cause) {
    const { name = "Error", message = String(cause), stack = "" } = cause instanceof Error ? cause : {};
    throw new RepriseError("USAGE", `${path} cannot be loaded: ${name}: ${message}${placeIn(stack)}`, { cause });
  }
}

/** The line of the user's that a stack begins with: ` (order.ts:12)`. */
function placeIn(stack: string): string {
  const [, url, line] = /(file:\/\/[^\s()]+?):(\d+)/.exec(stack) ?? [];
  if (url === undefined || isOwnFile(fileURLToPath(url))) return "";
  return ` (${relative(process.cwd(), fileURLToPath(url))}:${line})`;
}

function looksLikeDefinition(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    "kind" in value &&
    ["workflow", "graph", "flow", "task"].includes(String(value.kind))
  );
}

/** Before the store is opened, and in words of the command line. */
export function checkWorkflow(definitions: Loaded, name: string, file: string): void {
  const names = definitions.filter((one) => !isTask(one)).map((definition) => definition.name);
  if (names.includes(name)) return;
  const there = names.length === 0 ? "it exports tasks only" : `it has: ${names.join(", ")}`;
  throw new RepriseError("UNKNOWN_DEFINITION", `${file} exports no workflow, graph or flow called ${name}; ${there}.`);
}
