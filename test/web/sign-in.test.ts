// Signing in and approval links in a real browser: the one-time address, a token, signing out, and a page without scripts.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEngine, promise, workflow, type Engine } from "reprise";
import { createServer, tokenHash, type Server } from "reprise/server";
import type { Listener } from "../../src/http/index.ts";
import { expectAccessible } from "./axe.ts";
import { findBrowser, openPage } from "./browser.ts";

const TOKEN = "rp_00000000_0000000000000000000000000000000000000000000";
const refund = workflow("refund", { ports: { decision: promise<{ ok: boolean }>() } }, async (ctx, show: unknown) =>
  ctx.promise("decision", { show, timeout: "2 hours" }),
);

// skipped: a machine without Chromium; CI has it
describe.skipIf(findBrowser() === undefined)("a browser", () => {
  let engine: Engine<typeof refund>;
  let server: Server;
  let listener: Listener;

  beforeAll(async () => {
    engine = await createEngine({ store: "sqlite::memory:", definitions: [refund], logger: false });
    server = createServer(engine, {
      auth: { local: "session", tokens: [{ name: "ann", hash: tokenHash(TOKEN), role: "reader" }] },
    });
    listener = await server.listen({ port: 0 });
  });

  afterAll(async () => {
    await listener.close();
    await engine.close();
  });

  test("is signed in by the one-time address once, and the address keeps no code", async () => {
    const address = server.signInAddress();
    const { page } = await openPage(listener.url, { path: address });
    await page.waitForURL(`${listener.url}/`);
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict", path: "/" });
    expect(await page.evaluate("document.cookie")).toBe("");
    const status = (): Promise<number> => page.evaluate<number>("fetch('/v1/site').then(({ status }) => status)");
    expect(await status()).toBe(200);
    const again = await openPage(listener.url, { path: address });
    await again.page.getByText("was used or has expired").waitFor();
    expect(again.page.url()).toBe(`${listener.url}/login`);
    await page.evaluate(
      "fetch('/v1/session', { method: 'DELETE', headers: { 'x-reprise': '1' } }).then(() => undefined)",
    );
    expect(await status()).toBe(401);
  });

  test("that is not signed in, or no longer, is asked to sign in, and not told that the server is away", async () => {
    const { page } = await openPage(listener.url, { path: "/" });
    await page.getByRole("heading", { name: "No access yet" }).waitFor();
    await page.getByText("Signed out").waitFor();
    expect(await page.getByText("does not answer").count()).toBe(0);
    await expectAccessible(page);
    await page.getByRole("link", { name: "Sign in" }).click();
    await page.getByLabel("Token").fill(TOKEN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
    await page.context().clearCookies();
    await page.reload();
    await page.getByRole("heading", { name: "No access yet" }).waitFor();
    await page.context().close();
  });

  test("is signed in by a pasted token, and says why a wrong one is refused", async () => {
    const { page } = await openPage(listener.url, { path: "/login" });
    await expectAccessible(page);
    await page.getByLabel("Token").fill("rp_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("The token is unknown, expired or revoked.").waitFor();
    await page.getByLabel("Token").fill(TOKEN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(`${listener.url}/`);
    expect(
      await page.evaluate("fetch('/v1/site').then((response) => response.json()).then(({ caller }) => caller)"),
    ).toMatchObject({
      name: "ann",
      role: "reader",
    });
  });

  test.each([
    ["light", 1280],
    ["dark", 390],
  ] as const)("answers an approval link without scripts (%s, %d px)", async (colorScheme, width) => {
    const id = `ticket-${width}`;
    const run = await engine.start(refund, { what: "<b>Refund</b> 72.00 EUR", to: "card" } as never, { id });
    await expect.poll(async () => (await run.info()).status).toBe("waiting");
    const { url } = await server.approvalLink(id, "decision", { name: "finance" });
    const { page, expectClean } = await openPage(listener.url, {
      path: url,
      colorScheme,
      width,
      javaScriptEnabled: false,
    });
    await page.getByText("<b>Refund</b> 72.00 EUR").waitFor();
    expect(await page.locator("b").count()).toBe(0);
    if (width === 390) await expectAccessible((await openPage(listener.url, { path: url })).page);
    await page.getByLabel("Reason").fill("Policy R-4");
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText("Your answer was recorded").waitFor();
    expect(await run.result()).toEqual({ ok: true, by: "finance", reason: "Policy R-4" });
    expectClean();
    await page.goto(url);
    await page.getByText("Approved by finance").waitFor();
    if (width === 1280) await expectAccessible((await openPage(listener.url, { path: url })).page);
  });

  test("a page of another origin neither reads nor changes anything with the session", async () => {
    const { page } = await openPage(listener.url, { path: server.signInAddress() });
    await page.waitForURL(`${listener.url}/`);
    // Another port of the same name: the same site for `SameSite`, another origin for everything else.
    await using foreign = createServer(engine);
    const other = await foreign.listen({ port: 0 });
    await page.goto(`${other.url}/login`);
    const outcomes = await page.evaluate(async (target) => {
      const tried = async (path: string, init: RequestInit): Promise<string> => {
        try {
          const response = await fetch(target + path, init);
          return `${response.type} ${response.status}`;
        } catch {
          return "refused";
        }
      };
      return [
        await tried("/v1/runs", { credentials: "include" }),
        await tried("/v1/runs", { credentials: "include", mode: "no-cors" }),
        await tried("/v1/tokens", { method: "POST", credentials: "include", mode: "no-cors", body: "{}" }),
      ];
    }, listener.url);
    for (const outcome of outcomes) expect(["refused", "opaque 0"]).toContain(outcome);
    await other.close();
  });
});
