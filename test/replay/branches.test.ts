// Branches: a crash must not swap nested waits (rules.W1, rules.W4).

import { expect, test } from "vitest";
import { promise, task } from "../../src/kernel/index.ts";
import { workflow } from "../../src/workflow/index.ts";
import { drained, LiveRun } from "./live-run.ts";
import { definitionOf, programOf, type Program } from "./random-program.ts";
import { findDivergence, outcomeText } from "./replay-property.ts";
import { NO_ARRIVALS, runToEnd, type ArrivalRates } from "./arrival-scheduler.ts";
import { randomSource, type RandomSource } from "./random-source.ts";

// ── ACCEPTANCE 33 ──

const load = task("load", (_ctx, branch: string) => `loaded ${branch}`);

test("ACCEPTANCE 33: two branches of two awaits with the same names, cut anywhere, are never swapped", async () => {
  const calls: string[] = [];
  const branch = (kind: "task" | "run") =>
    workflow("branches", async (ctx) => {
      const step = (name: string): Promise<string> =>
        kind === "task"
          ? ctx.task(load, name)
          : ctx.run("load", () => {
              calls.push(name);
              return `loaded ${name}`;
            });
      const twice = async (name: string): Promise<string[]> => [await step(`${name}1`), await step(`${name}2`)];
      return Promise.all([twice("left"), twice("right")]);
    });
  const expected = [
    ["loaded left1", "loaded left2"],
    ["loaded right1", "loaded right2"],
  ];
  for (const kind of ["task", "run"] as const) {
    const definition = branch(kind);
    for (let seed = 0; seed < 20; seed += 1) {
      // Completions in a random order, recorded once.
      const random = randomSource(seed);
      const run = await LiveRun.start(definition);
      while (!run.isOver) await run.finish(random.pick(run.open()));
      expect(run.execution.outcome).toEqual({ status: "returned", value: expected });
      for (const cut of [1, ...run.cuts]) {
        expect(await findDivergence(definition, run, cut)).toBeUndefined();
        // After the crash the rest may arrive in another order: no branch is swapped, and no function runs twice.
        const resumed = await LiveRun.resume(definition, run.entries.slice(0, cut));
        const finished = resumed.entries.filter(({ type }) => type === "OperationCompleted").length;
        calls.length = 0;
        while (!resumed.isOver) {
          const command = random.pick(resumed.open());
          if (kind === "run") await resumed.finish(command);
          else await resumed.commit(resumed.answerOf(command, { value: `loaded ${inputOf(resumed, command)}` }));
        }
        expect(resumed.execution.outcome).toEqual({ status: "returned", value: expected });
        if (kind === "run") expect(calls).toHaveLength(4 - finished);
      }
    }
  }
});

function inputOf(run: LiveRun, command: string): string {
  const entry = run.entries.find((each) => each.type === "TaskScheduled" && each.command === command);
  return (JSON.parse(entry?.data ?? "{}") as { input: string }).input;
}

// ── ACCEPTANCE 38 ──

const RACES = 1_000;
const AT_ONCE = 50;

/** A race, and enough steps after it that its losers complete while the run continues. */
function raceOf(random: RandomSource): Program {
  const size = 2 + random.below(3);
  const branch = (): Program => (random.happens(0.5) ? { do: "task", callee: random.below(3) } : programOf(random, 2));
  const race: Program = { do: random.pick(["race", "any"] as const), of: Array.from({ length: size }, branch) };
  const guarded: Program = { do: "try", body: race, handler: { do: "now" } };
  const later = Array.from({ length: 3 }, (): Program => ({ do: "run", callee: random.below(3) }));
  return { do: "seq", of: [guarded, ...later, ...(random.happens(0.5) ? [guarded] : [])] };
}

const MIXED: ArrivalRates = { ...NO_ARRIVALS, failures: 0.15, together: 0.2 };

test("ACCEPTANCE 38: the winner of a race or any is the same on every replay, though the loser completes later", async () => {
  let lateLosers = 0;
  const seeds = Array.from({ length: RACES }, (_, index) => index + 1);
  const check = async (seed: number): Promise<string[]> => {
    const random = randomSource(seed * 7919);
    const definition = definitionOf(raceOf(random));
    const run = await LiveRun.start(definition);
    if (!(await runToEnd(run, random, MIXED))) return [`race ${seed} waits for ever`];
    const isTaskEnd = ({ type }: { type: string }): boolean => type === "TaskCompleted" || type === "TaskFailed";
    if (run.entries.filter(isTaskEnd).length > 1) lateLosers += 1;
    for (const cut of [run.entries.length - 1, random.pick([1, ...run.cuts])]) {
      const divergence = await findDivergence(definition, run, cut);
      if (divergence !== undefined) return [`race ${seed} cut at ${cut}: ${divergence}`];
    }
    const replayed = await LiveRun.resume(definition, run.entries);
    const [was, is] = [outcomeText(run.execution), outcomeText(replayed.execution)];
    return was === is ? [] : [`race ${seed}: ${was} became ${is}`];
  };
  const failures: string[] = [];
  for (let from = 0; from < seeds.length; from += AT_ONCE)
    failures.push(...(await Promise.all(seeds.slice(from, from + AT_ONCE).map(check))).flat());
  expect(failures).toEqual([]);
  expect(lateLosers).toBeGreaterThan(RACES / 4);
});

// ── ACCEPTANCE 34 ──

const charge = task("charge", () => "charged");
const ship = task("ship", () => "shipped");
const refund = task("refund", () => "refunded");

const saga = workflow("saga", { ports: { approval: promise<boolean>() } }, async (ctx) => {
  try {
    await ctx.task(charge);
    const approved = await ctx.promise("approval");
    if (!approved) throw new Error("refused");
    return await ctx.task(ship);
  } catch {
    return ctx.task(refund);
  }
});

test("ACCEPTANCE 34: a saga that waits never runs its catch block, no matter how often it is resumed", async () => {
  let run = await LiveRun.start(saga);
  const crash = async (): Promise<void> => {
    run = await LiveRun.resume(saga, run.entries);
    await drained();
    expect(run.execution.outcome).toBeUndefined();
  };
  await crash();
  await run.commit(run.answerOf("Task(0)", { value: "charged" }));
  await crash();
  await crash();
  expect(run.types).toEqual(["RunStarted", "TaskScheduled", "TaskCompleted", "PromiseCreated"]);
  await run.commit(run.settles("approval", { value: true }));
  await crash();
  await run.commit(run.answerOf("Task(1)", { value: "shipped" }));
  expect(run.execution.outcome).toEqual({ status: "returned", value: "shipped" });
  expect(run.entries.some(({ data }) => data.includes("refund"))).toBe(false);
});

test("ACCEPTANCE 34: a saga compensates when a step fails", async () => {
  const run = await LiveRun.start(saga);
  await run.finish("Task(0)");
  await run.commit(run.settles("approval", { value: false }));
  const resumed = await LiveRun.resume(saga, run.entries);
  expect(resumed.requested).toEqual([]);
  expect(resumed.entries.at(-1)).toMatchObject({ type: "TaskScheduled", command: "Task(1)" });
  await resumed.commit(resumed.answerOf("Task(1)", { value: "refunded" }));
  expect(resumed.execution.outcome).toEqual({ status: "returned", value: "refunded" });
});
