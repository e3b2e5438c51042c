// The page of a run in a real browser: every action, a killed worker, a server that restarts.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectAccessible } from "./axe.ts";
import { findBrowser, openPage, openSite, type TestSite } from "./browser.ts";
import { checkout, reminder } from "./shop.ts";

describe.skipIf(findBrowser() === undefined)("run", () => {
  let site: TestSite;
  beforeAll(async () => {
    site = await openSite();
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
  });

  const statusOf = async (id: string): Promise<string | undefined> => (await site.client.find(id))?.status;
  const badge = (page: Page, word: string) => page.locator(".rh .badge:not(.pending)").getByText(word);

  test("pause, resume and cancel do what they say", async () => {
    await site.client.start(reminder, "ann", { id: "wait-1" });
    const { page, expectClean } = await openPage(site.url, { path: "/runs/wait-1" });
    await badge(page, "Waiting").waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await badge(page, "Paused").waitFor();
    expect(await statusOf("wait-1")).toBe("paused");
    await page.getByRole("button", { name: "Resume" }).click();
    await badge(page, "Waiting").waitFor();
    expect(await statusOf("wait-1")).toBe("waiting");
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByLabel(/^Reason/).fill("not needed");
    await page.getByRole("button", { name: "Cancel the run" }).click();
    await badge(page, "Cancelled").waitFor();
    expect(await statusOf("wait-1")).toBe("cancelled");
    expectClean();
    await page.context().close();
  });

  test("a failed run shows its attempts and its own frame, and is retried", async () => {
    await site.client.start(checkout, { order: "7", cents: 5, card: "refused" }, { id: "fail-1" });
    await expect.poll(() => statusOf("fail-1")).toBe("failed");
    const { page, expectClean } = await openPage(site.url, { path: "/runs/fail-1" });
    await page
      .getByText(/no answer within 2 s/)
      .first()
      .waitFor();
    await page.locator("[data-step]").filter({ hasText: "charge" }).getByRole("button").click();
    await page.locator(".gr.sub").getByText("attempt 3").waitFor();
    await page
      .locator(".panel")
      .getByText(/chargeCard .*web\/shop\.ts/)
      .waitFor();
    expect(await page.locator(".attempts tbody tr").count()).toBe(3);
    // Styles of other pages reach neither the axis nor the rows of attempts.
    const tops = await page
      .locator(".axis .ax > *")
      .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().top));
    expect(tops.length).toBeGreaterThan(2);
    expect(new Set(tops.map(Math.round)).size).toBe(1);
    const rows = await page.evaluate<string[]>(
      "[...document.querySelectorAll('.gr.sub')].map((row) => getComputedStyle(row).display)",
    );
    expect(new Set(rows)).toEqual(new Set(["grid"]));
    await expectAccessible(page);
    // On a phone an error stands below the name of its attempt, and the table of attempts is not cut.
    await page.setViewportSize({ width: 390, height: 900 });
    const gaps = await page.evaluate<number[]>(
      "[...document.querySelectorAll('.gr.two-l')].map((row) => row.querySelector('.t').getBoundingClientRect().top - row.querySelector('.gl').getBoundingClientRect().bottom)",
    );
    expect(gaps.length).toBeGreaterThan(0);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(-2);
    expect(
      await page.locator(".attempts").evaluate((table) => table.scrollWidth - table.parentElement!.clientWidth),
    ).toBeLessThanOrEqual(0);
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.reload();
    await page
      .locator(".panel")
      .getByText(/chargeCard/)
      .waitFor();
    await page.getByRole("button", { name: "Table" }).click();
    await page.getByRole("region", { name: "Steps" }).getByText("reserve").waitFor();
    await expectAccessible(page);
    site.touch("paid");
    await page.getByRole("button", { name: "Retry" }).click();
    await badge(page, "Completed").waitFor();
    expect(await site.client.find("fail-1")).toMatchObject({ output: { payment: "pay_81c4", paid: 5 } });
    expectClean();
    await page.context().close();
  });

  test("an approval is held until it is sent, Undo takes it back, and the run continues with it", async () => {
    await site.client.start(checkout, { order: "8", cents: 5, approve: true }, { id: "approve-1" });
    const { page, expectClean } = await openPage(site.url, { path: "/runs/approve-1" });
    await page.getByText("Waiting for a person.").waitFor();
    await page.locator(".now").getByText("It was opened with").waitFor();
    await expectAccessible(page);
    await page.keyboard.press("a");
    await page.getByRole("button", { name: /^Undo/ }).click();
    await page
      .getByRole("button", { name: /^Approve/ })
      .first()
      .waitFor();
    expect(await statusOf("approve-1")).toBe("waiting");
    await page.keyboard.press("a");
    await page.getByRole("button", { name: "Send now" }).click();
    await badge(page, "Completed").waitFor();
    expect(await site.client.find("approve-1")).toMatchObject({ output: { approved: true } });
    expectClean();
    await page.context().close();
  });

  test("a rejection asks for a reason and sends what the schema of the promise says", async () => {
    await site.client.start(checkout, { order: "9", cents: 5, approve: true }, { id: "reject-1" });
    const { page, expectClean } = await openPage(site.url, { path: "/runs/reject-1" });
    await page.getByText("Waiting for a person.").waitFor();
    await page.keyboard.press("Shift+A");
    await page.getByLabel(/^Reason/).fill("over the limit");
    await page.getByRole("dialog").getByRole("button", { name: "Reject" }).click();
    await page.getByRole("button", { name: "Send now" }).click();
    await badge(page, "Completed").waitFor();
    expect(await site.client.find("reject-1")).toMatchObject({ output: { approved: false } });
    await page.locator("[data-step]").filter({ hasText: "approval" }).getByRole("button").first().click();
    await page
      .locator(".panel")
      .getByText(/over the limit/)
      .waitFor();
    expectClean();
    await page.context().close();
  });

  test("the journal shows every entry, and the address keeps the open one", async () => {
    const { page, expectClean } = await openPage(site.url, { path: "/runs/approve-1" });
    await page.getByRole("button", { name: "Journal" }).click();
    await page.getByRole("button", { name: /TaskCompleted/ }).click();
    await page.locator(".entry-data").getByText("pay_1").waitFor();
    await expectAccessible(page);
    await page.reload();
    await page.locator(".entry-data").getByText("pay_1").waitFor();
    await page.goBack();
    await page.locator(".entry-data").waitFor({ state: "detached" });
    await page.goBack();
    await page.locator("[data-step]").first().waitFor();
    expectClean();
    await page.context().close();
  });

  test("the death of a worker is seen while it happens, and the takeover afterwards", async () => {
    await using fleet = await openSite({ workers: 0, lease: 600 });
    const first = await fleet.startWorker();
    await fleet.client.start(checkout, { order: "10", cents: 5, card: "slow" }, { id: "crash-1" });
    const { page, expectClean } = await openPage(fleet.url, { path: "/runs/crash-1?step=Task(0)" });
    await badge(page, "Running").or(badge(page, "Waiting")).waitFor();
    await page.locator(".gr .b.live").waitFor();
    first.kill("SIGKILL");
    const second = await fleet.startWorker();
    await page.getByText("Crash survived").waitFor();
    await page.locator(".gr .b.lost").first().waitFor();
    fleet.touch("go");
    await badge(page, "Completed").waitFor();
    await page
      .getByRole("region", { name: "Takeover" })
      .getByText(/committed, with the idempotency key/)
      .waitFor();
    await page
      .getByRole("region", { name: "Takeover" })
      .getByText(new RegExp(`/${second.pid} replayed`))
      .waitFor();
    await expectAccessible(page);
    // On a phone both flags are inside of the page.
    await page.setViewportSize({ width: 390, height: 900 });
    const edges = await page
      .locator(".flag")
      .evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).map(({ left, right }) => [left, right]));
    expect(edges).toHaveLength(2);
    expect(Math.min(...edges.flat())).toBeGreaterThanOrEqual(0);
    expect(Math.max(...edges.flat())).toBeLessThanOrEqual(390);
    expectClean();
    await page.context().close();
  });

  test("without a server the page is stale and offers no action; it resumes when the server is back", async () => {
    await using fleet = await openSite();
    await fleet.client.start(reminder, "ann", { id: "stale-1" });
    const { page, expectClean } = await openPage(fleet.url, { path: "/runs/stale-1" });
    await page.locator(".live").getByText("Live").first().waitFor();
    await badge(page, "Waiting").waitFor();
    await fleet.stopServer();
    await page.getByText("The server does not answer").waitFor();
    await page.getByText(/^As of/).waitFor();
    expect(await page.getByRole("button", { name: "Pause" }).isDisabled()).toBe(true);
    await badge(page, "Waiting").waitFor();
    await expectAccessible(page);
    await fleet.client.get(reminder, "stale-1").pause();
    await fleet.startServer();
    await page.getByRole("button", { name: "Try now" }).click();
    await badge(page, "Paused").waitFor();
    await page.locator(".live").getByText("Live").first().waitFor();
    expect(await page.getByRole("button", { name: "Resume" }).isEnabled()).toBe(true);
    expectClean(/ERR_|Failed to load resource|net::/);
    await page.context().close();
  });

  test("a view whose code does not load says so, and appears once the server answers again", async () => {
    await using fleet = await openSite();
    await fleet.client.start(reminder, "ann", { id: "part-1" });
    const { page, expectClean } = await openPage(fleet.url, { path: "/runs/part-1" });
    await page.getByRole("region", { name: "Timeline" }).waitFor();
    await fleet.stopServer();
    await page.getByText("The server does not answer").waitFor();
    await page.getByRole("button", { name: "Journal" }).click();
    await page.getByText("This part of the dashboard cannot be loaded.").waitFor();
    await fleet.startServer();
    await page.getByRole("button", { name: "Try now" }).click();
    await page.getByRole("region", { name: "Journal" }).waitFor();
    expectClean(/ERR_|Failed to load resource|net::/);
    await page.context().close();
  });

  test("a viewer sees no payload and no control that the role does not allow", async () => {
    const caller = { name: "vera", role: "viewer" } as const;
    await using hall = await openSite({ server: { auth: { authenticate: () => caller } } });
    await hall.client.start(checkout, { order: "secret-order", cents: 5, approve: true }, { id: "view-1" });
    await expect.poll(async () => (await hall.client.find("view-1"))?.status).toBe("waiting");
    const { page, expectClean } = await openPage(hall.url, { path: "/runs/view-1?step=Task(0)" });
    await page.getByText("Waiting for a person.").waitFor();
    await page.locator(".panel").getByText("hidden: needs role reader").first().waitFor();
    for (const name of [/^Approve/, /^Reject/, /^Pause/, /^Cancel/, /^Fork here/]) {
      expect(await page.getByRole("button", { name }).count(), String(name)).toBe(0);
    }
    expect(await page.content()).not.toContain("secret-order");
    await page.goto(new URL("/", hall.url).href);
    await page.locator('tr[data-run="view-1"]').waitFor();
    expect(await page.getByRole("button", { name: /^Start a run/ }).count()).toBe(0);
    expect(await page.locator("tbody input").count()).toBe(0);
    await expectAccessible(page);
    expectClean();
    await page.context().close();
  });
});
