// RunInfo: a run's row as people see it.

import { decode, RepriseError } from "../base/index.ts";
import type { EndEntry, Entry, RunRecord } from "../kernel/index.ts";
import type { RunInfo } from "./api.ts";

/** The error of a failed run's last entry, with its recorded stack. */
export function failureOf(last: EndEntry | undefined): Error | undefined {
  if (last?.type !== "RunFailed") return undefined;
  const { error, stack } = decode(last.data) as { error?: unknown; stack?: unknown };
  if (!(error instanceof Error)) return undefined;
  if (typeof stack === "string") error.stack = stack;
  return error;
}

interface Evidence {
  readonly message?: string;
  readonly where?: string;
  readonly expected?: unknown;
  readonly actual?: unknown;
}

/** A run that somebody paused goes on when somebody wants it to; one that paused by itself says why. */
function isStopped({ status, evidence }: RunRecord): boolean {
  return status === "blocked" || status === "determinism_violation" || (status === "paused" && evidence !== undefined);
}

/** What stopped a run that is not ended. */
export function stopOf(record: RunRecord): RepriseError | undefined {
  if (!isStopped(record)) return undefined;
  const evidence = record.evidence === undefined ? {} : (decode(record.evidence) as Evidence);
  const violated = record.status === "determinism_violation";
  const said = (evidence.message ?? "no evidence was kept").replace(/\.$/, "");
  const cure = violated
    ? "Expected is what the code asks for now, got is what the journal has. Put the code back"
    : "Remove the cause";
  const next = said.endsWith("resume the run") ? "" : ` ${cure}, then resume the run.`;
  const code = violated ? "DETERMINISM_VIOLATION" : record.status === "paused" ? "BACKPRESSURE_TIMEOUT" : "RUN_BLOCKED";
  return new RepriseError(
    code,
    `Run ${record.id} is ${record.status === "paused" ? "paused" : "stopped"}: ${said}.${next}`,
    { details: { run: record.id, ...evidence } },
  );
}

export function infoOf(record: RunRecord, last?: Entry): RunInfo {
  const error = failureOf(last) ?? stopOf(record);
  return { ...listedInfoOf(record), ...(error && { error }) };
}

/** As a list shows it: nothing that would have to be read from a payload. */
export function listedInfoOf(record: RunRecord): RunInfo {
  return {
    id: record.id,
    definition: record.definition,
    kind: record.kind,
    version: record.version,
    generation: record.generation,
    status: record.status,
    createdAt: new Date(record.createdAt),
    ...(record.endedAt !== undefined && { endedAt: new Date(record.endedAt) }),
    tags: record.tags,
    entries: record.head,
    digest: `sha256:${record.chain}`,
  };
}
