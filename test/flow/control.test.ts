// Control: flows support what every run supports.

import { expect, test } from "vitest";
import { aesGcm, flow, queue, task, typed, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createGate, rejection } from "../engine/world.ts";

test("a paused flow starts no node; running nodes finish and count; after resume it continues", async () => {
  const gate = createGate();
  const seen: string[] = [];
  const two = flow("two", { input: typed<number>() })
    .action("a", ["input"], async (_ctx, { input }) => {
      seen.push("a");
      await gate.wait();
      return input;
    })
    .action("b", ["a"], (_ctx, { a }) => (seen.push("b"), a + 1))
    .output(["b"], ({ b }) => b);
  await using engine = await createTestEngine({ definitions: [two] });
  const run = await engine.start(two, 1);
  await gate.reached;
  await run.pause();
  gate.open();
  await engine.clock.advance("1 hour");
  expect([seen, (await run.info()).status]).toEqual([["a"], "paused"]);
  await run.resume();
  expect(await run.result()).toBe(2);
  expect(seen).toEqual(["a", "b"]);
});

test("a node waiting for its next attempt while the flow is paused does not run before it is resumed", async () => {
  const attempts: number[] = [];
  const flaky = flow("flaky", { input: typed<number>() })
    .action("a", ["input"], { retry: { maxAttempts: 3, baseDelay: 1_000, maxDelay: 1_000 } }, (ctx) => {
      attempts.push(ctx.attempt);
      if (ctx.attempt === 1) throw new Error("once");
      return 1;
    })
    .output(["a"], ({ a }) => a);
  await using engine = await createTestEngine({ definitions: [flaky] });
  const run = await engine.start(flaky, 1);
  await engine.clock.advance(10);
  await run.pause();
  await engine.clock.advance("1 hour");
  expect(attempts).toEqual([1]);
  await run.resume();
  expect(await run.result()).toBe(1);
  expect(attempts).toEqual([1, 2]);
});

test("a terminated flow ends at once and its children are cancelled", async () => {
  const child = workflow("child", async (ctx) => ctx.sleep("1 day"));
  const parent = flow("parent", { input: typed<void>() })
    .call("kid", ["input"], child, () => undefined)
    .output(["kid"], () => 1);
  await using engine = await createTestEngine({ definitions: [parent, child] });
  const run = await engine.start(parent, undefined, { id: "p" });
  await engine.clock.advance(10);
  await run.terminate("now");
  expect(await rejection(run.result())).toMatchObject({ code: "CANCELLED" });
  await engine.clock.advance(10);
  expect((await engine.get(child, "p/kid").info()).status).toBe("cancelled");
});

test("a flow is a child of a workflow, and cancelling the parent cancels it", async () => {
  const gate = createGate();
  const inner = flow("inner", { input: typed<{ wait: boolean }>() })
    .action("a", ["input"], async (_ctx, { input }) => {
      if (input.wait) await gate.wait();
      return 7;
    })
    .output(["a"], ({ a }) => a);
  const outer = workflow("outer", async (ctx, wait: boolean) => ctx.child(inner, { wait }, { id: `inner ${wait}` }));
  await using engine = await createTestEngine({ definitions: [inner, outer] });
  expect(await (await engine.start(outer, false)).result()).toBe(7);
  const waiting = await engine.start(outer, true);
  await gate.reached;
  await waiting.cancel();
  expect(await rejection(waiting.result())).toMatchObject({ code: "CANCELLED" });
  await engine.clock.advance(10);
  expect((await engine.get(inner, "inner true").info()).status).toBe("cancelled");
  gate.open();
});

test("a schedule starts flows, and a queue limits how many of a node run at once", async () => {
  let atWork = 0;
  let most = 0;
  const narrow = queue("narrow", { concurrency: 2 });
  const limited = flow("limited", { input: typed<number>() })
    .spread(
      "all",
      ["input"],
      { queue: narrow },
      ({ input }) => Array.from({ length: input }, (_, i) => i),
      async (_ctx, item) => {
        most = Math.max(most, (atWork += 1));
        await new Promise((resolve) => setImmediate(resolve));
        atWork -= 1;
        return item;
      },
    )
    .output(["all"], ({ all }) => all.length);
  await using engine = await createTestEngine({ definitions: [limited], worker: { concurrency: 16 } });
  expect(await (await engine.start(limited, 20)).result()).toBe(20);
  expect(most).toBe(2);
  await engine.schedule("hourly", limited, 3, { every: "1 hour" });
  await engine.clock.advance("2 hours");
  const ended = [];
  for await (const info of engine.list({ definition: "limited" })) ended.push(info.status);
  expect(ended).toEqual(["completed", "completed", "completed"]);
});

test("payloads of a flow are encrypted at rest, and it continues after a crash", async () => {
  const secret = flow("secret", { input: typed<string>() })
    .action("a", ["input"], (_ctx, { input }) => `${input}!`)
    .spread(
      "each",
      ["a"],
      ({ a }) => [...a],
      (_ctx, letter) => letter.toUpperCase(),
    )
    .output(["each"], ({ each }) => each.join(""));
  const codec = aesGcm({ keys: { k1: Buffer.alloc(32, 7) }, current: "k1" });
  await using engine = await createTestEngine({ definitions: [secret], codec });
  const run = await engine.start(secret, "word");
  await engine.crash();
  expect(await run.result()).toBe("WORD!");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a run uses the version of the flow that it was started with", async () => {
  const gate = createGate();
  const make = (version: number) =>
    flow("v", { input: typed<number>(), version })
      .action("a", ["input"], async () => {
        if (version === 1) await gate.wait();
        return version;
      })
      .action("b", ["a"], (_ctx, { a }) => `${a} then ${version}`)
      .output(["b"], ({ b }) => b);
  const one = make(1);
  const two = make(2);
  await using engine = await createTestEngine({ definitions: [one, two] });
  const old = await engine.start(one, 1);
  await gate.reached;
  const young = await engine.start(two, 1);
  gate.open();
  expect([await old.result(), await young.result()]).toEqual(["1 then 1", "2 then 2"]);
});

test("an input that does not match its schema is rejected by start, and a child's input by its call", async () => {
  const number = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value: unknown) => (typeof value === "number" ? { value } : { issues: [{ message: "no number" }] }),
    },
  } as const;
  const inner = flow("inner", { input: number as never as ReturnType<typeof typed<number>> })
    .inline("a", ["input"], ({ input }) => input)
    .output(["a"], ({ a }) => a);
  const outer = flow("outer", { input: typed<unknown>() })
    .call("kid", ["input"], inner, ({ input }) => input as number)
    .output(["kid"], ({ kid }) => kid);
  await using engine = await createTestEngine({ definitions: [inner, outer] });
  await expect(engine.start(inner, "x" as never)).rejects.toMatchObject({ code: "BAD_INPUT" });
  expect(await rejection((await engine.start(outer, "x")).result())).toMatchObject({ cause: { code: "BAD_INPUT" } });
  expect(await (await engine.start(outer, 3)).result()).toBe(3);
});

test("a task's policy and schema apply when a flow calls it", async () => {
  const attempts: number[] = [];
  const flaky = task("flaky", { retry: { maxAttempts: 2, baseDelay: 5, maxDelay: 5 } }, (ctx, n: number) => {
    attempts.push(ctx.attempt);
    if (ctx.attempt === 1) throw new Error("once");
    return n * 2;
  });
  const calls = flow("calls", { input: typed<number>() })
    .call("one", ["input"], flaky, ({ input }) => input)
    .spread("many", ["one"], ({ one }) => [one, one + 1], flaky)
    .output(["many"], ({ many }) => many);
  await using engine = await createTestEngine({ definitions: [calls, flaky] });
  const run = await engine.start(calls, 1);
  await engine.clock.advance("1 second");
  expect(await run.result()).toEqual([4, 6]);
  expect(attempts.toSorted()).toEqual([1, 1, 1, 2, 2, 2]);
});
