// Queues, schedules, proof and the palette of commands in a real browser, against a real engine. What was done is checked in the store.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, createEngine, type Client } from "reprise";
import { createFederation } from "reprise/federation";
import { createServer } from "reprise/server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectAccessible } from "./axe.ts";
import { findBrowser, openPage } from "./browser.ts";
import { changedCheckout, checkout, openDesk, pay, render, report, spender, type Desk } from "./desk.ts";

describe.skipIf(findBrowser() === undefined)("operating", () => {
  let desk: Desk;
  beforeAll(async () => {
    desk = await openDesk();
    await desk.engine.schedule("nightly", report, "ann", { cron: "0 2 * * *", timeZone: "Europe/Berlin" });
    await desk.engine.schedule("hourly", report, "bob", { every: "1 hour" });
  });
  afterAll(async () => {
    await desk[Symbol.asyncDispose]();
  });

  test("work that no live worker can claim is the first line, with the command that helps", async () => {
    await desk.engine.start(render, undefined, { id: "film-1" });
    const { page, expectClean } = await openPage(desk.url, { path: "/queues" });
    const first = page.locator(".now");
    await first.getByText("No live worker can claim 1 task.").waitFor();
    await first.getByText(/reprise worker .*gpu/).waitFor();
    await page.getByRole("region", { name: "Work that waits, table" }).getByText("draw").first().waitFor();
    await page.getByRole("region", { name: "Workers, table" }).getByText("all queues").waitFor();
    await desk.engine.get(render, "film-1").cancel();
    expectClean();
    await page.context().close();
  });

  test("a full queue shows what holds its keys; it is paused, resumed and limited after a question", async () => {
    const held = await desk.engine.start(pay, "o-1", { id: "pay-1" });
    await expect.poll(async () => (await held.info()).status).toBe("waiting");
    await desk.engine.start(pay, "o-2", { id: "pay-2" });
    const { page, expectClean } = await openPage(desk.url, { path: "/queues?queue=payments" });
    await page.getByText("1 of 1", { exact: true }).first().waitFor();
    await page.getByRole("link", { name: "pay-1" }).waitFor();
    const row = page.getByRole("row", { name: /^payments/ });
    await row.getByRole("button", { name: "Pause" }).click();
    await expectAccessible(page);
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await row.getByText(/Paused since/).waitFor();
    expect((await desk.engine.findQueue("payments"))?.paused).toBe(true);
    await row.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
    await expect.poll(async () => (await desk.engine.findQueue("payments"))?.paused).toBe(false);
    await row.getByRole("button", { name: "Limit…" }).click();
    await page.getByLabel("At once, over all workers").fill("4");
    await page.getByText("reprise queue limit payments --concurrency 4").waitFor();
    await page.getByRole("button", { name: "Set the limits" }).click();
    await page.getByText("1 of 4", { exact: true }).waitFor();
    expect((await desk.engine.findQueue("payments"))?.limits).toMatchObject({
      concurrency: 4,
      perKey: { concurrency: 1 },
    });
    await expectAccessible(page);
    expectClean();
    await page.context().close();
  });

  test("a run that waits for its budget says what it paid, and is raised or declined with a reason", async () => {
    for (const id of ["spender-1", "spender-2"]) {
      const run = await desk.engine.start(spender, undefined, { id });
      await expect.poll(async () => (await run.budget())?.waiting.length).toBe(1);
    }
    const { page, expectClean } = await openPage(desk.url, { path: "/runs/spender-1" });
    await page.getByText("budget $2 $0.25 spent, $0 reserved, $0 lost").waitFor();
    await page.getByText("budget 9 calls 1 spent, 0 reserved, 0 lost").waitFor();
    await page.locator(".now").getByRole("button", { name: "Raise…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("reprise raise spender-1 --usd 3.25", { exact: true }).waitFor();
    await dialog.getByLabel("Add usd").fill("4");
    await dialog.getByLabel(/^Reason/).fill("worth it");
    await dialog.getByText("reprise raise spender-1 --usd 4 --reason 'worth it'").waitFor();
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Raise" }).click();
    await page.getByText("budget $6 $0.5 spent, $0 reserved, $0 lost").waitFor();
    expect(await desk.engine.get(spender, "spender-1").result()).toBe("an answer");
    await page.goto(`${desk.url}/runs/spender-2`);
    await page.locator(".now").getByRole("button", { name: "Decline…" }).click();
    await dialog.getByRole("button", { name: "Decline" }).click();
    await page.locator(".rh .badge").getByText("Failed").waitFor();
    expect((await desk.engine.get(spender, "spender-2").budget())?.cap).toEqual({ usd: 2, calls: 9 });
    expectClean();
    await page.context().close();
  });

  test("a schedule is triggered, paused, resumed and backfilled", async () => {
    const { page, expectClean } = await openPage(desk.url, { path: "/schedules" });
    const row = page.getByRole("row", { name: /^nightly/ });
    await row.getByText("Europe/Berlin").waitFor();
    await expectAccessible(page);
    await row.getByRole("button", { name: "Trigger" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Start" }).click();
    await page.getByText(/^Started /).waitFor();
    const started = await Array.fromAsync(desk.engine.list({ definition: "report" }));
    expect(started).toHaveLength(1);
    await row.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await row.getByText("Paused").waitFor();
    expect((await desk.engine.findSchedule("nightly"))?.paused).toBe(true);
    await row.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
    await expect.poll(async () => (await desk.engine.findSchedule("nightly"))?.paused).toBe(false);
    await row.getByRole("button", { name: "Backfill…" }).click();
    await page.getByLabel("From").fill("2026-11-10T00:00");
    await page.getByLabel("Until before").fill("2026-11-13T00:00");
    await page.getByRole("button", { name: "Start them" }).click();
    await page.getByText("Started 3 runs.").waitFor();
    expect(await Array.fromAsync(desk.engine.list({ definition: "report" }))).toHaveLength(4);
    expectClean();
    await page.context().close();
  });

  test("the palette finds pages, definitions and runs by a part of their id, with keys alone", async () => {
    await desk.engine.start(checkout, "o-9", { id: "find-me-9" });
    const { page, expectClean } = await openPage(desk.url, { path: "/queues" });
    await page.getByRole("heading", { name: "Queues and workers" }).waitFor();
    await page.keyboard.press("Control+k");
    const field = page.getByRole("combobox", { name: "Run, page or command" });
    await field.waitFor();
    await expectAccessible(page);
    await field.fill("me-9");
    await page.getByRole("option", { name: /^find-me-9/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "find-me-9" }).waitFor();
    await page.keyboard.press("/");
    await field.fill("sched");
    await page.getByRole("option", { name: /^Schedules/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Schedules" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("p");
    await page.getByRole("heading", { name: "Proof" }).waitFor();
    await page.keyboard.press("Control+k");
    await field.waitFor();
    await page.keyboard.press("Escape");
    await field.waitFor({ state: "detached" });
    expectClean();
    await page.context().close();
  });

  test("a step shows the lines of its code, and the run those of people as well", async () => {
    await desk.engine.start(report, "ann", { id: "logged-1" });
    await expect.poll(async () => (await desk.engine.find("logged-1"))?.status).toBe("completed");
    const { page, expectClean } = await openPage(desk.url, { path: "/runs/logged-1?step=Operation(0)&tab=logs" });
    await page.locator(".panel .logs").getByText("the printer is slow { pages: 3 }").waitFor();
    // It is too late, and that is what the line says.
    await page.request.post(new URL("/v1/runs/logged-1/pause", desk.url).href, {
      headers: { "x-reprise": "1" },
      data: { reason: "wrong printer" },
    });
    await page.getByText("Log of the run").click();
    await page
      .locator("details .logs")
      .getByText(/audit pauseRun .*wrong printer/)
      .waitFor();
    expect(await page.locator(".panel .logs li").count()).toBe(1);
    await expectAccessible(page);
    expectClean();
    await page.context().close();
  });

  test("a step shows its newest 500 lines, oldest first", async () => {
    await (await desk.engine.start(report, "everyone", { id: "logged-2" })).result();
    const { page, expectClean } = await openPage(desk.url, { path: "/runs/logged-2?step=Operation(0)&tab=logs" });
    const lines = page.locator(".panel .logs li");
    await lines.last().getByText("page 600").waitFor();
    await lines.first().getByText("page 101").waitFor();
    expect(await lines.count()).toBe(500);
    expectClean();
    await page.context().close();
  });

  test("on a phone the journal shows the name of every step", async () => {
    await desk.engine.start(checkout, "o-5", { id: "phone-1" });
    const { page, expectClean } = await openPage(desk.url, { path: "/runs/phone-1?view=journal" });
    await page.setViewportSize({ width: 390, height: 900 });
    for (const name of ["reserve", "charge"]) {
      const step = page.locator(".journal .entry b", { hasText: name }).first();
      await step.waitFor();
      const { x, width } = (await step.boundingBox())!;
      expect(x).toBeGreaterThan(0);
      expect(x + width).toBeLessThan(390);
    }
    await expectAccessible(page);
    expectClean();
    await page.context().close();
  });

  test("a run that agrees is proven; its journal can be downloaded", async () => {
    await desk.engine.start(checkout, "o-1", { id: "order-1" });
    await expect.poll(async () => (await desk.engine.find("order-1"))?.status).toBe("waiting");
    const { page, expectClean } = await openPage(desk.url, { path: "/proof?run=order-1" });
    for (const text of ["Code and journal agree.", "Hash chain intact", "No gap", "Replay agrees", "Nothing called"])
      await page.getByText(text).first().waitFor();
    await expectAccessible(page);
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Journal" }).click();
    expect((await download).suggestedFilename()).toBe("order-1.jsonl");
    await page.getByRole("navigation").getByRole("link", { name: "Proof" }).first().click();
    await page.getByText("No live run differs from its code").waitFor();
    await expectAccessible(page);
    expectClean();
    await page.context().close();
  });
});

describe.skipIf(findBrowser() === undefined)("changed code", () => {
  test("journal and code stand side by side at the first difference, for one run and for all live ones", async () => {
    const folder = mkdtempSync(join(tmpdir(), "reprise-proof-"));
    const store = `sqlite:${join(folder, "proof.db")}`;
    const recording = await createEngine({ store, definitions: [checkout], logger: false });
    for (const id of ["order-1", "order-2", "order-3"]) await recording.start(checkout, id, { id });
    for (const id of ["order-1", "order-2", "order-3"])
      await expect.poll(async () => (await recording.find(id))?.status).toBe("waiting");
    await recording.close();
    const client = (await createClient({ store, definitions: [changedCheckout], logger: false })) as unknown as Client;
    const server = createServer(client);
    const { url, close } = await server.listen({ port: 0 });
    const before = await client.find("order-1");
    const { page, expectClean } = await openPage(url, { path: "/proof?run=order-1" });
    await page.getByText(/^Code and journal differ at entry \d+\.$/).waitFor();
    await page.getByText("Replay differs").waitFor();
    const sides = page.getByRole("region", { name: "Journal and code side by side" });
    await sides
      .getByText(/charge/)
      .first()
      .waitFor();
    await sides
      .getByText(/notify/)
      .first()
      .waitFor();
    await page.getByRole("region", { name: "Code", exact: true }).getByText("ctx.patched").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Verify them" }).click();
    await page.getByText("0 same · 3 differ at entry 3").waitFor();
    await page.getByRole("link", { name: "order-3" }).waitFor();
    const { digest, entries } = before!;
    expect(await client.find("order-1")).toMatchObject({ status: "waiting", digest, entries });
    expectClean();
    await page.context().close();
    await close();
    await server.close();
    await client.close();
    rmSync(folder, { recursive: true, force: true });
  });
});

describe.skipIf(findBrowser() === undefined)("federation", () => {
  test("a federated site shows its peers; another store has no such page in its header", async () => {
    const folder = mkdtempSync(join(tmpdir(), "reprise-peers-"));
    const store = `sqlite:${join(folder, "shop.db")}`;
    const office = await createFederation({ home: join(folder, "office"), name: "office", sync: "manual" });
    const { vkey } = office;
    await office.close();
    const federation = await createFederation({
      home: join(folder, "edge"),
      name: "edge",
      store,
      sync: "manual",
      peers: { office: { vkey, url: join(folder, "nowhere") } },
    });
    await federation.setOn(true);
    const client = (await createClient({ store, definitions: [report], logger: false })) as unknown as Client;
    const server = createServer(client, { federation });
    const listener = await server.listen({ port: 0 });
    const { page, expectClean } = await openPage(listener.url);
    await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Peers" }).click();
    await page.getByRole("row", { name: /^office.*Never met/ }).waitFor();
    await page.getByText("None is open.").waitFor();
    await expectAccessible(page);
    expectClean();
    await page.context().close();
    await listener.close();
    await server.close();
    await client.close();
    await federation.close();
    rmSync(folder, { recursive: true, force: true });
  });
});
