// Check code: the work of `replay` and `verify`: replays a run's journal with the definitions of a file.

import { RepriseError } from "../base/index.ts";
import type { ReplayOptions, Run } from "../engine/index.ts";
import { findJournalFault, type RunRecord, type Store } from "../kernel/index.ts";
import type { Replay, ReplayDifference, ReplayEnd } from "../workflow/index.ts";
import { withClient } from "./client.ts";
import type { GlobalOptions } from "./global-options.ts";
import { loadDefinitions } from "./load-definitions.ts";
import { getRun, withStore } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { shellWord, withStoreOption } from "./next-command.ts";
import { paint, print, printJson } from "./output.ts";
import { pluralize, plain, showValue } from "./text.ts";

type Check = "replay" | "verify";

export interface CheckOptions extends GlobalOptions {
  readonly generation?: number;
  // Only for `replay`.
  readonly mode?: string;
  readonly from?: number;
  readonly label?: string;
  readonly lenient?: boolean;
  readonly live?: readonly string[];
}

/** The options for `run.replay`. */
function replayOptions({ mode, from, label, lenient, live }: CheckOptions): ReplayOptions {
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

export async function checkCode(check: Check, id: string, file: string, options: CheckOptions): Promise<number> {
  return withStore(options.store, async (store) => {
    const record = await getRun(store, id, options.generation);
    const definitions = await loadDefinitions(file);
    if (check === "verify") await checkJournal(store, record);
    const verdict = await withClient(store, definitions, (engine) => {
      const handle: Run<unknown> = engine.get(record.definition, id);
      const { generation } = record;
      return check === "verify"
        ? handle.verify({ generation })
        : handle.replay({ ...replayOptions(options), generation });
    });
    await (options.json
      ? printJson({ id, generation: record.generation, check, entries: record.head, ...verdictJson(verdict) })
      : printVerdict(check, id, record.head, verdict));
    return verdict.status === "same" ? EXIT.ok : EXIT.determinism;
  });
}

/** Reports a damaged journal as a store error: no change of the code can fix it. */
async function checkJournal(store: Store, record: RunRecord): Promise<void> {
  const { id } = record;
  const fault = findJournalFault(await store.readJournal(record.run, 0, record.head), record);
  if (fault === undefined) return;
  const what = fault.code === undefined ? "is damaged" : "cannot be read";
  throw new RepriseError(fault.code ?? "STORE_CORRUPT", `The journal of run ${id} ${what}: ${fault.problem}.`, {
    details: { run: id, seq: fault.seq },
  });
}

function verdictJson(verdict: Replay): Record<string, unknown> {
  if (verdict.status === "mismatch") return { status: "mismatch", ...differenceJson(verdict) };
  const { digest, warnings, calls, end } = verdict;
  return {
    status: "same",
    digest,
    ...(calls !== undefined && { calls }),
    ...(end !== undefined && { end: endJson(end) }),
    ...(warnings !== undefined && { warnings: warnings.map(differenceJson) }),
  };
}

function differenceJson({ where, message, expected, actual, step, node, attempt }: ReplayDifference): object {
  return {
    where,
    message,
    expected: expected ?? null,
    actual: actual ?? null,
    ...(step !== undefined && { step }),
    ...(node !== undefined && { node }),
    ...(attempt !== undefined && { attempt }),
  };
}

function endJson(end: ReplayEnd): object {
  if (end.status !== "failed") return end;
  const { name, message } = end.error as Partial<Error>;
  return { status: "failed", error: { name, message } };
}

async function printVerdict(check: Check, id: string, entries: number, verdict: Replay): Promise<void> {
  if (verdict.status === "same") {
    const count = verdict.warnings?.length ?? 0;
    const what = check === "verify" ? "Journal intact; code matches the journal" : "Code matches the journal";
    await print(
      count > 0
        ? `${paint(["yellow", "bold"], "differs")}  ${plain(id)}: ${pluralize(count, "difference", "differences")}; the replay continued with the recorded results.`
        : `${paint(["green", "bold"], "same")}  ${plain(id)}: ${what} (${pluralize(entries, "entry", "entries")}).`,
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
async function printSides({ expected, actual }: ReplayDifference): Promise<void> {
  await print(`  ${paint("dim", "the code:")}    ${showValue(expected)}`);
  await print(`  ${paint("dim", "the journal:")} ${showValue(actual)}`);
}

/** The place, with step, node and attempt for a graph. */
function placeText({ where, step, node, attempt }: ReplayDifference): string {
  const more = [
    ...(step === undefined || where === `step ${step}` ? [] : [`step ${step}`]),
    ...(node === undefined ? [] : [`node ${node}`]),
    ...(attempt === undefined ? [] : [`attempt ${attempt}`]),
  ];
  return more.length === 0 ? where : `${where} (${more.join(", ")})`;
}

/** For a graph: the recorded and the live calls, the end of the run, and the differences. */
async function printReplayDetails({ calls, end, warnings }: Extract<Replay, { status: "same" }>): Promise<void> {
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
