// What `replay` and `verify` share: a run's journal against the definitions of a file.

import { RepriseError } from "../base/index.ts";
import type { ReplayOptions, Run } from "../engine/index.ts";
import { findJournalFault, type RunRecord, type Store } from "../kernel/index.ts";
import type { Replay, ReplayDifference, ReplayEnd } from "../workflow/index.ts";
import { withClient } from "./client.ts";
import type { GlobalOptions } from "./global-options.ts";
import { loadDefinitions } from "./load-definitions.ts";
import { getRun, withStore } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, print, printJson } from "./output.ts";
import { pluralize, plain, showValue } from "./text.ts";

type Check = "replay" | "verify";

export interface CheckOptions extends GlobalOptions {
  readonly generation?: number;
  // Of `replay` alone.
  readonly mode?: string;
  readonly from?: number;
  readonly label?: string;
  readonly lenient?: boolean;
  readonly live?: readonly string[];
}

/** What the command was told, in the words of `run.replay`. */
function replayOptions({ mode, from, label, lenient, live }: CheckOptions): ReplayOptions {
  if (from !== undefined && label !== undefined)
    throw new RepriseError("BAD_OPTIONS", "Give --from or --label, not both: each names the checkpoint to go on from.");
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

/** Damage is the operator's business, not the programmer's: told apart from a change of the code. */
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
    const what =
      check === "verify"
        ? "The journal is whole, and the code does what it says"
        : "The code does what the journal says";
    await print(
      count > 0
        ? `${paint(["yellow", "bold"], "differs")}  ${plain(id)}: ${pluralize(count, "difference", "differences")}; what was recorded went on.`
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
      ? "make the code ask for what the journal has, keep both ways with ctx.patched(), or run the version that wrote it"
      : "make the node do what it did then, or see everything that differs with --lenient";
  await print(`  ${paint("dim", "next:")}        ${next}`);
}

/** Of what stands there as `expected` and `actual` people think the other way round: named as `show` names them. */
async function printSides({ expected, actual }: ReplayDifference): Promise<void> {
  await print(`  ${paint("dim", "the code:")}    ${showValue(expected)}`);
  await print(`  ${paint("dim", "the journal:")} ${showValue(actual)}`);
}

/** Where, with what a graph knows of the place. */
function placeText({ where, step, node, attempt }: ReplayDifference): string {
  const more = [
    ...(step === undefined || where === `step ${step}` ? [] : [`step ${step}`]),
    ...(node === undefined ? [] : [`node ${node}`]),
    // Counted from 1 for people.
    ...(attempt === undefined ? [] : [`attempt ${attempt}`]),
  ];
  return more.length === 0 ? where : `${where} (${more.join(", ")})`;
}

/** Of a graph's replay: what was served and what was done, how it ended, what was passed over. */
async function printReplayDetails({ calls, end, warnings }: Extract<Replay, { status: "same" }>): Promise<void> {
  if (calls !== undefined)
    await print(
      `  ${paint("dim", "calls:")}       ${pluralize(calls.served, "answer", "answers")} from the journal, ${calls.live} live`,
    );
  if (end?.status === "completed") await print(`  ${paint("dim", "output:")}      ${showValue(end.output)}`);
  else if (end?.status === "failed") await print(`  ${paint("dim", "failed:")}      ${showValue(end.error)}`);
  else if (end !== undefined) await print(`  ${paint("dim", "ended:")}       ${end.status}`);
  for (const warning of warnings ?? []) {
    await print(`${paint("yellow", "at")} ${plain(placeText(warning))}: ${plain(warning.message)}`);
    await printSides(warning);
  }
}
