// Export OpenLineage: events of the run, and of each step with the run as its parent. A value is a dataset, named by its key.
//
// export-openlineage.O1. The id of a run must be a UUID. It is derived from the invocation, so that the same run has the same id
//   wherever it is exported.

import { sha256Hex } from "../base/index.ts";
import type { RunStatus } from "../kernel/index.ts";
import { invocationOf, isoTime, stepsOf, type ExportContext } from "./export-parts.ts";
import type { ExportedRun } from "./read-provenance.ts";

const EVENT_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent";
const PARENT_SCHEMA = "https://openlineage.io/spec/facets/1-0-1/ParentRunFacet.json#/$defs/ParentRunFacet";
const DATASETS = "urn:reprise:value";

type EventType = "START" | "RUNNING" | "COMPLETE" | "ABORT" | "FAIL";

interface Job {
  readonly namespace: string;
  readonly name: string;
}

export function* exportOpenLineage(exported: ExportedRun, { origin, engine }: ExportContext): Iterable<object> {
  const { record, input, output, error } = exported;
  const { definition, createdAt, endedAt, status } = record;
  const producer = `urn:reprise:engine:${encodeURIComponent(engine)}`;
  const namespace = `reprise/${origin}`;
  const [startedAt, lastAt] = [isoTime(createdAt), isoTime(endedAt ?? createdAt)];
  const event = (eventType: EventType, eventTime: string, run: object, job: Job, data: object): object => ({
    eventType,
    eventTime,
    producer,
    schemaURL: EVENT_SCHEMA,
    run,
    job,
    ...data,
  });
  const run = { runId: uuidOf(invocationOf(exported)) };
  const job = { namespace, name: definition };
  const inputs = datasets(input);
  yield event("START", startedAt, run, job, { inputs });
  for (const { step, command, used, generated } of stepsOf(exported)) {
    const facet = { _producer: producer, _schemaURL: PARENT_SCHEMA, run, job };
    const own = { runId: uuidOf(invocationOf(exported, command)), facets: { parent: facet } };
    const named = { namespace, name: `${definition}.${step.name ?? step.command}` };
    const data = { inputs: datasets(...used) };
    // export-parts.E2
    yield event("START", startedAt, own, named, data);
    const end = step.error !== undefined ? "FAIL" : step.end === "cancelled" ? "ABORT" : "COMPLETE";
    const isOpen = generated.length === 0 && step.end === undefined && step.kind !== "message";
    if (!isOpen) yield event(end, lastAt, own, named, { ...data, outputs: datasets(...generated) });
  }
  yield event(endEvent(status), lastAt, run, job, { inputs, outputs: datasets(output, error) });
}

function endEvent(status: RunStatus): EventType {
  if (status === "completed" || status === "continued") return "COMPLETE";
  if (status === "failed") return "FAIL";
  return status === "cancelled" ? "ABORT" : "RUNNING";
}

function datasets(...keys: readonly (string | undefined)[]): readonly object[] {
  return keys.filter((key) => key !== undefined).map((name) => ({ namespace: DATASETS, name }));
}

/** export-openlineage.O1. Version 8: the bits are ours. */
function uuidOf(text: string): string {
  const hex = sha256Hex(`reprise/openlineage/v1/${text}`);
  const variant = ((Number.parseInt(hex[16]!, 16) & 3) | 8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
