// Retry: a failed flow continues from the nodes that failed, not from the start.

import { expect, test } from "vitest";
import { flow, queue, typed, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createGate, rejection } from "../engine/world.ts";

test("a retried flow runs the failed node and those that never ended, and nothing else again", async () => {
  const calls: string[] = [];
  let broken = true;
  const three = flow("three", { input: typed<number>() })
    .action("a", ["input"], (_ctx, { input }) => (calls.push("a"), input))
    .action("b", ["a"], (_ctx, { a }) => {
      calls.push("b");
      if (broken) throw new Error("b is broken");
      return a + 1;
    })
    .action("c", ["a"], (_ctx, { a }) => (calls.push("c"), a + 2))
    .action("d", ["b", "c"], (_ctx, { b, c }) => (calls.push("d"), b + c))
    .output(["d"], ({ d }) => d);
  await using engine = await createTestEngine({ definitions: [three], worker: { concurrency: 1 } });
  const run = await engine.start(three, 1);
  expect(await rejection(run.result())).toMatchObject({ code: "RUN_FAILED", cause: { message: "b is broken" } });
  broken = false;
  await run.retry();
  expect(await run.result()).toBe(5);
  expect(calls.filter((call) => call === "a")).toHaveLength(1);
  expect(calls.filter((call) => call === "b")).toHaveLength(2);
  expect(calls.filter((call) => call === "c")).toHaveLength(1);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a retried spread runs the items without a result, and keeps the others", async () => {
  const calls: number[] = [];
  let broken = true;
  const spread = flow("spread", { input: typed<number>() })
    .spread(
      "all",
      ["input"],
      { concurrency: 2 },
      ({ input }) => Array.from({ length: input }, (_, i) => i),
      (_ctx, item) => {
        calls.push(item);
        if (broken && item === 5) throw new Error("five");
        return item * 2;
      },
    )
    .output(["all"], ({ all }) => all);
  await using engine = await createTestEngine({ definitions: [spread] });
  const run = await engine.start(spread, 10);
  await rejection(run.result());
  const before = [...calls];
  broken = false;
  await run.retry();
  expect(await run.result()).toEqual([0, 2, 4, 6, 8, 10, 12, 14, 16, 18]);
  const again = calls.slice(before.length);
  expect(again).toContain(5);
  expect(again.filter((item) => item < 4)).toEqual([]);
});

test("the nodes of a retried flow wait in their queues again", async () => {
  let broken = true;
  let atWork = 0;
  let most = 0;
  const narrow = queue("narrow", { concurrency: 1 });
  const limited = flow("limited", { input: typed<number>() })
    .spread(
      "all",
      ["input"],
      { queue: narrow },
      ({ input }) => Array.from({ length: input }, (_, index) => index),
      async (_ctx, item) => {
        if (broken) throw new Error("broken");
        most = Math.max(most, (atWork += 1));
        await new Promise((resolve) => setImmediate(resolve));
        atWork -= 1;
        return item;
      },
    )
    .output(["all"], ({ all }) => all.length);
  await using engine = await createTestEngine({ definitions: [limited], worker: { concurrency: 8 } });
  const run = await engine.start(limited, 6);
  await rejection(run.result());
  broken = false;
  await run.retry();
  expect([await run.result(), most]).toEqual([6, 1]);
});

test("when an inline node threw, a retry derives it again and does not repeat the action", async () => {
  const calls: string[] = [];
  let broken = true;
  const derived = flow("derived", { input: typed<number>() })
    .inline("first", ["input"], ({ input }) => {
      if (broken && input === 0) throw new Error("first");
      return input;
    })
    .action("a", ["first"], (_ctx, { first }) => (calls.push("a"), { n: first }))
    .inline("b", ["a"], ({ a }) => {
      if (broken) throw new Error("b");
      return a.n + 1;
    })
    .action("c", ["b"], (_ctx, { b }) => (calls.push("c"), b))
    .output(["c"], ({ c }) => c);
  await using engine = await createTestEngine({ definitions: [derived] });
  const run = await engine.start(derived, 1);
  expect(await rejection(run.result())).toMatchObject({ cause: { message: "b" } });
  const early = await engine.start(derived, 0);
  expect(await rejection(early.result())).toMatchObject({ cause: { message: "first" } });
  broken = false;
  await run.retry();
  await early.retry();
  expect([await run.result(), await early.result()]).toEqual([2, 1]);
  expect(calls.filter((call) => call === "a")).toHaveLength(2);
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(await early.verify()).toMatchObject({ status: "same" });
});

test("a flow that failed with its child is retried with it", async () => {
  let broken = true;
  const child = workflow("child", async (ctx, n: number) =>
    ctx.run("step", () => {
      if (broken) throw new Error("child");
      return n + 1;
    }),
  );
  const parent = flow("parent", { input: typed<number>() })
    .call("kid", ["input"], child, ({ input }) => input)
    .output(["kid"], ({ kid }) => kid);
  await using engine = await createTestEngine({ definitions: [parent, child] });
  const run = await engine.start(parent, 1);
  await rejection(run.result());
  broken = false;
  await run.retry();
  expect(await run.result()).toBe(2);
});

test("a flow that exceeds its deadline fails, and keeps its results", async () => {
  const seen: string[] = [];
  const slow = workflow("slow", async (ctx) => ctx.sleep("40 minutes"));
  const late = flow("late", { input: typed<void>(), deadline: "1 hour" })
    .action("a", ["input"], () => (seen.push("a"), 1))
    .call("one", ["a"], slow, () => undefined)
    .call("two", ["one"], slow, () => undefined)
    .output(["two"], () => "done");
  await using engine = await createTestEngine({ definitions: [late, slow] });
  const run = await engine.start(late, undefined);
  await engine.clock.advance("2 hours");
  expect(await rejection(run.result())).toMatchObject({ code: "RUN_FAILED", cause: { code: "DEADLINE_EXCEEDED" } });
  expect(seen).toEqual(["a"]);
});

test("a retry starts the children that the failing flow cancelled again, and retries the failed one", async () => {
  let broken = true;
  const steps: number[] = [];
  const child = workflow("child", async (ctx, n: number) => {
    await ctx.sleep(n === 1 ? "1 minute" : "1 hour");
    return ctx.run("step", () => {
      steps.push(n);
      if (broken && n === 1) throw new Error("one");
      return n * 10;
    });
  });
  const parent = flow("parent", { input: typed<void>() })
    .spread("kids", ["input"], () => [0, 1, 2], child)
    .output(["kids"], ({ kids }) => kids);
  await using engine = await createTestEngine({ definitions: [parent, child] });
  const run = await engine.start(parent, undefined, { id: "p" });
  await engine.clock.advance("2 minutes");
  expect(await rejection(run.result())).toMatchObject({ cause: { message: "one" } });
  expect((await engine.get(child, "p/kids[0]").info()).status).toBe("cancelled");
  broken = false;
  await run.retry();
  await engine.clock.advance("2 hours");
  expect(await run.result()).toEqual([0, 10, 20]);
  expect(steps).toEqual([1, 1, 0, 2]);
  expect((await engine.get(child, "p/kids[0]~2").info()).status).toBe("completed");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a child that is retried after its failure was settled does not change the values of its flow", async () => {
  let broken = true;
  const gate = createGate();
  const child = workflow("child", async (ctx, n: number) =>
    ctx.run("step", () => {
      if (broken && n === 1) throw new Error("one");
      return n;
    }),
  );
  const parent = flow("parent", { input: typed<void>() })
    .spread("kids", ["input"], { settle: true }, () => [0, 1], child)
    .action("seen", ["kids"], async (_ctx, { kids }) => (await gate.wait(), kids.map(({ status }) => status)))
    .output(["seen", "kids"], ({ seen, kids }) => [seen, kids.map(({ status }) => status)]);
  await using engine = await createTestEngine({ definitions: [parent, child] });
  const run = await engine.start(parent, undefined, { id: "p" });
  await gate.reached;
  broken = false;
  const one = engine.get(child, "p/kids[1]");
  await one.retry();
  expect(await one.result()).toBe(1);
  gate.open();
  const statuses = ["fulfilled", "rejected"];
  expect(await run.result()).toEqual([statuses, statuses]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});
