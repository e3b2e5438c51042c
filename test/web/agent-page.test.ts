// An agent in a real browser: the words of its model, what it pays, and the tool calls that people decide about.

import { streamText, stepCountIs, tool } from "ai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { workflow } from "reprise";
import { approvals, durable, tokens } from "reprise/ai";
import { tokenHash } from "reprise/server";
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

  test("the list says what a run has paid of its budget, and the names of its steps are not cut", async () => {
    const { page, expectClean } = await openPage(desk.url);
    await page.locator("tr[data-run='ticket-1'] .c-cost").getByText("$0.0003 of $0.05").waitFor();
    await expectAccessible(page);
    await page.goto(`${desk.url}/runs/ticket-1`);
    const names = page.locator(".gr[data-step] .step");
    await expect.poll(() => names.count()).toBe(2);
    const cut = await page.evaluate<readonly string[]>(
      "[...document.querySelectorAll('.gr .step')].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)",
    );
    expect(cut).toEqual([]);
    expectClean();
    await page.context().close();
  });

  test("a phone has the search and every page of the header", async () => {
    const { page, expectClean } = await openPage(desk.url, { width: 390 });
    await page.getByRole("button", { name: /^Search and commands/ }).click();
    await page.getByRole("combobox").fill("evals");
    await page.keyboard.press("Enter");
    await page.waitForURL(`${desk.url}/evals`);
    expectClean();
    await page.context().close();
  });

  test("a call of a tool is approved with an edited input", async () => {
    const { page, expectClean } = await openPage(desk.url, { path: "/approvals" });
    await page.getByRole("button", { name: "Call the tool refund" }).click();
    const value = page.getByLabel("Value of port approve");
    expect(JSON.parse(await value.inputValue())).toMatchObject({ ok: true, input: { order: "1042", cents: 7200 } });
    await value.fill((await value.inputValue()).replace("7200", "6400"));
    await page.getByText("edited, 1 line").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: /^Approve with edit/ }).click();
    await page.getByRole("button", { name: "Send now" }).click();
    expect(await desk.engine.get(helper, "ticket-1").result({ timeout: "20 s" })).toBe("You get your money back.");
    expect(refunded).toEqual([{ order: "1042", cents: 6400 }]);
    expectClean();
    await page.context().close();
  });

  test("a budget is raised on the page of approvals by an amount that the person sees and may change", async () => {
    const run = await desk.engine.start(helper, "It is broken", { id: "ticket-2", budget: { usd: 0.0005 } });
    await expect.poll(async () => (await run.budget())?.waiting.length).toBe(1);
    const { page, expectClean } = await openPage(desk.url, { path: "/approvals" });
    const row = page.locator("li.ap").filter({ hasText: "ticket-2" });
    await row.getByText(/^Spent \$0 of \$0\.0005\. Operation\(0\) reserves \$0\.04/).waitFor();
    await row.getByRole("button", { name: "Raise…" }).click();
    const panel = page.getByRole("dialog");
    await panel.getByLabel("Add usd").fill("0.5");
    await panel.getByLabel(/^Reason/).fill("worth it");
    await panel.getByText("reprise raise ticket-2 --usd 0.5 --reason 'worth it'").waitFor();
    await expectAccessible(page);
    await panel.getByRole("button", { name: "Raise" }).click();
    await expect.poll(async () => (await run.budget())?.cap).toEqual({ usd: 0.5005 });
    await row.getByText("No longer open").waitFor();
    expectClean();
    await page.context().close();
  });
});

const TOKEN = "rp_7c1f09ac_2TgOXqvF0Qq5rY8yq8mJr0mH1cJt3Vw5sYb7zKd9eQE";

describe.skipIf(findBrowser() === undefined)("a budget for an approver", () => {
  test("is shown without controls: raising it needs the role operator", async () => {
    const tokenOf = { name: "ann", hash: tokenHash(TOKEN), role: "approver" } as const;
    await using desk = await openDesk({ auth: { tokens: [tokenOf] } }, [helper]);
    const run = await desk.engine.start(helper, "It is broken", { id: "ticket-3", budget: { usd: 0.0005 } });
    await expect.poll(async () => (await run.budget())?.waiting.length).toBe(1);
    const { page, expectClean } = await openPage(desk.url, { path: "/login" });
    await page.getByLabel("Token").fill(TOKEN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(`${desk.url}/`);
    await page.goto(`${desk.url}/approvals`);
    const row = page.locator("li.ap").filter({ hasText: "ticket-3" });
    await row.getByText(/^Spent \$0/).waitFor();
    expect(await row.getByRole("button", { name: /Raise…|Decline|Approve/ }).count()).toBe(0);
    expectClean();
    await page.context().close();
  });
});
