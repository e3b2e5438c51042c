// Flows: every kind of node, alone and together.

import { expect, test } from "vitest";
import { FatalError, flow, task, typed, workflow, type JournalEntry } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { rejection } from "../engine/world.ts";

async function typesOf(run: { journal(): AsyncIterable<JournalEntry> }): Promise<string[]> {
  const types: string[] = [];
  for await (const { type, command } of run.journal()) types.push(command === undefined ? type : `${type} ${command}`);
  return types;
}

test("a chain of actions and inline nodes gives its output, with one entry per action", async () => {
  const chain = flow("chain", { input: typed<number>() })
    .action("a", ["input"], async (_ctx, { input }) => input + 1)
    .inline("b", ["a"], ({ a }) => a * 2)
    .action("c", ["b"], (_ctx, { b }) => b + 1)
    .output(["c"], ({ c }) => ({ c }));
  await using engine = await createTestEngine({ definitions: [chain] });
  const run = await engine.start(chain, 1);
  expect(await run.result()).toEqual({ c: 5 });
  expect(await typesOf(run)).toEqual(["RunStarted", "NodeCompleted a", "NodeCompleted c", "RunCompleted"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a diamond: the join runs once, after all three", async () => {
  const seen: string[] = [];
  const diamond = flow("diamond", { input: typed<number>() })
    .action("s", ["input"], (_ctx, { input }) => input)
    .action("x", ["s"], (_ctx, { s }) => s + 1)
    .action("y", ["s"], (_ctx, { s }) => s + 2)
    .action("z", ["s"], (_ctx, { s }) => s + 3)
    .action("j", ["x", "y", "z"], (_ctx, { x, y, z }) => {
      seen.push(`${x} ${y} ${z}`);
      return x + y + z;
    })
    .output(["j"], ({ j }) => j);
  await using engine = await createTestEngine({ definitions: [diamond] });
  expect(await (await engine.start(diamond, 10)).result()).toBe(36);
  expect(seen).toEqual(["11 12 13"]);
});

const branches = flow("branches", { input: typed<number>() })
  .action("n", ["input"], (_ctx, { input }) => input)
  .when(
    "big",
    ["n"],
    ({ n }) => n > 10,
    (branch) =>
      branch
        .action("archive", ["n"], (_ctx, { n }) => `archived ${n}`)
        .inline("loud", ["archive"], ({ archive }) => archive.toUpperCase()),
  )
  .otherwise("big", (branch) => branch.inline("note", ["n"], ({ n }) => `only ${n}`))
  .action("where", ["loud", "note"], (_ctx, { loud, note }) => loud ?? note ?? "nowhere")
  .output(["where", "archive"], ({ where, archive }) => ({ where, archived: archive !== undefined }));

test("a skipped branch: the join behind both sides fires exactly once, whichever was taken", async () => {
  await using engine = await createTestEngine({ definitions: [branches] });
  const big = await engine.start(branches, 11);
  expect(await big.result()).toEqual({ where: "ARCHIVED 11", archived: true });
  const small = await engine.start(branches, 1);
  expect(await small.result()).toEqual({ where: "only 1", archived: false });
  for (const run of [big, small]) {
    expect((await typesOf(run)).filter((type) => type === "NodeCompleted where")).toHaveLength(1);
    expect(await run.verify()).toMatchObject({ status: "same" });
  }
});

test("a spread of twelve: ids by index, results in the order of the items", async () => {
  const ended: number[] = [];
  const spread = flow("spread", { input: typed<number>() })
    .inline("list", ["input"], ({ input }) => Array.from({ length: input }, (_, index) => index))
    .spread(
      "saved",
      ["list"],
      ({ list }) => list,
      async (_ctx, item, index) => {
        await Promise.resolve();
        ended.push(index);
        return `${item}!`;
      },
    )
    .output(["saved"], ({ saved }) => saved);
  await using engine = await createTestEngine({ definitions: [spread] });
  const run = await engine.start(spread, 12);
  expect(await run.result()).toEqual(Array.from({ length: 12 }, (_, index) => `${index}!`));
  expect(await typesOf(run)).toContain("NodeCompleted saved[11]");
  expect(await (await engine.start(spread, 0)).result()).toEqual([]);
  expect(ended).toHaveLength(12);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a spread with settle keeps failures at their index; without it the run fails", async () => {
  const work = (_ctx: unknown, item: number): number => {
    if (item === 2) throw new Error("two");
    return item;
  };
  const settled = flow("settled", { input: typed<number[]>() })
    .spread("all", ["input"], { settle: true, concurrency: 2 }, ({ input }) => input, work)
    .output(["all"], ({ all }) =>
      all.map((one) => (one.status === "fulfilled" ? one.value : (one.reason as Error).message)),
    );
  const strict = flow("strict", { input: typed<number[]>() })
    .spread("all", ["input"], ({ input }) => input, work)
    .output(["all"], ({ all }) => all);
  await using engine = await createTestEngine({ definitions: [settled, strict] });
  expect(await (await engine.start(settled, [1, 2, 3])).result()).toEqual([1, "two", 3]);
  expect(await rejection((await engine.start(strict, [1, 2, 3])).result())).toMatchObject({
    code: "RUN_FAILED",
    cause: { message: "two" },
  });
});

test("parallel gives each result under its name; a task and a child can be called", async () => {
  const double = task("double", (_ctx, n: number) => n * 2);
  const slow = workflow("slow", async (ctx, n: number) => {
    await ctx.sleep("1 hour");
    return n + 0.5;
  });
  const inner = flow("inner", { input: typed<string>() })
    .action("up", ["input"], (_ctx, { input }) => input.toUpperCase())
    .output(["up"], ({ up }) => up);
  const calls = flow("calls", { input: typed<number>() })
    .parallel("both", ["input"], { one: (_ctx, { input }) => input, two: async (_ctx, { input }) => `${input}` })
    .call("doubled", ["both"], double, ({ both }) => both.one)
    .call("slowly", ["doubled"], slow, ({ doubled }) => doubled)
    .call("sub", ["both"], inner, ({ both }) => `x${both.two}`)
    .output(["both", "slowly", "sub"], (given) => given);
  await using engine = await createTestEngine({ definitions: [calls, double, slow, inner] });
  const run = await engine.start(calls, 4);
  await engine.clock.advance("2 hours");
  expect(await run.result()).toEqual({ both: { one: 4, two: "4" }, slowly: 8.5, sub: "X4" });
});

test("a failing action is retried by its policy, then caught, or fails the run with its node", async () => {
  const attempts: number[] = [];
  const retry = { maxAttempts: 3, baseDelay: 1_000, maxDelay: 4_000 };
  const flaky = flow("flaky", { input: typed<{ fatal: boolean }>() })
    .action("try", ["input"], { retry }, (ctx) => {
      attempts.push(ctx.attempt);
      if (ctx.attempt < 3) throw new Error(`attempt ${ctx.attempt}`);
      return "third";
    })
    .action("safe", ["input"], { catch: (error) => `caught ${error.message}` }, (): string => {
      throw new FatalError("no");
    })
    .action("maybe", ["input"], (_ctx, { input }) => {
      if (input.fatal) throw new FatalError("fatal");
      return 1;
    })
    .output(["try", "safe", "maybe"], (given) => given);
  await using engine = await createTestEngine({ definitions: [flaky] });
  const run = await engine.start(flaky, { fatal: false });
  await engine.clock.advance("1 minute");
  expect(await run.result()).toEqual({ try: "third", safe: "caught no", maybe: 1 });
  expect(attempts).toEqual([1, 2, 3]);
  const failed = await engine.start(flaky, { fatal: true });
  expect(await rejection(failed.result())).toMatchObject({ code: "RUN_FAILED", cause: { message: "fatal" } });
});

test("an inline node that throws fails the run by name, and earlier results stay", async () => {
  const broken = flow("broken", { input: typed<number>() })
    .action("a", ["input"], (_ctx, { input }) => input)
    .inline("b", ["a"], ({ a }): number => {
      throw new Error(`b cannot take ${a}`);
    })
    .output(["b"], ({ b }) => b);
  await using engine = await createTestEngine({ definitions: [broken] });
  const run = await engine.start(broken, 1);
  expect(await rejection(run.result())).toMatchObject({ code: "RUN_FAILED", cause: { message: "b cannot take 1" } });
  expect(await typesOf(run)).toEqual(["RunStarted", "NodeCompleted a", "NodeFailed b", "RunFailed"]);
});

test("a cancelled flow ends at once, aborts its actions, cancels its children, and leaves nothing queued", async () => {
  const aborted: string[] = [];
  const child = workflow("waits", async (ctx) => ctx.sleep("10 days"));
  const long = flow("long", { input: typed<void>() })
    .action(
      "work",
      ["input"],
      (ctx) =>
        new Promise<number>((_resolve, reject) => {
          ctx.abortSignal.addEventListener("abort", () => {
            aborted.push("work");
            reject(new Error("aborted"));
          });
        }),
    )
    .call("kid", ["input"], child, () => undefined)
    .output(["work", "kid"], ({ work }) => work);
  await using engine = await createTestEngine({ definitions: [long, child] });
  const run = await engine.start(long, undefined, { id: "long-1" });
  await engine.clock.advance("1 second");
  await run.cancel("enough");
  expect(await rejection(run.result())).toMatchObject({ code: "CANCELLED" });
  expect(aborted).toEqual(["work"]);
  await engine.clock.advance("1 second");
  expect((await engine.get(child, "long-1/kid").info()).status).toBe("cancelled");
});

test("crash everywhere: branches, a spread, retries and children end the same after a crash at every commit", async () => {
  const audit = workflow("audit", async (ctx, n: number) => {
    await ctx.sleep("1 hour");
    return n;
  });
  const all = flow("all", { input: typed<number>() })
    .action("n", ["input"], (_ctx, { input }) => input)
    .inline("list", ["n"], ({ n }) => Array.from({ length: n }, (_, index) => index))
    .spread(
      "each",
      ["list"],
      { concurrency: 3, settle: true, retry: { maxAttempts: 2, baseDelay: 10, maxDelay: 10 } },
      ({ list }) => list,
      (ctx, item) => {
        if (item === 1) throw new Error("never");
        if (item === 2 && ctx.attempt === 1) throw new Error("once");
        return item * 10;
      },
    )
    .when(
      "many",
      ["list"],
      ({ list }) => list.length > 3,
      (branch) => branch.call("audited", ["list"], audit, ({ list }) => list.length),
    )
    .otherwise("many", (branch) => branch.inline("few", ["list"], ({ list }) => list.length))
    .action("join", ["each", "audited", "few"], (_ctx, { each, audited, few }) => ({
      ok: each.filter((one) => one.status === "fulfilled").length,
      audited,
      few,
    }))
    .output(["join"], ({ join }) => join);
  for (const n of [5, 2]) {
    const { output, crashes } = await crashEverywhere(all, n, { definitions: [audit] });
    expect(output).toEqual({ ok: n - 1, audited: n === 5 ? 5 : undefined, few: n === 5 ? undefined : 2 });
    expect(crashes).toBeGreaterThan(5);
  }
});
