// The page Approvals in a real browser, against a real engine and server. What was answered is checked in the store.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectAccessible } from "./axe.ts";
import { findBrowser, openPage } from "./browser.ts";
import type { Role } from "../../src/contract/index.ts";
import { crawlSkip, newsletter, openDesk, refund, type Desk } from "./desk.ts";

describe.skipIf(findBrowser() === undefined)("approvals", () => {
  let desk: Desk;
  beforeAll(async () => {
    desk = await openDesk();
  });
  afterAll(async () => {
    await desk[Symbol.asyncDispose]();
  });

  const rowOf = (page: Page, run: string) =>
    page.locator("li.ap").filter({ has: page.getByRole("link", { name: run, exact: true }) });
  /** Sends at once what is held for 5 s. */
  const sendNow = (page: Page) => page.getByRole("button", { name: "Send now" }).first().click();
  const opened = async (id: string): Promise<void> => {
    await expect
      .poll(async () => (await Array.fromAsync(desk.engine.promises())).some(({ runId }) => runId === id))
      .toBe(true);
  };

  test("Approve sends what the schema says, held until it is sent, and the run ends with it", async () => {
    const run = await desk.engine.start(newsletter, 48_210, { id: "news-1" });
    await opened("news-1");
    const { page, expectClean } = await openPage(desk.url, { path: "/approvals" });
    const row = rowOf(page, "news-1");
    await row.getByText("Send the newsletter to 48210 readers").waitFor();
    await row.getByText("A person confirms every mailing.").waitFor();
    await row.getByRole("button", { name: "Approve", exact: true }).click();
    await row.getByText("Approved, not sent yet").waitFor();
    expect((await desk.engine.find("news-1"))?.status).toBe("waiting");
    await sendNow(page);
    expect(await run.result({ timeout: "20 s" })).toBe("sent");
    // It stays in its place, marked: nothing jumps.
    await row.getByText("Approved", { exact: true }).waitFor();
    expectClean();
    await page.context().close();
  });

  test("Undo takes an answer back before anything is sent", async () => {
    await desk.engine.start(newsletter, 7, { id: "news-2" });
    await opened("news-2");
    const { page, expectClean } = await openPage(desk.url, { path: "/approvals" });
    const row = rowOf(page, "news-2");
    await row.getByRole("button", { name: "Reject" }).click();
    await page.getByRole("button", { name: /^Undo/ }).click();
    await row.getByRole("button", { name: "Approve", exact: true }).waitFor();
    await row.getByRole("button", { name: "Reject" }).click();
    await page.keyboard.press("Control+z");
    await row.getByRole("button", { name: "Approve", exact: true }).waitFor();
    expect((await desk.engine.find("news-2"))?.status).toBe("waiting");
    expectClean();
    await page.context().close();
  });

  test("the value is edited against the schema, and the reason is kept in the journal", async () => {
    const run = await desk.engine.start(refund, { id: "57802", cents: 7200 }, { id: "ticket-1" });
    await opened("ticket-1");
    const { page, expectClean } = await openPage(desk.url, { path: "/approvals" });
    await page.getByRole("button", { name: "Refund 7200 cents for order 57802" }).click();
    const editor = page.getByLabel("Value of port approval");
    const columns = await page.evaluate<string>(
      "getComputedStyle(document.querySelector('.ap-panel dl')).gridTemplateColumns",
    );
    expect(columns.split(" ")).toHaveLength(2);
    await editor.fill('{ "ok": true, "cents": "many" }');
    await page.getByText("expected a whole number, got text").waitFor();
    expect(await page.getByRole("button", { name: /Approve with edit/ }).isDisabled()).toBe(true);
    await editor.fill('{\n  "ok": true,\n  "cents": 6400\n}');
    await page.getByText("Valid against the schema of port approval").waitFor();
    await page.getByText(/^edited, /).waitFor();
    await page.getByLabel("Reason, kept in the journal").fill("Shipping is not refunded");
    await expectAccessible(page);
    await page.getByText("reprise resolve ticket-1 approval").waitFor();
    await page.getByRole("button", { name: /Approve with edit/ }).click();
    await sendNow(page);
    expect(await run.result({ timeout: "20 s" })).toEqual({ refunded: 6400, why: "" });
    const settled = (await Array.fromAsync(run.journal())).find(({ type }) => type === "PromiseResolved");
    expect(JSON.stringify(settled)).toContain("Shipping is not refunded");
    expectClean();
    await page.context().close();
  });

  test("a port without a schema opens the editor; Reject throws the reason in the code that waits", async () => {
    const run = await desk.engine.start(crawlSkip, undefined, { id: "crawl-1" });
    const other = await desk.engine.start(crawlSkip, undefined, { id: "crawl-2" });
    await opened("crawl-1");
    await opened("crawl-2");
    const { page, expectClean } = await openPage(desk.url, { path: "/approvals" });
    await rowOf(page, "crawl-1").getByRole("button", { name: "Approve…" }).click();
    const editor = page.getByLabel("Value of port skip");
    await expect.poll(() => editor.evaluate((element) => element.matches(":focus"))).toBe(true);
    await editor.fill('{ "pages": 41 }');
    await page.keyboard.press("Control+Enter");
    await sendNow(page);
    expect(await run.result({ timeout: "20 s" })).toEqual({ pages: 41 });
    const second = encodeURIComponent(JSON.stringify(["crawl-2", "skip", null]));
    await page.goto(`${desk.url}/approvals?sel=${second}`);
    await page.getByLabel("Reason, kept in the journal").fill("not allowed");
    await page.locator("aside").getByRole("button", { name: "Reject" }).click();
    await sendNow(page);
    expect(await other.result({ timeout: "20 s" })).toBe("not allowed");
    expectClean();
    await page.context().close();
  });

  test("many are answered at once with keys, and History says who and why", async () => {
    const runs = await Promise.all(
      [1, 2, 3].map((count) => desk.engine.start(newsletter, count, { id: `many-${count}` })),
    );
    for (const { id } of runs) await opened(id);
    const { page, expectClean } = await openPage(desk.url, { path: "/approvals?definition=newsletter" });
    for (const { id } of runs) await rowOf(page, id).getByRole("checkbox").check();
    await page.getByRole("region", { name: "Selected" }).getByRole("button", { name: "Reject" }).click();
    await page.getByLabel("Reason, kept with the run").fill("too late");
    await page.getByRole("dialog").getByRole("button", { name: "Reject 3" }).click();
    await sendNow(page);
    for (const run of runs) expect(await run.result({ timeout: "20 s" })).toBe("kept");
    await page.getByRole("button", { name: "History" }).click();
    await page.getByRole("row", { name: /Rejected.*many-1.*too late/ }).waitFor();
    await expectAccessible(page);
    expectClean();
    await page.context().close();
  });

  test("a promise that opens elsewhere waits behind a button; one that is answered elsewhere is marked", async () => {
    await desk.engine.start(newsletter, 11, { id: "live-1" });
    await opened("live-1");
    const { page, expectClean } = await openPage(desk.url, { path: "/approvals?sort=run" });
    await rowOf(page, "live-1").waitFor();
    await desk.engine.start(newsletter, 12, { id: "live-2" });
    await page.getByRole("button", { name: /1 new approval/ }).waitFor();
    expect(await rowOf(page, "live-2").count()).toBe(0);
    await desk.engine.get(newsletter, "live-1").resolve("confirm", true);
    await rowOf(page, "live-1").getByText("No longer open").waitFor();
    await page.keyboard.press(".");
    await rowOf(page, "live-2").waitFor();
    expect(await rowOf(page, "live-1").count()).toBe(0);
    expectClean();
    await page.context().close();
  });
});

describe.skipIf(findBrowser() === undefined)("roles", () => {
  test("a viewer sees no payload and no action, a reader payloads, an approver the answers", async () => {
    let role: Role = "viewer";
    await using desk = await openDesk({ auth: { authenticate: () => ({ name: "ann", role }) } });
    await desk.engine.start(refund, { id: "57802", cents: 7200 }, { id: "ticket-1" });
    await expect.poll(async () => (await Array.fromAsync(desk.engine.promises())).length).toBe(1);
    const sel = encodeURIComponent(JSON.stringify(["ticket-1", "approval", "desk"]));
    const { page, expectClean } = await openPage(desk.url, { path: `/approvals?sel=${sel}` });
    await page.getByText("hidden: needs role reader").first().waitFor();
    expect(await page.getByText("57802").count()).toBe(0);
    expect(await page.getByRole("button", { name: /^(?:Approve|Reject)/ }).count()).toBe(0);
    await page.goto(`${desk.url}/schedules`);
    await page.getByRole("heading", { name: "Schedules" }).waitFor();
    await page.goto(`${desk.url}/queues`);
    await page.getByRole("row", { name: /^payments/ }).waitFor();
    expect(await page.getByRole("button", { name: /Pause|Limit/ }).count()).toBe(0);
    role = "reader";
    await page.goto(`${desk.url}/approvals?sel=${sel}`);
    await page.getByText("Refund 7200 cents for order 57802").first().waitFor();
    expect(await page.getByRole("button", { name: /^(?:Approve|Reject)/ }).count()).toBe(0);
    role = "approver";
    await page.reload();
    await page
      .locator("aside")
      .getByRole("button", { name: /^Approve/ })
      .waitFor();
    // The proposed value carries the name of the caller where the schema has one; the journal always has it.
    await page
      .locator("aside")
      .getByRole("button", { name: /^Approve/ })
      .click();
    await page.getByRole("button", { name: "Send now" }).click();
    await expect.poll(async () => (await desk.engine.find("ticket-1"))?.status).toBe("completed");
    const settled = (await Array.fromAsync(desk.engine.get(refund, "ticket-1").journal())).find(
      ({ type }) => type === "PromiseResolved",
    );
    expect(JSON.stringify(settled)).toContain('"ann"');
    expectClean();
    await page.context().close();
  });

  test("a one-time link answers the promise for a person without access", async () => {
    await using desk = await openDesk();
    const run = await desk.engine.start(refund, { id: "1", cents: 5 }, { id: "ticket-2" });
    await expect.poll(async () => (await Array.fromAsync(desk.engine.promises())).length).toBe(1);
    const sel = encodeURIComponent(JSON.stringify(["ticket-2", "approval", "desk"]));
    const { page, expectClean } = await openPage(desk.url, { path: `/approvals?sel=${sel}` });
    await page.getByRole("button", { name: "Copy link" }).click();
    const link = await page.locator(".toast code").textContent();
    await page.goto(link!);
    await page.getByRole("button", { name: "Approve" }).click();
    expect(await run.result({ timeout: "20 s" })).toMatchObject({ refunded: 5 });
    expectClean();
    await page.context().close();
  });
});
