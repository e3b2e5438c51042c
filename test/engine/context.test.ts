// Context: `ctx` makes its methods when they are first used, and otherwise is an object like any other.

import { expect, test } from "vitest";
import { END, graph, last, START, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";

test("code may wrap a method of ctx", async () => {
  const names: string[] = [];
  const wrapped = workflow("wrapped", async (ctx) => {
    const run = ctx.run as (name: string, call: () => number) => Promise<number>;
    Object.assign(ctx, {
      run: (name: string, call: () => number) => {
        names.push(name);
        return run(name, call);
      },
    });
    return ctx.run("one", () => 1);
  });
  await using engine = await createTestEngine({ definitions: [wrapped] });
  expect(await (await engine.start(wrapped)).result()).toBe(1);
  expect(names).toEqual(["one"]);
});

test("a frozen ctx, and an object derived from it, have every method", async () => {
  const frozen = workflow("frozen", async (ctx) => {
    Object.freeze(ctx);
    const derived = Object.freeze(Object.create(ctx) as typeof ctx);
    return (await ctx.run("one", () => 1)) + (await derived.run("two", () => 2));
  });
  await using engine = await createTestEngine({ definitions: [frozen] });
  expect(await (await engine.start(frozen)).result()).toBe(3);
});

test("a node may wrap a method of its ctx, and use an object derived from it", async () => {
  const names: string[] = [];
  const wraps = graph("wraps", { state: { sum: last(0) } })
    .node("add", async (ctx) => {
      const derived = Object.create(ctx) as typeof ctx;
      const one = await derived.run("one", () => 1);
      const run = ctx.run as (name: string, call: () => number) => Promise<number>;
      Object.assign(ctx, {
        run: (name: string, call: () => number) => {
          names.push(name);
          return run(name, call);
        },
      });
      return { sum: one + (await ctx.run("two", () => 2)) };
    })
    .edge(START, "add")
    .edge("add", END);
  await using engine = await createTestEngine({ definitions: [wraps] });
  expect(await (await engine.start(wraps, {})).result()).toEqual({ sum: 3 });
  expect(names).toEqual(["two"]);
});
