// The runs a schedule starts.

import { decode, unreadableReason, type EpochMs } from "../base/index.ts";
import { lineOf, plannedRunId, scheduleTag, type NewRun, type ScheduleState } from "../kernel/index.ts";
import { newRun } from "./new-run.ts";
import type { WorkerOptions } from "./worker.ts";

export type ScheduledRunHost = Pick<WorkerOptions, "registry" | "runtime" | "payloadLimit" | "newSalt">;

/** Of the version this process has; where it does not have the definition, of the one the schedule was made with. */
export function scheduledRun(host: ScheduledRunHost, schedule: ScheduleState, id: string): NewRun {
  const { registry, runtime, payloadLimit, newSalt } = host;
  const { name, definition, version, input } = schedule;
  const unreadable = input === undefined ? undefined : unreadableReason(input);
  if (unreadable !== undefined) throw unreadable;
  const body =
    registry.findWorkflow(definition) ?? ({ kind: "workflow", name: definition, version, line: undefined } as const);
  const line = body.line && lineOf(body.line, input && decode(input), `workflow ${definition}`);
  return newRun(body, { id, input, tags: [scheduleTag(name)], line, runtime, payloadLimit, salt: newSalt?.() });
}

export function plannedRun(host: ScheduledRunHost, schedule: ScheduleState, at: EpochMs): NewRun {
  return scheduledRun(host, schedule, plannedRunId(schedule.name, at));
}
