// The page Runs in a real browser, against a real server, store and worker processes.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectAccessible } from "./axe.ts";
import { findBrowser, openPage, openSite, type TestSite } from "./browser.ts";
import { checkout, reminder, render } from "./shop.ts";

describe.skipIf(findBrowser() === undefined)("runs", () => {
  let site: TestSite;
  beforeAll(async () => {
    site = await openSite();
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
  });

  const statusOf = async (id: string): Promise<string | undefined> => (await site.client.find(id))?.status;

  test("an empty store shows how to start the first run, and the form starts it", async () => {
    const { page, expectClean } = await openPage(site.url);
    await page.getByText("No runs yet").waitFor();
    await page.getByText("One worker is connected").waitFor();
    await expectAccessible(page);
    await page.getByLabel("Definition").selectOption("checkout");
    await page.getByLabel(/^order ·/).fill("1");
    await page.getByLabel("cents").fill("1299");
    await page.getByRole("button", { name: "Start checkout" }).click();
    await page.getByRole("status").getByText("Completed.").waitFor();
    const runs = await Array.fromAsync(site.client.list({ definition: "checkout" }));
    expect(runs).toHaveLength(1);
    expect(await site.client.find(runs[0]!.id)).toMatchObject({
      status: "completed",
      input: { order: "1", cents: 1299, card: "good" },
    });
    expectClean();
    await page.context().close();
  });

  test("a run that starts elsewhere waits behind a button, and its row follows it", async () => {
    const { page, expectClean } = await openPage(site.url, { path: "/?status=all" });
    await page.locator("tr[data-run]").first().waitFor();
    const before = await page.locator("tr[data-run]").count();
    await site.client.start(reminder, "ann", { id: "remind-1", tags: ["prod"] });
    await page.getByRole("button", { name: "1 new run" }).waitFor();
    expect(await page.locator("tr[data-run]").count()).toBe(before);
    await page.keyboard.press(".");
    const row = page.locator('tr[data-run="remind-1"]');
    await row.getByText("Waiting", { exact: true }).first().waitFor();
    await row.locator(".why").filter({ hasNotText: "…" }).waitFor();
    await site.client.get(reminder, "remind-1").pause();
    await row.getByText("Paused", { exact: true }).first().waitFor();
    await site.client.get(reminder, "remind-1").resume();
    expectClean();
    await page.context().close();
  });

  test("filters and tabs are in the address; reload and Back restore them; a row that no longer matches stays, grayed", async () => {
    await site.client.start(reminder, "bob", { id: "remind-2", tags: ["test"] });
    const { page, expectClean } = await openPage(site.url, { path: "/?status=waiting" });
    await page.locator('tr[data-run="remind-2"]').waitFor();
    await page.keyboard.press("f");
    await page.getByLabel(/^Tags/).fill("prod");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.locator('tr[data-run="remind-2"]').waitFor({ state: "detached" });
    expect(new URL(page.url()).search).toBe("?status=waiting&tag=prod");
    await page.reload();
    await page.locator('tr[data-run="remind-1"]').waitFor();
    expect(await page.locator("tr[data-run]").count()).toBe(1);
    await page.goBack();
    await page.locator('tr[data-run="remind-2"]').waitFor();
    await page.getByRole("link", { name: /^Completed/ }).click();
    await page.locator("tr[data-run]").first().getByText("Completed").first().waitFor();
    await page.goBack();
    const row = page.locator('tr[data-run="remind-2"]');
    await row.waitFor();
    await site.client.get(reminder, "remind-2").cancel();
    await row.getByText("no longer matches the filter").waitFor();
    expect(await row.getAttribute("class")).toContain("gone");
    expectClean();
    await page.context().close();
  });

  test("the list says why a run does not move", async () => {
    await site.client.start(render, "scene", { id: "render-1" });
    const { page, expectClean } = await openPage(site.url, { path: "/?definition=render" });
    await page.locator('tr[data-run="render-1"]').getByText(/gpu/).first().waitFor();
    expectClean();
    await page.context().close();
  });

  test("selected runs are retried after a dry run and a question", async () => {
    const ids = ["fail-1", "fail-2", "fail-3"];
    for (const id of ids) await site.client.start(checkout, { order: id, cents: 5, card: "refused" }, { id });
    for (const id of ids) await expect.poll(() => statusOf(id)).toBe("failed");
    const { page, expectClean } = await openPage(site.url, { path: "/?status=failed" });
    await page
      .locator('tr[data-run="fail-3"]')
      .getByText(/no answer within 2 s/)
      .first()
      .waitFor();
    await expectAccessible(page);
    await page.locator('tr[data-run="fail-3"]').waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("Shift+X");
    await page.getByText("3 selected").waitFor();
    site.touch("paid");
    await page.keyboard.press("r");
    await page.getByRole("heading", { name: "Retry 3 runs?" }).waitFor();
    expect(await statusOf("fail-1")).toBe("failed");
    await page.getByRole("button", { name: "Retry 3 runs" }).click();
    for (const id of ids) await expect.poll(() => statusOf(id)).toBe("completed");
    await page.locator('tr[data-run="fail-1"].gone').waitFor();
    expectClean();
    await page.context().close();
  });

  test("a form refuses what the schema of the input refuses, and says why", async () => {
    const { page, expectClean } = await openPage(site.url, { path: "/?start=checkout" });
    await page.getByLabel("Edit the input as JSON").check();
    await page.getByLabel("Input, as JSON").fill('{ "order": 7 }');
    await page.getByRole("button", { name: "Start checkout" }).click();
    await page
      .getByRole("alert")
      .getByText(/^order: /)
      .waitFor();
    expect(await page.getByRole("alert").getByText(/order/).count()).toBe(1);
    await page.getByLabel("Input, as JSON").fill('{ "order": "7", "cents": 1 }');
    await page.getByLabel(/^Id/).fill("from-form");
    await page.getByRole("button", { name: "Start checkout" }).click();
    await page.getByRole("heading", { name: "from-form" }).waitFor();
    expect(await site.client.find("from-form")).toMatchObject({ definition: "checkout", input: { order: "7" } });
    // The browser reports the refusal of the first request as an error of its own.
    expectClean(/400|422/);
    await page.context().close();
  });

  test("all keys are shown, and single keys can be switched off", async () => {
    const { page, expectClean } = await openPage(site.url, { path: "/?status=all" });
    await page.locator("tr[data-run]").first().waitFor();
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "Keys" }).waitFor();
    await expectAccessible(page);
    await page.getByLabel("Single keys are on").uncheck();
    await page.keyboard.press("Escape");
    await page.keyboard.press("g");
    await page.keyboard.press("a");
    expect(new URL(page.url()).pathname).toBe("/");
    await page.getByRole("link", { name: /^Approvals/ }).click();
    await page.getByRole("heading", { name: "Approvals" }).waitFor();
    expectClean();
    await page.context().close();
  });
});
