// Checks the name and the options of a schedule before anything is written (client-core.N1).

import { checkName, checkOptionNames, RepriseError, toMs, type EpochMs } from "../base/index.ts";
import {
  CATCH_UPS,
  OVERLAPS,
  scheduleTag,
  type CatchUp,
  type Overlap,
  type PlannedTimes,
  type Timing,
} from "../kernel/index.ts";
import { parseCron, timesOf } from "../process/index.ts";
import type { ScheduleOptions } from "./api.ts";

/** Ids and tags of runs contain the schedule's name, and both have length limits. */
const MAX_NAME = 190;
const SECOND = 1_000;
const YEAR_MS = 366 * 86_400_000;
const MAX_EVERY_MS = 10 * YEAR_MS;
/** How many of the next planned times a jitter is checked against. */
const GAPS = 16;

export interface CheckedSchedule {
  readonly timing: Timing;
  readonly overlap: Overlap;
  readonly catchUp: CatchUp;
  readonly jitterMs: number;
}

export function checkScheduleName(name: unknown): string {
  const checked = checkName(name, "schedule name");
  if (checked.length > MAX_NAME)
    throw new RepriseError(
      "BAD_NAME",
      `schedule name: expected at most ${MAX_NAME} characters, because the ids and the tag ${JSON.stringify(`${scheduleTag("")}…`)} of its runs contain it, got ${checked.length}.`,
    );
  return checked;
}

export function checkSchedule(options: unknown, now: EpochMs): CheckedSchedule {
  if (typeof options !== "object" || options === null)
    throw new RepriseError("BAD_OPTIONS", `schedule: expected an object of options, got ${String(options)}.`);
  checkOptionNames(options, ["cron", "every", "timeZone", "overlap", "catchUp", "jitter", "signal"], "schedule");
  const given: ScheduleOptions = options;
  const timing = checkTiming(given, now);
  const overlap = checkChoice("overlap", given.overlap ?? "skip", OVERLAPS);
  const catchUp = checkChoice("catchUp", given.catchUp ?? "last", CATCH_UPS);
  if (overlap === "cancel" && catchUp === "all")
    throw new RepriseError(
      "BAD_SCHEDULE",
      `schedule: with overlap "cancel" every missed time would cancel the one before it. Use catchUp "last" or "none", or overlap "queue".`,
    );
  const jitterMs = given.jitter === undefined ? 0 : toMs(given.jitter, "schedule: jitter");
  checkJitter(jitterMs, timesOf(timing), now);
  return { timing, overlap, catchUp, jitterMs };
}

function checkChoice<T extends string>(what: string, value: unknown, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value);
  if (found !== undefined) return found;
  const expected = choices.map((choice) => JSON.stringify(choice)).join(", ");
  throw new RepriseError("BAD_SCHEDULE", `schedule: expected ${what} to be one of ${expected}, got ${String(value)}.`);
}

function checkTiming({ cron, every, timeZone }: ScheduleOptions, now: EpochMs): Timing {
  if ((cron === undefined) === (every === undefined))
    throw new RepriseError(
      "BAD_SCHEDULE",
      `schedule: expected either cron or every, got ${cron === undefined ? "neither" : "both"}.`,
    );
  if (cron !== undefined) return checkCron(cron, timeZone ?? "UTC", now);
  if (timeZone !== undefined)
    throw new RepriseError(
      "BAD_SCHEDULE",
      "schedule: an interval has no time zone. Remove timeZone, or use a cron pattern.",
    );
  const everyMs = checkEvery(every);
  return { everyMs, anchor: now };
}

function checkEvery(every: ScheduleOptions["every"]): number {
  const everyMs = toMs(every!, "schedule: every");
  if (everyMs >= SECOND && everyMs <= MAX_EVERY_MS) return everyMs;
  throw new RepriseError(
    "BAD_SCHEDULE",
    `schedule: expected an interval of at least a second and at most ten years, got ${JSON.stringify(every)}.`,
  );
}

function checkCron(cron: unknown, timeZone: unknown, now: EpochMs): Timing {
  if (typeof cron !== "string" || typeof timeZone !== "string")
    throw new RepriseError(
      "BAD_SCHEDULE",
      `schedule: expected text as cron and timeZone, got ${typeof cron} and ${typeof timeZone}.`,
    );
  const timing = { cron: cron.trim(), timeZone };
  if (parseCron(timing.cron, timeZone).nextRun(new Date(now)) !== null) return timing;
  throw new RepriseError(
    "BAD_SCHEDULE",
    `cron: the pattern ${JSON.stringify(cron)} never matches a date; check its day and month.`,
  );
}

/** With a longer jitter, a run could start before the run planned ahead of it. */
function checkJitter(jitterMs: number, times: PlannedTimes, now: EpochMs): void {
  if (jitterMs === 0) return;
  let at = times.after(now);
  for (let n = 0; n < GAPS && at !== undefined; n += 1) {
    const next = times.after(at);
    if (next !== undefined && next - at < jitterMs)
      throw new RepriseError(
        "BAD_SCHEDULE",
        `schedule: a jitter of ${jitterMs} ms does not fit between ${new Date(at).toISOString()} and ${new Date(next).toISOString()}. Make it shorter than the time between two runs.`,
      );
    at = next;
  }
}
