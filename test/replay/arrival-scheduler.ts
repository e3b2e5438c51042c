// Arrival scheduler: chooses the next arrivals at a LiveRun by a seed, until the run is over.

import { PORTS, SIGNALS, UPDATES } from "./random-program.ts";
import type { Arrival, Commit, LiveRun } from "./live-run.ts";
import type { RandomSource } from "./random-source.ts";

export interface ArrivalRates {
  readonly failures: number;
  /** How often several arrivals share a commit. */
  readonly together: number;
  readonly cancels: number;
  /** How often a port is settled before the code waits for it. */
  readonly earlySettles: number;
  /** How often a signal arrives, regardless of what the run waits for. */
  readonly signals: number;
  /** How often an update is requested. */
  readonly updates: number;
  /** How often something arrives while earlier arrivals are still being delivered. */
  readonly overlaps: number;
}

export const NO_ARRIVALS: ArrivalRates = {
  failures: 0,
  together: 0,
  cancels: 0,
  earlySettles: 0,
  signals: 0,
  updates: 0,
  overlaps: 0,
};
export const FREQUENT_ARRIVALS: ArrivalRates = {
  failures: 0.2,
  together: 0.3,
  cancels: 0.03,
  earlySettles: 0.05,
  signals: 0.05,
  updates: 0.05,
  overlaps: 0.3,
};

function answer(random: RandomSource, rates: ArrivalRates): { value: number } | { error: Error } {
  if (!random.happens(rates.failures)) return { value: random.below(1000) };
  const error = new Error(`failure ${random.below(1000)}`);
  // The same text on every machine.
  error.stack = error.message;
  return { error };
}

/** An arrival that is possible now; undefined if there is none. */
function arrivalOf(run: LiveRun, random: RandomSource, rates: ArrivalRates): Arrival | undefined {
  if (random.happens(rates.cancels)) return random.happens(0.7) ? run.cancels("enough") : run.missesDeadline();
  if (random.happens(rates.earlySettles)) return run.settles(random.pick(PORTS), answer(random, rates));
  if (random.happens(rates.signals)) return run.signals(random.pick(SIGNALS), random.below(1000));
  if (random.happens(rates.updates))
    return run.requestsUpdate(random.pick(UPDATES), `update-${random.below(6)}`, random.below(1000));
  const open = run.execution.waits.open().filter(({ command }) => run.execution.isOpen(command));
  if (open.length === 0) return undefined;
  const { command, type, name, timed } = random.pick(open);
  run.now += random.below(30);
  if (type === "Timer") return run.fires(command);
  if (type !== "Promise") return run.answerOf(command, answer(random, rates));
  if (timed && random.happens(0.5)) return run.timesOut(command);
  const signalled = SIGNALS.filter((each) => name.split(" | ").includes(each));
  return signalled.length > 0
    ? run.signals(random.pick(signalled), random.below(1000))
    : run.settles(name, answer(random, rates));
}

function arrivalsOf(run: LiveRun, random: RandomSource, rates: ArrivalRates, count: number): Arrival[] {
  return Array.from({ length: count }, () => arrivalOf(run, random, rates) ?? []).flat();
}

/** Far more than any program needs. */
const MAX_COMMITS = 5_000;

/** Delivers arrivals until the run is over; false if it waits forever. */
export async function runToEnd(run: LiveRun, random: RandomSource, rates: ArrivalRates): Promise<boolean> {
  for (let turn = 0; !run.isOver; turn += 1) {
    if (turn === MAX_COMMITS) return false;
    const arrivals = arrivalsOf(run, random, rates, random.happens(rates.together) ? 2 + random.below(2) : 1);
    if (arrivals.length === 0 && run.open().length === 0) return false;
    const further = random.happens(rates.overlaps) ? 1 + random.below(2) : 0;
    await run.commitBoth(arrivals, () => arrivalsOf(run, random, rates, further));
  }
  return true;
}

/** Repeats the recorded arrivals, commit by commit; false if the run no longer accepts one of them. */
export async function runAgain(run: LiveRun, commits: readonly Commit[]): Promise<boolean> {
  for (const { arrivals, late } of commits) {
    if (run.isOver) return false;
    if ((await run.commitBoth(arrivals, () => late)) !== arrivals.length + late.length) return false;
  }
  return true;
}
