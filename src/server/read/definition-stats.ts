// Definition stats: how runs of a definition ended in the last hour, per minute, and how many live.
//
// definition-stats.D1. Reads are bounded: at most `MAX_ENDED` ended runs per status, the last ones. Children are not counted.

import type { DefinitionStats } from "../../contract/index.ts";
import type { RunAccess } from "../../engine/index.ts";
import type { EndedRunStatus, RunTimes, Store } from "../../kernel/index.ts";
import { cached } from "./cached.ts";
import { kindOf, type KnownDefinition } from "./definition-body.ts";

const MINUTES = 60;
const MINUTE_MS = 60_000;
const MAX_ENDED = 2_000;
const LIVE_UP_TO = 10_000;
const STATUSES: readonly EndedRunStatus[] = ["completed", "failed", "cancelled", "continued"];

export function definitionStats(
  store: Store,
  { registry }: RunAccess,
  { name, versions }: KnownDefinition,
): Promise<DefinitionStats> {
  return cached(store, `stats ${name}`, async () => {
    const now = store.now();
    const from = (Math.floor(now / MINUTE_MS) - MINUTES + 1) * MINUTE_MS;
    const ended = new Map<EndedRunStatus, readonly RunTimes[]>();
    for (const status of STATUSES)
      ended.set(status, await store.readRunTimes({ definition: name, status, endedAfter: from, limit: MAX_ENDED }));
    const { counts } = await store.countStatuses(LIVE_UP_TO, name);
    const { queued, expected, running, waiting, paused, blocked, determinism_violation: violations } = counts;
    const all = [...ended.values()].flat();
    const minutes = perMinute(all, from);
    const durations = minutes.map((times) => times.map(durationOf).toSorted((a, b) => a - b));
    const total = all.map(durationOf).toSorted((a, b) => a - b);
    const failed = ended.get("failed") ?? [];
    return {
      definition: name,
      kind: registry.findWorkflow(name)?.kind ?? (await kindOf(store, name)),
      versions: versions.map(({ version, live }) => ({ version, live })),
      live: { queued: queued + expected, running, waiting, paused, stopped: blocked + violations },
      ended: minutes.map(({ length }) => length),
      failed: perMinute(failed, from).map(({ length }) => length),
      p50: durations.map((times) => quantile(times, 0.5) ?? null),
      p95: durations.map((times) => quantile(times, 0.95) ?? null),
      total: {
        ended: all.length,
        failed: failed.length,
        ...(total.length > 0 && { p50Ms: quantile(total, 0.5)!, p95Ms: quantile(total, 0.95)! }),
      },
      sampled: [...ended.values()].some(({ length }) => length === MAX_ENDED),
    };
  });
}

function durationOf({ createdAt, endedAt }: RunTimes): number {
  return Math.max(0, endedAt - createdAt);
}

/** The runs that ended in each of the last minutes, the oldest minute first. */
function perMinute(times: readonly RunTimes[], from: number): readonly (readonly RunTimes[])[] {
  const minutes: RunTimes[][] = Array.from({ length: MINUTES }, () => []);
  for (const one of times) minutes[Math.floor((one.endedAt - from) / MINUTE_MS)]?.push(one);
  return minutes;
}

/** Of sorted numbers. */
function quantile(sorted: readonly number[], part: number): number | undefined {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}
