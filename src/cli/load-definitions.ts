// Load definitions: imports a user module and collects its exported workflows, graphs, flows and tasks.

import { existsSync } from "node:fs";
import { relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { RepriseError } from "../base/index.ts";
import type { ServerOptions } from "../server/index.ts";
import type { EngineOptions, Evaluation } from "../engine/index.ts";
import { flowBody, isFlow } from "../flow/index.ts";
import { isGraph } from "../graph/index.ts";
import { isTask, type AnyTask, type Definition } from "../kernel/index.ts";
import { isWorkflow } from "../workflow/index.ts";
import { isPackageFile } from "./package-files.ts";

export type Loaded = readonly (Definition | AnyTask)[];

export async function loadDefinitions(file: string): Promise<Loaded> {
  const path = resolve(file);
  if (!existsSync(path)) throw new RepriseError("USAGE", `There is no file ${path}. Check the path.`);
  const exports = Object.values(await load(path));
  const found = new Set(exports.filter(isDefinition));
  for (const one of found) if (isFlow(one)) flowBody(one);
  if (found.size > 0) return [...found];
  const foreign = exports.some(looksLikeDefinition);
  throw new RepriseError(
    "UNKNOWN_DEFINITION",
    foreign
      ? `The workflows in ${path} were created by another copy of the reprise package. Run the reprise command that is installed with the file: npx reprise.`
      : `${path} exports no workflow, graph, flow or task. Export at least one.`,
  );
}

/** What a module exports for `reprise eval`: evaluations, by the name of the export. */
export async function loadEvaluations(file: string): Promise<ReadonlyMap<string, Evaluation>> {
  const { isEvaluation } = await import("../engine/index.ts");
  return new Map(
    Object.entries(await load(resolve(file))).flatMap(([name, value]) => (isEvaluation(value) ? [[name, value]] : [])),
  );
}

function isDefinition(value: unknown): value is Definition | AnyTask {
  return isWorkflow(value) || isGraph(value) || isFlow(value) || isTask(value);
}

/**
 * What a module can export besides definitions (`outbox`, the handlers of `ctx.send`, and `webhooks`), and the name of the code in the
 * environment.
 */
export async function loadEngineOptions(
  file: string,
): Promise<Pick<EngineOptions<Definition>, "code" | "outbox" | "webhooks">> {
  const { outbox, webhooks } = await load(resolve(file));
  const { checkCode } = await import("../engine/index.ts");
  const code = checkCode(process.env["REPRISE_CODE"] || undefined, "REPRISE_CODE");
  return {
    ...(code !== undefined && { code }),
    ...(typeof outbox === "object" &&
      outbox !== null && { outbox: outbox as NonNullable<EngineOptions<Definition>["outbox"]> }),
    ...(Array.isArray(webhooks) && { webhooks: webhooks as NonNullable<EngineOptions<Definition>["webhooks"]> }),
  };
}

/** What a module can export for a server: `hooks`, the webhooks that it takes, `extensions`; and what its client writes. */
export async function loadServerOptions(
  file: string,
): Promise<Pick<ServerOptions, "extensions" | "hooks"> & Pick<EngineOptions<Definition>, "webhooks">> {
  const { extensions, hooks, webhooks } = await load(resolve(file));
  return {
    ...(Array.isArray(extensions) && { extensions: extensions as NonNullable<ServerOptions["extensions"]> }),
    ...(typeof hooks === "object" && hooks !== null && { hooks: hooks as NonNullable<ServerOptions["hooks"]> }),
    ...(Array.isArray(webhooks) && { webhooks: webhooks as NonNullable<EngineOptions<Definition>["webhooks"]> }),
  };
}

async function load(path: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (cause) {
    const { name = "Error", message = String(cause), stack = "" } = cause instanceof Error ? cause : {};
    throw new RepriseError("USAGE", `${path} cannot be loaded: ${name}: ${message}${placeIn(stack)}`, { cause });
  }
}

/** The user's line at the top of a stack: ` (order.ts:12)`. */
function placeIn(stack: string): string {
  const [, url, line] = /(file:\/\/[^\s()]+?):(\d+)/.exec(stack) ?? [];
  if (url === undefined || isPackageFile(fileURLToPath(url))) return "";
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

/** Checks the name before the store is opened. */
export function checkWorkflow(definitions: Loaded, name: string, file: string): void {
  const names = definitions.filter((one) => !isTask(one)).map((definition) => definition.name);
  if (names.includes(name)) return;
  const exported = names.length === 0 ? "It exports only tasks" : `It exports: ${names.join(", ")}`;
  throw new RepriseError(
    "UNKNOWN_DEFINITION",
    `${file} exports no workflow, graph or flow named ${name}. ${exported}.`,
  );
}
