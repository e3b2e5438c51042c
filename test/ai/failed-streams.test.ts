// Streams whose model call fails: the SDK only reports such errors, and a run must not end with half an answer.

import { isStepCount, streamText, tool, type LanguageModel } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { workflow } from "reprise";
import { durable, tokens } from "reprise/ai";
import { createTestEngine } from "reprise/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { collect, rejection, until } from "../engine/world.ts";
import { scriptedModel } from "./scripted-model.ts";

const note = tool({ inputSchema: z.object({ n: z.number() }), execute: async ({ n }) => n });
const silent = { onError: () => {} };

/** Answers and requests a tool; the call after that is refused. */
const breaksLater = (): MockLanguageModelV4 => {
  const inner = scriptedModel([[{ text: "Let me see." }, { tool: "note", id: "call-1", input: { n: 1 } }]]);
  return new MockLanguageModelV4({
    modelId: "small",
    doStream: async (options) => {
      if (options.prompt.some(({ role }) => role === "tool"))
        throw Object.assign(new Error("quota exceeded"), { statusCode: 403, isRetryable: false });
      return inner.doStream(options);
    },
  });
};

const agentWith = (model: LanguageModel, prices?: Record<string, { input: number; output: number }>) =>
  workflow("agent", { ports: { words: tokens() } }, async (ctx) => {
    const ai = durable(ctx, { stream: "words", ...(prices && { prices }) });
    return ai.call(async () => {
      const options = { model: ai.model(model), tools: ai.tools({ note }), prompt: "Go", stopWhen: isStepCount(5) };
      return streamText({ ...options, ...silent }).text;
    });
  });

test("a run whose second streamed call fails fails with that error, and not with the text so far as its result", async () => {
  const agent = agentWith(breaksLater());
  await using engine = await createTestEngine({ definitions: [agent] });
  const run = await engine.start(agent);
  const error = await rejection(run.result());
  expect(error).toMatchObject({ code: "RUN_FAILED", cause: { message: "quota exceeded", statusCode: 403 } });
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a stream that was refused at once fails with its own error, and not with the SDK's", async () => {
  const model = new MockLanguageModelV4({
    modelId: "small",
    doStream: async () => {
      throw Object.assign(new Error("no such model"), { statusCode: 404, isRetryable: false });
    },
  });
  const agent = agentWith(model);
  await using engine = await createTestEngine({ definitions: [agent] });
  expect((await rejection((await engine.start(agent)).result())).cause).toMatchObject({ message: "no such model" });
});

test("a stream whose budget a person declines fails with BUDGET_REACHED", async () => {
  const agent = agentWith(scriptedModel([[{ text: "Hello" }]], "small"), { small: { input: 1, output: 1 } });
  await using engine = await createTestEngine({ definitions: [agent] });
  const run = await engine.start(agent, undefined, { budget: { usd: 0.000_01 } });
  await until(async () => (await collect(engine.promises())).length === 1);
  await run.declineBudget({ by: "Eve" });
  expect((await rejection(run.result())).cause).toMatchObject({ code: "BUDGET_REACHED" });
});

test("code that catches the error of a call continues with another model", async () => {
  const [first, second] = [breaksLater(), scriptedModel([[{ text: "From the second model." }]], "second")];
  const agent = workflow("agent", async (ctx) => {
    const ai = durable(ctx);
    const tools = ai.tools({ note });
    const ask = (model: LanguageModel): Promise<string> =>
      ai.call(
        async () =>
          streamText({ model: ai.model(model), tools, prompt: "Go", stopWhen: isStepCount(5), ...silent }).text,
      );
    return ask(first).catch(() => ask(second));
  });
  await using engine = await createTestEngine({ definitions: [agent] });
  const run = await engine.start(agent);
  expect(await run.result()).toBe("From the second model.");
  expect(await run.verify()).toMatchObject({ status: "same" });
});
