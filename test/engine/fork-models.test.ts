// Forks with other models: the code sees the names, and calls what the fork replaces although its effects are recorded.

import { expect, test } from "vitest";
import { flow, graph, last, promise, START, task, typed, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { rejection } from "./world.ts";

const calls: string[] = [];

/** Calls a model as a wrapper of a library does: live only if the fork replaces it. */
const ask = workflow("ask", { determinism: "strict" }, async (ctx, questions: string[]) => {
  const answers: string[] = [];
  for (const question of questions) {
    const model = ctx.models["fast"] ?? "fast";
    answers.push(
      await ctx.run(
        "think",
        { model, question },
        () => {
          calls.push(`${model} ${question}`);
          return `${question} by ${model}`;
        },
        { live: model !== "fast" },
      ),
    );
    await ctx.run("note", () => void calls.push(`note ${question}`));
  }
  return answers;
});

test("a fork replaces a model after the calls that it shares, and calls only that model", async () => {
  calls.length = 0;
  await using engine = await createTestEngine({ definitions: [ask] });
  const run = await engine.start(ask, ["a", "b", "c"], { id: "ask-1" });
  await run.result();
  calls.length = 0;
  const fork = await run.fork({ at: "Operation(2)", models: { fast: "strong" }, effects: "recorded", id: "ask-2" });
  // What is before the fork keeps its recorded input, and every other call is answered by the origin.
  expect(await fork.result()).toEqual(["a by fast", "b by strong", "c by strong"]);
  expect(calls).toEqual(["strong b", "strong c"]);
  expect(await fork.verify()).toMatchObject({ status: "same" });
  // A fork of the fork inherits the name; within what it shares it sees what its origins saw.
  calls.length = 0;
  const second = await fork.fork({ at: "Operation(4)", models: { slow: "x" }, effects: "recorded", id: "ask-3" });
  expect(await second.result()).toEqual(["a by fast", "b by strong", "c by strong"]);
  expect(calls).toEqual(["strong c"]);
  expect(await second.verify()).toMatchObject({ status: "same" });
  const again = await run.fork({ at: "Operation(2)", models: { fast: "strong" }, effects: "recorded", id: "ask-2" });
  expect(again.id).toBe("ask-2");
  expect(
    await rejection(run.fork({ at: "Operation(2)", models: { fast: "other" }, effects: "recorded", id: "ask-2" })),
  ).toMatchObject({ code: "START_CONFLICT" });
});

test("code that a fork shares with its origin sees the models of the origin, and the fork's own from its place on", async () => {
  const watch = workflow("watch", async (ctx) => {
    const seen: string[] = [];
    for (let n = 0; n < 3; n += 1) {
      seen.push(ctx.models["fast"] ?? "fast");
      await ctx.run("step", { n }, () => n);
    }
    return seen;
  });
  await using engine = await createTestEngine({ definitions: [watch] });
  const run = await engine.start(watch);
  await run.result();
  const fork = await run.fork({ call: { name: "step", nth: 2 }, models: { fast: "strong" }, effects: "recorded" });
  expect(await fork.result()).toEqual(["fast", "strong", "strong"]);
  const second = await fork.fork({ call: { name: "step", nth: 3 }, models: { fast: "other" } });
  expect(await second.result()).toEqual(["fast", "strong", "other"]);
  expect(await (await fork.fork({ at: "input" })).result()).toEqual(["strong", "strong", "strong"]);
  for (const one of [fork, second]) expect(await one.verify()).toMatchObject({ status: "same" });
});

test("a fork at the first call replaces its model, also if a message came before it", async () => {
  const asked = workflow("asked", { ports: { ok: promise<boolean>() } }, async (ctx) => {
    const model = ctx.models["fast"] ?? "fast";
    const answer = await ctx.run("think", { model }, () => `by ${model}`, { live: model !== "fast" });
    return [answer, await ctx.promise("ok")];
  });
  await using engine = await createTestEngine({ definitions: [asked] });
  await engine.get(asked, "asked-1").resolve("ok", true, { beforeStart: true });
  const run = await engine.start(asked, undefined, { id: "asked-1" });
  expect(await run.result()).toEqual(["by fast", true]);
  const fork = await run.fork({ at: "Operation(0)", models: { fast: "strong" }, effects: "recorded" });
  expect(await fork.result()).toEqual(["by strong", true]);
  expect(await fork.verify()).toMatchObject({ status: "same" });
});

test("a given answer is used instead of a live call", async () => {
  calls.length = 0;
  await using engine = await createTestEngine({ definitions: [ask] });
  const run = await engine.start(ask, ["a", "b"]);
  await run.result();
  calls.length = 0;
  const fork = await run.fork({
    answers: { "Operation(0)": "mine" },
    models: { fast: "strong" },
    effects: "recorded",
  });
  expect(await fork.result()).toEqual(["mine", "b by strong"]);
  expect(calls).toEqual(["strong b"]);
});

test("children and later generations inherit the models of a fork", async () => {
  const see = workflow("see", async (ctx) => ({ ...ctx.models }));
  const price = task("price", async (_, model: string) => `priced by ${model}`);
  const parent = workflow("parent", async (ctx, round: number): Promise<unknown> => {
    const priced = await ctx.task(price, ctx.models["fast"] ?? "fast");
    if (round === 0) return ctx.continueAsNew(1);
    return [priced, { ...ctx.models }, await ctx.child(see)];
  });
  await using engine = await createTestEngine({ definitions: [see, price, parent] });
  const run = await engine.start(parent, 0);
  expect(await run.result()).toEqual(["priced by fast", {}, {}]);
  const fork = await run.fork({ at: "Task(0)", generation: 0, models: { fast: "strong" } });
  expect(await fork.result()).toEqual(["priced by strong", { fast: "strong" }, { fast: "strong" }]);
  expect(await fork.verify()).toMatchObject({ status: "same" });
});

test("the nodes of a graph's fork see its models, and the children of a flow's fork inherit them", async () => {
  const see = workflow("see", async (ctx) => ({ ...ctx.models }));
  const agent = graph("agent", { state: { by: last("") }, output: (state) => state.by })
    .node("think", async (ctx) => ({
      by: await ctx.run("think", () => ctx.models["fast"] ?? "fast", { live: ctx.models["fast"] !== undefined }),
    }))
    .edge(START, "think");
  const both = flow("both", { input: typed<string>() })
    .action("first", ["input"], (_ctx, { input }) => input)
    .call("seen", ["first"], see, () => undefined)
    .output(["seen"], ({ seen }) => seen);
  await using engine = await createTestEngine({ definitions: [see, agent, both] });
  const thought = await engine.start(agent, {});
  expect(await thought.result()).toBe("fast");
  const fork = await thought.fork({ step: 0, models: { fast: "strong" }, effects: "recorded" });
  expect(await fork.result()).toBe("strong");
  expect(await fork.verify()).toMatchObject({ status: "same" });
  const flowed = await engine.start(both, "x");
  expect(await flowed.result()).toEqual({});
  expect(await (await flowed.fork({ at: "seen", models: { fast: "strong" } })).result()).toEqual({ fast: "strong" });
});

test("models that are not names of models are refused", async () => {
  await using engine = await createTestEngine({ definitions: [ask] });
  const run = await engine.start(ask, ["a"]);
  await run.result();
  for (const models of [[], "strong", { fast: 1 }, { fast: "" }, { "": "strong" }])
    expect(await rejection(run.fork({ at: "Operation(0)", models: models as never }))).toMatchObject({
      code: "BAD_OPTIONS",
      message: expect.stringContaining('such as { fast: "strong" }'),
    });
  const live = workflow("live", async (ctx) => ctx.run("x", () => 1, { live: "yes" as never }));
  await using other = await createTestEngine({ definitions: [live] });
  expect(await rejection((await other.start(live)).result())).toMatchObject({
    message: expect.stringContaining("expected live to be true or false"),
  });
});
