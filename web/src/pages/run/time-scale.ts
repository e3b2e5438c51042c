// Time scale: where a time stands on the chart. Idle stretches above 10% of the run are folded to a fixed width, the future has the
// right edge, and the rest is linear.
//
// time-scale.T1. The scale never goes backwards: a later time stands at the same place or further right.

import type { Timeline, TimelineSpan } from "../../../../src/contract/timeline.ts";
import { clockTime, day, duration } from "../../format.ts";

export interface Fold {
  readonly from: number;
  readonly to: number;
}

export interface Tick {
  /** From 0 to 1. */
  readonly at: number;
  readonly label: string;
  readonly kind: "first" | "time" | "now" | "last";
}

export interface TimeScale {
  /** From 0 to 1. */
  readonly place: (time: number) => number;
  readonly folds: readonly Fold[];
  readonly ticks: readonly Tick[];
  readonly start: number;
  /** The end of the run, or now. */
  readonly end: number;
  /** Where the present stands; undefined: the run has ended. */
  readonly nowAt: number | undefined;
}

const FOLD_WIDTH = 0.06;
const FUTURE_WIDTH = 0.22;
const IDLE_SHARE = 0.1;
const MOST_FOLDS = 5;
/** Idle time that is over before a person notices it is not worth a fold. */
const SHORTEST_FOLD_MS = 2000;
/** In these a worker works for the run, or the run waits for one. */
const BUSY = new Set<TimelineSpan["kind"]>(["queue", "work", "failed", "lost", "returned", "running"]);

export function createTimeScale(timeline: Timeline, now: number, fold: boolean): TimeScale {
  const start = Date.parse(timeline.startedAt);
  const isLive = timeline.endedAt === undefined;
  const end = Math.max(start + 1, isLive ? now : Date.parse(timeline.endedAt));
  const folds = fold ? idleStretches(timeline, start, end) : [];
  const future = isLive ? futureTimes(timeline, end) : [];
  const presentWidth = future.length > 0 ? 1 - FUTURE_WIDTH : isLive ? 0.96 : 1;
  const foldedMs = folds.reduce((sum, one) => sum + one.to - one.from, 0);
  const linearWidth = presentWidth - folds.length * FOLD_WIDTH;
  const perMs = linearWidth / Math.max(1, end - start - foldedMs);

  const place = (time: number): number => {
    if (time <= start) return 0;
    if (time > end) {
      if (future.length === 0) return 1;
      const index = future.findIndex((one) => time <= one);
      if (index === -1) return 1;
      const from = index === 0 ? end : future[index - 1]!;
      const part = (time - from) / Math.max(1, future[index]! - from);
      return presentWidth + ((index + part) / future.length) * (1 - presentWidth);
    }
    let at = 0;
    let from = start;
    for (const one of folds) {
      if (time <= one.from) break;
      at += (one.from - from) * perMs;
      if (time < one.to) return at + ((time - one.from) / (one.to - one.from)) * FOLD_WIDTH;
      at += FOLD_WIDTH;
      from = one.to;
    }
    return at + (time - from) * perMs;
  };

  return {
    place,
    folds,
    start,
    end,
    nowAt: isLive ? presentWidth : undefined,
    ticks: ticksOf({ start, end, folds, future, place, isLive, perMs }),
  };
}

/** The stretches without work, longest first, at most as many as fit. */
function idleStretches(timeline: Timeline, start: number, end: number): readonly Fold[] {
  const busy: [number, number][] = [];
  const add = (from: string, to: string | undefined): void => {
    busy.push([Date.parse(from), to === undefined ? end : Date.parse(to)]);
  };
  for (const row of timeline.rows) for (const span of row.spans) if (BUSY.has(span.kind)) add(span.from, span.to);
  // The time without a worker is what a takeover is about: it is never folded.
  for (const { lostAt, takenAt } of timeline.takeovers) add(lostAt, takenAt);
  busy.sort((a, b) => a[0] - b[0]);
  const stretches: Fold[] = [];
  let reached = start;
  const idle = (from: number, to: number): void => {
    if (to - from > Math.max(SHORTEST_FOLD_MS, (end - start) * IDLE_SHARE)) stretches.push({ from, to });
  };
  for (const [from, to] of busy) {
    if (from > reached) idle(reached, Math.min(from, end));
    reached = Math.max(reached, to);
  }
  if (reached < end) idle(reached, end);
  const longest = stretches.sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, MOST_FOLDS);
  // A little of the idle time stays on both sides, so that what surrounds it can be seen.
  const idleMs = longest.reduce((sum, { from, to }) => sum + to - from, 0);
  const margin = Math.min((end - start) * IDLE_SHARE * 0.2, Math.max(1, end - start - idleMs) * 0.06);
  return longest.map(({ from, to }) => ({ from: from + margin, to: to - margin })).sort((a, b) => a.from - b.from);
}

/** The times at which open waits end, at most four. */
function futureTimes({ rows }: Timeline, end: number): readonly number[] {
  const times = new Set<number>();
  for (const row of rows) {
    for (const span of row.spans) {
      if (span.to === undefined && span.until !== undefined && Date.parse(span.until) > end)
        times.add(Date.parse(span.until));
    }
  }
  const sorted = [...times].sort((a, b) => a - b);
  return sorted.length <= 4 ? sorted : [...sorted.slice(0, 3), sorted.at(-1)!];
}

const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 21_600_000, 43_200_000, 86_400_000, 172_800_000, 604_800_000,
];

interface TickInput {
  readonly start: number;
  readonly end: number;
  readonly folds: readonly Fold[];
  readonly future: readonly number[];
  readonly place: (time: number) => number;
  readonly isLive: boolean;
  readonly perMs: number;
}

function ticksOf({ start, end, folds, future, place, isLive, perMs }: TickInput): readonly Tick[] {
  const ticks: Tick[] = [{ at: 0, label: clockTime(start), kind: "first" }];
  // About one label per 15% of the width.
  const step = STEPS.find((one) => one * perMs >= 0.15) ?? STEPS.at(-1)!;
  const nowAt = place(end);
  const isFolded = (time: number): boolean => folds.some(({ from, to }) => time > from && time < to);
  for (let time = start + step; time < end; time += step) {
    if (isFolded(time)) {
      const fold = folds.find(({ from, to }) => time > from && time < to)!;
      // Jumps over the fold: a run that waited for days has millions of steps in it.
      time = start + Math.floor((fold.to - start) / step) * step;
      continue;
    }
    const at = place(time);
    if (at - ticks.at(-1)!.at > 0.1 && nowAt - at > 0.07)
      ticks.push({ at, label: `+${duration(time - start).replace(".0 ", " ")}`, kind: "time" });
    if (ticks.length > 12) break;
  }
  if (isLive) ticks.push({ at: nowAt, label: "now", kind: "now" });
  else if (nowAt - ticks.at(-1)!.at > 0.1) ticks.push({ at: 1, label: `+${duration(end - start)}`, kind: "last" });
  future.forEach((time, index) => {
    const isSameDay = new Date(time).toDateString() === new Date(end).toDateString();
    const label = isSameDay ? clockTime(time).slice(0, 5) : day(time, end);
    ticks.push({ at: place(time), label, kind: index === future.length - 1 ? "last" : "time" });
  });
  return ticks;
}
