// Output: standard output for what was asked, standard error for everything else, and how a command that failed ends.

import { inspect, styleText } from "node:util";
import { ERROR_CATALOGUE, isErrorCode, RepriseError, type ErrorFamily } from "../base/index.ts";
import { EXIT } from "./exit-codes.ts";
import { jsonText, plain, plainLines } from "./text.ts";

const EXIT_OF: Readonly<Record<ErrorFamily, number>> = {
  usage: EXIT.usage,
  determinism: EXIT.determinism,
  store: EXIT.store,
  outcome: EXIT.problem,
  federation: EXIT.problem,
  invariant: EXIT.problem,
};

const EXIT_OF_CODE: Readonly<Record<string, number>> = {
  // A store that is not where the address says is a matter of the store, though the caller must act.
  BAD_STORE_URL: EXIT.store,
  // The run has not ended: like one whose code and journal disagree, it goes on once its cause is removed.
  RUN_BLOCKED: EXIT.determinism,
};

type Style = Parameters<typeof styleText>[0];
export type Paint = (style: Style, text: string) => string;

/** Colours only where a terminal shows them; NO_COLOR is respected. */
export const paint: Paint = (style, text) => styleText(style, text, { stream: process.stdout });
export const paintError: Paint = (style, text) => styleText(style, text, { stream: process.stderr });

/** How wide a line may be; wide enough to be useful when nobody is watching. */
export function lineWidth(): number {
  return Math.min(Math.max(process.stdout.columns ?? 120, 60), 160);
}

/** Waits while the reader is slow, so that a long listing does not pile up in memory. */
export async function print(text: string): Promise<void> {
  if (process.stdout.write(`${text}\n`)) return;
  await new Promise<void>((resolve) => process.stdout.once("drain", resolve));
}

export function printJson(value: unknown): Promise<void> {
  return print(jsonText(value));
}

/** A value as the answer of a command: text as it is, everything else with all it has. */
export function valueText(value: unknown): string {
  if (typeof value === "string") return plainLines(value);
  const colors = paint("red", "") !== "";
  return inspect(value, { colors, depth: 20, maxArrayLength: null, maxStringLength: null });
}

/** Remarks that are not part of the answer. */
export function remark(text: string): void {
  process.stderr.write(`${text}\n`);
}

export interface ErrorReport {
  readonly code: string;
  /** The code that explains it: of a stopped run, the code of what stopped it. */
  readonly reason: string;
  readonly message: string;
  readonly next: string;
  /** In the package, and in the repository. */
  readonly page: string;
  readonly details?: Record<string, unknown>;
}

export function reportOf(error: unknown): ErrorReport {
  if (error instanceof RepriseError) {
    const { code, message, details } = error;
    const reason = isErrorCode(details?.["code"]) ? details["code"] : code;
    const { next } = ERROR_CATALOGUE[reason];
    return { code, reason, message, next, page: pageOf(reason), ...(details && { details }) };
  }
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const code = "INVARIANT";
  return { code, reason: code, message, next: ERROR_CATALOGUE[code].next, page: pageOf(code) };
}

/** Says what went wrong on standard error and answers the exit code. */
export async function fail(error: unknown, json: boolean, nextStep?: string): Promise<number> {
  const { code, reason, message, next: usualNext, page, details } = reportOf(error);
  const next = nextStep ?? usualNext;
  if (json) remark(jsonText({ error: { code, message, next, page, details: await shownDetails(details) } }));
  else {
    remark(`${paintError(["red", "bold"], `error ${code}:`)} ${plain(message)}`);
    // A message about usage says itself what to do.
    if (reason !== "USAGE" || nextStep !== undefined) remark(`  ${paintError("dim", "next:")} ${next}`);
    remark(`  ${paintError("dim", "more:")} reprise explain ${reason}`);
  }
  if (!(error instanceof RepriseError)) return EXIT.problem;
  return EXIT_OF_CODE[code] ?? EXIT_OF[error.family];
}

function pageOf(code: string): string {
  return `docs/errors/${code}.md`;
}

/** Details may hold anything, also secrets and what JSON cannot say. */
async function shownDetails(given: Record<string, unknown> | undefined): Promise<unknown> {
  if (given === undefined) return {};
  // Loaded here: it needs the engine, and most of what is said needs neither.
  const { shown } = await import("./payload-module.ts");
  const details = shown(given);
  try {
    return JSON.parse(JSON.stringify(details));
  } catch {
    return Object.fromEntries(Object.entries(details).map(([key, value]) => [key, String(value)]));
  }
}
