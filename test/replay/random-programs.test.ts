// Tests random programs with the replay property, and the property with wrong delivery orders.

import { expect, test } from "vitest";
import { systemTimers } from "../../src/base/index.ts";
import { findJournalFault, type DecodedEntry, type EntryType } from "../../src/kernel/index.ts";
import { replayJournal, workflowBody, type RecordedJournal } from "../../src/workflow/index.ts";
import { drained, LiveRun, testHost, type Drive } from "./live-run.ts";
import { definitionOf, programOf, type Program } from "./random-program.ts";
import { findDivergence } from "./replay-property.ts";
import { FREQUENT_ARRIVALS, runToEnd, type ArrivalRates } from "./arrival-scheduler.ts";
import { randomSource } from "./random-source.ts";

/** The number of programs. REPRISE_SEEDS overrides it; REPRISE_SEED=n runs only the program with that seed. */
const SEEDS = Number(process.env["REPRISE_SEEDS"] ?? 1_000);
const CUTS = 3;
/** Each test takes some seconds of CPU time, and more on a busy machine. */
const LONG = { timeout: 180_000 + SEEDS * 60 };
/** Independent programs that share one drain, which saves turns of the event loop. */
const AT_ONCE = 50;

const only = process.env["REPRISE_SEED"];
const seeds = only === undefined ? Array.from({ length: SEEDS }, (_, index) => index + 1) : [Number(only)];

function caseOf(
  seed: number,
  rates: ArrivalRates,
): { program: Program; cuts: (run: LiveRun) => number[]; play: () => Promise<LiveRun> } {
  const random = randomSource(seed);
  const program = programOf(random, 4 + random.below(12));
  return {
    program,
    play: async () => {
      const run = await LiveRun.start(definitionOf(program));
      if (!(await runToEnd(run, random, rates))) throw new Error(`seed ${seed}: the program waits for ever`);
      return run;
    },
    cuts: (run) => [...Array.from({ length: CUTS }, () => random.pick([1, ...run.cuts])), run.entries.length - 1],
  };
}

function reproduction(seed: number, cut: number, what: string): string {
  return `REPRISE_SEED=${seed} vitest run test/replay/random-programs.test.ts # cut at ${cut}: ${what}`;
}

async function inGroups<T>(work: (seed: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let from = 0; from < seeds.length; from += AT_ONCE)
    results.push(...(await Promise.all(seeds.slice(from, from + AT_ONCE).map(work))));
  return results;
}

/** The entry types that random programs write. */
const REACHABLE: readonly EntryType[] = [
  "RunStarted",
  "TaskScheduled",
  "TaskCompleted",
  "TaskFailed",
  "TaskCancelled",
  "TaskCancelRequested",
  "ChildWorkflowInitiated",
  "ChildWorkflowCompleted",
  "ChildWorkflowFailed",
  "TimerStarted",
  "TimerFired",
  "TimerCancelled",
  "OperationCompleted",
  "OperationFailed",
  "PromiseCreated",
  "PromiseResolved",
  "PromiseRejected",
  "PromiseTimedOut",
  "SignalReceived",
  "UpdateRequested",
  "UpdateCompleted",
  "UpdateFailed",
  "ChildSignalled",
  "ChildCancelRequested",
  "MessageSent",
  "PatchMarked",
  "StateSet",
  "StateCleared",
  "CancelRequested",
  "DeadlineExceeded",
  "RunCompleted",
  "RunFailed",
  "RunCancelled",
];

test("a random program that is cut at any commit and resumed does not diverge", LONG, async () => {
  const covered = new Set<EntryType>();
  const findings = await inGroups(async (seed) => {
    const { program, play, cuts } = caseOf(seed, FREQUENT_ARRIVALS);
    const definition = definitionOf(program);
    const run = await play();
    for (const type of run.types) covered.add(type);
    if (only !== undefined) console.log(JSON.stringify(program), run.entries);
    const fault = findJournalFault(run.entries, { head: run.entries.length, chain: run.chain });
    if (fault !== undefined) return [reproduction(seed, 0, fault.problem)];
    const { identity: facts } = run.execution;
    const verdict = await replayJournal(workflowBody(definition), {
      identity: facts,
      entries: run.entries,
      chain: run.chain,
      host: testHost([]),
      timers: systemTimers,
    });
    if (verdict.status !== "same")
      return [reproduction(seed, run.entries.length, `${verdict.message} ${String(verdict.actual)}`)];
    for (const cut of cuts(run)) {
      const divergence = await findDivergence(definition, run, cut);
      if (divergence !== undefined) return [reproduction(seed, cut, divergence)];
    }
    return [];
  });
  const failures = findings.flat();
  expect(failures.slice(0, 5), `${failures.length} of ${seeds.length} programs diverge`).toEqual([]);
  if (only === undefined) expect(REACHABLE.filter((type) => !covered.has(type))).toEqual([]);
});

// ── wrong delivery orders ──

/** One arrival per commit, so that only the delivery order can make a difference. */
const STEADY: ArrivalRates = { ...FREQUENT_ARRIVALS, together: 0, overlaps: 0, cancels: 0 };

type Choice = (available: readonly DecodedEntry[], recorded: RecordedJournal) => readonly DecodedEntry[];

/** Replays in rounds: `choose` selects which available completions are delivered before the next drain. */
function inRounds(choose: Choice): Drive {
  return async (execution, recorded) => {
    // Rounds consider open commands. A timer that fires later is open until then.
    (recorded.ended as Set<string>).clear();
    (recorded.cancelledByRun as Set<string>).clear();
    execution.start();
    await drained();
    let waiting = recorded.deliveries;
    while (waiting.length > 0 && execution.stop === undefined) {
      const open = new Set(execution.waits.open().map(({ command }) => command));
      const available = waiting.filter(
        ({ type, command }) => command === "" || type === "UpdateRequested" || open.has(command),
      );
      if (available.length === 0) break;
      const delivered = new Set(choose(available, recorded));
      for (const entry of delivered) execution.deliveries.deliver(entry);
      await drained();
      waiting = waiting.filter((entry) => !delivered.has(entry));
    }
    execution.checkOrphans();
  };
}

function firstByCommand(available: readonly DecodedEntry[], { byCommand }: RecordedJournal): readonly DecodedEntry[] {
  const indexOf = ({ command }: DecodedEntry): number =>
    (byCommand.get(command)?.data as { index?: number } | undefined)?.index ?? -1;
  return available.toSorted((left, right) => indexOf(left) - indexOf(right)).slice(0, 1);
}

const MUTANTS: Readonly<Record<string, Drive>> = {
  "in command order": inRounds(firstByCommand),
  "all available in recorded order, no drain between": inRounds((available) => available),
  "in recorded order, one microtask between": async (execution, recorded) => {
    execution.start();
    await drained();
    for (const entry of recorded.deliveries) {
      execution.deliveries.deliver(entry);
      await Promise.resolve();
    }
    await drained();
    execution.checkOrphans();
  },
};

async function divergencesOf(drive: Drive): Promise<{ diverged: number; silent: number }> {
  const found = await inGroups(async (seed) => {
    const { program, play, cuts } = caseOf(seed, STEADY);
    const run = await play();
    const cut = cuts(run)[0]!;
    return findDivergence(definitionOf(program), run, cut, drive);
  });
  const diverged = found.filter((divergence) => divergence !== undefined);
  return { diverged: diverged.length, silent: diverged.filter((text) => text.includes("returned")).length };
}

test("the correct delivery order never diverges", LONG, async () => {
  expect(await divergencesOf(inRounds((available) => available.slice(0, 1)))).toEqual({ diverged: 0, silent: 0 });
});

for (const [name, drive] of Object.entries(MUTANTS))
  test.skipIf(only !== undefined)(`the property detects a delivery ${name}`, LONG, async () => {
    const { diverged, silent } = await divergencesOf(drive);
    console.log(`${name}: ${diverged} of ${seeds.length} programs diverge, ${silent} with another result only`);
    expect(diverged).toBeGreaterThan(seeds.length / 100);
  });
