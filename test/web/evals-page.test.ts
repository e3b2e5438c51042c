// Evals in a real browser: reports of real evaluations, with the outputs of a run and its fork side by side.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { task, workflow, type Engine, type Scorer } from "reprise";
import { expectAccessible } from "./axe.ts";
import { findBrowser, openPage } from "./browser.ts";
import { openDesk, type Desk } from "./desk.ts";

let isChanged = false;
const search = task("search", (_, what: string) => `found ${what}`);
const helper = workflow("helper", async (ctx, question: string) => {
  const model = ctx.models["fast"] ?? "fast";
  const thought = await ctx.run("think", { model, question }, () => `${model} thinks about ${question}`, {
    live: model !== "fast",
  });
  const found = await ctx.task(search, isChanged && question === "tea" ? "coffee" : question);
  return { thought, found, tone: model === "fast" ? "kind" : "short" };
});

describe.skipIf(findBrowser() === undefined)("evals", () => {
  let desk: Desk;
  beforeAll(async () => {
    desk = await openDesk({}, [helper, search]);
    const engine = desk.engine as unknown as Engine<typeof helper>;
    for (const question of ["tea", "cake", "<b>milk</b>"])
      await (await engine.start(helper, question, { id: `ask-${question}` })).result();
    const score: Readonly<Record<string, Scorer<typeof helper>>> = {
      tone: (was, is) => Number(was.output?.tone === is.output?.tone),
    };
    await engine.evaluate(helper, { runs: {}, id: "unchanged", score });
    await engine.evaluate(helper, { runs: {}, id: "strong-model", models: { fast: "strong" }, score });
    isChanged = true;
    await engine.evaluate(helper, { runs: {}, id: "edited", score });
  });
  afterAll(async () => {
    await desk[Symbol.asyncDispose]();
  });

  test("the list has the scores of every evaluation, and opens one by keys", async () => {
    const { page, expectClean } = await openPage(desk.url, { path: "/evals" });
    await page
      .getByRole("row", { name: /^unchanged/ })
      .getByText("1.00")
      .waitFor();
    await page
      .getByRole("row", { name: /^strong-model/ })
      .getByText("fast → strong")
      .waitFor();
    await page
      .getByRole("row", { name: /^edited/ })
      .getByText("2 same, 0 changed, 1 stopped")
      .waitFor();
    await expectAccessible(page);
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "strong-model" }).waitFor();
    expectClean();
    await page.context().close();
  });

  test("a report shows the outputs of a run and its fork side by side, and where they differ", async () => {
    const { page, expectClean } = await openPage(desk.url, { path: "/evals/strong-model?sel=ask-tea" });
    const outputs = page.getByRole("region", { name: "Outputs" });
    await outputs.getByText('"fast thinks about tea"').waitFor();
    await outputs.getByText('"strong thinks about tea"').waitFor();
    await page.getByText("first difference at Operation(0)").waitFor();
    await page.getByText("3 forks differed.").waitFor();
    await expectAccessible(page);
    expectClean();
    await page.context().close();
  });

  test("a stopped fork says why, and payloads stay text", async () => {
    const { page, expectClean } = await openPage(desk.url, { path: "/evals/edited", colorScheme: "dark" });
    await page.getByText("1 fork stopped before the end.").waitFor();
    const rows = page.getByRole("region", { name: "Runs, table" });
    await rows.getByText("Task(0): EFFECT_NOT_RECORDED").waitFor();
    await page.keyboard.press("d");
    await rows.getByText("ask-<b>milk</b>").waitFor();
    expect(await page.locator("main b", { hasText: /^milk$/ }).count()).toBe(0);
    await expectAccessible(page);
    expectClean();
    await page.context().close();
  });
});
