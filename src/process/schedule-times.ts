// Schedule times: the planned times of a cron pattern or an interval. The only file that imports croner.
//
// schedule-times.T1. Times depend on the arguments only: every call passes a reference time, so croner does not read the
//   machine's clock.
// schedule-times.T2. Daylight saving time, as croner handles it: a fixed time that a day skips fires when the gap ends; one
//   that a day repeats fires the first time. Patterns with steps and lists follow real time through both.

import { Cron } from "croner";
import { RepriseError, type EpochMs } from "../base/index.ts";
import type { PlannedTimes, Timing } from "../kernel/index.ts";

const FIELDS = /^(?:@[a-z]+|\S+(?:\s+\S+){4,5})$/iu;

export function timesOf(timing: Timing): PlannedTimes {
  return "cron" in timing
    ? cronTimes(parseCron(timing.cron, timing.timeZone))
    : everyTimes(timing.everyMs, timing.anchor);
}

/** Throws when the pattern or the time zone is invalid. */
export function parseCron(cron: string, timeZone: string): Cron {
  checkTimeZone(timeZone);
  // schedule-times.T1. A question mark in a pattern means the current time.
  if (!FIELDS.test(cron) || cron.includes("?")) throw badCron(cron, undefined);
  try {
    return new Cron(cron, { timezone: timeZone, mode: "5-or-6-parts" });
  } catch (error) {
    throw badCron(cron, error);
  }
}

function badCron(cron: string, cause: unknown): RepriseError {
  const why = cause instanceof Error ? ` (${cause.message.replace(/^CronPattern: /, "").replace(/\.$/, "")})` : "";
  return new RepriseError(
    "BAD_SCHEDULE",
    `cron: expected five fields (minute, hour, day of month, month, day of week) such as "0 9 * * MON-FRI", six with seconds in front, or a nickname such as "@daily", got ${JSON.stringify(cron)}${why}.`,
    { cause },
  );
}

function checkTimeZone(timeZone: string): void {
  try {
    new Intl.DateTimeFormat("en", { timeZone });
  } catch (error) {
    throw new RepriseError(
      "BAD_SCHEDULE",
      `timeZone: expected a name such as "Europe/Berlin" or "UTC", got ${JSON.stringify(timeZone)}.`,
      { cause: error },
    );
  }
}

function cronTimes(cron: Cron): PlannedTimes {
  const after = (at: EpochMs): EpochMs | undefined => cron.nextRun(new Date(at))?.getTime();
  return {
    after,
    within(first, last, limit) {
      const times: EpochMs[] = [];
      for (let at = after(first - 1); at !== undefined && at <= last; at = after(at)) {
        // After a long downtime, counting forward would take seconds: count back from the end instead.
        if (times.length === limit) return latest(cron, first, last, limit);
        times.push(at);
      }
      return times;
    },
  };
}

const SECOND = 1_000;

function latest(cron: Cron, first: EpochMs, last: EpochMs, limit: number): readonly EpochMs[] {
  // Croner counts whole seconds, and excludes its reference.
  const reference = new Date((Math.floor(last / SECOND) + 1) * SECOND);
  const times = cron.previousRuns(limit, reference).map((date) => date.getTime());
  return times.filter((at) => at >= first).toReversed();
}

function everyTimes(everyMs: number, anchor: EpochMs): PlannedTimes {
  const after = (at: EpochMs): EpochMs => anchor + (Math.floor((at - anchor) / everyMs) + 1) * everyMs;
  return {
    after,
    within(first, last, limit) {
      const start = after(first - 1);
      const count = Math.max(0, Math.floor((last - start) / everyMs) + 1);
      const kept = Math.min(count, limit);
      return Array.from({ length: kept }, (_, n) => start + (count - kept + n) * everyMs);
    },
  };
}
