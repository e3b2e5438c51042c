import fc from "fast-check";
import { expect, test } from "vitest";
import { dueTimeOf, MAX_CATCH_UP, planFiring, type PlannedTimes } from "./schedule-plan.ts";
import { CATCH_UPS, OVERLAPS, type ScheduleRecord } from "./schedule.ts";

const MINUTE = 60_000;

const minutely: PlannedTimes = {
  after: (at) => (Math.floor(at / MINUTE) + 1) * MINUTE,
  within(first, last, limit) {
    const times = [];
    for (let at = Math.ceil(first / MINUTE) * MINUTE; at <= last; at += MINUTE) times.push(at);
    return times.slice(-limit);
  },
};

function record(differently: Partial<ScheduleRecord>): ScheduleRecord {
  const nextAt = differently.nextAt ?? 10 * MINUTE;
  return {
    name: "tick",
    definition: "tick",
    version: 1,
    input: undefined,
    timing: { everyMs: MINUTE, anchor: 0 },
    overlap: "skip",
    catchUp: "last",
    jitterMs: 0,
    paused: false,
    nextAt,
    dueAt: dueTimeOf("tick", nextAt, differently.jitterMs ?? 0),
    lastAt: undefined,
    lastRun: undefined,
    queued: [],
    token: "t",
    createdAt: 0,
    lastStatus: undefined,
    ...differently,
  };
}

test("each planned time is started, queued or skipped exactly once, in order", () => {
  const policy = fc.record({
    overlap: fc.constantFrom(...OVERLAPS),
    catchUp: fc.constantFrom(...CATCH_UPS),
    jitterMs: fc.constantFrom(0, 50_000),
  });
  const polls = fc.array(fc.record({ afterMs: fc.integer({ min: 1, max: 10 * MINUTE }), runs: fc.boolean() }), {
    minLength: 1,
    maxLength: 30,
  });
  fc.assert(
    fc.property(policy, polls, (options, moments) => {
      let now = 9 * MINUTE;
      let row = record(options);
      const started: number[] = [];
      for (const { afterMs, runs } of moments) {
        now += afterMs;
        const lastStatus = started.length === 0 ? undefined : runs ? "running" : "completed";
        const plan = planFiring({ ...row, lastStatus }, minutely, now);
        expect(plan.nextAt! + (row.jitterMs === 0 ? 0 : row.jitterMs)).toBeGreaterThan(now);
        for (const at of [...plan.starts, ...plan.queued]) expect(at).toBeLessThanOrEqual(now);
        if (runs && started.length > 0 && (row.overlap === "skip" || row.overlap === "queue"))
          expect(plan.starts).toEqual([]);
        if (row.overlap === "skip" || row.overlap === "queue") expect(plan.starts.length).toBeLessThanOrEqual(1);
        started.push(...plan.starts);
        row = { ...row, queued: plan.queued, nextAt: plan.nextAt, dueAt: plan.dueAt };
      }
      expect(started).toEqual([...new Set(started)].toSorted((a, b) => a - b));
      if (row.catchUp !== "all" || row.overlap === "cancel") return;
      const last = (row.nextAt ?? 0) - MINUTE;
      const all = minutely.within(10 * MINUTE, last, MAX_CATCH_UP);
      if (row.overlap === "allow") expect(started).toEqual(all);
      if (row.overlap === "queue") expect([...started, ...row.queued]).toEqual(all);
    }),
  );
});

test("the plan is empty before the due time", () => {
  const row = record({ jitterMs: 30_000 });
  const plan = planFiring(row, minutely, row.dueAt! - 1);
  expect(plan).toEqual({ starts: [], skipped: [], queued: [], cancels: false, nextAt: row.nextAt, dueAt: row.dueAt });
});

test("at most 1,000 times are caught up, and at most as many are queued", () => {
  const now = 5_000 * MINUTE;
  for (const overlap of ["allow", "queue", "skip"] as const) {
    const plan = planFiring(record({ overlap, catchUp: "all" }), minutely, now);
    const times = [...plan.starts, ...plan.queued];
    expect(times).toHaveLength(MAX_CATCH_UP);
    expect(times.at(-1)).toBe(now);
  }
  const full = Array.from({ length: MAX_CATCH_UP }, (_, n) => n);
  const plan = planFiring(record({ overlap: "queue", queued: full, lastStatus: "running" }), minutely, 10 * MINUTE);
  expect(plan).toMatchObject({ starts: [], queued: full, skipped: [10 * MINUTE] });
});

test("a time that the calendar no longer contains still fires", () => {
  const odd = record({ nextAt: 10 * MINUTE + 7 });
  expect(planFiring(odd, minutely, 10 * MINUTE + 8)).toMatchObject({ starts: [10 * MINUTE + 7], nextAt: 11 * MINUTE });
});
