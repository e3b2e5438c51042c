// reprise fork: starts a new run from a committed step. Needs no code; with --file the graph's channels validate the patch.

import type { ForkOptions } from "../engine/index.ts";
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
  readonly patch?: string;
  readonly patchFile?: string;
  readonly id?: string;
  readonly tag?: readonly string[];
  readonly file?: string;
}

export async function fork(id: string, options: ForkCommandOptions): Promise<number> {
  const { step, label, file } = options;
  if ((step === undefined) === (label === undefined))
    throw new CommandError("USAGE", "fork needs either --step or --label.", `reprise checkpoints ${shellWord(id)}`);
  const patch = await readInput(options.patch, options.patchFile, "patch");
  return withStore(options.store, async (store) => {
    const { definition, version } = await getRun(store, id);
    const definitions =
      file === undefined ? [placeholderDefinition(definition, {}, version)] : await loadDefinitions(file);
    if (file !== undefined) checkWorkflow(definitions, definition, file);
    return withClient(store, definitions, async (engine) => {
      const forked = await engine.get(definition, id).fork({
        ...(step === undefined ? { label } : { step }),
        ...(patch !== undefined && { patch }),
        ...(options.id !== undefined && { id: options.id }),
        ...(options.tag !== undefined && { tags: options.tag }),
      } as ForkOptions<Record<string, unknown>>);
      const { status } = await forked.info();
      const checked = file !== undefined;
      if (options.json)
        await printJson({
          action: "fork",
          id: forked.id,
          from: id,
          step: step ?? null,
          label: label ?? null,
          status,
          checked,
        });
      else {
        const from = step === undefined ? `the step labeled ${plain(label ?? "")}` : `step ${step}`;
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
