// A step that runs again after a retry of its run continues to count its executions (attempts.X1).

import { expect, test } from "vitest";
import { END, flow, graph, last, START, task, typed, workflow, type RunAttempt } from "reprise";
import { createTestEngine, type TestEngine } from "reprise/testing";
import { collect, createGate, rejection } from "./world.ts";

const retry = { maxAttempts: 2, baseDelay: "1 s" } as const;

/** Throws until it is repaired. */
class Fragile {
  readonly executions: number[] = [];
  isBroken = true;

  call({ execution }: { readonly execution: number }): string {
    this.executions.push(execution);
    if (this.isBroken) throw new TypeError("no answer");
    return "done";
  }
}

interface Retried {
  result(): Promise<unknown>;
  retry(): Promise<void>;
  verify(): Promise<unknown>;
  attempts(): AsyncIterable<RunAttempt>;
}

/** Fails the run, repairs what made it fail, and retries it. Returns all executions in order. */
async function failAndRetry(engine: TestEngine, run: Retried, fragile: { isBroken: boolean }): Promise<unknown[]> {
  await engine.clock.advance("1 minute");
  await rejection(run.result());
  fragile.isBroken = false;
  await run.retry();
  await run.result();
  expect(await run.verify()).toMatchObject({ status: "same" });
  return (await collect(run.attempts())).map(({ step, execution, attempt, outcome }) => [
    step,
    execution,
    attempt,
    outcome,
  ]);
}

test("an operation", async () => {
  const fragile = new Fragile();
  const order = workflow("order", (ctx) => ctx.run("charge", (op) => fragile.call(op), { retry }));
  await using engine = await createTestEngine({ definitions: [order] });
  const run = await engine.start(order);
  expect(await failAndRetry(engine, run, fragile)).toEqual([
    ["Operation(0)", 1, 1, "failed"],
    ["Operation(0)", 2, 2, "failed"],
    ["Operation(0)", 3, 1, "completed"],
  ]);
  expect(fragile.executions).toEqual([1, 2, 3]);
});

test("an operation that was running when another one failed the run, and whose worker is then lost", async () => {
  const fragile = new Fragile();
  const gates = [createGate(), createGate()];
  const executions: number[] = [];
  const order = workflow("order", (ctx) =>
    Promise.all([
      ctx.run("slow", async (op) => {
        executions.push(op.execution);
        await gates[executions.length - 1]?.wait();
      }),
      ctx.run("charge", async (op) => {
        await gates[0]?.reached;
        return fragile.call(op);
      }),
    ]),
  );
  await using engine = await createTestEngine({ definitions: [order] });
  const run = await engine.start(order);
  await rejection(run.result());
  fragile.isBroken = false;
  await run.retry();
  await gates[1]?.reached;
  await engine.crash();
  await run.result();
  expect(executions).toEqual([1, 2, 3]);
});

test("a task, and a task that was running when the run failed", async () => {
  const fragile = new Fragile();
  const gate = createGate();
  const executions: number[] = [];
  const charge = task("charge", { retry }, async (ctx) => {
    await gate.reached;
    return fragile.call(ctx);
  });
  const slow = task("slow", async (ctx) => {
    executions.push(ctx.execution);
    if (executions.length === 1) await gate.wait();
  });
  const order = workflow("order", (ctx) => Promise.all([ctx.task(slow), ctx.task(charge)]));
  await using engine = await createTestEngine({ definitions: [order, charge, slow] });
  const run = await engine.start(order);
  await gate.reached;
  await failAndRetry(engine, run, fragile);
  expect(fragile.executions).toEqual([1, 2, 3]);
  expect(executions).toEqual([1, 2]);
  gate.open();
});

test("an action of a flow", async () => {
  const fragile = new Fragile();
  const total = flow("total", { input: typed<number>() })
    .action("charge", ["input"], { retry }, (ctx) => fragile.call(ctx))
    .output(["charge"], ({ charge }) => charge);
  await using engine = await createTestEngine({ definitions: [total] });
  const run = await engine.start(total, 1);
  await failAndRetry(engine, run, fragile);
  expect(fragile.executions).toEqual([1, 2, 3]);
});

test("a node of a graph", async () => {
  const fragile = { isBroken: true };
  const agent = graph("agent", { state: { n: last(0) } })
    .node("think", async (_ctx, { n }) => {
      if (fragile.isBroken) throw new TypeError("no answer");
      return { n: n + 1 };
    })
    .edge(START, "think")
    .edge("think", END);
  await using engine = await createTestEngine({ definitions: [agent] });
  const attempts = await failAndRetry(engine, await engine.start(agent, {}), fragile);
  expect(attempts).toMatchObject([
    [expect.any(String), 1, 1, "failed"],
    [expect.any(String), 2, 1, "completed"],
  ]);
});
