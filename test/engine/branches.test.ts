// ACCEPTANCE 33, 38 and 44: parallel branches and races, killed at every commit, on the whole engine.

import { expect, test } from "vitest";
import { task, workflow, type Definition } from "reprise";
import { createTestEngine, type TestEngine } from "reprise/testing";
import { collect, createGate, macrotask, storeAround, type AnyWrite } from "./world.ts";

/** Waits for this many turns of the event loop. */
async function after<T>(turns: number, value: T): Promise<T> {
  for (let turn = 0; turn < turns; turn += 1) await macrotask();
  return value;
}

/** The durable results, as text. */
function committedResults(writes: readonly AnyWrite[]): string[] {
  return writes.flatMap((write) => {
    if (write.write === "end-item") return [resultOf(write.arrival.data)];
    if (write.write !== "turn") return [];
    return write.entries
      .filter(({ type }) => /^(?:Task|Operation)Completed$/.test(type))
      .map(({ data }) => resultOf(data));
  });
}

function resultOf(data: string): string {
  return String((JSON.parse(data) as { result?: unknown }).result);
}

interface Kill {
  readonly batch: number;
  readonly when: "before" | "after";
}

/** Wraps user functions: records every call, and the calls whose result was already durable. */
class Witness {
  readonly committed = new Set<string>();
  readonly executed: string[] = [];
  readonly again: string[] = [];

  execute(label: string): string {
    this.executed.push(label);
    if (this.committed.has(label)) this.again.push(label);
    return label;
  }
}

/** Runs to the end, killed once at batch `kill`; returns the number of batches. */
async function runKilled(
  make: (witness: Witness) => { definition: Definition<string, void>; others: readonly ReturnType<typeof task>[] },
  kill: Kill | undefined,
): Promise<{ output: unknown; witness: Witness; batches: number }> {
  const witness = new Witness();
  const { definition, others } = make(witness);
  let engine: TestEngine | undefined = undefined as TestEngine | undefined;
  let batches = 0;
  let restarted: Promise<void> | undefined;
  const source = storeAround(async (writes, apply) => {
    const batch = engine === undefined ? -1 : batches++;
    const here = kill?.batch === batch && restarted === undefined;
    if (!here || kill.when === "after") {
      const outcomes = await apply();
      for (const result of committedResults(writes)) witness.committed.add(result);
      if (!here) return outcomes;
    }
    restarted = engine?.crash();
    return new Promise(() => {});
  });
  const made = await createTestEngine({ definitions: [definition, ...others], store: source });
  engine = made as unknown as TestEngine;
  // If the process is killed during the start, a client repeats the start.
  const start = () => engine?.start(definition as never, undefined as never, { id: "run-1" });
  const run = (await start()?.catch(async () => (await restarted, start())))!;
  const output: unknown = await run.result();
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(await source.store.check()).toEqual([]);
  await restarted;
  await engine.close();
  return { output, witness, batches };
}

async function killEverywhere(
  make: Parameters<typeof runKilled>[0],
  check: (output: unknown, witness: Witness) => void,
): Promise<void> {
  const { output, witness, batches } = await runKilled(make, undefined);
  check(output, witness);
  for (let batch = 0; batch < batches; batch += 1)
    for (const when of ["before", "after"] as const) {
      const killed = await runKilled(make, { batch, when });
      expect(killed.output, `killed ${when} batch ${batch}`).toEqual(output);
      expect(killed.witness.again, `killed ${when} batch ${batch}`).toEqual([]);
    }
}

test.each([
  [1, 3],
  [3, 1],
  [0, 0],
  [2, 2],
])(
  "ACCEPTANCE 33: two branches of two awaits (%i and %i turns slow), killed anywhere, are never swapped and repeat nothing committed",
  async (left, right) => {
    await killEverywhere(
      (witness) => {
        const step = task("step", (_ctx, label: string) => after(left, witness.execute(label)));
        const definition = workflow("branches", async (ctx) => {
          const branch = async (name: string, turns: number): Promise<string[]> => {
            const first = await ctx.run("first", () => after(turns, witness.execute(`${name}1`)));
            const second = await ctx.run("second", () => after(turns, witness.execute(`${name}2`)));
            const third = await ctx.task(step, `${name}3`);
            return [first, second, third];
          };
          return Promise.all([branch("left", left), branch("right", right)]);
        });
        return { definition, others: [step as never] };
      },
      (output, witness) => {
        expect(output).toEqual([
          ["left1", "left2", "left3"],
          ["right1", "right2", "right3"],
        ]);
        expect(witness.executed).toHaveLength(6);
      },
    );
  },
);

test("ACCEPTANCE 44: after a kill, only the unfinished one of two parallel operations runs again", async () => {
  const gate = createGate();
  const executed: string[] = [];
  const two = workflow("two", async (ctx) =>
    Promise.all([
      ctx.run("first", async () => {
        executed.push("first");
        await gate.wait();
        return "first";
      }),
      ctx.run("second", () => {
        executed.push("second");
        return "second";
      }),
    ]),
  );
  const committed = createGate();
  const source = storeAround(async (writes, apply) => {
    const outcomes = await apply();
    if (committedResults(writes).includes("second")) committed.open();
    return outcomes;
  });
  await using engine = await createTestEngine({ definitions: [two], store: source });
  const run = await engine.start(two);
  const result = run.result();
  await gate.reached;
  await committed.opened;
  await engine.crash();
  gate.open();
  expect(await result).toEqual(["first", "second"]);
  expect(executed).toEqual(["first", "second", "first"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

/** A small generator, so that a failing seed can be repeated. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test("ACCEPTANCE 38: a race keeps its winner through a crash and a replay, although the loser completes later", async () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const draw = seeded(seed);
    const turns = Array.from({ length: 4 }, () => draw(6));
    const kinds = Array.from({ length: 4 }, () => draw(2) === 0);
    const crashAt = draw(12);
    const winners: string[] = [];
    const racer = task("racer", (_ctx, index: number) => after(turns[index] ?? 0, `racer ${index}`));
    const race = workflow("race", async (ctx) => {
      const start = (index: number): Promise<string> =>
        kinds[index] === true
          ? ctx.task(racer, index)
          : ctx.run("racer", () => after(turns[index] ?? 0, `racer ${index}`));
      const racers = [start(0), start(1), start(2), start(3)];
      const winner = await Promise.race(racers);
      winners.push(winner);
      const any = await Promise.any([racers[3]!, racers[2]!]);
      await ctx.run("pause", () => after(2, null));
      return { winner, any, all: await Promise.all(racers) };
    });
    type Made = Awaited<ReturnType<typeof createTestEngine<typeof race | typeof racer>>>;
    let engine: Made | undefined = undefined as Made | undefined;
    let count = 0;
    let restarted: Promise<void> | undefined;
    const source = storeAround(async (_writes, apply) => {
      const outcomes = await apply();
      if (engine !== undefined && count++ === crashAt) {
        restarted = engine.crash();
        return new Promise(() => {});
      }
      return outcomes;
    });
    engine = await createTestEngine({ definitions: [race, racer], store: source });
    const made = engine;
    const start = () => made.start(race, undefined, { id: `race-${seed}` });
    const run = await start().catch(async () => (await restarted, start()));
    const output = await run.result();
    expect(await run.verify(), `seed ${seed}`).toMatchObject({ status: "same" });
    const [decided] = (await collect(run.journal()))
      .filter(({ type }) => /^(?:Task|Operation)Completed$/.test(type))
      .map(({ data }) => (data as { result: string }).result);
    // Live, after the crash and on replay: the branch whose entry is first in the journal.
    expect(new Set([...winners, output.winner, decided]).size, `seed ${seed}: ${winners.join()}, ${decided}`).toBe(1);
    await restarted;
    await engine.close();
  }
});
