// An agent in a real browser: the words of its model, what it pays, and the tool calls that people decide about.

import { streamText, stepCountIs, tool } from "ai";
import { afterAll, beforeAll, describe, test } from "vitest";
import { workflow } from "reprise";
import { approvals, durable, tokens } from "reprise/ai";
import { z } from "zod";
import { scriptedModel } from "../ai/scripted-model.ts";
import { expectAccessible } from "./axe.ts";
import { findBrowser, openPage } from "./browser.ts";
import { openDesk, type Desk } from "./desk.ts";

const model = scriptedModel([
  [
    { reasoning: "The parcel is broken." },
    { text: "I ask a colleague." },
    { tool: "refund", id: "call-1", input: { order: "1042", cents: 7200 } },
  ],
  [{ text: "You get your money back." }],
]);
const refunded: unknown[] = [];
const refund = tool({
  description: "Refunds an order",
  inputSchema: z.object({ order: z.string(), cents: z.number() }),
  execute: async (input) => {
    refunded.push(input);
    return "refunded";
  },
});

const helper = workflow(
  "helper",
  { ports: { words: tokens(), approve: approvals() }, budget: { usd: 0.05 } },
  async (ctx, question: string) => {
    const prices = { scripted: { input: 1, output: 10 } };
    const ai = durable(ctx, { stream: "words", approve: "approve", prices });
    const tools = ai.tools({ refund }, { refund: { approve: true } });
    return ai.call(
      async () => streamText({ model: ai.model(model), tools, prompt: question, stopWhen: stepCountIs(4) }).text,
    );
  },
);

describe.skipIf(findBrowser() === undefined)("an agent", () => {
  let desk: Desk;
  beforeAll(async () => {
    desk = await openDesk({}, [helper]);
    await desk.engine.start(helper, "It is broken", { id: "ticket-1" });
  });
  afterAll(async () => {
    await desk[Symbol.asyncDispose]();
  });

  test("the stream of a model reads as text, with its reasoning, its model, its tokens and what it cost", async () => {
    const { page, expectClean } = await openPage(desk.url, { path: "/runs/ticket-1?view=stream" });
    const log = page.getByRole("log");
    await log.getByText("I ask a colleague.", { exact: true }).waitFor();
    await log.getByText("Reasoning: The parcel is broken.").waitFor();
    await log.getByText("Operation(0) · model scripted · 120 tokens · $0.0003").waitFor();
    await page.locator(".stats").getByText("120tokens, $0.0003").waitFor();
    await expectAccessible(page);
    expectClean();
    await page.context().close();
  });
});
