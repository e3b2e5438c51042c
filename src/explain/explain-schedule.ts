// Explain schedule: why a schedule has not started its next run.
//
// A run of a schedule does not exist before its planned time is fired, so the schedule has the reason.

import { hasEnded, readWorkerProfile, type ScheduleRecord, type Store, type WorkerInfo } from "../kernel/index.ts";
import { liveWorkers } from "./claims.ts";
import { explain } from "./explain.ts";
import type { LiveWorker, WaitFacts, WaitReason } from "./reasons.ts";
import { withAdvice } from "./sentences.ts";

export async function explainSchedule(store: Store, schedule: ScheduleRecord): Promise<readonly WaitReason[]> {
  const workers = await store.listWorkers();
  const now = store.now();
  const own = withAdvice(scheduleFacts(schedule, workers, now), { id: "", now, hasUnread: false });
  // Planned times wait for the end of that run: why it does not move is part of the answer.
  const last =
    own.reason === "schedule" && own.state === "overlap" && own.run !== undefined
      ? await store.findRun(own.run)
      : undefined;
  return last === undefined ? [own] : [own, ...(await explain(store, last))];
}

/** Pure. */
export function scheduleFacts(schedule: ScheduleRecord, workers: readonly WorkerInfo[], now: number): WaitFacts {
  const { name, definition, paused, nextAt, dueAt, lastRun, lastStatus, queued } = schedule;
  const made = { reason: "schedule", schedule: name, definition, queued: queued.length } as const;
  if (paused) return { ...made, state: "paused" };
  if (queued.length > 0 && lastRun !== undefined && lastStatus !== undefined && !hasEnded(lastStatus))
    return { ...made, state: "overlap", run: lastRun };
  if (nextAt === undefined) return { ...made, state: "over" };
  if (dueAt === undefined || dueAt > now) return { ...made, state: "planned", at: new Date(dueAt ?? nextAt) };
  return { ...made, state: "overdue", at: new Date(dueAt), workers: liveFirers(definition, workers, now) };
}

/** Any live worker that has a version of the definition fires the schedule. */
function liveFirers(definition: string, workers: readonly WorkerInfo[], now: number): readonly LiveWorker[] {
  return liveWorkers(workers, now).map(({ worker, name, profile: text }) => {
    const profile = readWorkerProfile(text);
    const has = [...(profile?.definitions ?? []), ...(profile?.unclaimed ?? [])].some((one) => one.name === definition);
    const lacks = profile === undefined ? "does not publish what it claims" : has ? undefined : "does not have it";
    return { worker, name, ...(lacks !== undefined && { lacks }), draining: false };
  });
}
