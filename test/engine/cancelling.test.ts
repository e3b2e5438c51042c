// Cancelling: a request that everything the run waits for hears, and that its code may answer.

import { expect, test } from "vitest";
import { CancelledError, promise, task, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createGate, rejection, storeAround } from "./world.ts";

test("a waiting run that is cancelled ends `cancelled`, its timer gone", async () => {
  const source = storeAround((_writes, apply) => apply());
  const sleeper = workflow("sleeper", async (ctx) => ctx.sleep("1 day"));
  await using engine = await createTestEngine({ definitions: [sleeper], store: source });
  const run = await engine.start(sleeper);
  await engine.clock.advance("1 hour");
  await run.cancel("changed my mind");
  const error = await rejection(run.result());
  expect(error).toBeInstanceOf(CancelledError);
  expect((await run.info()).status).toBe("cancelled");
  expect((await source.store.info()).items).toEqual({ ready: 0, leased: 0, delayed: 0 });
  expect(await run.verify()).toMatchObject({ status: "same" });
  await run.cancel();
  expect((await run.info()).status).toBe("cancelled");
});

test.each(["task", "operation"] as const)(
  "the AbortSignal of a running %s aborts, and its late result changes nothing",
  async (kind) => {
    const gate = createGate<string>();
    const signals: AbortSignal[] = [];
    const hang = (ctx: { abortSignal: AbortSignal }): Promise<string> => {
      signals.push(ctx.abortSignal);
      return gate.wait();
    };
    const work = task("work", (ctx) => hang(ctx));
    const busy = workflow("busy", async (ctx) =>
      kind === "task" ? ctx.task(work) : ctx.run("work", (op) => hang(op)),
    );
    await using engine = await createTestEngine({ definitions: [busy, work] });
    const run = await engine.start(busy);
    await gate.reached;
    await run.cancel();
    expect(await rejection(run.result())).toBeInstanceOf(CancelledError);
    expect(signals[0]?.aborted).toBe(true);
    expect(signals[0]?.reason).toBeInstanceOf(CancelledError);
    const before = await run.info();
    gate.open("too late");
    await engine.clock.advance(0);
    expect(await run.info()).toEqual(before);
  },
);

test("a function that checks its AbortSignal late sees that it was abandoned", async () => {
  const gate = createGate();
  const seen = createGate<boolean>();
  const busy = workflow("busy", async (ctx) =>
    ctx.run("work", async (op) => {
      await gate.wait();
      seen.open(op.abortSignal.aborted);
    }),
  );
  await using engine = await createTestEngine({ definitions: [busy] });
  const run = await engine.start(busy);
  await gate.reached;
  await run.cancel();
  await rejection(run.result());
  gate.open();
  expect(await seen.opened).toBe(true);
});

test("cleanup in `finally` runs; code that continues after the cancellation completes", async () => {
  const cleaned: string[] = [];
  const tidy = workflow("tidy", { ports: { go: promise() } }, async (ctx) => {
    try {
      await ctx.promise("go");
    } finally {
      cleaned.push(ctx.abortSignal.aborted ? "aborted" : "not aborted");
    }
  });
  const stubborn = workflow("stubborn", async (ctx) => {
    await ctx.sleep("1 day").catch(() => {});
    return "anyway";
  });
  await using engine = await createTestEngine({ definitions: [tidy, stubborn] });
  const one = await engine.start(tidy);
  await engine.clock.advance(0);
  await one.cancel();
  expect(await rejection(one.result())).toBeInstanceOf(CancelledError);
  expect(cleaned).toEqual(["aborted"]);
  const two = await engine.start(stubborn);
  await engine.clock.advance(0);
  await two.cancel();
  expect(await two.result()).toBe("anyway");
});

test("children are cancelled with their parent, detached ones are not", async () => {
  const child = workflow("child", { ports: { go: promise<number>() } }, async (ctx) => ctx.promise("go"));
  const parent = workflow("parent", async (ctx) => {
    void ctx.child(child, undefined, { id: "detached", detached: true });
    return ctx.child(child, undefined, { id: "attached" });
  });
  await using engine = await createTestEngine({ definitions: [parent, child] });
  const run = await engine.start(parent);
  await engine.clock.advance(0);
  await run.cancel();
  expect(await rejection(run.result())).toBeInstanceOf(CancelledError);
  expect(await rejection(engine.get(child, "attached").result())).toBeInstanceOf(CancelledError);
  expect((await engine.find("detached"))?.status).toBe("waiting");
  await engine.get(child, "detached").resolve("go", 4);
  expect(await engine.get(child, "detached").result()).toBe(4);
});

test("a cancel in the same batch as the start covers what the code has just asked for, and nothing of it stays", async () => {
  let executions = 0;
  const work = task("work", () => ++executions);
  const eager = workflow("eager", async (ctx) => Promise.all([ctx.task(work), ctx.task(work), ctx.sleep("1 day")]));
  const source = storeAround((writes, apply) => {
    // As if a client had known the id and been quick.
    const late = writes.some(({ write }) => write === "start");
    if (!late) return apply();
    const arrival = { type: "CancelRequested", target: "", data: "{}" } as const;
    return apply().then(async (outcomes) => {
      await source.store.write([{ write: "message", to: "run-1", arrival, once: false }]);
      void engine.get(eager, "run-1").cancel();
      return outcomes;
    });
  });
  await using engine = await createTestEngine({ definitions: [eager, work], store: source });
  const run = await engine.start(eager, undefined, { id: "run-1" });
  expect(await rejection(run.result())).toBeInstanceOf(CancelledError);
  await engine.clock.advance("2 days");
  expect(executions).toBeLessThanOrEqual(2);
  expect(await source.store.check()).toEqual([]);
  expect((await source.store.info()).items).toEqual({ ready: 0, leased: 0, delayed: 0 });
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a cancelled run ends `cancelled` after a crash too, wherever it comes", async () => {
  for (const when of ["before the cancel", "after the cancel"]) {
    const sleeper = workflow("sleeper", async (ctx) => ctx.sleep("1 day"));
    await using engine = await createTestEngine({ definitions: [sleeper] });
    const run = await engine.start(sleeper);
    await engine.clock.advance(0);
    if (when === "before the cancel") await engine.crash();
    const cancelled = run.cancel();
    await cancelled;
    if (when === "after the cancel") await engine.crash();
    expect(await rejection(run.result()), when).toBeInstanceOf(CancelledError);
  }
});
