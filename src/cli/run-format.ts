// Run format: a run, its entries and its error as fields. Every `--json` has the same names, ISO times and null for
// absent values.

import { decode, encode, ERROR_CATALOGUE, isErrorCode } from "../base/index.ts";
import { decodeData, hasEnded, type Entry, type RunRecord, type RunStatus } from "../kernel/index.ts";
import { nextFor } from "./command-error.ts";
import { shellWord, withStoreOption } from "./next-command.ts";
import type { Paint } from "./output.ts";
import { textOf } from "./text.ts";

export function runJson(record: RunRecord): Record<string, unknown> {
  return {
    id: record.id,
    definition: record.definition,
    kind: record.kind,
    version: record.version,
    generation: record.generation,
    status: record.status,
    createdAt: isoOf(record.createdAt),
    endedAt: isoOf(record.endedAt),
    tags: record.tags,
    entries: record.head,
    digest: `sha256:${record.chain}`,
    errorCode: record.errorCode ?? null,
  };
}

/** Payloads are printed as stored: plain JSON; other values are tagged with `$`. */
export function entryJson(entry: Entry): Record<string, unknown> {
  return {
    seq: entry.seq,
    type: entry.type,
    command: entry.command === "" ? null : entry.command,
    at: isoOf(entry.at),
    ...(entry.tookMs !== undefined && {
      execution: entry.execution ?? null,
      worker: entry.worker ?? null,
      startedAt: isoOf(entry.startedAt),
      tookMs: entry.tookMs,
    }),
    data: JSON.parse(entry.data) as unknown,
  };
}

/** The stored form of a value; null for undefined. */
export function jsonOf(value: unknown): unknown {
  return value === undefined ? null : (JSON.parse(encode(value)) as unknown);
}

export function isoOf(ms: number | Date | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

export function paintStatus(paint: Paint, status: RunStatus, text: string = status): string {
  if (status === "completed") return paint("green", text);
  if (status === "failed" || status === "blocked" || status === "determinism_violation")
    return paint(["red", "bold"], text);
  return hasEnded(status) ? paint("dim", text) : paint("cyan", text);
}

export interface RunErrorInfo {
  readonly code: string;
  readonly message: string;
  readonly next: string;
  readonly where: string | null;
  readonly expected: unknown;
  readonly actual: unknown;
  readonly stack: string | null;
}

/** The evidence of a stopped run, as any version may have stored it. */
interface StoredEvidence {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly where?: unknown;
  readonly expected?: unknown;
  readonly actual?: unknown;
  readonly stack?: unknown;
}

/** Why a run failed or stopped: from its last entry or its evidence. */
export function findRunError(record: RunRecord, last: Entry | undefined): RunErrorInfo | undefined {
  if (record.status === "failed" && last !== undefined) {
    const { error: thrown, stack } = decodeData("RunFailed", last.data);
    const error = thrown as Partial<Error & { readonly code: unknown }> | undefined;
    const code = isErrorCode(error?.code) ? error.code : "RUN_FAILED";
    const { name = "Error", message = "" } = error ?? {};
    // The code already names an error of the engine.
    const info = runErrorOf(record.id, code, name === "RepriseError" ? message : `${name}: ${message}`, { stack });
    return wasUndone(last) && /\bretry\b/.test(info.next) ? { ...info, next: newRunAdvice(record) } : info;
  }
  const isPausedByEngine = record.status === "paused" && record.evidence !== undefined;
  if (record.status !== "blocked" && record.status !== "determinism_violation" && !isPausedByEngine) return undefined;
  const evidence = (record.evidence === undefined ? {} : decode(record.evidence)) as StoredEvidence;
  const fallback = record.status === "blocked" ? "RUN_BLOCKED" : "DETERMINISM_VIOLATION";
  const code = isErrorCode(evidence.code) ? evidence.code : fallback;
  return runErrorOf(record.id, code, textOf(evidence.message, "no evidence was stored"), evidence);
}

/** Whether the run undid its steps before it failed. Such a run cannot be retried. */
export function wasUndone(last: Entry | undefined): boolean {
  return last?.type === "RunFailed" && decodeData("RunFailed", last.data).undone === true;
}

function newRunAdvice({ definition }: RunRecord): string {
  return withStoreOption(
    `this run cannot be retried, because its steps were undone; fix the cause, then start a new run: reprise run <file> ${shellWord(definition)} '<input as JSON>'`,
  );
}

function runErrorOf(
  id: string,
  code: keyof typeof ERROR_CATALOGUE,
  message: string,
  evidence: StoredEvidence,
): RunErrorInfo {
  return {
    code,
    message,
    next: nextFor(ERROR_CATALOGUE[code].next, id, code),
    where: typeof evidence.where === "string" ? evidence.where : null,
    expected: evidence.expected ?? null,
    actual: evidence.actual ?? null,
    stack: typeof evidence.stack === "string" ? evidence.stack : null,
  };
}
