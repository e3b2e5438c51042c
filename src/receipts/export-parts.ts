// Export parts: what the exports of a run have in common.
//
// export-parts.E1. The same run gives the same text: nothing is drawn, and no time of the export is in it.
// export-parts.E2. Steps have no times: a claim says what happened, not when. Where a format needs a time, it is that of the run.

import type { EpochMs } from "../base/index.ts";
import type { ExportedRun } from "./read-provenance.ts";
import type { StepRecord } from "./steps.ts";

export interface ExportContext {
  /** Who says so: the origin of the signing key, or another name. */
  readonly origin: string;
  /** As `reprise/0.2.0`. */
  readonly engine: string;
}

export interface ExportedStep {
  readonly step: StepRecord;
  /** The command; a repeated one, such as a second `Cancel`, is numbered. */
  readonly command: string;
  readonly used: readonly string[];
  readonly generated: readonly string[];
}

export function* stepsOf({ steps }: ExportedRun): Iterable<ExportedStep> {
  const counts = new Map<string, number>();
  for (const step of steps) {
    const count = counts.get(step.command) ?? 0;
    counts.set(step.command, count + 1);
    const generated = [step.out, step.error, step.kept, step.skipped].filter((key) => key !== undefined);
    const command = count === 0 ? step.command : `${step.command}[${count}]`;
    yield { step, command, used: step.in === undefined ? [] : [step.in], generated };
  }
}

export function isoTime(at: EpochMs): string {
  return new Date(at).toISOString();
}

/** `order-7#0`, or `order-7#0/Task(0)`. */
export function invocationOf({ record }: ExportedRun, command?: string): string {
  const run = `${record.id}#${record.generation}`;
  return command === undefined ? run : `${run}/${command}`;
}

export function valueUri(key: string): string {
  return `urn:reprise:value:${key}`;
}
