import fc from "fast-check";
import { expect, test } from "vitest";
import type { Timing } from "../kernel/index.ts";
import { timesOf } from "./schedule-times.ts";

const START = Date.parse("2026-03-27T00:00:00Z");
const DAY = 86_400_000;

const timings: readonly Timing[] = [
  { everyMs: 7_000, anchor: START + 123 },
  { everyMs: 3_600_000, anchor: START - 40 * DAY },
  { cron: "*/7 * * * *", timeZone: "Europe/Berlin" },
  { cron: "30 2 * * *", timeZone: "Europe/Berlin" },
  { cron: "0 */2 * * *", timeZone: "America/New_York" },
  { cron: "15 30 1,2,3 * * *", timeZone: "Australia/Lord_Howe" },
];

test.each(timings)("the times of %o ascend, and a stretch holds exactly those that lie in it", (timing) => {
  const { after, within } = timesOf(timing);
  const walk = (first: number, last: number): number[] => {
    const times: number[] = [];
    for (let at = after(first - 1); at !== undefined && at <= last; at = after(at)) times.push(at);
    return times;
  };
  const moment = fc.integer({ min: START, max: START + 4 * DAY });
  const length = fc.integer({ min: 0, max: DAY / 4 });
  fc.assert(
    fc.property(moment, length, fc.integer({ min: 1, max: 40 }), (first, ms, limit) => {
      const times = walk(first, first + ms);
      expect(times).toEqual([...new Set(times)].toSorted((a, b) => a - b));
      expect(within(first, first + ms, 1e6)).toEqual(times);
      expect(within(first, first + ms, limit)).toEqual(times.slice(-limit));
    }),
    { numRuns: 30 },
  );
});

test("both ends of a stretch count, to the millisecond", () => {
  const hourly = timesOf({ cron: "0 * * * *", timeZone: "UTC" });
  const hour = Date.parse("2026-03-27T10:00:00Z");
  for (const limit of [1, 5]) {
    expect(hourly.within(hour, hour, limit)).toEqual([hour]);
    expect(hourly.within(hour - DAY, hour, limit).at(-1)).toBe(hour);
    expect(hourly.within(hour - DAY, hour + 999, limit).at(-1)).toBe(hour);
    expect(hourly.within(hour - DAY, hour - 1, limit).at(-1)).toBe(hour - 3_600_000);
    expect(hourly.within(hour + 1, hour + 2, limit)).toEqual([]);
  }
  expect(hourly.after(hour)).toBe(hour + 3_600_000);
  expect(hourly.after(hour - 1)).toBe(hour);
});

test("patterns with steps follow real time through the night the clocks change", () => {
  const { within } = timesOf({ cron: "*/30 * * * *", timeZone: "Europe/Berlin" });
  const hours = (day: string): number => within(Date.parse(day), Date.parse(day) + 5 * 3_600_000, 99).length;
  expect([hours("2026-03-29"), hours("2026-10-25"), hours("2026-11-16")]).toEqual([11, 11, 11]);
});
