// The AI SDK with a provider package and a server over HTTP, inside a run.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool, type ModelMessage } from "ai";
import { expect, test } from "vitest";
import { workflow, type RepriseError } from "reprise";
import { durable, tokens, type TokenFrame } from "reprise/ai";
import { createTestEngine } from "reprise/testing";
import { z } from "zod";
import { rejection, until } from "../engine/world.ts";
import { startChatServer, type ChatServer } from "./openai-server.ts";
import { operationsOf } from "./scripted-model.ts";

const weather = tool({
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `${city}: rain`,
});

function modelOf({ url }: ChatServer) {
  return createOpenAICompatible({ name: "local", baseURL: url, apiKey: "secret-key", includeUsage: true })("local");
}

test("an agent calls a server with tools, streamed and not, and the journal has no key", async () => {
  await using server = await startChatServer(({ messages }) =>
    messages.some(({ role }) => role === "tool")
      ? { text: "Take an umbrella." }
      : { calls: [{ id: "call-1", name: "weather", input: { city: "Oslo" } }] },
  );
  const agent = workflow("agent", { ports: { words: tokens() } }, async (ctx, isStreamed: boolean) => {
    const ai = durable(ctx, { stream: "words", prices: { local: { input: 1, cachedInput: 0.5, output: 10 } } });
    const settings = {
      model: ai.model(modelOf(server)),
      tools: ai.tools({ weather }),
      prompt: "Oslo?",
      stopWhen: stepCountIs(4),
    };
    return ai.call(async () => (isStreamed ? streamText(settings).text : (await generateText(settings)).text));
  });
  await using engine = await createTestEngine({ definitions: [agent] });
  for (const isStreamed of [false, true]) {
    const run = await engine.start(agent, isStreamed);
    expect(await run.result()).toBe("Take an umbrella.");
    const frames: TokenFrame[] = [];
    for await (const { value } of run.stream("words")) if (value !== undefined) frames.push(value);
    const ends = frames.filter(({ part }) => part === "end");
    // 10 tokens for 1, 2 cached for 0.5, 4 for 10 dollars per million.
    const usage = { usd: (10 + 2 * 0.5 + 4 * 10) / 1e6, tokens: 16, calls: 1 };
    expect(ends).toMatchObject([
      { finish: "tool-calls", usage },
      { finish: "stop", usage },
    ]);
    expect(JSON.stringify(await operationsOf(run))).not.toContain("secret-key");
    expect(await run.verify()).toMatchObject({ status: "same" });
  }
  expect(server.requests).toHaveLength(4);
  // The reservation needs a limit.
  expect(server.requests.every(({ max_tokens }) => max_tokens === 4096)).toBe(true);
});

test("a server that asks to wait, and one that breaks off, are asked again; readers see what was lost as failed", async () => {
  await using server = await startChatServer((_request, n) => {
    if (n === 0) return { status: 429, headers: { "retry-after": "20" } };
    return n === 1 ? { breaks: "Take an " } : { text: "Take an umbrella." };
  });
  const ask = workflow("ask", { ports: { words: tokens() } }, async (ctx) => {
    const ai = durable(ctx, { stream: "words" });
    return ai.call(async () => streamText({ model: ai.model(modelOf(server)), prompt: "Oslo?" }).text);
  });
  await using engine = await createTestEngine({ definitions: [ask] });
  const run = await engine.start(ask);
  await until(() => server.requests.length === 1);
  const result = run.result();
  await until(async () => {
    await engine.clock.advance("1 s");
    return server.requests.length === 3;
  });
  expect(await result).toBe("Take an umbrella.");
  const frames: TokenFrame[] = [];
  for await (const { value } of run.stream("words")) if (value !== undefined) frames.push(value);
  expect(frames.map(({ part, execution }) => `${execution} ${part}`)).toEqual([
    "1 begin",
    "1 failed",
    "2 begin",
    "2 text",
    "2 failed",
    "3 begin",
    "3 text",
    "3 end",
  ]);
  expect(frames.filter(({ part }) => part === "failed").every((frame) => "again" in frame && frame.again)).toBe(true);
});

test("canceling the run closes the connection of the request", async () => {
  await using server = await startChatServer(() => ({ hangs: true }));
  const ask = workflow("ask", async (ctx) => {
    const ai = durable(ctx);
    await ai.call(() => generateText({ model: ai.model(modelOf(server)), prompt: "p" }));
  });
  await using engine = await createTestEngine({ definitions: [ask] });
  const run = await engine.start(ask);
  await until(() => server.requests.length === 1);
  await run.cancel();
  expect((await rejection(run.result())).code).toBe("CANCELLED");
  await until(() => server.aborted() === 1);
});

test("a server that refuses the request fails the run with its status, and is asked once", async () => {
  await using server = await startChatServer(() => ({ status: 400 }));
  const ask = workflow("ask", async (ctx) => {
    const ai = durable(ctx);
    await ai.call(() => generateText({ model: ai.model(modelOf(server)), prompt: "p" }));
  });
  await using engine = await createTestEngine({ definitions: [ask] });
  const error = (await rejection((await engine.start(ask)).result())) as RepriseError;
  expect(error.cause).toMatchObject({ name: "AI_APICallError", statusCode: 400, isRetryable: false });
  expect(server.requests).toHaveLength(1);
});

test("a conversation of 100 turns runs in one run, and replays without a request", async () => {
  await using server = await startChatServer(({ messages }) => ({ text: `answer ${messages.length}` }));
  const chat = workflow("chat", async (ctx, turns: number) => {
    const ai = durable(ctx);
    const messages: ModelMessage[] = [];
    for (let turn = 0; turn < turns; turn += 1) {
      messages.push({ role: "user", content: `question ${turn}` });
      const { response } = await ai.call(() => generateText({ model: ai.model(modelOf(server)), messages }));
      messages.push(...response.messages);
    }
    return messages.length;
  });
  await using engine = await createTestEngine({ definitions: [chat] });
  const run = await engine.start(chat, 100);
  await until(() => server.requests.length >= 50);
  await engine.crash();
  expect(await run.result()).toBe(200);
  // One more at most: the one under way.
  expect(server.requests.length).toBeLessThanOrEqual(101);
  const { length } = server.requests;
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(server.requests).toHaveLength(length);
});
