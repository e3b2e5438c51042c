// reprise debug --live: a run continues from a place of its journal on a copy in memory, under Node's inspector.
//
// debug-live.D1. The code is checked against the journal before the place first, without a debugger. If it differs, nothing is executed.
// debug-live.D2. The warning about real calls is printed before the command waits for a debugger: until one has attached, nothing is
//   executed.

import inspector from "node:inspector";
import {
  guardMode,
  JournalReplayer,
  planLiveCopy,
  registryOf,
  runLiveCopy,
  type LiveCopy,
  type Resumed,
} from "../engine/index.ts";
import { beforeLive } from "./debug-stops.ts";
import { LEVELS, openInspector, type DebugOptions } from "./debug.ts";
import { EXIT } from "./exit-codes.ts";
import { checkWorkflow, loadDefinitions } from "./load-definitions.ts";
import { paint, paintError, print, printJson, remark } from "./output.ts";
import { endJson } from "./replay.ts";
import { plain, pluralize, showValue } from "./text.ts";
import { exitCodeOf } from "./verify.ts";
import { printReport } from "./verify-report.ts";
import { verdictOfRun, type ReadRun } from "./verify-stored-run.ts";

export async function debugLive(run: ReadRun, file: string, { at, port, json }: DebugOptions): Promise<number> {
  const definitions = await loadDefinitions(file);
  checkWorkflow(definitions, run.definition, file);
  using replayer = new JournalReplayer(registryOf(definitions), guardMode(undefined));
  const isReadable = run.fault === undefined && (run.findings ?? []).length === 0;
  const copy = isReadable ? planLiveCopy(run, at) : undefined;
  // debug-live.D1
  const verified = await verdictOfRun(copy === undefined ? run : pastOf(run, copy), {
    levels: LEVELS,
    replayer,
    codeFile: file,
  });
  if (copy === undefined || verified.verdict.status !== "verified") {
    const exitCode = exitCodeOf(verified.verdict);
    await printReport([verified], exitCode, json, exitCodeOf);
    return exitCode;
  }
  const recorded = copy.recorded.length;
  // debug-live.D2
  remark(
    [
      `${paintError(["yellow", "bold"], "live")} after entry ${recorded}${at === undefined ? "" : `, before ${plain(at)} is answered`}, the code of ${plain(run.id)} makes real calls.`,
      "  The copy is in memory: the run itself does not change, and no message leaves the copy.",
      "  Its steps and tasks have the idempotency keys of the run. Attaching a debugger starts it.",
    ].join("\n"),
  );
  openInspector(port, file);
  try {
    const resumed = await runLiveCopy(definitions, run, copy, {
      onLive: (live) => {
        remark(`${paintError(["cyan", "bold"], "stopped")} after entry ${recorded}: what follows is executed`);
        beforeLive(live);
      },
    });
    return await printEnd(run, recorded, resumed, json);
  } finally {
    inspector.close();
  }
}

function pastOf(run: ReadRun, { recorded, chain }: LiveCopy): ReadRun {
  const { output: _, ...rest } = run;
  return { ...rest, entries: recorded, head: recorded.length, chain };
}

async function printEnd(
  { id, generation }: ReadRun,
  recorded: number,
  { end, live }: Resumed,
  json: boolean,
): Promise<number> {
  const exitCode = end.status === "failed" || end.status === "cancelled" ? EXIT.problem : EXIT.ok;
  if (json) {
    await printJson({ id, generation, live: true, exitCode, recorded, calls: { live }, end: endJson(end) });
    return exitCode;
  }
  const status = paint([exitCode === EXIT.ok ? "green" : "red", "bold"], end.status);
  await print(
    `${status}  copy of ${plain(id)}: ${pluralize(recorded, "entry", "entries")} from the journal, then ${pluralize(live, "call", "calls")} live`,
  );
  if (end.status === "completed") await print(`  ${paint("dim", "output:")}      ${showValue(end.output)}`);
  else if (end.status === "failed") await print(`  ${paint("dim", "failed:")}      ${showValue(end.error)}`);
  else if (end.status === "waiting")
    await print(`  ${paint("dim", "waits for a message, or for a timer of more than a minute")}`);
  return exitCode;
}
