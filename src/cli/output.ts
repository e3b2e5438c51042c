// Output: standard output for the answer, standard error for everything else, and the exit code of an error.

import { inspect, styleText } from "node:util";
import { ERROR_CATALOGUE, isErrorCode, RepriseError, type ErrorFamily } from "../base/index.ts";
import { CommandError, nextFor } from "./command-error.ts";
import { EXIT } from "./exit-codes.ts";
import { withStoreOption } from "./next-command.ts";
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
  // In the usage family, but the store is missing: scripts expect the exit code of a store problem.
  BAD_STORE_URL: EXIT.store,
  // The run is stopped, not ended: like a determinism violation, it continues after a fix.
  RUN_BLOCKED: EXIT.determinism,
  // The command line is right, but the object that it names is no longer in a state to change (docs/decisions/0090).
  RUN_ENDED: EXIT.problem,
  PROMISE_ALREADY_RESOLVED: EXIT.problem,
  NOT_RETRYABLE: EXIT.problem,
  BUNDLE_DAMAGED: EXIT.damaged,
  MIRROR_CONFLICT: EXIT.damaged,
};

type Style = Parameters<typeof styleText>[0];
export type Paint = (style: Style, text: string) => string;

/** Adds colors on terminals only; respects NO_COLOR. */
export const paint: Paint = (style, text) => styleText(style, text, { stream: process.stdout });
export const paintError: Paint = (style, text) => styleText(style, text, { stream: process.stderr });

/** The maximum line width; without a terminal, 120. */
export function lineWidth(): number {
  return Math.min(Math.max(process.stdout.columns ?? 120, 60), 160);
}

/** Waits while the reader is slow, so that a long listing does not fill the memory. */
export async function print(text: string): Promise<void> {
  if (process.stdout.write(`${text}\n`)) return;
  await new Promise<void>((resolve) => process.stdout.once("drain", resolve));
}

export function printJson(value: unknown): Promise<void> {
  return print(jsonText(value));
}

/** A value as the answer of a command: a string as it is, everything else inspected in full. */
export function valueText(value: unknown): string {
  if (typeof value === "string") return plainLines(value);
  const colors = paint("red", "") !== "";
  return inspect(value, { colors, depth: 20, maxArrayLength: null, maxStringLength: null });
}

/** Prints a note that is not part of the answer to standard error. */
export function remark(text: string): void {
  process.stderr.write(`${text}\n`);
}

export interface ErrorReport {
  readonly code: string;
  /** The code to explain: for a stopped run, the code of what stopped it. */
  readonly reason: string;
  readonly message: string;
  readonly next: string;
  /** Path of the documentation page in the package. */
  readonly page: string;
  readonly details?: Record<string, unknown>;
}

export function reportOf(error: unknown): ErrorReport {
  if (error instanceof RepriseError) {
    const { code, message, details } = error;
    const reason = isErrorCode(details?.["code"]) ? details["code"] : code;
    const run = typeof details?.["run"] === "string" ? details["run"] : undefined;
    const next = error instanceof CommandError ? error.next : nextFor(ERROR_CATALOGUE[reason].next, run, reason);
    return { code, reason, message, next, page: pageOf(reason), ...(details && { details }) };
  }
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const code = "INVARIANT";
  return { code, reason: code, message, next: ERROR_CATALOGUE[code].next, page: pageOf(code) };
}

/** Prints the error to standard error and returns the exit code. */
export async function fail(error: unknown, json: boolean, { help }: { readonly help?: string } = {}): Promise<number> {
  const { code, reason, message, next: advice, page, details } = reportOf(error);
  // The message of a usage error says what to change; the help of the command shows how.
  const isUsage =
    reason === "USAGE" ||
    reason === "BAD_OPTIONS" ||
    (details === undefined && (reason === "BAD_INPUT" || reason === "UNKNOWN_DEFINITION"));
  const next = isUsage && !(error instanceof CommandError) && help !== undefined ? help : advice;
  if (json) remark(jsonText({ error: { code, message, next, page, details: await shownDetails(details) } }));
  else {
    remark(`${paintError(["red", "bold"], `error ${code}:`)} ${plain(withStoreOption(message))}`);
    remark(`  ${paintError("dim", "next:")} ${plain(next)}`);
    remark(`  ${paintError("dim", "more:")} reprise explain ${reason}`);
  }
  if (!(error instanceof RepriseError)) return EXIT.problem;
  return EXIT_OF_CODE[code] ?? EXIT_OF[error.family];
}

function pageOf(code: string): string {
  return `docs/errors/${code}.md`;
}

/** Redacts secrets and converts values that JSON cannot represent. */
async function shownDetails(given: Record<string, unknown> | undefined): Promise<unknown> {
  if (given === undefined) return {};
  // Loaded here: most errors have no details and do not need this module.
  const { redacted } = await import("./payload-module.ts");
  const details = redacted(given);
  try {
    return JSON.parse(JSON.stringify(details));
  } catch {
    return Object.fromEntries(Object.entries(details).map(([key, value]) => [key, String(value)]));
  }
}
