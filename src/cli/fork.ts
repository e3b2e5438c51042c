// reprise fork: starts a new run from a step of a graph or at a command of a workflow, without code; with --file the
// definition validates the patch and the answers. A flow is forked at a node, with its code.

import type { ForkAtOptions, ForkOptions } from "../engine/index.ts";
import { RepriseError } from "../base/index.ts";
import { stableCommandOf } from "../kernel/index.ts";
import { placeholderDefinition, withClient } from "./client.ts";
import { CommandError } from "./command-error.ts";
import type { GlobalOptions } from "./global-options.ts";
import { checkWorkflow, loadDefinitions } from "./load-definitions.ts";
import { getRun, withStore } from "./open-store.ts";
import { shellWord } from "./next-command.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, paintError, print, printJson, remark } from "./output.ts";
import { readInput } from "./read-input.ts";
import { plain } from "./text.ts";

export interface ForkCommandOptions extends GlobalOptions {
  readonly step?: number;
  readonly label?: string;
  readonly at?: string;
  readonly node?: string;
  readonly call?: string;
  readonly answer?: readonly string[];
  readonly effects?: "live" | "recorded";
  readonly model?: readonly string[];
  readonly generation?: number;
  readonly patch?: string;
  readonly patchFile?: string;
  readonly id?: string;
  readonly tag?: readonly string[];
  readonly file?: string;
}

export async function fork(id: string, options: ForkCommandOptions): Promise<number> {
  const { step, label, node, effects, generation, file } = options;
  const call = options.call === undefined ? undefined : callOf(options.call);
  const at = options.at === undefined ? undefined : commandOf(options.at);
  const answers = await readAnswers(options.answer);
  const models = readModels(options.model);
  const patch = await readInput(options.patch, options.patchFile, "patch");
  return withStore(options.store, async (store) => {
    const { definition, version, kind } = await getRun(store, id);
    const isNamed = node !== undefined || call !== undefined;
    const isPlaced = isNamed || (answers !== undefined && step === undefined && label === undefined);
    if (kind === "graph" && !isPlaced && (step === undefined) === (label === undefined))
      throw new CommandError(
        "USAGE",
        "fork of a graph needs either --step or --label, or --node or --call.",
        `reprise checkpoints ${shellWord(id)}`,
      );
    if (kind === "workflow" && at === undefined && !isPlaced)
      throw new CommandError(
        "USAGE",
        "fork of a workflow needs --at, --call or --answer.",
        `reprise journal ${shellWord(id)}`,
      );
    if (kind === "flow" && file === undefined)
      throw new CommandError(
        "USAGE",
        "fork of a flow needs --file: the code says what follows from a node.",
        `reprise fork ${shellWord(id)} --at <node> --file <file>`,
      );
    const definitions =
      file === undefined ? [placeholderDefinition(definition, {}, version)] : await loadDefinitions(file);
    if (file !== undefined) checkWorkflow(definitions, definition, file);
    return withClient(store, definitions, async (engine) => {
      const forked = await engine.get(definition, id).fork({
        ...(step !== undefined && { step }),
        ...(label !== undefined && { label }),
        ...(at !== undefined && { at }),
        ...(node !== undefined && { node }),
        ...(call !== undefined && { call }),
        ...(answers !== undefined && { answers }),
        ...(effects !== undefined && { effects }),
        ...(models !== undefined && { models }),
        ...(generation !== undefined && { generation }),
        ...(patch !== undefined && { patch }),
        ...(options.id !== undefined && { id: options.id }),
        ...(options.tag !== undefined && { tags: options.tag }),
      } as ForkOptions<Record<string, unknown>> & ForkAtOptions);
      const { status } = await forked.info();
      const checked = file !== undefined;
      if (options.json)
        await printJson({
          action: "fork",
          id: forked.id,
          from: id,
          step: step ?? null,
          label: label ?? null,
          at: at ?? null,
          answers: Object.keys(answers ?? {}),
          effects: effects ?? "live",
          models: models ?? {},
          status,
          checked,
        });
      else {
        const from = placeText(options, answers);
        await print(`${paint("green", "forked")} ${paint("bold", plain(forked.id))} from ${from} of ${plain(id)}`);
        if (patch !== undefined && !checked)
          remark(
            paintError(
              "dim",
              "the patch was validated against the state; add --file <file> to validate it with the graph's channels",
            ),
          );
      }
      return EXIT.ok;
    });
  });
}

function placeText(
  { step, label, at, node, call }: ForkCommandOptions,
  answers: Readonly<Record<string, unknown>> = {},
): string {
  if (node !== undefined) return `node ${plain(node)}`;
  if (call !== undefined) return `call ${plain(call)}`;
  if (step !== undefined) return `step ${step}`;
  if (label !== undefined) return `the step labeled ${plain(label)}`;
  return plain(at === undefined ? Object.keys(answers).join(", ") : commandOf(at));
}

/** `think` or `think:2`, the second call with that name. */
export function callOf(text: string): { name: string; nth?: number } {
  const [, name, nth] = /^([^]+):(\d+)$/.exec(text) ?? [];
  return name === undefined ? { name: text } : { name, nth: Number(nth) };
}

/** `Task(3)={"paid":false}`; undefined: none. */
export async function readAnswers(given: readonly string[] | undefined): Promise<Record<string, unknown> | undefined> {
  if (given === undefined) return undefined;
  const answers: Record<string, unknown> = {};
  for (const one of given) {
    const [, command, json] = /^([^=]+)=([^]*)$/.exec(one) ?? [];
    if (command === undefined || json === undefined)
      throw new RepriseError(
        "USAGE",
        `--answer expects a command and its answer as JSON, such as 'Task(3)={"paid":false}', got ${plain(one)}.`,
      );
    answers[commandOf(command.trim())] = await readInput(json, undefined, "answer");
  }
  return answers;
}

/** `fast=strong`; undefined: none. */
export function readModels(given: readonly string[] | undefined): Record<string, string> | undefined {
  if (given === undefined) return undefined;
  return Object.fromEntries(
    given.map((one) => {
      const [, name, model] = /^([^=]+)=([^]+)$/.exec(one) ?? [];
      if (name !== undefined && model !== undefined) return [name.trim(), model.trim()];
      throw new RepriseError(
        "USAGE",
        `--model expects a name in the code and the model to call instead, such as fast=strong, got ${plain(one)}.`,
      );
    }),
  );
}

/**
 * `Task:3` is `Task(3)`: parentheses need quotes in a shell. A command of a node may be copied from `reprise journal`, with its attempt:
 * `Node(3.0)#0/Operation(0)`.
 */
function commandOf(text: string): string {
  return stableCommandOf(text.replace(/\b([A-Z]\w*):(\d+(?:\.\d+)?)/g, "$1($2)"));
}

/** The form of a command that needs no quotes. */
export function unquotedCommand(command: string): string {
  return command.replace(/\b([A-Z]\w*)\((\d+(?:\.\d+)?)\)/g, "$1:$2");
}
