// Acceptance: ACCEPTANCE.md's sentences about flows, kept by whole engines on one file. What one transaction holds (16), and
// what a store answers (18, 19), are cases of the store: test/stores/completions.test.ts, src/testing/store-cases.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { createEngine, flow, typed, type JournalEntry } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createFolder, createGate, rejection, storeAround, type AnyWrite, type Gate } from "../engine/world.ts";

async function commandsOf(run: { journal(): AsyncIterable<JournalEntry> }): Promise<string[]> {
  const commands: string[] = [];
  for await (const { type, command } of run.journal()) commands.push(`${type} ${command ?? ""}`.trim());
  return commands;
}

function readinessOf(file: string, id: string): readonly string[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const rows = db
      .prepare("select node, completed, required from readiness where run = (select run from runs where id = ?)")
      .all(id) as unknown as { node: string; completed: number; required: number }[];
    return rows.map(({ node, completed, required }) => `${node} ${completed}/${required}`);
  } finally {
    db.close();
  }
}

const ORDERS = ["xyz", "xzy", "yxz", "yzx", "zxy", "zyx"];

for (const workers of [1, 16])
  test(`ACC 17 diamond: with ${workers} workers, in any order of ends, the join is queued once and runs once`, async () => {
    using folder = createFolder();
    const file = folder.file("runs.db");
    const gates = new Map<string, Gate>();
    const gate = (name: string): Gate => {
      if (!gates.has(name)) gates.set(name, createGate());
      return gates.get(name)!;
    };
    const joins: string[] = [];
    const side = (name: string) => async (ctx: { runId: string }, given: { s: number }) => {
      await gate(`${ctx.runId} ${name}`).wait();
      return `${name}${given.s}`;
    };
    const diamond = flow("diamond", { input: typed<number>() })
      .action("s", ["input"], (_ctx, { input }) => input)
      .action("x", ["s"], side("x"))
      .action("y", ["s"], side("y"))
      .action("z", ["s"], side("z"))
      .action("j", ["x", "y", "z"], (ctx, { x, y, z }) => (joins.push(ctx.runId), `${x} ${y} ${z}`))
      .output(["j"], ({ j }) => j);
    const store = `sqlite:${file}`;
    const engines = await Promise.all(
      Array.from({ length: workers }, () =>
        createEngine({ store, definitions: [diamond], worker: { concurrency: 8 } }),
      ),
    );
    try {
      const runs = await Promise.all(
        ORDERS.map((order, index) => engines[index % workers]!.start(diamond, index, { id: order })),
      );
      await Promise.all(
        ORDERS.map(async (order) => {
          await Promise.all([..."xyz"].map((name) => gate(`${order} ${name}`).reached));
          for (const name of order) gate(`${order} ${name}`).open();
        }),
      );
      for (const [index, run] of runs.entries()) {
        expect(await run.result()).toBe(`x${index} y${index} z${index}`);
        const commands = await commandsOf(run);
        for (const node of "sxyzj") expect(commands.filter((one) => one === `NodeCompleted ${node}`)).toHaveLength(1);
      }
      expect(joins.toSorted()).toEqual(ORDERS.toSorted());
    } finally {
      await Promise.all(engines.map((engine) => engine.close()));
    }
    expect(readinessOf(file, "zyx")).toContain("j 3/3");
  });

test("ACC 18 stale completion: a repeated one, and one with an old token, do not change the run", async () => {
  let repeated = 0;
  const outcomes: unknown[] = [];
  // Every completion arrives twice, in consecutive batches, and once more with an invalid token.
  const store = storeAround(async (writes, apply) => {
    const answers = await apply();
    const late = writes.filter(({ write }) => write === "complete") as (AnyWrite & { write: "complete" })[];
    for (const write of late) {
      const old = "item" in write.fence ? { ...write.fence, token: "old" } : { ...write.fence, turn: "old" };
      outcomes.push(...(await store.store.write([write, { ...write, fence: old }])));
      repeated += 1;
    }
    return answers;
  });
  const chain = flow("chain", { input: typed<number>() })
    .action("a", ["input"], (_ctx, { input }) => input + 1)
    .action("b", ["a"], (_ctx, { a }) => a + 1)
    .spread(
      "all",
      ["a"],
      ({ a }) => [a, a, a],
      (_ctx, item) => item,
    )
    .output(["b", "all"], ({ b, all }) => [b, ...all]);
  await using engine = await createTestEngine({ definitions: [chain], store });
  const run = await engine.start(chain, 1);
  expect(await run.result()).toEqual([3, 2, 2, 2]);
  expect(repeated).toBeGreaterThanOrEqual(7);
  expect(outcomes.filter((outcome) => (outcome as { status: string }).status !== "stale")).toEqual([]);
  const commands = await commandsOf(run);
  expect(new Set(commands).size).toBe(commands.length);
});

test("ACC 19 overflow: an arrival too many aborts the commit, blocks the run with the node, and the counter stays", async () => {
  using folder = createFolder();
  const file = folder.file("runs.db");
  let forge = true;
  // The join gets an arrival along an edge it does not have.
  const store = storeAround(async (writes, apply) => {
    for (const write of writes)
      if (forge && write.write === "complete" && write.arrivals.some(({ target }) => target === "j")) {
        const [first] = write.arrivals;
        (write as { arrivals: unknown }).arrivals = [
          ...write.arrivals,
          { ...first, edge: "forged" },
          { ...first, edge: "more" },
        ];
      }
    return apply();
  }, file);
  const gate = createGate();
  const pair = flow("pair", { input: typed<void>() })
    .action("x", ["input"], () => 1)
    .action("y", ["input"], async () => (await gate.wait(), 2))
    .action("j", ["x", "y"], (_ctx, { x, y }) => x + y)
    .output(["j"], ({ j }) => j);
  {
    await using engine = await createTestEngine({ definitions: [pair], store });
    const run = await engine.start(pair, undefined, { id: "run" });
    expect(await rejection(run.result())).toMatchObject({
      code: "RUN_BLOCKED",
      details: { code: "READINESS_OVERFLOW", node: "j", completed: 0, required: 2, wanted: 3 },
    });
    expect(await commandsOf(run)).toEqual(["RunStarted"]);
    // Resumed after the repair, it continues: nothing was lost.
    forge = false;
    gate.open();
    await engine.clock.advance("1 second");
    await run.resume();
    expect(await run.result()).toBe(3);
  }
  expect(readinessOf(file, "run")).toContain("j 2/2");
});

test("ACC 20 two paths to the output: the run ends once, with the first result, and the second is not an error", async () => {
  const gates = [createGate(), createGate()] as const;
  const errors: unknown[] = [];
  const paths = flow("paths", { input: typed<void>() })
    .action("one", ["input"], async () => (await gates[0].wait(), 1))
    .action("two", ["input"], async () => (await gates[1].wait(), 2))
    .action("side", ["one"], () => new Promise<never>(() => {}))
    .output(["one", "two"], ({ one, two }) => [one, two]);
  await using engine = await createTestEngine({
    definitions: [paths],
    logger: {
      info: () => {},
      warn: (...said) => void errors.push(said),
      error: (...said) => void errors.push(said),
    },
  });
  const run = await engine.start(paths, undefined);
  await Promise.all(gates.map(({ reached }) => reached));
  for (const gate of gates) gate.open();
  expect(await run.result()).toEqual([1, 2]);
  // Nodes that still run are aborted, without an effect.
  await engine.clock.advance("1 minute");
  expect((await commandsOf(run)).filter((one) => one.startsWith("Run"))).toEqual(["RunStarted", "RunCompleted"]);
  expect(errors).toEqual([]);
});

test("ACC 21 spread: the results of twelve items that end in reverse are ordered by index; no items give an empty list at once", async () => {
  const gates = Array.from({ length: 12 }, () => createGate());
  const ended: number[] = [];
  const spread = flow("spread", { input: typed<number>() })
    .spread(
      "saved",
      ["input"],
      ({ input }) => Array.from({ length: input }, (_, index) => index),
      async (_ctx, item) => {
        await gates[item]!.wait();
        ended.push(item);
        gates[item - 1]?.open();
        return item * 2;
      },
    )
    .output(["saved"], ({ saved }) => saved);
  await using engine = await createTestEngine({ definitions: [spread], worker: { concurrency: 12 } });
  const run = await engine.start(spread, 12);
  await Promise.all(gates.map(({ reached }) => reached));
  gates[11]!.open();
  expect(await run.result()).toEqual(Array.from({ length: 12 }, (_, index) => index * 2));
  expect(ended).toEqual(Array.from({ length: 12 }, (_, index) => 11 - index));
  const none = await engine.start(spread, 0);
  expect(await none.result()).toEqual([]);
  expect(await commandsOf(none)).toEqual([
    "RunStarted",
    "NodeCompleted saved[]",
    "NodeCompleted saved",
    "RunCompleted",
  ]);
});

test("ACC 36 skipped and unequal branches: behind a nested branch, a spread and a longer path the join fires once", async () => {
  let joins = 0;
  const unequal = flow("unequal", { input: typed<number>() })
    .action("n", ["input"], (_ctx, { input }) => input)
    .when(
      "outer",
      ["n"],
      ({ n }) => n > 0,
      (outer) =>
        outer
          .spread(
            "all",
            ["n"],
            ({ n }) => Array.from({ length: n - 1 }, (_, index) => index),
            (_ctx, item) => item,
          )
          .when(
            "inner",
            ["all"],
            ({ all }) => all.length > 1,
            (inner) =>
              inner
                .action("deep", ["all"], (_ctx, { all }) => all.length)
                .action("deeper", ["deep"], (_ctx, { deep }) => deep + 1),
          ),
    )
    .action("short", ["n"], (_ctx, { n }) => n)
    .action("join", ["short", "all", "deeper"], (_ctx, given) => ((joins += 1), given))
    .action("skipped", ["deeper"], () => "only behind the branch")
    .output(["join", "skipped"], ({ join, skipped }) => ({ ...join, skipped }));
  await using engine = await createTestEngine({ definitions: [unequal] });
  for (const [n, expected] of [
    [0, { short: 0, all: undefined, deeper: undefined, skipped: undefined }],
    [1, { short: 1, all: [], deeper: undefined, skipped: undefined }],
    [3, { short: 3, all: [0, 1], deeper: 3, skipped: "only behind the branch" }],
  ] as const) {
    joins = 0;
    const run = await engine.start(unequal, n);
    expect(await run.result()).toEqual(expected);
    expect(joins).toBe(1);
    expect(await run.verify()).toMatchObject({ status: "same" });
  }
});
