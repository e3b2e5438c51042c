// ScheduledRun: the runs that a schedule starts.

import { decode, unreadableReason, type EpochMs } from "../base/index.ts";
import { queueSlotOf, plannedRunId, scheduleTag, type NewRun, type ScheduleState } from "../kernel/index.ts";
import { newRun, startSpan, type NewRunHost } from "./new-run.ts";

/** Uses the newest version this process knows; without the definition, the version the schedule was made with. */
export function scheduledRun(host: NewRunHost, schedule: ScheduleState, id: string): NewRun {
  const { registry, runtime, payloadLimit, newSalt } = host;
  const { name, definition, version, input } = schedule;
  const unreadable = input === undefined ? undefined : unreadableReason(input);
  if (unreadable !== undefined) throw unreadable;
  const body =
    registry.findWorkflow(definition) ??
    ({ kind: "workflow", name: definition, version, slotOptions: undefined } as const);
  const slot = body.slotOptions && queueSlotOf(body.slotOptions, input && decode(input), `workflow ${definition}`);
  const span = startSpan(host, body, id, { isRoot: true });
  return newRun(body, { id, input, tags: [scheduleTag(name)], slot, runtime, payloadLimit, salt: newSalt?.(), span });
}

export function plannedRun(host: NewRunHost, schedule: ScheduleState, at: EpochMs): NewRun {
  return scheduledRun(host, schedule, plannedRunId(schedule.name, at));
}
