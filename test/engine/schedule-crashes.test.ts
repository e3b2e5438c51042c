// A crash at every commit of a schedule: no firing is lost, and none happens twice.

import { expect, test } from "vitest";
import { promise, workflow, type ScheduleOptions } from "reprise";
import { createCrashWorld } from "../../src/testing/crash-world.ts";
import { CrashedError } from "../../src/testing/test-process.ts";
import type { WriteInterceptor } from "../../src/testing/crashable-store.ts";
import { CrashableTestEngine } from "../../src/testing/test-engine.ts";
import { collect } from "./world.ts";

const NOON = Date.parse("2026-11-16T12:00:00Z");
const HOUR = 3_600_000;
const nap = workflow("nap", async (ctx) => {
  await ctx.sleep("90 minutes");
  return ctx.run("wake", () => ctx.runId);
});
const slow = workflow("slow", { ports: { go: promise() } }, async (ctx) => ctx.promise("go"));

interface Kill {
  readonly batch: number;
  readonly when: "before" | "after";
}

/** Records the batches that wrote something, and crashes at the named one. */
function createCut(wrote: number[], kill: Kill | undefined, die: () => void): WriteInterceptor {
  let count = 0;
  return async (apply) => {
    const batch = count++;
    const kills = kill?.batch === batch;
    if (!kills || kill.when === "after") {
      const outcomes = await apply();
      if (outcomes.some(hasWritten)) wrote.push(batch);
      if (!kills) return outcomes;
    }
    die();
    return new Promise(() => {});
  };
}

/** A poll without a result writes nothing. */
function hasWritten(outcome: unknown): boolean {
  if (Array.isArray(outcome)) return outcome.length > 0;
  const { runs, ready } = outcome as { runs?: unknown[]; ready?: number };
  return runs === undefined || runs.length > 0 || ready !== 0;
}

/** Runs a schedule for four and a half hours; returns its runs, and which batches wrote something. */
async function runSchedule(options: ScheduleOptions, what: typeof nap | typeof slow, backfills: boolean, kill?: Kill) {
  const world = await createCrashWorld([nap, slow], [], NOON);
  const { time, store } = world;
  const wrote: number[] = [];
  let engine: CrashableTestEngine | undefined;
  let killed = false;
  const cut = createCut(wrote, kill, () => {
    killed = true;
    engine?.process.crash();
  });
  const outside = async (): Promise<void> => {
    const schedule = await engine!.schedule("sync", what as never, undefined, options);
    if (backfills) await schedule.backfill(new Date(NOON - 2 * HOUR), new Date(NOON));
    await engine!.clock.advance(NOON + 4.5 * HOUR - time.now());
  };
  try {
    engine = await CrashableTestEngine.on(world, { intercept: cut });
    if (killed) engine.process.crash();
    await outside().catch((error: unknown) => {
      if (!(error instanceof CrashedError)) throw error;
    });
    if (killed) {
      engine = await CrashableTestEngine.on(world);
      await outside();
    }
    expect(await store.check()).toEqual([]);
    const runs = await collect(engine.list());
    for (const { id, definition } of runs) expect((await engine.get(definition, id).verify()).status, id).toBe("same");
    const seen = runs.map(({ id, status, createdAt }) => `${id} ${status} ${createdAt.toISOString()}`);
    await engine.process.core.drain();
    return { runs: seen.toSorted(), wrote, killed };
  } finally {
    await store.close();
  }
}

test.each<[string, ScheduleOptions, typeof nap | typeof slow, boolean, number]>([
  ["that allows overlap", { cron: "0 * * * *", overlap: "allow", catchUp: "all" }, nap, false, 4],
  ["that skips", { cron: "0 * * * *", overlap: "skip" }, nap, false, 2],
  ["that queues", { cron: "0 * * * *", overlap: "queue" }, nap, false, 3],
  ["that cancels", { cron: "0 * * * *", overlap: "cancel" }, slow, false, 4],
  ["that is backfilled", { every: "1 hour", overlap: "allow" }, nap, true, 6],
])(
  "a schedule %s has the same runs after a crash at every commit",
  // About fifty crashes each.
  { timeout: 120_000 },
  async (_which, options, what, fills, count) => {
    const undisturbed = await runSchedule(options, what, fills);
    expect(undisturbed.runs).toHaveLength(count);
    let kills = 0;
    for (const batch of undisturbed.wrote)
      for (const when of ["before", "after"] as const) {
        const disturbed = await runSchedule(options, what, fills, { batch, when });
        if (disturbed.killed) kills += 1;
        expect(disturbed.runs, `killed ${when} batch ${batch}`).toEqual(undisturbed.runs);
      }
    expect(kills).toBeGreaterThan(10);
  },
);
