// Verdict: what the checks of `verify` say about one run, and which verdict of many counts. Pure.
//
// verdict.V1. The first that applies is the verdict: damaged, not trusted, other code, an impure step, incomplete,
//   inconclusive. The same order decides between many runs.
// verdict.V2. A value that differs proves nothing about the code on a runtime that no process of the run had: it is
//   inconclusive. Another command, order, name or input is a difference of the code on every runtime.
//   A pure step that differs is impure on its own runtime; one that cannot be executed proves nothing.
// verdict.V3. A level that was not checked is never claimed: a verdict names the levels it stands on.

import type { JournalFault } from "../kernel/index.ts";
import type { Replay, ReplayDifference } from "../workflow/index.ts";
import { namedRunText, type NamedRun } from "./named-runs.ts";
import { findRuntimeDifference, runtimeDifferenceText, type RuntimeDifference } from "./runtime.ts";
import type { Runtime } from "../kernel/index.ts";

/** 0 integrity, 1 authenticity, 2 completeness, 3 replay with code, 4 pure steps executed again. */
export type VerifyLevel = 0 | 1 | 2 | 3 | 4;

/** A problem of the evidence itself. */
interface Problem {
  /** The entry, line or key; undefined: the whole. */
  readonly where?: string;
  readonly message: string;
}

export type Verdict =
  | { readonly status: "verified"; readonly replay?: Extract<Replay, { readonly status: "same" }> }
  | ({ readonly status: "damaged" | "forked" } & Problem)
  | ({ readonly status: "unsigned" | "untrusted" } & Problem)
  | ({
      readonly status: "code_differs";
      readonly difference?: ReplayDifference;
      /** The code passes another input to a step. */
      readonly code?: "input-diverged";
      readonly runtime?: RuntimeDifference;
    } & Problem)
  | ({ readonly status: "impure"; readonly difference: ReplayDifference } & Problem)
  | ({ readonly status: "incomplete" | "erased"; readonly missing?: readonly NamedRun[] } & Problem)
  | ({
      readonly status: "inconclusive";
      /** Absent: a pure step could not be executed. */
      readonly difference?: ReplayDifference;
      readonly runtime?: RuntimeDifference;
    } & Problem);

/** A verdict other than `verified`. */
export type Finding = Exclude<Verdict, { readonly status: "verified" }>;

/** verdict.V1 */
const RANK: readonly Verdict["status"][] = [
  "damaged",
  "forked",
  "unsigned",
  "untrusted",
  "code_differs",
  "impure",
  "incomplete",
  "erased",
  "inconclusive",
  "verified",
];

/** A pure step that was executed again: `expected` is the text of what it returns now, `actual` what the journal recorded. */
export interface RepeatedStep {
  readonly where: string;
  readonly name: string;
  readonly status: "same" | "differs" | "not-executable";
  readonly expected?: string | undefined;
  readonly actual?: string | undefined;
  readonly reason?: string;
}

/** What the checks of one run found. */
export interface Evidence {
  /** Problems of integrity, authenticity and completeness that are already verdicts. */
  readonly findings?: readonly Finding[];
  /** Of the journal against its chain. */
  readonly fault?: JournalFault | undefined;
  /** Runs that the journal names and that are not at hand. */
  readonly missing?: readonly NamedRun[];
  /** The code has no such definition, or not this version of it. */
  readonly noCode?: string | undefined;
  readonly replay?: Replay | undefined;
  /** The pure steps that were executed again. */
  readonly pure?: readonly RepeatedStep[];
  /** The processes that moved the run. */
  readonly runtimes: readonly Runtime[];
  /** This process. */
  readonly here: Runtime;
}

/** verdict.V1, verdict.V2 */
export function verdictOf(evidence: Evidence): Verdict {
  const { findings = [], fault, missing = [], noCode, replay, pure = [], runtimes, here } = evidence;
  const runtime = findRuntimeDifference(runtimes, here);
  const found: readonly Verdict[] = [
    ...findings,
    ...(fault === undefined ? [] : [faultVerdict(fault)]),
    ...(missing.length === 0 ? [] : [missingVerdict(missing)]),
    ...(noCode === undefined ? [] : [{ status: "code_differs", message: noCode } as const]),
    ...(replay?.status === "mismatch" ? [differenceVerdict(replay, runtime)] : []),
    ...pure.flatMap((step) => pureVerdict(step, runtime)),
  ];
  return worstOf(found) ?? { status: "verified", ...(replay?.status === "same" && { replay }) };
}

/** verdict.V1. The verdict that counts; undefined: there is none. */
export function worstOf(verdicts: readonly Verdict[]): Verdict | undefined {
  return verdicts.toSorted((a, b) => RANK.indexOf(a.status) - RANK.indexOf(b.status))[0];
}

function faultVerdict({ seq, problem, isMissing }: JournalFault): Finding {
  const message = `${problem}.`;
  return { status: isMissing === true ? "incomplete" : "damaged", where: `entry ${seq}`, message };
}

const NAMED_MISSING = 3;

function missingVerdict(missing: readonly NamedRun[]): Finding {
  const named = missing.slice(0, NAMED_MISSING).map(namedRunText).join(", ");
  const more = missing.length > NAMED_MISSING ? ` and ${missing.length - NAMED_MISSING} more` : "";
  return { status: "incomplete", message: `the journal names runs that are not here: ${named}${more}.`, missing };
}

/** verdict.V2 */
function pureVerdict(step: RepeatedStep, runtime?: RuntimeDifference): readonly Finding[] {
  const { where, name, status, expected, actual, reason } = step;
  if (status === "same") return [];
  if (status === "not-executable")
    return [{ status: "inconclusive", where, message: `pure step ${name} could not be executed again: ${reason}.` }];
  const message = `pure step ${name} returns another result than the journal recorded.`;
  const difference: ReplayDifference = { where, message, expected, actual, differs: "value" };
  if (runtime === undefined) return [{ status: "impure", where, message, difference }];
  return [inconclusive(difference, runtime)];
}

function inconclusive(difference: ReplayDifference, runtime: RuntimeDifference): Finding {
  const { where } = difference;
  const message = `${difference.message} No process of the run had this runtime (${runtimeDifferenceText(runtime)}), which may be the reason.`;
  return { status: "inconclusive", where, message, difference, runtime };
}

function differenceVerdict(
  found: ReplayDifference & { readonly status: "mismatch" },
  runtime?: RuntimeDifference,
): Finding {
  const { status: _, ...difference } = found;
  const { where, message, differs } = difference;
  if (differs === "value" && runtime !== undefined) return inconclusive(difference, runtime);
  return {
    status: "code_differs",
    where,
    message,
    difference,
    ...(differs === "input" && { code: "input-diverged" }),
    ...(runtime !== undefined && { runtime }),
  };
}
