// Blocked flows: runs that cannot continue with the current code or data are blocked with evidence, and can be resumed.

import { expect, test } from "vitest";
import { flow, typed, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createFolder, createGate, rejection } from "../engine/world.ts";

const retry = { maxAttempts: 5, baseDelay: 60_000, maxDelay: 60_000 };

test("a missing node blocks only its run, which continues when the node is restored", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  let broken = true;
  const right = flow("f", { input: typed<string>() })
    .action("a", ["input"], () => 1)
    .action("b", ["a"], { retry }, (_ctx, { a }) => {
      if (broken) throw new Error("later");
      return a + 1;
    })
    .output(["b"], ({ b }) => b);
  const wrong = flow("f", { input: typed<string>() })
    .action("a", ["input"], () => 1)
    .action("c", ["a"], (_ctx, { a }) => a + 2)
    .output(["c"], ({ c }) => c);
  {
    await using engine = await createTestEngine({ definitions: [right], store });
    const run = await engine.start(right, "x", { id: "run" });
    await engine.clock.advance("1 second");
    expect((await run.info()).status).toBe("running");
  }
  {
    await using engine = await createTestEngine({ definitions: [wrong], store });
    const run = engine.get(wrong, "run");
    await engine.clock.advance("5 minutes");
    expect(await run.info()).toMatchObject({ status: "blocked", entries: 2 });
    const error = await rejection(run.result());
    expect(error).toMatchObject({
      code: "RUN_BLOCKED",
      details: { code: "UNKNOWN_DEFINITION", where: "b" },
      message: expect.stringContaining("has no node b"),
    });
    expect(await (await engine.start(wrong, "y")).result()).toBe(3);
  }
  broken = false;
  await using engine = await createTestEngine({ definitions: [right], store });
  const run = engine.get(right, "run");
  await run.resume();
  expect(await run.result()).toBe(2);
});

test("the answer of a child to a missing node blocks the run, and is delivered when the node is restored", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  const child = workflow("child", async (ctx) => {
    await ctx.sleep("1 minute");
    return 3;
  });
  const right = flow("f", { input: typed<void>() })
    .call("kid", ["input"], child, () => undefined)
    .output(["kid"], ({ kid }) => kid);
  const wrong = flow("f", { input: typed<void>() })
    .action("a", ["input"], () => 1)
    .output(["a"], ({ a }) => a);
  {
    await using engine = await createTestEngine({ definitions: [right, child], store });
    await engine.start(right, undefined, { id: "run" });
    await engine.clock.advance("1 second");
  }
  {
    await using engine = await createTestEngine({ definitions: [wrong, child], store });
    await engine.clock.advance("5 minutes");
    expect((await engine.get(wrong, "run").info()).status).toBe("blocked");
  }
  await using engine = await createTestEngine({ definitions: [right, child], store });
  const run = engine.get(right, "run");
  await run.resume();
  expect(await run.result()).toBe(3);
});

test("a call of an unregistered definition blocks the run, which continues where it is registered", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  const child = workflow("child", async (_ctx, n: number) => n + 1);
  const calls = flow("calls", { input: typed<number>() })
    .call("kid", ["input"], child, ({ input }) => input)
    .output(["kid"], ({ kid }) => kid);
  {
    await using engine = await createTestEngine({ definitions: [calls], store });
    const run = await engine.start(calls, 1, { id: "run" });
    expect(await rejection(run.result())).toMatchObject({
      code: "RUN_BLOCKED",
      details: { code: "UNKNOWN_DEFINITION", where: "kid" },
    });
  }
  await using engine = await createTestEngine({ definitions: [calls, child], store });
  const run = engine.get(calls, "run");
  await run.resume();
  expect(await run.result()).toBe(2);
});

test("a node that keeps killing its worker blocks its run only, and can be resumed", async () => {
  let deadly = true;
  let alive = createGate();
  const poison = flow("poison", { input: typed<boolean>() })
    .action("a", ["input"], (_ctx, { input }) => {
      if (!deadly || !input) return "survived";
      alive.open();
      return new Promise<string>(() => {});
    })
    .output(["a"], ({ a }) => a);
  await using engine = await createTestEngine({ definitions: [poison] });
  const run = await engine.start(poison, true);
  while ((await run.info()).status !== "blocked") {
    await alive.opened;
    alive = createGate();
    await engine.crash();
  }
  expect(await (await engine.start(poison, false)).result()).toBe("survived");
  expect(await rejection(run.result())).toMatchObject({
    code: "RUN_BLOCKED",
    message: expect.stringContaining("workers in a row lost their lease"),
  });
  deadly = false;
  await run.resume();
  expect(await run.result()).toBe("survived");
});
