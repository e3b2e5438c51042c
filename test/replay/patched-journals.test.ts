// ctx.patched, entry by entry: which entries prove that an earlier execution passed the call (command-patched.V2).

import { expect, test } from "vitest";
import { promise, task, workflow, type Definition, type WorkflowContext } from "reprise";
import { LiveRun } from "./live-run.ts";

const ports = { a: promise(), b: promise() };
const step = task("step", (_ctx, n: number) => n);
type Ctx = WorkflowContext<typeof ports>;

const define = (run: (ctx: Ctx) => Promise<unknown>): Definition => workflow("w", { ports }, run);

/** The answer of `ctx.patched` when `after` resumes the run. */
async function answerAfter(entries: LiveRun["entries"], after: Definition): Promise<unknown> {
  const run = await LiveRun.resume(after, entries);
  expect(run.stop).toBeUndefined();
  return run.execution.outcome?.status === "returned" ? run.execution.outcome.value : run.types.at(-1);
}

test("a message that the code did not receive does not prove that the code passed the call", async () => {
  const before = define(async (ctx) => {
    const b = ctx.promise("b");
    await ctx.promise("a");
    await b;
    return ctx.task(step, 1);
  });
  const run = await LiveRun.start(before);
  await run.commit(run.settles("a", {}), run.settles("b", {}));
  // Cut after both arrivals and before the task that follows them.
  const entries = run.entries.filter(({ type }) => type !== "TaskScheduled");
  const after = define(async (ctx) => {
    const b = ctx.promise("b");
    await ctx.promise("a");
    const answer = ctx.patched("x");
    await b;
    return answer;
  });
  expect(await answerAfter(entries, after)).toBe(true);
  // The task proves that the code passed the call.
  const keeps = define(async (ctx) => {
    const b = ctx.promise("b");
    await ctx.promise("a");
    const answer = ctx.patched("x");
    await b;
    void ctx.task(step, 1);
    return answer;
  });
  expect(await answerAfter(run.entries, keeps)).toBe(false);
});

test("a failed attempt of an open operation proves it", async () => {
  const before = define(async (ctx) => {
    await ctx.promise("a");
    return ctx.run("call", () => 1, { retry: { maxAttempts: 3 } });
  });
  const run = await LiveRun.start(before);
  await run.commit(run.settles("a", {}));
  run.retryOperation("Operation(0)", new Error("once"), 10);
  const answers: boolean[] = [];
  const after = define(async (ctx) => {
    await ctx.promise("a");
    answers.push(ctx.patched("x"));
    return ctx.run(answers[0] === true ? "another" : "call", () => 1, { retry: { maxAttempts: 3 } });
  });
  const resumed = await LiveRun.resume(after, run.entries);
  expect([answers, resumed.stop]).toEqual([[false], undefined]);
});

test("the end of the run proves it, even if no other entry follows", async () => {
  const before = define(async (ctx) => ctx.promise("a"));
  const run = await LiveRun.start(before);
  await run.commit(run.settles("a", {}));
  expect(run.types.at(-1)).toBe("RunCompleted");
  const after = define(async (ctx) => {
    await ctx.promise("a");
    return ctx.patched("x");
  });
  expect(await answerAfter(run.entries, after)).toBe(false);
});

test.each(["strict", "per-type"] as const)(
  "a mark in the middle of a %s journal is found again at every cut",
  async (determinism) => {
    const code = define(async (ctx) => {
      const seen: unknown[] = [ctx.patched("first")];
      seen.push(await ctx.task(step, 1));
      if (ctx.patched("second")) seen.push(await ctx.task(step, 2));
      seen.push(await ctx.task(step, 3), ctx.patched("first"));
      return seen;
    });
    const whole = await LiveRun.start(code, undefined, { determinism });
    await whole.finish("Task(0)", "Task(1)", "Task(2)");
    expect(whole.types.filter((type) => type === "PatchMarked")).toHaveLength(2);
    for (const cut of whole.cuts) {
      const run = await LiveRun.resume(code, whole.entries.slice(0, cut), { determinism });
      for (const [n, command] of ["Task(0)", "Task(1)", "Task(2)"].entries())
        if (run.open().includes(command)) await run.commit(run.answerOf(command, { value: n + 1 }));
      expect(run.stop).toBeUndefined();
      expect(run.execution.outcome).toEqual({ status: "returned", value: [true, 1, 2, 3, true] });
      expect(run.types).toEqual(whole.types);
    }
  },
);
