// Graphs, flows and streams of a run in a real browser, against a real engine. Looking changes nothing; a fork is a run in the store.

import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectAccessible } from "./axe.ts";
import { findBrowser, openPage } from "./browser.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, createEngine, stream, workflow, type Client } from "reprise";
import { createServer } from "reprise/server";
import type { RunPicture } from "../../src/contract/index.ts";
import { crawl, openDesk, support, type Desk } from "./desk.ts";

describe.skipIf(findBrowser() === undefined)("graphs and flows", () => {
  let desk: Desk;
  beforeAll(async () => {
    desk = await openDesk();
    await desk.engine.start(support, { messages: [{ role: "user", text: "damaged" }] }, { id: "ticket-1" });
  });
  afterAll(async () => {
    await desk[Symbol.asyncDispose]();
  });

  const node = (page: Page, name: string) => page.locator(`[data-node="${name}"]`);
  const status = (page: Page, name: string) => node(page, name).getAttribute("data-status");

  test("a graph is drawn live, with the node that waits and how often each ran", async () => {
    const { page, expectClean } = await openPage(desk.url, { path: "/runs/ticket-1" });
    await expect.poll(() => status(page, "ask")).toBe("waiting");
    expect(await status(page, "think")).toBe("completed");
    expect(await status(page, "reply")).toBe("idle");
    expect(await node(page, "think").textContent()).toContain("×2");
    const answer = await fetch(new URL("/v1/runs/ticket-1/picture", desk.url));
    const { nodes } = (await answer.json()) as RunPicture;
    const drawn = await page
      .locator("[data-node]")
      .evaluateAll((all) => all.map((one) => [one.getAttribute("data-node"), one.getAttribute("data-status")]));
    expect(drawn).toEqual(nodes.map(({ id, state }) => [id, state]));
    await page.getByRole("button", { name: "Table" }).click();
    await page.getByRole("row", { name: /^think completed.*2/ }).waitFor();
    await page.getByRole("button", { name: "Picture" }).click();
    await expectAccessible(page);
    expectClean();
    await page.context().close();
  });

  test("the slider looks at earlier steps by keyboard, in the address, without changing the run", async () => {
    const { page, expectClean } = await openPage(desk.url, { path: "/runs/ticket-1" });
    await expect.poll(() => status(page, "ask")).toBe("waiting");
    const before = await desk.engine.find("ticket-1");
    const slider = page.getByRole("slider", { name: "Step" });
    await slider.focus();
    await slider.press("Home");
    expect(await slider.getAttribute("aria-valuetext")).toBe("step 0, input");
    await slider.press("ArrowRight");
    await page.getByText("viewing step 1 of 4").waitFor();
    expect(await slider.getAttribute("aria-valuetext")).toBe("step 1, triage");
    await expect.poll(() => status(page, "think")).toBe("idle");
    await page.getByText("State after step 1").waitFor();
    const diff = page.getByRole("region", { name: "State difference" });
    await diff.getByText('"refund"').waitFor();
    await page.reload();
    await page.getByText("viewing step 1 of 4").waitFor();
    await page.locator("body").press("ArrowRight");
    await page.locator("body").press("ArrowRight");
    await page.getByText("viewing step 3 of 4").waitFor();
    await diff.getByText('"about refunds"').waitFor();
    await page.getByRole("button", { name: /All 4/ }).click();
    await diff.getByText("intent").waitFor();
    await expectAccessible(page);
    await page.locator("body").press("l");
    await expect.poll(() => page.getByRole("button", { name: /Back to live/ }).count()).toBe(0);
    const { digest, entries } = before!;
    expect(await desk.engine.find("ticket-1")).toMatchObject({ status: "waiting", digest, entries });
    expectClean();
    await page.context().close();
  });

  test("an edited state is forked, and the fork is compared with its origin", async () => {
    const { page, expectClean } = await openPage(desk.url, { path: "/runs/ticket-1?checkpoint=1" });
    await page.getByRole("button", { name: "Edit state, then fork" }).click();
    const editor = page.getByLabel("State as JSON, by channel");
    const text = await editor.inputValue();
    await editor.fill(text.replace('"intent": "refund"', '"intent": "complaint"'));
    await page.getByText("changes intent").waitFor();
    await page.getByRole("button", { name: "Fork with these values" }).click();
    const comparison = page.getByRole("region", { name: "Comparison" });
    await comparison
      .getByRole("row", { name: /intent.*"refund".*"complaint"/ })
      .first()
      .waitFor();
    const forks = (await Array.fromAsync(desk.engine.list({ definition: "support" }))).filter(
      ({ id }) => id !== "ticket-1",
    );
    expect(forks).toHaveLength(1);
    expect(await desk.engine.get(support, forks[0]!.id).stateAt(1)).toMatchObject({ intent: "complaint" });
    expect(await desk.engine.get(support, "ticket-1").stateAt(1)).toMatchObject({ intent: "refund" });
    await expectAccessible(page);
    expectClean();
    await page.context().close();
  });

  test("Fork here starts a run from the step that is looked at", async () => {
    const { page, expectClean } = await openPage(desk.url, { path: "/runs/ticket-1?checkpoint=3" });
    await page.getByText("State after step 3").waitFor();
    const known = new Set((await Array.fromAsync(desk.engine.list())).map(({ id }) => id));
    await page.locator("body").press("Shift+F");
    await expect.poll(async () => (await Array.fromAsync(desk.engine.list())).length).toBe(known.size + 1);
    await page.getByRole("region", { name: "Comparison" }).waitFor();
    expectClean();
    await page.context().close();
  });

  test("a stream is shown with its offset, read again after a reload, and readable on request", async () => {
    const { page, expectClean } = await openPage(desk.url, { path: "/runs/ticket-1" });
    const log = page.getByRole("log");
    await log.getByText("I am sorry that the parcel arrived damaged.").first().waitFor();
    await page.getByText(/offset 6/).waitFor();
    expect(await log.getAttribute("aria-live")).toBe("off");
    await page.reload();
    await page.getByText(/offset 6/).waitFor();
    await page.getByRole("button", { name: "Read new" }).click();
    await page.locator(".vh[role=status]").getByText("arrived damaged").waitFor({ state: "attached" });
    expectClean();
    await page.context().close();
  });

  test("a node that a person answers elsewhere moves on in the picture", async () => {
    const run = await desk.engine.start(support, {}, { id: "ticket-2" });
    const { page, expectClean } = await openPage(desk.url, { path: "/runs/ticket-2" });
    await expect.poll(() => status(page, "ask")).toBe("waiting");
    await run.resolve("approve", { ok: true });
    await expect.poll(() => status(page, "reply")).toBe("completed");
    await page.getByText("Completed", { exact: true }).first().waitFor();
    expectClean();
    await page.context().close();
  });

  test("a flow is drawn with the progress of its spread", async () => {
    const run = await desk.engine.start(crawl, { pages: 12 }, { id: "crawl-1" });
    await run.result({ timeout: "20 s" });
    const { page, expectClean } = await openPage(desk.url, { path: "/runs/crawl-1" });
    await expect.poll(() => status(page, "fetched")).toBe("completed");
    expect(await node(page, "fetched").textContent()).toContain("12");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Flow", exact: true }).waitFor();
    expectClean();
    await page.context().close();
  });
});

/** Speaks, then ends only in the second engine. */
let mayEnd = false;
const narrate = workflow("narrate", { ports: { words: stream<string>() } }, async (ctx) =>
  ctx.run("speak", async (op) => {
    for (const word of mayEnd ? ["the second ", "text"] : ["a lost ", "beginning"]) op.emit("words", word);
    if (!mayEnd) await new Promise(() => {});
    return "said";
  }),
);

describe.skipIf(findBrowser() === undefined)("streams of repeated executions", () => {
  test("the text of an execution that ended without a result is discarded, and the page says so", async () => {
    const folder = mkdtempSync(join(tmpdir(), "reprise-stream-"));
    const store = `sqlite:${join(folder, "story.db")}`;
    const client = (await createClient({ store, definitions: [narrate], logger: false })) as unknown as Client;
    const server = createServer(client);
    const listener = await server.listen({ port: 0 });
    const first = await createEngine({ store, definitions: [narrate], logger: false });
    const run = await first.start(narrate, undefined, { id: "story-1" });
    const { page, expectClean } = await openPage(listener.url, { path: "/runs/story-1?view=stream" });
    const log = page.getByRole("log");
    await log.getByText("a lost beginning").waitFor();
    await first.close({ grace: "0 s" });
    mayEnd = true;
    const second = await createEngine({ store, definitions: [narrate], logger: false });
    await log.getByText("the second text").waitFor();
    await page.getByText(/Its text was discarded\. Execution 2 repeats it/).waitFor();
    expect(await log.getByText("a lost beginning").count()).toBe(0);
    await page.getByText(/^ended: completed, offset \d/).waitFor();
    expect(await second.get(narrate, run.id).result({ timeout: "20 s" })).toBe("said");
    expectClean();
    await page.context().close();
    await listener.close();
    await server.close();
    await second.close();
    await client.close();
    rmSync(folder, { recursive: true, force: true });
  });
});
