// Virtual time: a clock and timers that move only when a test says so.
//
// V1. Time stands still between calls of `advanceTo`; nothing fires by itself.
// V2. Timers fire in the order of their due times, those due together in the order they were set, each with `now()` equal
//     to its own due time.
// V3. A timer set by one that fires is part of the same advance when it is due in it.
// V4. Firing is synchronous and no promise is awaited between two timers: a test that must see what the first one caused
//     goes on to the next by `advanceTo(nextAt())`.

import { type Clock, type EpochMs, invariant, systemTimers, type Timers } from "../base/index.ts";

export interface VirtualTime {
  readonly clock: Clock;
  readonly timers: Timers;
  now(): EpochMs;
  /** When the next timer is due; undefined when none is set. */
  nextAt(): EpochMs | undefined;
  /** Moves the wall clock and the monotonic clock together, firing what becomes due. */
  advanceTo(ms: EpochMs): void;
  /** Sets the wall clock alone, as an operator or NTP does; timers and the monotonic clock do not notice. */
  setWall(ms: EpochMs): void;
  /** How many timers are set. */
  pending(): number;
}

interface VirtualTimer {
  readonly at: number;
  readonly order: number;
  readonly fn: () => void;
}

/** Some moment; its only merit is that nobody takes it for the real time. */
const DEFAULT_START: EpochMs = 1_893_456_000_000; // 2030-01-01

/**
 * Time under the control of a test.
 *
 * @example
 * ```ts
 * const time = createVirtualTime(0);
 * time.timers.set(1_000, () => console.log("one second later"));
 * time.advanceTo(1_000);
 * ```
 */
export function createVirtualTime(start: EpochMs = DEFAULT_START): VirtualTime {
  // Both count from `start`; only `setWall` lets them differ.
  let elapsed = 0;
  let wallOffset = start;
  let order = 0;
  const timers = new Set<VirtualTimer>();

  function findNext(): VirtualTimer | undefined {
    let next: VirtualTimer | undefined;
    for (const timer of timers) {
      if (next === undefined || timer.at < next.at || (timer.at === next.at && timer.order < next.order)) next = timer;
    }
    return next;
  }

  function now(): EpochMs {
    return wallOffset + elapsed;
  }

  return {
    now,
    clock: { now, monotonic: () => elapsed },
    timers: {
      set(ms, fn) {
        const timer: VirtualTimer = { at: elapsed + Math.max(0, ms), order: order++, fn };
        timers.add(timer);
        return () => void timers.delete(timer);
      },
      // A real macrotask: draining promises takes no virtual time, and only the event loop can do it.
      soon: (fn) => systemTimers.soon(fn),
    },
    nextAt() {
      const next = findNext();
      return next === undefined ? undefined : wallOffset + next.at;
    },
    advanceTo(ms) {
      const until = ms - wallOffset;
      invariant(until >= elapsed, "virtual time moves forwards only; use setWall to set the clock back", {
        now: now(),
        ms,
      });
      for (let next = findNext(); next !== undefined && next.at <= until; next = findNext()) {
        timers.delete(next);
        // V2. Never back: a timer set with no delay is due at the present moment.
        elapsed = Math.max(elapsed, next.at);
        next.fn();
      }
      elapsed = Math.max(elapsed, until);
    },
    setWall(ms) {
      wallOffset = ms - elapsed;
    },
    pending: () => timers.size,
  };
}
