// Every dispatch of user code has a number, a worker, a start and a duration, also when its worker is lost (attempts.X1).

import { describe, expect, test } from "vitest";
import {
  END,
  flow,
  graph,
  last,
  queue,
  START,
  task,
  typed,
  workflow,
  type JournalEntry,
  type RunAttempt,
} from "reprise";
import { createTestEngine, type TestEngine } from "reprise/testing";
import { collect, createGate, rejection, watchEvents } from "./world.ts";

interface Readable {
  attempts(): AsyncIterable<RunAttempt>;
  journal(): AsyncIterable<JournalEntry>;
}

async function attemptsOf(run: Readable): Promise<object[]> {
  return (await collect(run.attempts())).map(({ step = "the run", execution, attempt, outcome }) => ({
    step,
    ...(execution !== undefined && { execution, attempt }),
    outcome,
  }));
}

/** Hangs until the engine has crashed as often as given, then returns. */
function hangs(crashes: number) {
  const executions: number[] = [];
  const reached = Array.from({ length: crashes }, () => createGate());
  return {
    executions,
    call(ctx: { readonly execution: number }): unknown {
      executions.push(ctx.execution);
      return reached[executions.length - 1]?.wait() ?? "done";
    },
    async crashEach(engine: Pick<TestEngine, "crash">): Promise<void> {
      for (const gate of reached) {
        await gate.reached;
        await engine.crash();
      }
    },
  };
}

describe("an operation", () => {
  test("whose worker is lost twice has execution 3 when it ends, and the takeovers are recorded", async () => {
    const slow = hangs(2);
    const order = workflow("order", async (ctx) => {
      await ctx.run("before", () => "quick");
      await ctx.run("charge", (op) => slow.call(op));
      return ctx.run("after", (op) => op.execution);
    });
    await using engine = await createTestEngine({ definitions: [order] });
    const run = await engine.start(order, undefined, { id: "order-1" });
    await slow.crashEach(engine);
    expect(await run.result()).toBe(1);
    expect(slow.executions).toEqual([1, 2, 3]);
    expect(await attemptsOf(run)).toEqual([
      { step: "Operation(0)", execution: 1, attempt: 1, outcome: "completed" },
      { step: "the run", outcome: "lost" },
      { step: "the run", outcome: "lost" },
      { step: "Operation(1)", execution: 3, attempt: 1, outcome: "completed" },
      { step: "Operation(2)", execution: 1, attempt: 1, outcome: "completed" },
    ]);
    expect(await run.verify()).toMatchObject({ status: "same" });
  });

  test("that fails, loses its worker and succeeds counts all of its executions", async () => {
    const slow = hangs(1);
    let calls = 0;
    const order = workflow("order", async (ctx) =>
      ctx.run(
        "charge",
        (op) => {
          calls += 1;
          if (op.attempt === 1) throw new TypeError("no answer");
          return slow.call(op);
        },
        { retry: { maxAttempts: 3, baseDelay: "1 s" } },
      ),
    );
    await using engine = await createTestEngine({ definitions: [order] });
    const run = await engine.start(order, undefined, { id: "order-1" });
    await engine.clock.advance("5 s");
    await slow.crashEach(engine);
    expect(await run.result()).toBe("done");
    expect([calls, slow.executions]).toEqual([3, [2, 3]]);
    expect(await attemptsOf(run)).toEqual([
      { step: "Operation(0)", execution: 1, attempt: 1, outcome: "failed" },
      { step: "the run", outcome: "lost" },
      { step: "Operation(0)", execution: 3, attempt: 2, outcome: "completed" },
    ]);
  });

  test("that was requested after a takeover has execution 1", async () => {
    const slow = hangs(1);
    const order = workflow("order", async (ctx) => {
      await ctx.run("first", (op) => slow.call(op));
      const parallel = [1, 2].map((n) => ctx.run(`later ${n}`, (op) => op.execution));
      return Promise.all(parallel);
    });
    await using engine = await createTestEngine({ definitions: [order] });
    const run = await engine.start(order, undefined, { id: "order-1" });
    await slow.crashEach(engine);
    expect(await run.result()).toEqual([1, 1]);
  });

  test("that a worker leaves unfinished when it closes is recorded as returned, and its next execution is 2", async () => {
    const slow = hangs(1);
    const order = workflow("order", async (ctx) => ctx.run("charge", (op) => slow.call(op)));
    await using engine = await createTestEngine({ definitions: [order] });
    const run = await engine.start(order, undefined, { id: "order-1" });
    await slow.crashEach({
      crash: () => engine.drain({ grace: 0 }).then(() => engine.crash()),
    });
    expect(await run.result()).toBe("done");
    expect(slow.executions).toEqual([1, 2]);
    expect((await attemptsOf(run))[0]).toEqual({ step: "the run", outcome: "returned" });
  });
});

describe("a task", () => {
  test("counts failed and lost executions, each with its worker, start and duration", async () => {
    const slow = hangs(1);
    const charge = task("charge", { retry: { maxAttempts: 3, baseDelay: "10 s" } }, async (ctx) => {
      if (ctx.attempt === 1) throw new TypeError("no answer");
      return slow.call(ctx);
    });
    const order = workflow("order", async (ctx) => ctx.task(charge));
    await using engine = await createTestEngine({ definitions: [order, charge] });
    const startedAt = engine.clock.now().getTime();
    const run = await engine.start(order, undefined, { id: "order-1" });
    await engine.clock.advance("30 s");
    await slow.crashEach(engine);
    expect(await run.result()).toBe("done");
    expect(slow.executions).toEqual([2, 3]);
    expect((await attemptsOf(run)).filter((one) => "execution" in one)).toEqual([
      { step: "Task(0)", execution: 1, attempt: 1, outcome: "failed" },
      { step: "Task(0)", execution: 2, attempt: 2, outcome: "lost" },
      { step: "Task(0)", execution: 3, attempt: 2, outcome: "completed" },
    ]);
    const [failed, lost, completed] = (await collect(run.attempts())).filter(({ step }) => step !== undefined);
    expect(failed?.startedAt?.getTime()).toBe(startedAt);
    expect(failed?.error).toMatchObject({ name: "TypeError", message: "no answer" });
    expect(lost?.startedAt?.getTime()).toBeGreaterThanOrEqual(startedAt + 10_000);
    expect(completed?.tookMs).toBe(0);
    for (const one of [failed, lost, completed]) expect(one?.worker).toMatch(/\S/);
    expect(await run.verify()).toMatchObject({ status: "same" });
  });

  test("took as long as its code ran, without the time it waited in the queue", async () => {
    const gate = createGate();
    const slow = task("slow", { queue: queue("narrow", { concurrency: 1 }) }, () => gate.wait());
    const order = workflow("order", async (ctx) => ctx.task(slow));
    await using engine = await createTestEngine({ definitions: [order, slow] });
    const first = await engine.start(order, undefined, { id: "order-1" });
    const second = await engine.start(order, undefined, { id: "order-2" });
    await gate.reached;
    await engine.clock.advance("20 s");
    gate.open();
    await Promise.all([first.result(), second.result()]);
    const tookOf = async (run: Readable): Promise<number | undefined> =>
      (await collect(run.journal())).find(({ type }) => type === "TaskCompleted")?.tookMs;
    expect([await tookOf(first), await tookOf(second)]).toEqual([20_000, 0]);
  });
});

describe("a node of a graph", () => {
  test("and the call in it that was running count the execution that was lost, and a call after it does not", async () => {
    const slow = hangs(1);
    const agent = graph("agent", { state: { answer: last("") } })
      .node("think", async (ctx) => {
        await ctx.run("read", () => "recorded");
        await ctx.run("ask", (op) => slow.call(op));
        return { answer: String(await ctx.run("write", (op) => op.execution)) };
      })
      .edge(START, "think")
      .edge("think", END);
    await using engine = await createTestEngine({ definitions: [agent] });
    const run = await engine.start(agent, {}, { id: "agent-1" });
    await slow.crashEach(engine);
    expect(await run.result()).toMatchObject({ answer: "1" });
    expect(slow.executions).toEqual([1, 2]);
    const ended = (await attemptsOf(run)).filter((one) => "execution" in one);
    expect(ended).toEqual([
      { step: "Node(1.0)#0/Operation(0)", execution: 1, attempt: 1, outcome: "completed" },
      { step: "Node(1.0)#0/Operation(1)", execution: 2, attempt: 1, outcome: "completed" },
      { step: "Node(1.0)#0/Operation(2)", execution: 1, attempt: 1, outcome: "completed" },
      { step: "Node(1.0)", execution: 2, attempt: 1, outcome: "completed" },
    ]);
    expect(await run.verify()).toMatchObject({ status: "same" });
  });
});

describe("an action of a flow", () => {
  test("counts failed and lost executions, and a failure shows where the user's code threw", async () => {
    const slow = hangs(1);
    const imported = flow("import", { input: typed<number>() })
      .action("rate", ["input"], { retry: { maxAttempts: 3, baseDelay: "1 s" } }, (ctx) => {
        if (ctx.attempt === 1) throwFromHere();
        return slow.call(ctx);
      })
      .output(["rate"], ({ rate }) => rate);
    await using engine = await createTestEngine({ definitions: [imported] });
    const run = await engine.start(imported, 1, { id: "import-1" });
    await engine.clock.advance("5 s");
    await slow.crashEach(engine);
    expect(await run.result()).toBe("done");
    const attempts = (await collect(run.attempts())).filter(({ step }) => step !== undefined);
    expect(attempts.map(({ step, execution, attempt, outcome }) => [step, execution, attempt, outcome])).toEqual([
      ["rate", 1, 1, "failed"],
      ["rate", 2, 2, "lost"],
      ["rate", 3, 2, "completed"],
    ]);
    expect((attempts[0]!.error as Error).stack).toContain("throwFromHere");
  });
});

function throwFromHere(): never {
  throw new RangeError("thrown by the user's code");
}

test.each(["task", "operation"] as const)(
  "after all attempts of a %s failed, the stack has the frames of the user's code and none of the engine",
  async (kind) => {
    const policy = { retry: { maxAttempts: 2, baseDelay: "1 s" } } as const;
    const charge = task("charge", policy, throwFromHere);
    const order = workflow("order", async (ctx) =>
      kind === "task" ? ctx.task(charge) : ctx.run("charge", throwFromHere, policy),
    );
    await using engine = await createTestEngine({ definitions: [order, charge] });
    const run = await engine.start(order, undefined, { id: "order-1" });
    await engine.clock.advance("1 minute");
    const { cause } = (await rejection(run.result())) as Error & { cause: Error };
    expect(cause.message).toMatch(/^All 2 attempts failed/);
    expect(cause.stack).toContain("throwFromHere");
    expect(cause.stack).not.toMatch(/src\/worker/);
    const failed = (await collect(run.attempts())).filter(({ outcome }) => outcome === "failed");
    expect(
      failed.map(({ execution, error }) => [execution, (error as Error).stack?.includes("throwFromHere")]),
    ).toEqual([
      [1, true],
      [2, true],
    ]);
  },
);

test("the facts of an execution are not hashed: two runs on different workers have the same digest", async () => {
  const digestOn = async (worker: string, tookMs: number): Promise<string> => {
    const gate = createGate();
    const order = workflow("order", async (ctx) => ctx.run("charge", () => gate.wait()));
    await using engine = await createTestEngine({ definitions: [order] });
    const run = await engine.start(order, undefined, { id: `order-${worker}` });
    await gate.reached;
    await engine.clock.advance(tookMs);
    gate.open();
    await run.result();
    const [entry] = (await collect(run.journal())).filter(({ type }) => type === "OperationCompleted");
    expect(entry?.tookMs).toBe(tookMs);
    return (await run.info()).digest;
  };
  expect(await digestOn("a", 5)).toBe(await digestOn("b", 5_000));
});

test("the event of an attempt has its execution", async () => {
  using watched = watchEvents();
  const order = workflow("order", async (ctx) => ctx.run("charge", () => "paid"));
  await using engine = await createTestEngine({ definitions: [order] });
  await (await engine.start(order, undefined, { id: "order-1" })).result();
  expect(watched.events.filter(({ event }) => event === "attempt.started")).toEqual([
    { event: "attempt.started", run: "order-1", step: "Operation(0)", name: "charge", attempt: 1, execution: 1 },
  ]);
});
