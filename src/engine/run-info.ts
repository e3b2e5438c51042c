// RunInfo: the facts of a run, made from its row.

import { decode, RepriseError, shellWord } from "../base/index.ts";
import { decodeData, type EndEntry, type Entry, type RunRecord } from "../kernel/index.ts";
import type { RunInfo } from "./api.ts";

/** The error of a failed run's last entry, with its recorded stack. */
export function failureOf(last: EndEntry | undefined): Error | undefined {
  if (last?.type !== "RunFailed") return undefined;
  const { error, stack } = decodeData(last.type, last.data);
  if (!(error instanceof Error)) return undefined;
  if (stack !== undefined) error.stack = stack;
  return error;
}

interface Evidence {
  readonly code?: string;
  readonly message?: string;
  readonly where?: string;
  readonly expected?: unknown;
  readonly actual?: unknown;
}

/** A run that paused automatically has evidence; one that a caller paused has none. */
function isStopped({ status, evidence }: RunRecord): boolean {
  return status === "blocked" || status === "determinism_violation" || (status === "paused" && evidence !== undefined);
}

/** Why the run was stopped; empty if the store does not say. */
export function evidenceOf({ evidence }: RunRecord): Evidence {
  return evidence === undefined ? {} : (decode(evidence) as Evidence);
}

/** The error of a run that was stopped and has not ended. */
export function stopOf(record: RunRecord): RepriseError | undefined {
  if (!isStopped(record)) return undefined;
  const evidence = evidenceOf(record);
  const { status, id } = record;
  const reason = (evidence.message ?? "the store has no evidence").replace(/\.$/, "");
  const code =
    status === "determinism_violation"
      ? "DETERMINISM_VIOLATION"
      : status === "paused"
        ? "BACKPRESSURE_TIMEOUT"
        : "RUN_BLOCKED";
  return new RepriseError(
    code,
    `Run ${id} is ${status === "paused" ? "paused" : "stopped"}: ${reason}. To continue, run \`reprise resume ${shellWord(id)}\`.`,
    { details: { run: id, ...evidence } },
  );
}

export function infoOf(record: RunRecord, last?: Entry): RunInfo {
  const error = failureOf(last) ?? stopOf(record);
  return { ...listedInfoOf(record), ...(error && { error }) };
}

/** The facts of a row alone: nothing is read from a payload. */
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
    ...(record.errorCode !== undefined && { errorCode: record.errorCode }),
  };
}
