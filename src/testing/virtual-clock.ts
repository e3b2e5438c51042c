// Virtual time: a clock and timers that only a test moves.
//
// virtual-clock.V1. Time stands still between calls of `advanceTo`; no timer fires on its own.
// virtual-clock.V2. Timers fire in the order of their due times, simultaneous ones in the order they were set, each with `now()`
//   equal to its own due time.
// virtual-clock.V3. A timer set by a firing timer fires in the same advance if it is due in it.
// virtual-clock.V4. Timers fire synchronously; no promise is awaited between two of them. A test that needs the effects of the first
//   one advances step by step: `advanceTo(nextAt())`.

import { type Clock, type EpochMs, invariant, systemTimers, type Timers } from "../base/index.ts";

export interface VirtualTime {
  readonly clock: Clock;
  readonly timers: Timers;
  now(): EpochMs;
  /** When the next timer is due; undefined when none is set. */
  nextAt(): EpochMs | undefined;
  /** Moves the wall clock and the monotonic clock together, and fires due timers. */
  advanceTo(ms: EpochMs): void;
  /** Sets only the wall clock, as an operator or NTP does; timers and the monotonic clock do not change. */
  setWall(ms: EpochMs): void;
  /** The number of pending timers. */
  pending(): number;
}

interface VirtualTimer {
  readonly at: number;
  readonly order: number;
  readonly fn: () => void;
}

/** A time that cannot be confused with the real one. */
const DEFAULT_START: EpochMs = 1_893_456_000_000; // 2030-01-01

/**
 * Creates a clock and timers under the control of a test.
 *
 * @example
 * ```ts
 * const time = createVirtualTime(0);
 * time.timers.set(1_000, () => console.log("one second later"));
 * time.advanceTo(1_000);
 * ```
 */
export function createVirtualTime(start: EpochMs = DEFAULT_START): VirtualTime {
  // Both clocks count from `start`; only `setWall` makes them differ.
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
      invariant(until >= elapsed, "virtual time cannot move backwards; use setWall to set the clock back", {
        now: now(),
        ms,
      });
      for (let next = findNext(); next !== undefined && next.at <= until; next = findNext()) {
        timers.delete(next);
        // virtual-clock.V2. Never backwards: a timer without a delay is due now.
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
