// Recorded I/O: requests and responses of nodes, with hash and duration (seed 000 "RecordedIO").

import { expect, test } from "vitest";
import { append, END, graph, last, START } from "reprise";
import { recordedIO } from "reprise/checkpoints";
import { createTestEngine } from "reprise/testing";
import { createGate, rejection } from "../engine/world.ts";

test("ctx.run in a node records request, response, the hash of the response and the duration", async () => {
  const gate = createGate<{ text: string }>();
  const g = graph("calls", { state: { text: last("") } })
    .node("call_llm", async (ctx) => {
      const { text } = await ctx.run("chat", { prompt: "hello" }, async (_op, request) => {
        expect(request).toEqual({ prompt: "hello" });
        return gate.wait();
      });
      return { text };
    })
    .edge(START, "call_llm");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await gate.reached;
  await engine.clock.advance(250);
  gate.open({ text: "Hi there!" });
  expect(await run.result()).toEqual({ text: "Hi there!" });
  expect(await recordedIO(run.journal())).toEqual([
    {
      step: 1,
      node: "call_llm",
      path: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      attempt: 0,
      call: 0,
      name: "chat",
      request: { prompt: "hello" },
      response: { text: "Hi there!" },
      hash: "sha256:fb887c1af9f8799748caebd65708ad830ed206b496f3795952b34d8d7ffd8e4e",
      at: expect.any(Date) as Date,
      durationMs: 250,
    },
  ]);
});

test("calls are identified by step, path, attempt and call index", async () => {
  const g = graph("calls", { state: { log: append<string>() } })
    .node("each", { retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } }, async (ctx, _state, item: string) => {
      const first = await ctx.run("ask", item, (_op, asked) => `${asked} ${ctx.attempt}`);
      const second = await ctx.run("ask", () => `${first}!`);
      if (ctx.attempt === 1) throw new Error("again");
      return { log: [second] };
    })
    .node("end", async (ctx) => {
      await ctx.run("fail", () => Promise.reject(new TypeError("no"))).catch(() => {});
    })
    .spread(START, "each", () => ["a", "b"])
    .join(["each"], "end")
    .edge("end", END);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 minute");
  expect((await run.result()).log).toEqual(["a 2!", "b 2!"]);
  const calls = await recordedIO(run.journal());
  const keys = calls.map(({ step, path, attempt, call }) => `${step} ${path} ${attempt} ${call}`);
  expect(new Set(keys).size).toBe(9);
  const shown = calls.map(({ step, node, attempt, call, request, response }) => [
    step,
    node,
    attempt,
    call,
    request,
    response,
  ]);
  expect(shown).toContainEqual([1, "each", 0, 0, "b", "b 1"]);
  expect(shown).toContainEqual([1, "each", 1, 1, undefined, "a 2!"]);
  const failed = calls.at(-1);
  expect(failed).toMatchObject({ step: 2, node: "end", name: "fail", error: { name: "TypeError", message: "no" } });
  expect(failed).not.toHaveProperty("request");
  expect(failed).not.toHaveProperty("response");
});

test("the duration of a call is not part of the chain: two runs that differ only in it have one digest", async () => {
  const waits: number[] = [0, 5_000];
  const gates = waits.map(() => createGate());
  let at = 0;
  const g = graph("calls", { state: {} })
    .node("call", async (ctx) => {
      const gate = gates[at++]!;
      await ctx.run("slow", () => gate.wait());
    })
    .edge(START, "call");
  const digests = new Set<string>();
  const took: unknown[] = [];
  for (const [index, ms] of waits.entries()) {
    await using engine = await createTestEngine({ definitions: [g] });
    const run = await engine.start(g, {}, { id: "one" });
    await gates[index]!.reached;
    await engine.clock.advance(ms);
    gates[index]!.open();
    await run.result();
    digests.add((await run.info()).digest);
    took.push((await recordedIO(run.journal())).map(({ durationMs }) => durationMs));
  }
  expect(took).toEqual([[0], [5_000]]);
  expect(digests.size).toBe(1);
});

test("a failed attempt of a call or a node has a duration, too", async () => {
  const gate = createGate();
  const g = graph("calls", { state: {} })
    .node("call", { retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } }, async (ctx) => {
      await ctx.run("slow", async () => {
        await gate.wait();
        throw new Error("late");
      });
    })
    .edge(START, "call");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await gate.reached;
  await engine.clock.advance(40);
  gate.open();
  await engine.clock.advance("1 minute");
  await rejection(run.result());
  const timed: unknown[] = [];
  for await (const { type, tookMs } of run.journal()) if (tookMs !== undefined) timed.push([type, tookMs]);
  expect(timed).toEqual([
    ["OperationFailed", 40],
    ["NodeRetried", 40],
    ["OperationFailed", 0],
    ["NodeFailed", 0],
  ]);
});
