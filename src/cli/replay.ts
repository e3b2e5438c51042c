// reprise replay: replays a run's journal with the definitions of a file.

import { RepriseError } from "../base/index.ts";
import type { ReplayOptions, Run } from "../engine/index.ts";
import type { Replay, ReplayDifference, ReplayEnd } from "../workflow/index.ts";
import { withClient } from "./client.ts";
import type { GlobalOptions } from "./global-options.ts";
import { loadDefinitions } from "./load-definitions.ts";
import { getRun, withStoreToRead } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { shellWord, withStoreOption } from "./next-command.ts";
import { paint, print, printJson } from "./output.ts";
import { inputChangeLines } from "./run-view.ts";
import { pluralize, plain, showValue } from "./text.ts";

export interface ReplayCommandOptions extends GlobalOptions {
  readonly generation?: number;
  readonly mode?: string;
  readonly from?: number;
  readonly label?: string;
  readonly lenient?: boolean;
  readonly live?: readonly string[];
}

type SameReplay = Extract<Replay, { readonly status: "same" }>;

/** The options for `run.replay`. */
function replayOptions({ mode, from, label, lenient, live }: ReplayCommandOptions): ReplayOptions {
  if (from !== undefined && label !== undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      "--from and --label both select the checkpoint to resume from. Pass one of them.",
    );
  const at = label === undefined ? from : { label };
  return {
    ...(mode !== undefined && { mode: mode as "full" | "resume" }),
    ...(at !== undefined && { from: at }),
    ...(lenient === true && { strict: false }),
    ...(live !== undefined && { live }),
  };
}

export async function replay(id: string, file: string, options: ReplayCommandOptions): Promise<number> {
  return withStoreToRead(options.store, async (store) => {
    const record = await getRun(store, id, options.generation);
    const { generation, head: entries } = record;
    const definitions = await loadDefinitions(file);
    const verdict = await withClient(store, definitions, (engine) => {
      const handle: Run<unknown> = engine.get(record.definition, id);
      return handle.replay({ ...replayOptions(options), generation });
    });
    await (options.json
      ? printJson({ id, generation, check: "replay", entries, ...verdictJson(verdict) })
      : printVerdict(id, entries, verdict));
    return verdict.status === "same" ? EXIT.ok : EXIT.determinism;
  });
}

function verdictJson(verdict: Replay): Record<string, unknown> {
  if (verdict.status === "mismatch") return { status: "mismatch", ...differenceJson(verdict) };
  return { status: "same", digest: verdict.digest, ...replayJson(verdict) };
}

/** What a replay without a difference says more. */
export function replayJson({ warnings, inputChanges, calls, end }: SameReplay): Record<string, unknown> {
  return {
    ...(calls !== undefined && { calls }),
    ...(end !== undefined && { end: endJson(end) }),
    ...(warnings !== undefined && { warnings: warnings.map(differenceJson) }),
    ...(inputChanges !== undefined && { inputChanges }),
  };
}

export function differenceJson(difference: ReplayDifference): object {
  const { where, message, expected, actual, differs, step, node, attempt } = difference;
  return {
    where,
    message,
    expected: expected ?? null,
    actual: actual ?? null,
    ...(differs !== undefined && { differs }),
    ...(step !== undefined && { step }),
    ...(node !== undefined && { node }),
    ...(attempt !== undefined && { attempt }),
  };
}

export function endJson(end: ReplayEnd): object {
  if (end.status !== "failed") return end;
  const { name, message } = end.error as Partial<Error>;
  return { status: "failed", error: { name, message } };
}

async function printVerdict(id: string, entries: number, verdict: Replay): Promise<void> {
  if (verdict.status === "same") {
    const count = verdict.warnings?.length ?? 0;
    await print(
      count > 0
        ? `${paint(["yellow", "bold"], "differs")}  ${plain(id)}: ${pluralize(count, "difference", "differences")}; the replay continued with the recorded results.`
        : `${paint(["green", "bold"], "same")}  ${plain(id)}: Code matches the journal (${pluralize(entries, "entry", "entries")}).`,
    );
    await print(paint("dim", verdict.digest));
    await printReplayDetails(verdict);
    return;
  }
  await print(`${paint(["red", "bold"], "mismatch")}  ${plain(id)}: ${plain(verdict.message)}`);
  await print(`  ${paint("dim", "where:")}       ${plain(placeText(verdict))}`);
  await printSides(verdict);
  const next =
    verdict.step === undefined
      ? 'restore the code, or guard the change: if (ctx.patched("my-change")) { … } else { … }'
      : withStoreOption(`list all differences: reprise replay ${shellWord(id)} <file> --lenient`);
  await print(`  ${paint("dim", "next:")}        ${next}`);
}

/** `expected` is what the code did and `actual` what the journal has; people expect the opposite, so both get names. */
export async function printSides({ expected, actual }: ReplayDifference): Promise<void> {
  await print(`  ${paint("dim", "the code:")}    ${showValue(expected)}`);
  await print(`  ${paint("dim", "the journal:")} ${showValue(actual)}`);
}

/** The place, with step, node and attempt for a graph. */
export function placeText({ where, step, node, attempt }: ReplayDifference): string {
  const more = [
    ...(step === undefined || where === `step ${step}` ? [] : [`step ${step}`]),
    ...(node === undefined ? [] : [`node ${node}`]),
    ...(attempt === undefined ? [] : [`attempt ${attempt}`]),
  ];
  return more.length === 0 ? where : `${where} (${more.join(", ")})`;
}

/** The differences, and for a graph also the recorded and the live calls and the end of the run. */
export async function printReplayDetails(verdict: SameReplay): Promise<void> {
  const { calls, end, warnings, inputChanges = [] } = verdict;
  for (const line of inputChangeLines(inputChanges)) await print(line);
  if (calls !== undefined)
    await print(
      `  ${paint("dim", "calls:")}       ${pluralize(calls.recorded, "answer", "answers")} from the journal, ${calls.live} live`,
    );
  if (end?.status === "completed") await print(`  ${paint("dim", "output:")}      ${showValue(end.output)}`);
  else if (end?.status === "failed") await print(`  ${paint("dim", "failed:")}      ${showValue(end.error)}`);
  else if (end !== undefined) await print(`  ${paint("dim", "ended:")}       ${end.status}`);
  for (const warning of warnings ?? []) {
    await print(`${paint("yellow", "at")} ${plain(placeText(warning))}: ${plain(warning.message)}`);
    await printSides(warning);
  }
}
