// What model calls and tools cost, in runs with a budget.

import { APICallError, generateText, stepCountIs, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { expect, test } from "vitest";
import { task, workflow, type BudgetOptions } from "reprise";
import { durable, type ModelPrice } from "reprise/ai";
import { createTestEngine } from "reprise/testing";
import { z } from "zod";
import { rejection } from "../engine/world.ts";
import { resultOf, scriptedModel } from "./scripted-model.ts";

/** 60 tokens of input, 40 cached, 20 of output. */
const PRICE = { input: 1000, cachedInput: 100, output: 10_000 };
const USD = (60 * 1000 + 40 * 100 + 20 * 10_000) / 1e6;

function askOf(model: MockLanguageModelV4, prices: Record<string, ModelPrice> | undefined, budget: BudgetOptions) {
  return workflow("ask", { budget }, async (ctx, calls: number) => {
    const ai = durable(ctx, prices === undefined ? {} : { prices });
    for (let n = 0; n < calls; n += 1)
      await ai.call(() => generateText({ model: ai.model(model), prompt: `${n}`, maxOutputTokens: 50 }));
    return calls;
  });
}

test("answers are spent by their usage, and a call that does not fit is not made", async () => {
  const model = scriptedModel([[{ text: "yes" }]], "small");
  const ask = askOf(model, { small: PRICE }, { usd: 2, onReached: "fail" });
  await using engine = await createTestEngine({ definitions: [ask] });
  const run = await engine.start(ask, 100);
  expect(await rejection(run.result())).toMatchObject({ cause: { code: "BUDGET_REACHED" } });
  const made = model.rounds.length;
  expect(made).toBeGreaterThan(3);
  const budget = await run.budget();
  expect(budget?.spent.usd).toBeCloseTo(made * USD, 6);
  expect(budget?.spent).toMatchObject({ tokens: made * 120, calls: made });
  expect(budget?.spent.usd ?? 9).toBeLessThanOrEqual(2);
  expect([budget?.reserved.usd ?? 0, budget?.lost.usd ?? 0]).toEqual([0, 0]);
});

test("a model without a price is refused before its call if the budget is in dollars, and allowed if it is in tokens", async () => {
  const model = scriptedModel([[{ text: "yes" }]], "small");
  const other = { other: PRICE };
  for (const prices of [undefined, other]) {
    const ask = askOf(model, prices, { usd: 2 });
    await using engine = await createTestEngine({ definitions: [ask] });
    const error = await rejection((await engine.start(ask, 1)).result());
    expect(error).toMatchObject({ cause: { code: "PRICE_UNKNOWN", message: expect.stringContaining("$2") as string } });
  }
  expect(model.rounds).toEqual([]);
  const ask = askOf(model, undefined, { tokens: 10_000 });
  await using engine = await createTestEngine({ definitions: [ask] });
  const run = await engine.start(ask, 2);
  expect(await run.result()).toBe(2);
  expect((await run.budget())?.spent.tokens).toBe(240);
});

test("a refused request costs nothing, and one that may have been answered costs its reservation", async () => {
  const statuses = [429, 500];
  const model = new MockLanguageModelV4({
    modelId: "small",
    doGenerate: async () => {
      const statusCode = statuses.shift();
      if (statusCode === undefined) return resultOf([{ text: "yes" }]);
      const request = { url: "https://models.example", requestBodyValues: {} };
      throw new APICallError({ ...request, message: `status ${statusCode}`, statusCode, isRetryable: true });
    },
  });
  const ask = askOf(model, { small: PRICE }, { usd: 10, calls: 10 });
  await using engine = await createTestEngine({ definitions: [ask] });
  const run = await engine.start(ask, 1);
  await engine.clock.advance("1 minute");
  expect(await run.result()).toBe(1);
  const budget = await run.budget();
  expect(budget).toMatchObject({ spent: { calls: 1 }, lost: { calls: 1 } });
  // At least the bytes of the prompt, and 50 tokens of output.
  expect(budget?.lost.usd ?? 0).toBeGreaterThan((50 * 10_000) / 1e6);
});

const unreported = { inputTokens: { total: undefined }, outputTokens: { total: undefined } };
const noTokens = { inputTokens: { total: 0 }, outputTokens: { total: 0 } };
const half = { inputTokens: { total: 9 }, outputTokens: { total: undefined } };

test.each([unreported, noTokens, half])(
  "an answer that does not report its tokens costs its reservation, so that the budget holds (%#)",
  async (usage) => {
    let made = 0;
    const model = new MockLanguageModelV4({
      modelId: "small",
      doGenerate: async () => {
        made += 1;
        return { ...resultOf([{ text: "yes" }]), usage: usage as never };
      },
    });
    const warnings: string[] = [];
    const logger = { info: () => {}, error: () => {}, warn: (message: string) => void warnings.push(message) };
    const ask = askOf(model, { small: PRICE }, { usd: 2, onReached: "fail" });
    await using engine = await createTestEngine({ definitions: [ask], logger });
    const run = await engine.start(ask, 100);
    expect(await rejection(run.result())).toMatchObject({ cause: { code: "BUDGET_REACHED" } });
    // A reservation has 50 tokens of output at least.
    expect(made).toBeLessThanOrEqual(2 / ((50 * PRICE.output) / 1e6));
    expect((await run.budget())?.lost).toMatchObject({ calls: made });
    expect(warnings[0]).toContain("does not report how many tokens");
  },
);

test("a cost of a tool that is a task, or workflow code, is refused, because no call would be counted", async () => {
  const search = tool({ inputSchema: z.object({}), execute: async () => "result" });
  const searchTask = task("search", async () => "result");
  const cost = { usd: 0.25 };
  for (const [how, message] of [
    [{ as: searchTask, cost }, /Give the task search a `cost`/],
    [{ as: "inline", cost }, /steps of an inline tool/],
    [{ as: "inline", timeout: "1 s" }, /steps of an inline tool/],
  ] as const) {
    const find = workflow("find", async (ctx) => void durable(ctx).tools({ search }, { search: how }));
    await using engine = await createTestEngine({ definitions: [find, searchTask] });
    const { cause } = await rejection((await engine.start(find)).result());
    expect(cause).toMatchObject({ code: "BAD_OPTIONS", message: expect.stringMatching(message) as string });
  }
});

test("calls of tools cost what their options say", async () => {
  const model = scriptedModel(
    [
      [
        { tool: "search", id: "1", input: {} },
        { tool: "search", id: "2", input: {} },
      ],
      [{ text: "found" }],
    ],
    "small",
  );
  const search = tool({ inputSchema: z.object({}), execute: async () => "result" });
  const find = workflow("find", { budget: { usd: 5 } }, async (ctx) => {
    const ai = durable(ctx, { prices: { small: { input: 0, output: 0 } } });
    const tools = ai.tools({ search }, { search: { cost: { usd: 0.25 } } });
    await ai.call(() => generateText({ model: ai.model(model), tools, prompt: "p", stopWhen: stepCountIs(3) }));
  });
  await using engine = await createTestEngine({ definitions: [find] });
  const run = await engine.start(find);
  await run.result();
  expect((await run.budget())?.spent.usd).toBe(0.5);
});
