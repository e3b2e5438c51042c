// ctx.resolve and ctx.reject: workflow code settles promises of other runs.

import { createEngine, graph, last, promise, signal, START, workflow, type RepriseError } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { collect, createFolder, createGate, rejection, until } from "./world.ts";

const order = workflow(
  "order",
  { ports: { approve: promise(z.object({ ok: z.boolean() })), other: signal() } },
  (ctx) => Promise.all([ctx.promise("approve", { key: "ann" }), ctx.promise("approve", { key: "bob" })]),
);

interface Verdict {
  readonly id: string;
  readonly key: string;
  readonly ok: boolean;
}
const decide = workflow("decide", async (ctx, { id, key, ok }: Verdict) => {
  await ctx.resolve(order, id, "approve", { ok }, { key, by: "decide", reason: "policy 7" });
  return ctx.now().getTime() > 0 ? "settled" : "";
});
const refuse = workflow("refuse", async (ctx, { id, key }: Verdict) => {
  await ctx.reject(order, id, "approve", new RangeError("too much"), { key });
});

test("a workflow resolves the promise of another run, and both journals say by whom", async () => {
  await using engine = await createTestEngine({ definitions: [order, decide] });
  const target = await engine.start(order, undefined, { id: "order-1" });
  const run = await engine.start(decide, { id: "order-1", key: "ann", ok: true });
  expect(await run.result()).toBe("settled");
  await (await engine.start(decide, { id: "order-1", key: "bob", ok: false })).result();
  expect(await target.result()).toEqual([{ ok: true }, { ok: false }]);
  const sent = (await collect(run.journal())).filter(({ command }) => command === "Settle(0)");
  expect(sent.map(({ type, data }) => [type, data])).toEqual([
    [
      "SettleRequested",
      {
        index: 0,
        runId: "order-1",
        definition: "order",
        promiseId: "approve[ann]",
        key: "ann",
        by: "decide",
        reason: "policy 7",
        given: expect.any(String) as string,
        value: { ok: true },
      },
    ],
    ["SettleAnswered", { runId: "order-1", promiseId: "approve[ann]", status: "accepted" }],
  ]);
  const received = (await collect(target.journal())).find(({ type }) => type === "PromiseResolved");
  expect(received?.data).toMatchObject({ key: "ann", by: "decide", reason: "policy 7" });
  for (const one of [run, target]) expect(await one.verify()).toMatchObject({ status: "same" });
});

test("a crash at any write settles the promise once", async () => {
  const both = workflow("both", async (ctx) => {
    const child = ctx.child(order, undefined, { id: "order-7" });
    await ctx.run("work", () => 1);
    await ctx.resolve(order, "order-7", "approve", { ok: true }, { key: "ann" });
    await ctx.resolve(order, "order-7", "approve", { ok: false }, { key: "bob" });
    return (await child).map(({ ok }) => ok);
  });
  const { output } = await crashEverywhere(both, undefined, { definitions: [order] });
  expect(output).toEqual([true, false]);
});

test("the code that waits for a rejected promise throws the error", async () => {
  await using engine = await createTestEngine({ definitions: [order, refuse] });
  const target = await engine.start(order, undefined, { id: "order-1" });
  await (await engine.start(refuse, { id: "order-1", key: "ann", ok: false })).result();
  expect((await rejection(target.result())).cause).toMatchObject({ name: "RangeError", message: "too much" });
});

test("the same value again is accepted; the code gets an error for every other refusal, and may catch it", async () => {
  const codes = workflow("codes", async (ctx, ids: readonly string[]) => {
    const found: string[] = [];
    for (const id of ids)
      try {
        await ctx.resolve(order, id, "approve", { ok: true }, { key: "ann" });
        found.push("settled");
      } catch (error) {
        found.push((error as RepriseError).code, (error as Error).message);
      }
    return found;
  });
  const stranger = workflow("stranger", { ports: { approve: promise() } }, (ctx) => ctx.promise("approve"));
  await using engine = await createTestEngine({ definitions: [order, codes, stranger] });
  const [same, other] = [
    await engine.start(order, undefined, { id: "same" }),
    await engine.start(order, undefined, { id: "other" }),
  ];
  await same.resolve("approve", { ok: true }, { key: "ann" });
  await other.resolve("approve", { ok: false }, { key: "ann", by: "Ann" });
  const ended = await engine.start(order, undefined, { id: "ended" });
  await ended.terminate();
  await engine.start(stranger, undefined, { id: "stranger" });
  const run = await engine.start(codes, ["same", "other", "ended", "stranger", "unknown"]);
  expect(await run.result()).toEqual([
    "settled",
    "PROMISE_ALREADY_RESOLVED",
    "Promise approve[ann] of run other is already resolved to { ok: false } by Ann; the first value is kept.",
    "RUN_ENDED",
    "Promise approve[ann] of run ended was not settled: the run has ended (cancelled).",
    "UNKNOWN_DEFINITION",
    "Promise approve[ann] of run stranger was not settled: it is a run of stranger. Pass that definition to ctx.resolve or ctx.reject.",
    "RUN_NOT_FOUND",
    "Promise approve[ann] of run unknown was not settled: there is no such run. Start it first, or check the id.",
  ]);
  expect(await run.verify()).toMatchObject({ status: "same" });
  await engine.crash();
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a run that does not await the call settles the promise in its last commit", async () => {
  const leave = workflow("leave", async (ctx, id: string) => {
    void ctx.resolve(order, id, "approve", { ok: true }, { key: "ann" });
    void ctx.resolve(order, id, "approve", { ok: true }, { key: "bob" });
  });
  await using engine = await createTestEngine({ definitions: [order, leave] });
  const target = await engine.start(order, undefined, { id: "order-1" });
  await (await engine.start(leave, "order-1")).result();
  expect((await target.result()).map(({ ok }) => ok)).toEqual([true, true]);
});

test("a run settles its own promise", async () => {
  const self = workflow("self", { ports: { go: promise<number>() } }, async (ctx): Promise<number> => {
    const waits = ctx.promise("go");
    await ctx.resolve(self, ctx.runId, "go", 7);
    return waits;
  });
  await using engine = await createTestEngine({ definitions: [self] });
  expect(await (await engine.start(self)).result()).toBe(7);
});

test("a node of a graph settles a promise; its second attempt with the same value succeeds", async () => {
  const review = graph("review", { state: { done: last(false) } })
    .node("ask", { retry: { maxAttempts: 2, baseDelay: 1 } }, async (ctx) => {
      await ctx.resolve(order, "order-1", "approve", { ok: true }, { key: "ann" });
      if (ctx.attempt === 1) throw new Error("once");
      await ctx.resolve(order, "order-1", "approve", { ok: true }, { key: "bob" });
      return { done: true };
    })
    .edge(START, "ask");
  await using engine = await createTestEngine({ definitions: [order, review] });
  const target = await engine.start(order, undefined, { id: "order-1" });
  const run = await engine.start(review, {});
  await engine.clock.advance("1 minute");
  expect(await run.result()).toEqual({ done: true });
  expect((await target.result()).map(({ ok }) => ok)).toEqual([true, true]);
  const answers = (await collect(run.journal())).filter(({ type }) => type === "SettleAnswered");
  expect(answers.map(({ data }) => (data as { status: string }).status)).toEqual(["accepted", "repeated", "accepted"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a retry of a run that failed because the other run did not exist settles the promise", async () => {
  await using engine = await createTestEngine({ definitions: [order, decide] });
  const run = await engine.start(decide, { id: "order-1", key: "ann", ok: true });
  expect((await rejection(run.result())).cause).toMatchObject({ code: "RUN_NOT_FOUND" });
  const target = await engine.start(order, undefined, { id: "order-1" });
  await run.retry();
  expect(await run.result()).toBe("settled");
  await target.resolve("approve", { ok: true }, { key: "bob" });
  expect((await target.result()).map(({ ok }) => ok)).toEqual([true, true]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a retry sends a settlement again whose answer was lost with the failed run", async () => {
  let isBroken = true;
  const partly = workflow("partly", async (ctx) => {
    const settled = ctx.resolve(order, "order-1", "approve", { ok: true }, { key: "ann" });
    if (isBroken) throw new Error("broken");
    await settled;
    return "settled";
  });
  await using engine = await createTestEngine({ definitions: [order, partly] });
  const run = await engine.start(partly);
  await rejection(run.result());
  isBroken = false;
  const target = await engine.start(order, undefined, { id: "order-1" });
  await run.retry();
  expect(await run.result()).toBe("settled");
  await target.resolve("approve", { ok: false }, { key: "bob" });
  expect(await target.result()).toEqual([{ ok: true }, { ok: false }]);
});

test("changed code that settles another promise, or with another value, is a violation", async () => {
  const settle = (key: string, ok: boolean) =>
    workflow("settle", { determinism: "strict" }, async (ctx) => {
      await ctx.resolve(order, "order-1", "approve", { ok }, { key });
      await ctx.sleep("1 day");
    });
  using folder = createFolder();
  const store = `sqlite:${folder.file("store.db")}`;
  {
    await using engine = await createEngine({ store, definitions: [order, settle("ann", true)] });
    await engine.start(order, undefined, { id: "order-1" });
    const run = await engine.start(settle("ann", true), undefined, { id: "settle-1" });
    await until(async () => (await run.info()).status === "waiting");
    expect(await run.verify()).toMatchObject({ status: "same" });
  }
  for (const [key, ok, message] of [
    [
      "bob",
      true,
      "the journal recorded a value for promise 'approve[ann]'; the code now settles promise 'approve[bob]'",
    ],
    ["ann", false, "the journal recorded another value of a promise than the code now passes"],
  ] as const) {
    await using engine = await createEngine({ store, definitions: [order, settle(key, ok)] });
    const replay = await engine.get("settle", "settle-1").verify();
    expect(replay).toMatchObject({ status: "mismatch", message: expect.stringContaining(message) as string });
  }
});

test("arguments that cannot be right are refused before the command gets its number", async () => {
  const wrong = workflow("wrong", async (ctx) => {
    const resolve = ctx.resolve as unknown as (...args: readonly unknown[]) => Promise<void>;
    const messages: string[] = [];
    for (const args of [
      [undefined, "order-1", "approve"],
      [order, "", "approve"],
      [order, "order-1", "aprove", { ok: true }],
      [order, "order-1", "other"],
      [order, "order-1", "approve", { ok: "yes" }],
      [order, "order-1", "approve", { ok: true }, { key: 7 }],
      [order, "order-1", "approve", { ok: true }, { keys: "a" }],
    ])
      messages.push(await resolve(...args).then(String, (error: RepriseError) => error.code));
    await ctx.run("still the first command", () => 1);
    return messages;
  });
  await using engine = await createTestEngine({ definitions: [order, wrong] });
  const run = await engine.start(wrong);
  expect(await run.result()).toEqual([
    "UNKNOWN_DEFINITION",
    "BAD_ID",
    "UNKNOWN_PORT",
    "UNKNOWN_PORT",
    "BAD_INPUT",
    "BAD_NAME",
    "BAD_OPTIONS",
  ]);
  expect((await collect(run.journal())).map(({ type }) => type)).not.toContain("SettleRequested");
  const alone = workflow("alone", (ctx) => ctx.resolve(order, "order-1", "approve", { ok: true }));
  await using without = await createTestEngine({ definitions: [alone] });
  expect((await rejection((await without.start(alone)).result())).message).toContain("is not registered");
});

test("a canceled run cannot settle a promise outside of a shield", async () => {
  const gate = createGate();
  const late = workflow("late", async (ctx) => {
    await ctx.run("work", () => gate.wait()).catch(() => undefined);
    const refused = await ctx.resolve(order, "order-1", "approve", { ok: true }, { key: "ann" }).catch(() => "refused");
    await ctx.shield(() => ctx.resolve(order, "order-1", "approve", { ok: false }, { key: "ann" }));
    return refused;
  });
  await using engine = await createTestEngine({ definitions: [order, late] });
  const target = await engine.start(order, undefined, { id: "order-1" });
  const run = await engine.start(late);
  await gate.reached;
  await run.cancel();
  await until(async () => (await run.info()).status !== "running");
  gate.open();
  await run.result().catch(() => undefined);
  await target.resolve("approve", { ok: true }, { key: "bob" });
  expect((await target.result()).map(({ ok }) => ok)).toEqual([false, true]);
});
