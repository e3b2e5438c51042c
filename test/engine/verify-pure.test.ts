// Level 4 of a verification: the pure steps of a recorded run are executed again, and their results are compared.

import { expect, test } from "vitest";
import { END, flow, graph, last, START, task, typed, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { registryOf, verifyPure } from "../../src/engine/index.ts";
import type { AnyTask, Definition } from "../../src/kernel/index.ts";
import { storeAround } from "./world.ts";

type Code = readonly (Definition | AnyTask)[];

/** Runs a definition, and verifies its pure steps with other code. */
async function verify(recorded: Code, definition: Definition, input: unknown, code: Code) {
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: recorded, store: source });
  const { start } = engine as unknown as { start(...args: unknown[]): Promise<{ result(): Promise<unknown> }> };
  // The second run reuses what the first one computed.
  for (const id of ["one", "two"]) await (await start.call(engine, definition, input, { id })).result();
  const verdicts = [];
  for (const id of ["one", "two"]) {
    const record = (await source.store.findRun(id))!;
    const entries = await source.store.readJournal(record.run, 0);
    verdicts.push(await verifyPure(registryOf(code), { ...record, entries }));
  }
  expect(verdicts[1]!.steps).toEqual(verdicts[0]!.steps);
  return verdicts[0]!;
}

function workflowOf(double: (n: number) => number, square: (n: number) => number) {
  const squared = task("square", { pure: "1" }, (_ctx, n: number) => square(n));
  const plain = task("plain", (_ctx, n: number) => n);
  const numbers = workflow("numbers", async (ctx, n: number) => {
    const doubled = await ctx.run("double", { n }, (_op, given) => double(given.n), { pure: "1" });
    await ctx.run("impure", () => Math.random());
    return [doubled, await ctx.task(squared, n), await ctx.task(plain, n)];
  });
  return { numbers, code: [numbers, squared, plain] };
}

test("pure operations and tasks of a workflow that return the same are the same, and no other step is called", async () => {
  const { numbers, code } = workflowOf(
    (n) => 2 * n,
    (n) => n * n,
  );
  const { replay, steps } = await verify(code, numbers, 3, code);
  expect(replay.status).toBe("same");
  expect(steps).toEqual([
    { where: "Operation(0)", name: "double", status: "same" },
    { where: "Task(0)", name: "square", status: "same" },
  ]);
});

test("a step that returns another value differs, with both texts; one that throws is not executable", async () => {
  const recorded = workflowOf(
    (n) => 2 * n,
    (n) => n * n,
  );
  const changed = workflowOf(
    (n) => 2 * n + 1,
    () => {
      throw new Error("no network");
    },
  );
  const { steps } = await verify(recorded.code, recorded.numbers, 3, changed.code);
  expect(steps).toEqual([
    { where: "Operation(0)", name: "double", status: "differs", expected: "7", actual: "6" },
    { where: "Task(0)", name: "square", status: "not-executable", reason: "it threw Error: no network" },
  ]);
});

test("pure actions, called tasks and the items of a spread of a flow are executed again", async () => {
  const made = (offset: number) => {
    const embed = task("embed", { pure: "1" }, (_ctx, text: string) => text.length + offset);
    const texts = flow("texts", { input: typed<string[]>() })
      .action("first", ["input"], { pure: "1" }, (_ctx, { input }) => `${input[0]}${offset}`)
      .action("plain", ["input"], () => 1)
      .call("one", ["first"], embed, ({ first }) => first)
      .spread("all", ["input"], ({ input }) => input, embed)
      .output(["one", "all", "plain"], ({ one, all }) => [one, ...all]);
    return { texts, code: [embed, texts] };
  };
  const { texts, code } = made(0);
  expect((await verify(code, texts, ["a", "bc"], code)).steps).toEqual(
    ["first", "one", "all[0]", "all[1]"].map((where) => expect.objectContaining({ where, status: "same" })),
  );
  const { steps } = await verify(code, texts, ["a", "bc"], made(1).code);
  expect(steps.map(({ where, status }) => `${where} ${status}`)).toEqual([
    "first differs",
    "one differs",
    "all[0] differs",
    "all[1] differs",
  ]);
});

test("pure operations in nodes of a graph are executed again", async () => {
  const made = (offset: number) =>
    graph("counts", { state: { n: last(0) } })
      .node("count", async (ctx) => ({
        n: await ctx.run("count", "four", (_op, text) => text.length + offset, { pure: "1" }),
      }))
      .edge(START, "count")
      .edge("count", END);
  const counts = made(0);
  expect((await verify([counts], counts, {}, [counts])).steps).toMatchObject([{ name: "count", status: "same" }]);
  expect((await verify([counts], counts, {}, [made(1)])).steps).toMatchObject([
    { name: "count", status: "differs", expected: "5", actual: "4" },
  ]);
});

test("a reused result whose step the code no longer declares pure is not executable", async () => {
  const made = (options: { pure?: string }) =>
    workflow("doubles", (ctx, n: number) => ctx.run("double", n, (_op, m) => 2 * m, options));
  const doubles = made({ pure: "1" });
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [doubles], store: source });
  for (const id of ["one", "two"]) await (await engine.start(doubles, 1, { id })).result();
  const record = (await source.store.findRun("two"))!;
  const entries = await source.store.readJournal(record.run, 0);
  const { steps } = await verifyPure(registryOf([made({})]), { ...record, entries });
  expect(steps).toEqual([
    {
      where: "Operation(0)",
      name: "Operation(0)",
      status: "not-executable",
      reason: "the code does not declare it pure",
    },
  ]);
});
