// Verify report: the verdicts as text for people, and as one JSON document.

import type { Finding, Verdict, VerifyLevel } from "../receipts/index.ts";
import type { ReplayDifference } from "../workflow/index.ts";
import { differenceJson, placeText, printReplayDetails, printSides, replayJson } from "./replay.ts";
import { shellWord, withStoreOption } from "./next-command.ts";
import { paint, print, printJson } from "./output.ts";
import { Table } from "./table.ts";
import { plain, pluralize } from "./text.ts";
import type { VerifiedRun } from "./verify-stored-run.ts";

type ExitCodeOf = (verdict: Verdict) => number;

export async function printReport(
  verified: readonly VerifiedRun[],
  exitCode: number,
  json: boolean,
  exitCodeOf: ExitCodeOf,
): Promise<void> {
  const [only, ...more] = verified;
  if (json) return printJson({ exitCode, runs: verified.map((run) => runJson(run, exitCodeOf(run.verdict))) });
  if (only !== undefined && more.length === 0) return printRun(only);
  await printTable(verified);
}

function runJson(run: VerifiedRun, exitCode: number): Record<string, unknown> {
  const { id, generation, definition, entries, chain, levels, verdict, output, file, signer } = run;
  const head = {
    id,
    generation,
    definition,
    entries,
    ...(file !== undefined && { file }),
    ...(signer !== undefined && { signer }),
    levels,
    verdict: verdict.status,
    exitCode,
    digest: `sha256:${chain}`,
    ...(output !== undefined && { output }),
  };
  if (verdict.status === "verified") return { ...head, ...(verdict.replay && replayJson(verdict.replay)) };
  return { ...head, ...findingJson(verdict) };
}

function findingJson(finding: Finding): Record<string, unknown> {
  const { where, message } = finding;
  return {
    where: where ?? null,
    message,
    ...("difference" in finding && finding.difference && differenceJson({ ...finding.difference, message })),
    ...("code" in finding && { code: finding.code }),
    ...("runtime" in finding && { runtime: finding.runtime }),
    ...("missing" in finding && { missing: finding.missing }),
  };
}

const LABELS: Readonly<Record<Verdict["status"], string>> = {
  verified: "verified",
  damaged: "damaged",
  forked: "forked",
  unsigned: "unsigned",
  untrusted: "untrusted",
  code_differs: "differs",
  impure: "impure",
  incomplete: "incomplete",
  erased: "erased",
  inconclusive: "inconclusive",
};

function paintVerdict({ status }: Verdict, text: string = LABELS[status]): string {
  if (status === "verified") return paint(["green", "bold"], text);
  return paint([status === "inconclusive" ? "yellow" : "red", "bold"], text);
}

/** What the levels say, of a run that passed them. */
const PASSED: Readonly<Record<VerifyLevel, string>> = {
  0: "journal intact",
  1: "signed",
  2: "complete",
  3: "code matches the journal",
  4: "pure steps repeat their results",
};

function passedText(level: VerifyLevel, signer: string | undefined): string {
  return level === 1 && signer !== undefined ? `${PASSED[level]} by ${signer}` : PASSED[level];
}

export async function printRun(run: VerifiedRun): Promise<void> {
  const { verdict, entries, levels, chain, output, signer } = run;
  const name = plain(nameOf(run));
  if (verdict.status === "verified") {
    const passed = levels.map((level) => passedText(level, signer)).join(", ");
    await print(`${paintVerdict(verdict)}  ${name}: ${passed} (${pluralize(entries, "entry", "entries")}).`);
    await print(paint("dim", `sha256:${chain}`));
    if (output !== undefined) await print(`  ${paint("dim", "output key:")}  ${output}`);
    if (verdict.replay !== undefined) await printReplayDetails(verdict.replay);
    return;
  }
  await print(`${paintVerdict(verdict)}  ${name}: ${plain(verdict.message)}`);
  const difference = "difference" in verdict ? verdict.difference : undefined;
  const where = difference === undefined ? verdict.where : placeText(difference);
  if (where !== undefined) await print(`  ${paint("dim", "where:")}       ${plain(where)}`);
  if (difference !== undefined) await printSides(difference);
  if ("code" in verdict) await print(`  ${paint("dim", "code:")}        ${verdict.code}`);
  const next = nextOf(run, verdict, difference);
  if (next !== undefined) await print(`  ${paint("dim", "next:")}        ${next}`);
}

function nextOf(
  { id, file }: VerifiedRun,
  verdict: Exclude<Verdict, { readonly status: "verified" }>,
  difference?: ReplayDifference,
): string | undefined {
  const { status } = verdict;
  if (status === "inconclusive" && difference !== undefined)
    return "verify with a Node that the run was recorded on, as `runtime` of --json says";
  if (file !== undefined) {
    if ("missing" in verdict && verdict.missing !== undefined)
      return `verify it together with their bundles, or get one made with: reprise bundle ${shellWord(id)} --family`;
    // The message says what is needed.
    if (status === "incomplete" && verdict.where === undefined) return undefined;
    if (status === "unsigned")
      return "get a signed bundle, or check only its integrity, which detects no forgery: --level 0";
    if (status === "damaged" || status === "incomplete") return "get the bundle again from where it was made";
    if (status === "untrusted") return "admit the signer, if its vkey is the right one: reprise key trust <vkey>";
  } else if (status === "damaged") return withStoreOption("check the whole store: reprise doctor");
  if (status !== "code_differs" || difference === undefined) return undefined;
  const { differs, where, step } = difference;
  // The old claim stays: what is computed again belongs to a run of its own.
  if (differs === "input" && step === undefined && file === undefined)
    return withStoreOption(
      `restore the code, or compute it again as a new run: reprise fork ${shellWord(id)} --at ${shellWord(where)}`,
    );
  return step === undefined
    ? 'restore the code, or guard the change: if (ctx.patched("my-change")) { … } else { … }'
    : withStoreOption(`list all differences: reprise replay ${shellWord(id)} <file> --lenient`);
}

/** The id, and the generation of a run that continued as new. */
export function nameOf({ id, generation }: Pick<VerifiedRun, "id" | "generation">): string {
  return generation === 0 ? id : `${id}#${generation}`;
}

/** The longest detail in a table; without a terminal, as wide as it is. */
async function printTable(verified: readonly VerifiedRun[]): Promise<void> {
  const table = new Table([
    { title: "RUN", minWidth: 12, clipsMiddle: true },
    { title: "DEFINITION", minWidth: 10, dropOrder: 2 },
    { title: "ENTRIES", right: true, dropOrder: 1 },
    { title: "VERDICT" },
    { title: "DETAIL", minWidth: 20 },
  ]);
  const cells = verified.map((run) => [
    nameOf(run),
    run.definition,
    String(run.entries),
    { text: LABELS[run.verdict.status], paint: (text: string) => paintVerdict(run.verdict, text) },
    run.verdict.status === "verified" ? "" : run.verdict.message,
  ]);
  for (const line of table.render(cells)) await print(line);
  const counts = Map.groupBy(verified, ({ verdict }) => LABELS[verdict.status]);
  const summary = [...counts].map(([label, runs]) => `${runs.length} ${label}`).join(", ");
  await print(`${pluralize(verified.length, "run", "runs")}: ${summary}.`);
}
