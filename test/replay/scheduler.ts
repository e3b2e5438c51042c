// A seeded world around a LiveRun: it chooses what happens next, until the run is over.

import { PORTS, SIGNALS } from "./programs.ts";
import type { LiveRun, Arrival } from "./live-run.ts";
import type { Chance } from "./seeded.ts";

export interface Weather {
  readonly failures: number;
  /** How often several things arrive in one commit. */
  readonly together: number;
  readonly cancels: number;
  /** How often somebody settles a port nobody waits for. */
  readonly earlySettles: number;
  /** How often somebody signals whatever the run waits for. */
  readonly signals: number;
}

export const CALM: Weather = { failures: 0, together: 0, cancels: 0, earlySettles: 0, signals: 0 };
export const ROUGH: Weather = { failures: 0.2, together: 0.3, cancels: 0.01, earlySettles: 0.05, signals: 0.05 };

function answer(chance: Chance, weather: Weather): { value: number } | { error: Error } {
  if (!chance.happens(weather.failures)) return { value: chance.below(1000) };
  const error = new Error(`failure ${chance.below(1000)}`);
  // The same text on every machine.
  error.stack = error.message;
  return { error };
}

/** One thing that can happen now; undefined when nothing can. */
function arrivalOf(run: LiveRun, chance: Chance, weather: Weather): Arrival | undefined {
  if (chance.happens(weather.cancels)) return run.cancels("enough");
  if (chance.happens(weather.earlySettles)) return run.settles(chance.pick(PORTS), answer(chance, weather));
  if (chance.happens(weather.signals)) return run.signals(chance.pick(SIGNALS), chance.below(1000));
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

/** Far more than any program needs. */
const MAX_COMMITS = 5_000;

/** Lets things happen until the run is over; false when it waits for ever. */
export async function runToEnd(run: LiveRun, chance: Chance, weather: Weather): Promise<boolean> {
  for (let turn = 0; !run.isOver; turn += 1) {
    if (turn === MAX_COMMITS) return false;
    const count = chance.happens(weather.together) ? 2 + chance.below(2) : 1;
    const arrivals: Arrival[] = [];
    for (let each = 0; each < count; each += 1) {
      const arrival = arrivalOf(run, chance, weather);
      if (arrival !== undefined) arrivals.push(arrival);
    }
    if (arrivals.length === 0 && run.open().length === 0) return false;
    await run.commit(...arrivals);
  }
  return true;
}

/** Lets the same things happen that happened before, commit by commit; false when one was no longer wanted. */
export async function runAgain(run: LiveRun, commits: readonly (readonly Arrival[])[]): Promise<boolean> {
  for (const arrivals of commits) {
    if (run.isOver) return false;
    if ((await run.commit(...arrivals)) !== arrivals.length) return false;
  }
  return true;
}
