// A seeded world around a LiveRun: it chooses what happens next, until the run is over.

import { PORTS, SIGNALS, UPDATES } from "./random-program.ts";
import type { Arrival, Commit, LiveRun } from "./live-run.ts";
import type { RandomSource } from "./random-source.ts";

export interface ArrivalRates {
  readonly failures: number;
  /** How often several things arrive in one commit. */
  readonly together: number;
  readonly cancels: number;
  /** How often somebody settles a port nobody waits for. */
  readonly earlySettles: number;
  /** How often somebody signals whatever the run waits for. */
  readonly signals: number;
  /** How often somebody asks for an update. */
  readonly updates: number;
  /** How often something arrives while what arrived before is still being delivered. */
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

function answer(chance: RandomSource, weather: ArrivalRates): { value: number } | { error: Error } {
  if (!chance.happens(weather.failures)) return { value: chance.below(1000) };
  const error = new Error(`failure ${chance.below(1000)}`);
  // The same text on every machine.
  error.stack = error.message;
  return { error };
}

/** One thing that can happen now; undefined when nothing can. */
function arrivalOf(run: LiveRun, chance: RandomSource, weather: ArrivalRates): Arrival | undefined {
  if (chance.happens(weather.cancels)) return chance.happens(0.7) ? run.cancels("enough") : run.missesDeadline();
  if (chance.happens(weather.earlySettles)) return run.settles(chance.pick(PORTS), answer(chance, weather));
  if (chance.happens(weather.signals)) return run.signals(chance.pick(SIGNALS), chance.below(1000));
  if (chance.happens(weather.updates))
    return run.requestsUpdate(chance.pick(UPDATES), `update-${chance.below(6)}`, chance.below(1000));
  const open = run.execution.openWaits().filter(({ command }) => run.execution.isOpen(command));
  if (open.length === 0) return undefined;
  const { command, type, name, timed } = chance.pick(open);
  run.now += chance.below(30);
  if (type === "Timer") return run.fires(command);
  if (type !== "Promise") return run.answerOf(command, answer(chance, weather));
  if (timed && chance.happens(0.5)) return run.timesOut(command);
  const signalled = SIGNALS.filter((each) => name.split(" | ").includes(each));
  return signalled.length > 0
    ? run.signals(chance.pick(signalled), chance.below(1000))
    : run.settles(name, answer(chance, weather));
}

function arrivalsOf(run: LiveRun, chance: RandomSource, weather: ArrivalRates, count: number): Arrival[] {
  return Array.from({ length: count }, () => arrivalOf(run, chance, weather) ?? []).flat();
}

/** Far more than any program needs. */
const MAX_COMMITS = 5_000;

/** Lets things happen until the run is over; false when it waits for ever. */
export async function runToEnd(run: LiveRun, chance: RandomSource, weather: ArrivalRates): Promise<boolean> {
  for (let turn = 0; !run.isOver; turn += 1) {
    if (turn === MAX_COMMITS) return false;
    const arrivals = arrivalsOf(run, chance, weather, chance.happens(weather.together) ? 2 + chance.below(2) : 1);
    if (arrivals.length === 0 && run.open().length === 0) return false;
    const further = chance.happens(weather.overlaps) ? 1 + chance.below(2) : 0;
    await run.commitBoth(arrivals, () => arrivalsOf(run, chance, weather, further));
  }
  return true;
}

/** Lets the same things happen that happened before, commit by commit; false when one was no longer wanted. */
export async function runAgain(run: LiveRun, commits: readonly Commit[]): Promise<boolean> {
  for (const { arrivals, late } of commits) {
    if (run.isOver) return false;
    if ((await run.commitBoth(arrivals, () => late)) !== arrivals.length + late.length) return false;
  }
  return true;
}
