// Duration: times as options give them, and as people read them.

import { RepriseError } from "./errors.ts";

export type Unit =
  | "ms"
  | "s"
  | "m"
  | "h"
  | "d"
  | "second"
  | "seconds"
  | "minute"
  | "minutes"
  | "hour"
  | "hours"
  | "day"
  | "days"
  | "week"
  | "weeks";

/** A number is milliseconds; text is a number and a unit: `"500ms"`, `"30 s"`, `"2 hours"`. */
export type Duration = number | `${number}${Unit}` | `${number} ${Unit}`;

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const WEEK = 7 * DAY;

const UNIT_MS: Readonly<Record<Unit, number>> = {
  ms: 1,
  s: SECOND,
  m: MINUTE,
  h: HOUR,
  d: DAY,
  second: SECOND,
  seconds: SECOND,
  minute: MINUTE,
  minutes: MINUTE,
  hour: HOUR,
  hours: HOUR,
  day: DAY,
  days: DAY,
  week: WEEK,
  weeks: WEEK,
};

const DURATION_TEXT = /^(\d+(?:\.\d+)?) ?([a-z]+)$/;

/** Whole milliseconds; refuses any other value, and names `what` in the message. */
export function toMs(duration: Duration, what = "duration"): number {
  const ms = typeof duration === "string" ? parseMs(duration) : duration;
  if (typeof ms === "number" && Number.isSafeInteger(ms) && ms >= 0) return ms + 0;
  throw new RepriseError(
    "BAD_DURATION",
    `${what}: expected whole milliseconds or text such as "500ms", "30 s", "10 minutes" or "2 hours", not ${show(duration)}.`,
    { details: { what, duration: show(duration) } },
  );
}

function parseMs(text: string): number | undefined {
  const match = DURATION_TEXT.exec(text);
  if (match === null) return undefined;
  const [, amount, unit] = match as unknown as [string, string, string];
  if (!Object.hasOwn(UNIT_MS, unit)) return undefined;
  const exact = Number(amount) * UNIT_MS[unit as Unit];
  // 1.1 s is 1100.0000000000002 ms in binary: accept that, but not half a millisecond.
  const rounded = Math.round(exact);
  return Math.abs(exact - rounded) < 1e-6 ? rounded : undefined;
}

function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  return typeof value === "number" || value === null ? `${value}` : `a value of type ${typeof value}`;
}

/** For people: `"250 ms"`, `"1.2 s"`, `"3 m 4 s"`, `"2 d"`. Never parsed, never hashed. */
export function formatMs(ms: number): string {
  if (!Number.isFinite(ms)) return String(ms);
  if (ms < 0) return `-${formatMs(-ms)}`;
  if (Math.round(ms) < SECOND) return `${Math.round(ms)} ms`;
  // Round before choosing the unit: 59,960 ms is a minute, not "60 s".
  const tenths = Math.round(ms / 100);
  if (tenths < 600) return `${tenths / 10} s`;
  const seconds = Math.round(ms / SECOND);
  if (seconds < 3_600) return pair(seconds, 60, "m", "s");
  const minutes = Math.round(ms / MINUTE);
  if (minutes < 1_440) return pair(minutes, 60, "h", "m");
  return pair(Math.round(ms / HOUR), 24, "d", "h");
}

function pair(small: number, ratio: number, bigUnit: string, smallUnit: string): string {
  const rest = small % ratio;
  const big = `${Math.floor(small / ratio)} ${bigUnit}`;
  return rest === 0 ? big : `${big} ${rest} ${smallUnit}`;
}
