// A file of the user's: every export that is a workflow or a task is registered.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { RepriseError } from "../base/index.ts";
import { isTask, type AnyTask, type Definition } from "../kernel/index.ts";
import { isWorkflow } from "../workflow/index.ts";

export type Loaded = readonly (Definition | AnyTask)[];

export async function loadDefinitions(file: string): Promise<Loaded> {
  const path = resolve(file);
  if (!existsSync(path)) throw new RepriseError("USAGE", `There is no file ${path}.`);
  const exports = Object.values(await load(path));
  const found = new Set(exports.filter((value): value is Definition | AnyTask => isWorkflow(value) || isTask(value)));
  if (found.size > 0) return [...found];
  const foreign = exports.some(looksLikeDefinition);
  throw new RepriseError(
    "UNKNOWN_DEFINITION",
    foreign
      ? `The workflows in ${path} were made by another copy of reprise than this command. Run the reprise command that is installed beside the file.`
      : `${path} exports neither workflows nor tasks.`,
  );
}

async function load(path: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (cause) {
    const { name = "Error", message = String(cause) } = cause instanceof Error ? cause : {};
    throw new RepriseError("USAGE", `${path} cannot be loaded: ${name}: ${message}`, { cause });
  }
}

function looksLikeDefinition(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    "kind" in value &&
    (value.kind === "workflow" || value.kind === "task")
  );
}
