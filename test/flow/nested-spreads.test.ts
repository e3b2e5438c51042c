// Nested spreads: a spread within a spread is a child flow per item, and ids are paths of items.

import { expect, test } from "vitest";
import { flow, typed, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { rejection } from "../engine/world.ts";

test("item j of a spread within item i is inner[j] of the child run <run>/outer[i], with its own idempotency key", async () => {
  const keys: string[] = [];
  const inner = flow("inner-flow", { input: typed<readonly number[]>() })
    .spread(
      "inner",
      ["input"],
      { retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } },
      ({ input }) => input,
      (ctx, n) => {
        keys.push(`${ctx.runId} ${n} ${ctx.idempotencyKey}`);
        if (ctx.attempt === 1) throw new Error("again");
        return n;
      },
    )
    .output(["inner"], (given) => given.inner);
  const outer = flow("outer-flow", { input: typed<readonly (readonly number[])[]>() })
    .spread("outer", ["input"], ({ input }) => input, inner)
    .output(["outer"], (given) => given.outer);
  await using engine = await createTestEngine({ definitions: [outer, inner] });
  const run = await engine.start(outer, [[1, 2], [], [3, 4, 5]], { id: "r" });
  await engine.clock.advance(1_000);
  expect(await run.result()).toEqual([[1, 2], [], [3, 4, 5]]);
  const ended: string[] = [];
  for (const id of ["r/outer[0]", "r/outer[1]", "r/outer[2]"])
    for await (const { type, command } of engine.get(inner, id).journal())
      if (type === "NodeCompleted" && /\[\d+\]$/.test(command ?? "")) ended.push(`${id} ${command}`);
  expect(ended.toSorted()).toEqual([
    "r/outer[0] inner[0]",
    "r/outer[0] inner[1]",
    "r/outer[2] inner[0]",
    "r/outer[2] inner[1]",
    "r/outer[2] inner[2]",
  ]);
  // Two attempts of each item have the same key, and no two items have.
  expect([keys.length, new Set(keys).size, new Set(keys.map((key) => key.split(" ")[2])).size]).toEqual([10, 5, 5]);
});

test("a child of an inner item has the path of both items as its id", async () => {
  const leaf = workflow("leaf", async (ctx, n: number) => `${ctx.runId} has ${n}`);
  const inner = flow("inner-flow", { input: typed<readonly number[]>() })
    .spread("inner", ["input"], ({ input }) => input, leaf)
    .output(["inner"], (given) => given.inner);
  const outer = flow("outer-flow", { input: typed<readonly (readonly number[])[]>() })
    .spread("outer", ["input"], ({ input }) => input, inner)
    .output(["outer"], (given) => given.outer.flat());
  await using engine = await createTestEngine({ definitions: [outer, inner, leaf] });
  const run = await engine.start(outer, [[7], [8, 9]], { id: "r" });
  expect(await run.result()).toEqual([
    "r/outer[0]/inner[0] has 7",
    "r/outer[1]/inner[0] has 8",
    "r/outer[1]/inner[1] has 9",
  ]);
});

test("a retry of the outer run runs only the inner item that failed", async () => {
  let broken = true;
  const calls: string[] = [];
  const inner = flow("inner-flow", { input: typed<number>() })
    .spread(
      "inner",
      ["input"],
      ({ input }) => [input, input + 1],
      (ctx, n) => {
        calls.push(`${ctx.runId} ${n}`);
        if (broken && n === 11) throw new Error("11 is broken");
        return n;
      },
    )
    .output(["inner"], (given) => given.inner);
  const outer = flow("outer-flow", { input: typed<readonly number[]>() })
    .spread("outer", ["input"], ({ input }) => input, inner)
    .output(["outer"], (given) => given.outer);
  await using engine = await createTestEngine({ definitions: [outer, inner], worker: { concurrency: 1 } });
  const run = await engine.start(outer, [10], { id: "r" });
  expect(await rejection(run.result())).toMatchObject({ code: "RUN_FAILED" });
  broken = false;
  await run.retry();
  expect(await run.result()).toEqual([[10, 11]]);
  expect(calls).toEqual(["r/outer[0] 10", "r/outer[0] 11", "r/outer[0] 11"]);
});
