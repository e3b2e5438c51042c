// Replays recorded graph runs with the current engine: a change of the engine that breaks old runs fails here.
//
// REPRISE_RECORD=1 records missing journals. It never overwrites one, because the test is about old journals.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { append, END, graph, last, START, type Definition, type Run } from "reprise";
import { createTestEngine, expectReplay, saveJournal, type TestEngine } from "reprise/testing";
import { expect, test } from "vitest";
import { rejection } from "../engine/world.ts";
import { loop, trip } from "./graph-corpus/graphs.ts";

const FOLDER = fileURLToPath(new URL("graph-corpus/", import.meta.url));

interface Specimen {
  readonly definition: Definition;
  readonly record: (engine: TestEngine) => Promise<Run<any>>;
}

async function recordTrip(engine: TestEngine, ok: boolean): Promise<Run<any>> {
  const run: Run<typeof trip> = await engine.start(trip, { log: ["wished"] }, { id: `corpus-trip-${ok}` });
  await engine.clock.advance("1 s");
  await run.resolve("approval", { ok });
  await engine.clock.advance("1 minute");
  await run.result();
  return run;
}

const SPECIMENS: Readonly<Record<string, Specimen>> = {
  "trip-booked": { definition: trip, record: (engine) => recordTrip(engine, true) },
  "trip-refused": { definition: trip, record: (engine) => recordTrip(engine, false) },
  loop: {
    definition: loop,
    async record(engine) {
      const run = await engine.start(loop, {}, { id: "corpus-loop" });
      await run.result();
      return run;
    },
  },
};

async function recordMissing(name: string, { definition, record }: Specimen): Promise<void> {
  const file = join(FOLDER, `${name}.json`);
  if (existsSync(file)) return;
  // Stacks contain paths of the machine.
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    await using engine = await createTestEngine({ definitions: [definition], outbox: { mail: async () => {} } });
    await saveJournal(await record(engine as unknown as TestEngine), file);
  } finally {
    Error.stackTraceLimit = limit;
  }
}

if (process.env["REPRISE_RECORD"] === "1")
  for (const [name, specimen] of Object.entries(SPECIMENS)) await recordMissing(name, specimen);

test("every graph of the corpus has a journal, and every journal a graph", () => {
  const recorded = readdirSync(FOLDER).filter((file) => file.endsWith(".json"));
  expect(recorded.toSorted()).toEqual(
    Object.keys(SPECIMENS)
      .map((name) => `${name}.json`)
      .toSorted(),
  );
});

test.each(Object.keys(SPECIMENS))("a recorded run of a graph replays: %s", async (name) => {
  await expectReplay(join(FOLDER, `${name}.json`), { definitions: [SPECIMENS[name]!.definition] });
});

test("a replay reports code that folds, routes or answers differently, with the step", async () => {
  const build = (seen: (n: number) => number, least: number): Definition =>
    graph("loop", { state: { n: last(0), seen: append<number>() }, fold: "order-key" })
      .node("add", async (_ctx, { n }) => ({ n: n + 1, seen: [seen(n)] }))
      .node("beside", async (ctx) => ({ seen: [100 + ctx.step] }))
      .edge(START, ["add", "beside"])
      .edge("beside", END)
      .edge("add", END, ({ n }) => n >= least)
      .edge("add", ["add", "beside"], ({ n }) => n % 3 === 0)
      .edge("add", "add");
  const replayed = (definition: Definition): Promise<void> =>
    expectReplay(join(FOLDER, "loop.json"), { definitions: [definition] });
  await replayed(build((n) => n, 12));
  for (const [changed, step] of [
    [build((n) => (n === 4 ? 5 : n), 12), 5],
    [build((n) => n, 11), 11],
  ] as const) {
    const error = await rejection(replayed(changed));
    expect(error).toMatchObject({ code: "REPLAY_MISMATCH", details: { step } });
  }
});
