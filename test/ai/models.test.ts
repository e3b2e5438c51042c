// Model calls of the AI SDK are steps of a run.

import { APICallError, generateObject, generateText, Output, stepCountIs, streamText, tool, ToolLoopAgent } from "ai";
import { MockLanguageModelV3, MockLanguageModelV4 } from "ai/test";
import { expect, test } from "vitest";
import { append, graph, START, workflow, type RepriseError } from "reprise";
import { durable } from "reprise/ai";
import { createTestEngine } from "reprise/testing";
import { z } from "zod";
import { rejection } from "../engine/world.ts";
import { operationsOf, resultOf, scriptedModel, USAGE } from "./scripted-model.ts";

const weather = tool({
  description: "The weather",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `${city}: rain`,
});

const SCRIPT = [
  [
    { tool: "weather", id: "call-a", input: { city: "Rome" } },
    { tool: "weather", id: "call-b", input: { city: "Oslo" } },
  ],
  [{ text: "It rains everywhere." }],
] as const;

test("generateText with tools records one step per model call and per tool call, and replays the same", async () => {
  const model = scriptedModel(SCRIPT);
  const agent = workflow("agent", async (ctx, prompt: string) => {
    const ai = durable(ctx);
    const tools = ai.tools({ weather });
    const result = await ai.call(() =>
      generateText({ model: ai.model(model), tools, prompt, stopWhen: stepCountIs(5), headers: { secret: "xyz" } }),
    );
    return { text: result.text, ids: result.steps.map(({ response }) => response.id), total: result.usage.totalTokens };
  });
  await using engine = await createTestEngine({ definitions: [agent] });
  const run = await engine.start(agent, "Weather?");
  const { text, ids, total } = await run.result();
  expect([text, new Set(ids).size, total]).toEqual(["It rains everywhere.", 2, 240]);
  expect(model.rounds).toEqual([0, 1]);
  const steps = await operationsOf(run);
  expect(steps.map(({ name }) => name)).toEqual(["chat scripted", "tool weather", "tool weather", "chat scripted"]);
  expect(steps[1]).toMatchObject({ input: { city: "Rome" }, result: "Rome: rain" });
  const request = steps[0]?.input as { settings: object };
  expect(request).toMatchObject({ model: "scripted", provider: "mock-provider", tools: [{ name: "weather" }] });
  expect(Object.keys(request)).toEqual(["model", "prompt", "provider", "settings", "tools"]);
  expect(JSON.stringify(steps)).not.toContain("xyz");
  expect(model.doGenerateCalls[0]?.headers).toMatchObject({ secret: "xyz" });
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(model.rounds).toEqual([0, 1]);
});

test("streamText, structured output and the agent class work in workflows", async () => {
  const stream = scriptedModel(SCRIPT, "streams");
  const object = scriptedModel([[{ text: '{"city":"Rome","degrees":30}' }]], "objects");
  const schema = z.object({ city: z.string(), degrees: z.number() });
  const all = workflow("all", async (ctx) => {
    const ai = durable(ctx, { models: { stream, object } });
    const tools = ai.tools({ weather });
    const streamed = await ai.call(async () => {
      const result = streamText({ model: ai.model("stream"), tools, prompt: "p", stopWhen: stepCountIs(3) });
      const types = new Set<string>();
      for await (const { type } of result.fullStream) types.add(type);
      return [await result.text, types.has("tool-result"), (await result.totalUsage).totalTokens] as const;
    });
    const made = await ai.call(() => generateObject({ model: ai.model("object"), schema, prompt: "p" }));
    const output = await ai.call(() =>
      generateText({ model: ai.model("object"), output: Output.object({ schema }), prompt: "p" }),
    );
    const agent = new ToolLoopAgent({ model: ai.model("stream"), tools });
    const answer = await ai.call(() => agent.generate({ prompt: "p" }));
    const again = await ai.call(async () => (await agent.stream({ prompt: "p" })).text);
    return { streamed, made: made.object, output: output.output, answer: answer.text, again };
  });
  await using engine = await createTestEngine({ definitions: [all] });
  const run = await engine.start(all);
  const rain = "It rains everywhere.";
  const rome = { city: "Rome", degrees: 30 };
  expect(await run.result()).toEqual({
    streamed: [rain, true, 240],
    made: rome,
    output: rome,
    answer: rain,
    again: rain,
  });
  const called = stream.rounds.length + object.rounds.length;
  expect(called).toBe(8);
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(stream.rounds.length + object.rounds.length).toBe(called);
});

test("nodes of a graph call models, and a replay calls none", async () => {
  const model = scriptedModel(SCRIPT);
  const agent = graph("agent", { state: { texts: append<string>() } })
    .node("think", async (ctx, _state, city: string) => {
      const ai = durable(ctx);
      const tools = ai.tools({ weather });
      const { text } = await ai.call(() =>
        generateText({ model: ai.model(model), tools, prompt: city, stopWhen: stepCountIs(5) }),
      );
      return { texts: [`${city}: ${text}`] };
    })
    .spread(START, "think", () => ["a", "b", "c"]);
  await using engine = await createTestEngine({ definitions: [agent] });
  const run = await engine.start(agent, {});
  expect((await run.result()).texts).toEqual(["a", "b", "c"].map((city) => `${city}: It rains everywhere.`));
  expect(model.rounds).toHaveLength(6);
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(model.rounds).toHaveLength(6);
});

test("a model of specification v3 is accepted, and bytes of the prompt stay bytes", async () => {
  const calls: unknown[] = [];
  const model = new MockLanguageModelV3({
    modelId: "old",
    doGenerate: async ({ prompt }) => {
      calls.push(prompt);
      return { ...resultOf([{ text: "a cat" }]), warnings: [] } as never;
    },
  });
  const describe = workflow("describe", async (ctx) => {
    const ai = durable(ctx);
    const content = [{ type: "file" as const, mediaType: "image/png", data: new Uint8Array([137, 80, 78, 71]) }];
    return (await ai.call(() => generateText({ model: ai.model(model), messages: [{ role: "user", content }] }))).text;
  });
  await using engine = await createTestEngine({ definitions: [describe] });
  const run = await engine.start(describe);
  expect(await run.result()).toBe("a cat");
  const { input } = (await operationsOf(run))[0]!;
  const { prompt } = input as { prompt: { content: { data: { data: unknown } }[] }[] };
  expect(prompt[0]?.content[0]?.data.data).toEqual(new Uint8Array([137, 80, 78, 71]));
  expect(calls).toHaveLength(1);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a fork that replaces a model by name calls the other one, and names its steps as before", async () => {
  const fast = scriptedModel([[{ text: "quick" }]], "small");
  const strong = scriptedModel([[{ text: "better" }]], "large");
  const ask = workflow("ask", async (ctx) => {
    const ai = durable(ctx, { models: { fast, strong } });
    const first = await ctx.run("prepare", () => "p");
    return (await ai.call(() => generateText({ model: ai.model("fast"), prompt: first }))).text;
  });
  await using engine = await createTestEngine({ definitions: [ask] });
  const run = await engine.start(ask);
  expect(await run.result()).toBe("quick");
  const fork = await run.fork({ at: "Operation(1)", models: { fast: "strong" }, effects: "recorded" });
  expect(await fork.result()).toBe("better");
  expect([fast.rounds, strong.rounds]).toEqual([[0], [0]]);
});

test("a fork inside a loop of the SDK replaces the model that its code made before, and pays the price of the other one", async () => {
  const script = [[{ tool: "note", id: "call-1", input: {} }], [{ text: "quick" }]] as const;
  const [fast, strong] = [scriptedModel(script, "small"), scriptedModel([[], [{ text: "better" }]], "large")];
  const note = tool({ inputSchema: z.object({}), execute: async () => "noted" });
  const prices = { fast: { input: 1, output: 1 }, strong: { input: 100, output: 100 } };
  const ask = workflow("ask", { budget: { usd: 10 } }, async (ctx) => {
    const ai = durable(ctx, { models: { fast, strong }, prices });
    const options = { model: ai.model("fast"), tools: ai.tools({ note }), stopWhen: stepCountIs(3), prompt: "Go" };
    return (await ai.call(() => generateText(options))).text;
  });
  await using engine = await createTestEngine({ definitions: [ask] });
  const run = await engine.start(ask);
  expect(await run.result()).toBe("quick");
  const fork = await run.fork({ call: { name: "chat fast", nth: 2 }, models: { fast: "strong" }, effects: "recorded" });
  expect(await fork.result()).toBe("better");
  expect([fast.rounds, strong.rounds]).toEqual([[0, 1], [1]]);
  // 100 tokens of input and 20 of output per call.
  expect((await run.budget())?.spent).toMatchObject({ usd: 0.000_24 });
  expect((await fork.budget())?.spent).toMatchObject({ usd: 0.012 });
});

// ── failures ──

function failing(errors: readonly (Error | undefined)[]): MockLanguageModelV4 & { readonly at: string[] } {
  const at: string[] = [];
  const model = new MockLanguageModelV4({
    modelId: "flaky",
    doGenerate: async () => {
      const error = errors[at.length];
      at.push(error?.message ?? "answered");
      if (error !== undefined) throw error;
      return resultOf([{ text: "answered" }]);
    },
  });
  return Object.assign(model, { at });
}

function apiError(statusCode: number, responseHeaders: Record<string, string> = {}): APICallError {
  return new APICallError({
    message: `status ${statusCode}`,
    url: "https://models.example/v1",
    requestBodyValues: { prompt: "secret prompt" },
    statusCode,
    responseHeaders: { ...responseHeaders, cookie: "secret cookie" },
    responseBody: "busy",
  });
}

test("the engine repeats a failed call after the delay that the provider asks for, and the SDK repeats nothing", async () => {
  const model = failing([apiError(429, { "retry-after": "30" }), apiError(503), undefined]);
  const ask = workflow("ask", async (ctx) => {
    const ai = durable(ctx);
    return (await ai.call(() => generateText({ model: ai.model(model), prompt: "p" }))).text;
  });
  await using engine = await createTestEngine({ definitions: [ask] });
  const run = await engine.start(ask);
  await engine.clock.advance("29 s");
  expect(model.at).toEqual(["status 429"]);
  await engine.clock.advance("1 s");
  expect(model.at).toEqual(["status 429", "status 503"]);
  await engine.clock.advance("5 s");
  expect(await run.result()).toBe("answered");
  expect(model.at).toEqual(["status 429", "status 503", "answered"]);
  const text = JSON.stringify(await Array.fromAsync(run.journal()));
  expect(text).toContain("status 429");
  expect(text).not.toContain("secret");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a call that the SDK would not repeat fails at once, and one that it would repeat fails after three attempts", async () => {
  const refused = failing([apiError(401)]);
  const busy = failing([apiError(500), apiError(500), apiError(500), apiError(500)]);
  const ask = workflow("ask", async (ctx, which: "refused" | "busy") => {
    const ai = durable(ctx, { models: { refused, busy } });
    return (await ai.call(() => generateText({ model: ai.model(which), prompt: "p" }))).text;
  });
  await using engine = await createTestEngine({ definitions: [ask] });
  const first = (await rejection((await engine.start(ask, "refused")).result())) as RepriseError;
  expect(first).toMatchObject({ cause: { name: "AI_APICallError", message: "status 401", statusCode: 401 } });
  const second = rejection((await engine.start(ask, "busy")).result());
  await engine.clock.advance("1 minute");
  expect(await second).toMatchObject({ cause: { code: "MAX_ATTEMPTS_EXCEEDED", cause: { message: "status 500" } } });
  expect([refused.at.length, busy.at.length]).toEqual([1, 3]);
});

test("canceling the run aborts the request of the model", async () => {
  const asked = Promise.withResolvers<AbortSignal>();
  const model = new MockLanguageModelV4({
    doGenerate: async ({ abortSignal }) => {
      asked.resolve(abortSignal!);
      return new Promise<never>(() => {});
    },
  });
  const ask = workflow("ask", async (ctx) => {
    const ai = durable(ctx);
    await ai.call(() => generateText({ model: ai.model(model), prompt: "p" }));
  });
  await using engine = await createTestEngine({ definitions: [ask] });
  const run = await engine.start(ask);
  const signal = await asked.promise;
  expect(signal.aborted).toBe(false);
  await run.cancel();
  expect((await rejection(run.result())).code).toBe("CANCELLED");
  expect(signal.aborted).toBe(true);
});

test("a stream without a chunk for 60 seconds is aborted and requested again", async () => {
  let calls = 0;
  let push: (() => void) | undefined;
  const model = new MockLanguageModelV4({
    doStream: async () => {
      calls += 1;
      const stream = new ReadableStream({
        start(controller) {
          controller.enqueue({ type: "stream-start", warnings: [] });
          controller.enqueue({ type: "text-start", id: "0" });
          push = () => controller.enqueue({ type: "text-delta", id: "0", delta: "slow " });
          if (calls === 1) return;
          controller.enqueue({ type: "text-delta", id: "0", delta: "done" });
          controller.enqueue({ type: "text-end", id: "0" });
          controller.enqueue({ type: "finish", finishReason: { unified: "stop", raw: undefined }, usage: USAGE });
          controller.close();
        },
      });
      return { stream };
    },
  });
  const ask = workflow("ask", (ctx) => {
    const ai = durable(ctx);
    return ai.call(async () => streamText({ model: ai.model(model), prompt: "p" }).text);
  });
  await using engine = await createTestEngine({ definitions: [ask] });
  const run = await engine.start(ask);
  for (let n = 0; n < 4; n += 1) {
    await engine.clock.advance("50 s");
    push?.();
  }
  expect(calls).toBe(1);
  await engine.clock.advance("70 s");
  expect(await run.result()).toBe("done");
  expect(calls).toBe(2);
});

test("a tool that uses the network inline stops the run with evidence", async () => {
  const model = scriptedModel(SCRIPT);
  const reaching = tool({
    inputSchema: z.object({ city: z.string() }),
    execute: async () => (await fetch("http://127.0.0.1:9")).text(),
  });
  const agent = workflow("agent", async (ctx) => {
    const ai = durable(ctx);
    const tools = ai.tools({ weather: reaching }, { weather: { as: "inline" } });
    await ai.call(() => generateText({ model: ai.model(model), tools, prompt: "p", stopWhen: stepCountIs(5) }));
  });
  await using engine = await createTestEngine({ definitions: [agent] });
  const error = (await rejection((await engine.start(agent)).result())) as RepriseError;
  expect(error.code).toBe("RUN_BLOCKED");
  expect(error.details).toMatchObject({ code: "NONDETERMINISM", actual: "fetch()" });
  expect(model.rounds).toEqual([0]);
});
