// Attempt lines: executions of user code for `--json`: on which worker, from when, how long, how they ended.

import type { RunAttempt } from "../kernel/index.ts";
import { isoOf, jsonOf } from "./run-format.ts";

export function attemptJson(attempt: RunAttempt): object {
  const { step, name, execution, attempt: number, outcome, worker, startedAt, endedAt, tookMs, error } = attempt;
  return {
    step: step ?? null,
    name: name ?? null,
    execution: execution ?? null,
    attempt: number ?? null,
    outcome,
    worker: worker ?? null,
    startedAt: isoOf(startedAt),
    endedAt: isoOf(endedAt),
    tookMs: tookMs ?? null,
    error: error === undefined ? null : jsonOf(error),
    stack: error instanceof Error ? (error.stack ?? null) : null,
  };
}
