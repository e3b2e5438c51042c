// Two copies of the package in one process, as a bundler or a nested install makes them: each accepts what the other made.

import { beforeAll, expect, test, vi } from "vitest";
import * as first from "reprise";

/** The copy whose modules are loaded from here on, also those that an engine loads when it needs them. */
let second: typeof first;
beforeAll(async () => {
  vi.resetModules();
  second = await import("reprise");
});

test("the second copy is another copy", () => {
  expect(second.RepriseError).not.toBe(first.RepriseError);
  expect(second.task).not.toBe(first.task);
});

test("an error of one copy is an instance of the same class, and of its base class, in the other", () => {
  const { RepriseError, FatalError, CancelledError, RetryLaterError } = first;
  const fatal = new second.FatalError("no");
  expect([fatal instanceof FatalError, fatal instanceof RepriseError, fatal instanceof Error]).toEqual([
    true,
    true,
    true,
  ]);
  expect([fatal instanceof CancelledError, fatal instanceof RetryLaterError]).toEqual([false, false]);
  expect(new second.CancelledError() instanceof CancelledError).toBe(true);
  expect(new second.RetryLaterError("1 s") instanceof RetryLaterError).toBe(true);
  expect(new second.RepriseError("USAGE", "no") instanceof FatalError).toBe(false);
  expect(new Error("no") instanceof RepriseError).toBe(false);
});

test("a subclass in user code is recognized by its prototype only", () => {
  class NoStock extends first.FatalError {}
  expect(new NoStock("no") instanceof second.FatalError).toBe(true);
  expect(new NoStock("no") instanceof NoStock).toBe(true);
  expect(new first.FatalError("no") instanceof NoStock).toBe(false);
  expect(new second.FatalError("no") instanceof NoStock).toBe(false);
});

test("an engine retries by the errors of another copy", async () => {
  let attempts = 0;
  const fails = first.task("fails", { retry: { maxAttempts: 5, baseDelay: 1 } }, () => {
    attempts += 1;
    throw new first.FatalError("no address");
  });
  const calls = first.workflow("calls", async (ctx) => ctx.task(fails));
  await using engine = await second.createEngine({ store: "sqlite::memory:", definitions: [calls, fails] });
  const run = await engine.start(calls);
  await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED", cause: { code: "FATAL" } });
  expect(attempts).toBe(1);
});

test("an engine runs the definitions, tasks and queues of another copy", async () => {
  const double = first.task(
    "double",
    { queue: first.queue("numbers", { concurrency: 1 }) },
    (_ctx, n: number) => n * 2,
  );
  const calls = first.workflow("calls", async (ctx, n: number) => ctx.task(double, n));
  const adds = first
    .graph("adds", { state: { n: first.last(0) } })
    .node("add", (_ctx, { n }) => ({ n: n + 1 }))
    .edge(first.START, "add")
    .edge("add", first.END);
  const doubles = first
    .flow("doubles", { input: first.typed<number>() })
    .action("twice", ["input"], async (_ctx, { input }) => input * 2)
    .output(["twice"], ({ twice }) => twice);
  const definitions = [calls, adds, doubles, double];
  await using engine = await second.createEngine({ store: "sqlite::memory:", definitions });
  const run = await engine.start(calls, 21);
  expect(await run.result()).toBe(42);
  const graphRun = await engine.start(adds, { n: 1 });
  expect(await graphRun.result()).toMatchObject({ n: 2 });
  const flowRun = await engine.start(doubles, 4);
  expect(await flowRun.result()).toBe(8);
});
