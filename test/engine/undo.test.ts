// Undo: when the code throws, completed steps are undone in reverse order, durably, each once.

import { expect, test } from "vitest";
import { CancelledError, FatalError, promise, RetryLaterError, task, workflow, type RepriseError } from "reprise";
import { crashEverywhere, createTestEngine, stub } from "reprise/testing";
import { collect, createGate, rejection, storeAround } from "./world.ts";

const refund = task("refund", (_ctx, payment: { id: string }) => `refunded ${payment.id}`);
const charge = task("charge", (_ctx, cents: number) => ({ id: `pay-${cents}` }));

test("when the code throws, completed steps are undone with their results, in reverse order of completion", async () => {
  const log: string[] = [];
  const slow = createGate<string>();
  const order = workflow("order", async (ctx) => {
    const reserving = ctx.run("reserve", () => slow.wait(), { undo: async (seat) => void log.push(`release ${seat}`) });
    await ctx.task(charge, 5, { undo: refund });
    await reserving;
    await ctx.run("plain", () => "no undo");
    throw new FatalError("no stock");
  });
  await using engine = await createTestEngine({
    definitions: [order, charge, refund],
    stubs: [stub(refund, (payment) => (log.push(`refund ${payment.id}`), "ok"))],
  });
  const run = await engine.start(order);
  await slow.reached;
  await engine.clock.advance(0);
  slow.open("12A");
  const error = await rejection(run.result());
  expect(error.cause).toMatchObject({ message: "no stock" });
  expect(log).toEqual(["release 12A", "refund pay-5"]);
  expect((await run.info()).status).toBe("failed");
  expect(await run.verify()).toMatchObject({ status: "same" });
  const entries = await collect(run.journal());
  expect(entries.slice(-4).map(({ type, command }) => `${type} ${command ?? ""}`)).toEqual([
    "OperationCompleted Operation(2)",
    "TaskScheduled Task(1)",
    "TaskCompleted Task(1)",
    "RunFailed ",
  ]);
  expect(entries.at(-4)?.data).toMatchObject({ operationName: "undo reserve", input: "12A" });
});

test("nothing is undone when the code returns, or catches and returns", async () => {
  const log: string[] = [];
  const fine = workflow("fine", async (ctx) => {
    await ctx.run("one", () => 1, { undo: async () => log.push("one") });
    await ctx.run("two", () => Promise.reject(new Error("no"))).catch(() => {});
    return "done";
  });
  await using engine = await createTestEngine({ definitions: [fine] });
  expect(await (await engine.start(fine)).result()).toBe("done");
  expect(log).toEqual([]);
});

test("an output that is not data fails the run, and its steps are undone", async () => {
  const log: string[] = [];
  const odd = workflow("odd", async (ctx) => {
    await ctx.run("one", () => 1, { undo: async () => log.push("one") });
    return { call: () => 1 } as unknown;
  });
  await using engine = await createTestEngine({ definitions: [odd] });
  const run = await engine.start(odd);
  expect((await rejection(run.result())).cause).toMatchObject({ code: "NOT_DATA" });
  expect(log).toEqual(["one"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a canceled run undoes its steps inside a shield and ends cancelled", async () => {
  const order = workflow("order", { ports: { go: promise() } }, async (ctx) => {
    await ctx.task(charge, 7, { undo: refund });
    await ctx.promise("go");
  });
  await using engine = await createTestEngine({ definitions: [order, charge, refund] });
  const run = await engine.start(order);
  await engine.clock.advance(0);
  await run.cancel();
  expect(await rejection(run.result())).toBeInstanceOf(CancelledError);
  const types = (await collect(run.journal())).map(({ type }) => type);
  expect(types.slice(-4)).toEqual(["CancelRequested", "TaskScheduled", "TaskCompleted", "RunCancelled"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test.each(["task", "operation"] as const)(
  "a %s with an undo that is at work when the run is cancelled is let finish, and then undone",
  async (kind) => {
    const gate = createGate<string>();
    const log: string[] = [];
    let signal: AbortSignal | undefined;
    const call = (ctx: { abortSignal: AbortSignal }): Promise<string> => {
      signal = ctx.abortSignal;
      return gate.wait();
    };
    const work = task("work", (ctx) => call(ctx));
    const undo = async (result: string): Promise<void> => void log.push(`undo ${result}`);
    const busy = workflow("busy", async (ctx) => {
      await (kind === "task" ? ctx.task(work, undefined, { undo }) : ctx.run("work", (op) => call(op), { undo }));
    });
    await using engine = await createTestEngine({ definitions: [busy, work] });
    const run = await engine.start(busy);
    await gate.reached;
    await run.cancel();
    await engine.clock.advance(0);
    expect(signal?.aborted).toBe(false);
    expect((await run.info()).endedAt).toBeUndefined();
    gate.open("finished");
    expect(await rejection(run.result())).toBeInstanceOf(CancelledError);
    expect(log).toEqual(["undo finished"]);
    expect(signal?.aborted).toBe(false);
    expect(await run.verify()).toMatchObject({ status: "same" });
  },
);

test("when the code throws, a running branch finishes if it has an undo, and is aborted if not", async () => {
  const keep = createGate<string>();
  const stop = createGate<string>();
  const log: string[] = [];
  const signals: AbortSignal[] = [];
  const branches = workflow("branches", { ports: { fail: promise() } }, async (ctx) => {
    await Promise.all([
      ctx.run("keep", () => keep.wait(), { undo: async (got) => void log.push(`undo ${got}`) }),
      ctx.run("stop", (op) => (signals.push(op.abortSignal), stop.wait())),
      (async () => {
        await ctx.sleep("1 hour");
        await ctx.run("never", () => void log.push("went on after the throw"));
      })(),
      ctx.promise("fail"),
    ]);
  });
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [branches], store: source });
  const run = await engine.start(branches);
  await Promise.all([keep.reached, stop.reached]);
  await run.reject("fail", new Error("no"));
  await engine.clock.advance("2 hours");
  expect(signals[0]?.aborted).toBe(true);
  expect((await source.store.info()).items).toEqual({ ready: 0, leased: 0, delayed: 0 });
  keep.open("kept");
  expect((await rejection(run.result())).cause).toMatchObject({ message: "no" });
  expect(log).toEqual(["undo kept"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("an undo that fails permanently does not stop the others, and the run fails with UNDO_FAILED and the cause", async () => {
  const log: string[] = [];
  const order = workflow("order", async (ctx) => {
    await ctx.run("first", () => 1, { undo: async () => void log.push("first") });
    await ctx.run("second", () => 2, { undo: () => Promise.reject(new FatalError("gone")) });
    await ctx.run("third", () => 3, { undo: async () => void log.push("third") });
    throw new Error("why");
  });
  await using engine = await createTestEngine({ definitions: [order] });
  const run = await engine.start(order);
  const failure = (await rejection(run.result())).cause as RepriseError;
  expect(failure).toMatchObject({ code: "UNDO_FAILED", cause: { message: "why" } });
  expect(failure.details).toEqual({ failed: [{ step: "Operation(1)", name: "second", message: "gone" }] });
  expect(log).toEqual(["third", "first"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("an undo is retried by the policy of its task, else of its step, else ten times", async () => {
  const attempts = { step: 0, task: 0, otherwise: 0 };
  const giveBack = task("give back", { retry: { maxAttempts: 3, baseDelay: 1 } }, (_ctx, _result: number) => {
    attempts.task += 1;
    throw new Error("not yet");
  });
  const steps = workflow("steps", async (ctx) => {
    const fails = (key: keyof typeof attempts) => async () => {
      attempts[key] += 1;
      throw new Error("not yet");
    };
    await ctx.run("a", () => 1, { undo: fails("step"), retry: { maxAttempts: 2, baseDelay: 1 } });
    await ctx.run("b", () => 2, { undo: giveBack, retry: { maxAttempts: 9 } });
    await ctx.run("c", () => 3, { undo: fails("otherwise") });
    throw new Error("why");
  });
  await using engine = await createTestEngine({ definitions: [steps, giveBack] });
  const run = await engine.start(steps);
  await engine.clock.advance("10 minutes");
  expect((await rejection(run.result())).cause).toMatchObject({ code: "UNDO_FAILED" });
  expect(attempts).toEqual({ step: 2, task: 3, otherwise: 10 });
});

test("FatalError and RetryLaterError have the same effect in an undo as in a step", async () => {
  const tries: string[] = [];
  const saga = workflow("saga", async (ctx) => {
    await ctx.run("fatal", () => 1, {
      undo: async () => {
        tries.push("fatal");
        throw new FatalError("never");
      },
    });
    await ctx.run("later", () => 2, {
      undo: async () => {
        tries.push("later");
        if (tries.length === 1) throw new RetryLaterError("1 hour");
      },
    });
    throw new Error("why");
  });
  await using engine = await createTestEngine({ definitions: [saga] });
  const run = await engine.start(saga);
  await engine.clock.advance("59 minutes");
  expect(tries).toEqual(["later"]);
  await engine.clock.advance("1 minute");
  expect((await rejection(run.result())).cause).toMatchObject({ code: "UNDO_FAILED" });
  expect(tries).toEqual(["later", "later", "fatal"]);
});

test("an undo receives the recorded result, even if the code has changed the object", async () => {
  const seen: unknown[] = [];
  const changes = workflow("changes", async (ctx) => {
    const made = await ctx.run("make", () => ({ id: 1 }), { undo: async (result) => void seen.push(result) });
    made.id = 2;
    throw new Error("why");
  });
  await using engine = await createTestEngine({ definitions: [changes] });
  await rejection((await engine.start(changes)).result());
  expect(seen).toEqual([{ id: 1 }]);
});

test("an unregistered undo task blocks the run before the step starts", async () => {
  let charged = 0;
  const order = workflow("order", async (ctx) => {
    await ctx.run("charge", () => ({ id: `pay-${++charged}` }), { undo: refund });
  });
  await using engine = await createTestEngine({ definitions: [order] });
  const run = await engine.start(order);
  const error = await rejection(run.result());
  expect(error).toMatchObject({ code: "RUN_BLOCKED" });
  expect(error.message).toContain("refund");
  expect(charged).toBe(0);
});

test("an undo that is neither a function nor a task is refused", async () => {
  const wrong = workflow("wrong", async (ctx) => ctx.run("step", () => 1, { undo: 5 as never }));
  await using engine = await createTestEngine({ definitions: [wrong] });
  expect((await rejection((await engine.start(wrong)).result())).cause).toMatchObject({ code: "BAD_OPTIONS" });
});

test("a saga killed at every commit undoes each step once, in the same order", async () => {
  const saga = workflow("saga", async (ctx, order: { fail: boolean }) => {
    const seat = ctx.run("reserve", () => "12A", { undo: async (taken) => `released ${taken}` });
    await Promise.all([seat, ctx.task(charge, 3, { undo: refund })]);
    await ctx.sleep("1 hour");
    if (order.fail) throw new FatalError("not approved");
  });
  const outer = workflow("outer", async (ctx) =>
    ctx.child(saga, { fail: true }, { id: "saga" }).catch((error: Error) => error.message),
  );
  const { output, crashes } = await crashEverywhere(outer, undefined, { definitions: [saga, charge, refund] });
  expect(output).toBe("not approved");
  expect(crashes).toBeGreaterThan(14);
});
