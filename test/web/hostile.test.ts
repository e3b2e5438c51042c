// Hostile payloads: inputs, outputs, errors, tags, ids, stream chunks and `show` values that try to become markup, script or a denial of
// service. Every page shows them as text: no script runs, the Content-Security-Policy is never asked to stop one, no error is logged, and
// the page still answers a click.

import type { Page } from "playwright-core";
import { promise, signal, stream, workflow } from "reprise";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findBrowser, openPage } from "./browser.ts";
import { openDesk, type Desk } from "./desk.ts";

const RUN_CODE = "globalThis.__pwned=(globalThis.__pwned||0)+1";

/** Texts that some renderer has taken for something else. */
const TEXTS: Readonly<Record<string, string>> = {
  html: `<script>${RUN_CODE}</script><img src=x onerror="${RUN_CODE}"><svg onload="${RUN_CODE}"></svg>`,
  attribute: `" onmouseover="${RUN_CODE}" autofocus onfocus="${RUN_CODE}" x="`,
  address: `javascript:${RUN_CODE}`,
  template: "{{constructor.constructor('" + RUN_CODE + "')()}} ${" + RUN_CODE + "}",
  style: "</style><style>*{display:none}</style><link rel=stylesheet href=//evil.example/x.css>",
  frame: '<iframe srcdoc="<script>parent.__pwned=1</script>"></iframe><base href=//evil.example/>',
  rtl: "invoice\u202Efdp.exe\u202C \u2066hidden\u2069 \u200B\u200D\uFEFF",
  emoji: "👩‍👩‍👧‍👦🏳️‍🌈e\u0301\u0301\u0301\u0301 Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L",
  control: "null \u0000 bell \u0007 escape \u001B[31mred\u001B[0m \u001B]8;;http://evil.example\u0007link",
  shell: "'; rm -rf ~; echo '$(reboot)`reboot`",
  long: "w".repeat(50_000),
  lines: "a\nb\r\nc\u2028d\u2029e",
  blank: " ",
};

function deep(levels: number): unknown {
  let value: unknown = "bottom";
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? { deeper: value } : [value];
  return value;
}

/** The store refuses it in a value; an error of code may still have it. */
const LONE = "lone \uD800 surrogate \uDC00";
const ERRORS: Readonly<Record<string, string>> = { ...TEXTS, surrogate: LONE };

const VALUES: Readonly<Record<string, unknown>> = {
  ...TEXTS,
  keys: Object.fromEntries(Object.values(TEXTS).map((text) => [text.slice(0, 400), text.slice(0, 400)])),
  // The store refuses a key __proto__; these it keeps.
  proto: { constructor: { prototype: { polluted: true } }, toString: 1, hasOwnProperty: "x", length: -1, then: "y" },
  deep: deep(90),
  wide: Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`k${index}`, index])),
  numbers: [1e308, -0, 1e-320, Number.MAX_SAFE_INTEGER],
  show: { title: TEXTS["html"], why: TEXTS["rtl"], href: TEXTS["address"], style: "display:none", onclick: RUN_CODE },
};

const echo = workflow(
  "echo",
  { ports: { decide: promise<unknown>(), out: stream<unknown>(), note: signal<string>() } },
  async (ctx, value: unknown) => {
    ctx.emit("out", value);
    await ctx.run("repeat", () => value);
    await ctx.promise("decide", { key: "k<b>", show: value });
    return value;
  },
);
const fails = workflow("fails", async (ctx, name: string) => {
  await ctx.run("throw", () => {
    const text = ERRORS[name]!;
    const error = new Error(text);
    error.name = text.slice(0, 80);
    throw error;
  });
});
/** 8 MB in and out. */
const large = workflow("large", async (_ctx, value: string) => value);

/** Runs before any script of the page. */
const CANARY = `addEventListener("securitypolicyviolation", (event) => {
  (globalThis.__violations ??= []).push(event.violatedDirective + " " + event.blockedURI);
});`;

describe.skipIf(findBrowser() === undefined)("hostile payloads", () => {
  let desk: Desk;
  const ids: string[] = [];
  beforeAll(async () => {
    desk = await openDesk({}, [echo, fails, large]);
    for (const [name, value] of Object.entries(VALUES)) {
      const run = await desk.engine.start(echo, value, { id: `echo-${name}`, tags: tagsOf(name) });
      ids.push(run.id);
    }
    for (const name of Object.keys(ERRORS)) {
      const run = await desk.engine.start(fails, name, { id: `fails-${name}` });
      await run.result({ timeout: "20 s" }).catch(() => {});
      ids.push(run.id);
    }
    // An id is a name: it may hold what HTML and addresses treat specially.
    for (const id of ['a"><img src=x onerror=alert(1)>', "a/../b?c=d#e", "%2e%2e%2f", "javascript:alert(1)", "ü 👩‍👧"]) {
      const run = await desk.engine.start(echo, id, { id }).catch(() => undefined);
      if (run !== undefined) ids.push(run.id);
    }
  }, 60_000);
  afterAll(async () => {
    await desk[Symbol.asyncDispose]();
  });

  /** A tag has no control characters. */
  const tagsOf = (name: string): string[] => {
    const tag = (TEXTS[name] ?? "").slice(0, 60).replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, "");
    return tag.trim() === "" ? [] : [tag];
  };

  /** Fails if a payload became anything but text. */
  async function expectHarmless(page: Page): Promise<void> {
    const seen = await page.evaluate<{
      pwned: unknown;
      violations: unknown;
      markup: number;
      styles: number;
      polluted: unknown;
    }>(
      `({ pwned: globalThis.__pwned ?? 0, violations: globalThis.__violations ?? [], polluted: ({}).polluted ?? null,
          markup: document.querySelectorAll('iframe, object, embed, base, main script, main img, main link, [href^="javascript:"], [onerror], [onload], [onmouseover]').length,
          styles: document.querySelectorAll("style").length })`,
    );
    expect(seen).toEqual({ pwned: 0, violations: [], polluted: null, markup: 0, styles: 0 });
  }

  async function open(path: string) {
    const opened = await openPage(desk.url, { path: "/favicon-none", javaScriptEnabled: true });
    await opened.page.addInitScript(CANARY);
    await opened.page.goto(new URL(path, desk.url).href);
    return opened;
  }

  test("the list of runs and the palette show them as text", async () => {
    const { page, expectClean } = await open("/?status=all");
    await page.locator("tr[data-run]").first().waitFor();
    await expectHarmless(page);
    await page.keyboard.press("Control+k");
    const field = page.getByRole("combobox", { name: "Run, page or command" });
    for (const text of [TEXTS["html"]!, TEXTS["control"]!.replaceAll("\0", ""), "echo-"])
      await field.fill(text.slice(0, 200));
    await page
      .getByRole("option", { name: /^echo-/ })
      .first()
      .waitFor();
    await page.keyboard.press("Escape");
    await expectHarmless(page);
    expectClean();
    await page.context().close();
  }, 60_000);

  test("the page of every run shows input, error, journal, step and stream as text", async () => {
    const { page, expectClean } = await open("/?status=all");
    for (const id of ids) {
      const views = id.startsWith("fails") ? [""] : /html|keys|control|deep/.test(id) ? ["", "?view=journal"] : [""];
      for (const view of id.startsWith("echo") ? [...views, "?view=stream"] : views) {
        // As a link of the dashboard does, without loading the page again.
        const path = JSON.stringify(`/runs/${encodeURIComponent(id)}${view}`);
        await page.evaluate(`history.pushState(null, "", ${path}); dispatchEvent(new PopStateEvent("popstate"))`);
        await page
          .locator("h1")
          .filter({ hasText: id.slice(0, 5) })
          .waitFor();
        if (view === "?view=stream") await page.getByText(/offset 1/).waitFor();
        await expectHarmless(page);
      }
    }
    expectClean();
    await page.context().close();
  }, 180_000);

  test("Approvals shows every promise as text, opens its panel and answers it", async () => {
    const { page, expectClean } = await open("/approvals?sort=run");
    const rows = page.locator("li.ap");
    await rows.first().waitFor();
    expect(await rows.count()).toBeGreaterThanOrEqual(Object.keys(VALUES).length);
    const count = await rows.count();
    for (let index = 0; index < count; index += 1) {
      await rows.nth(index).locator("button.what").click();
      await page.locator("aside.ap-panel").waitFor();
      await expectHarmless(page);
    }
    await page.getByLabel("Value of port decide").fill(JSON.stringify(TEXTS["html"]));
    await page.keyboard.press("Control+Enter");
    await page.getByRole("button", { name: "Send now" }).click();
    await page.getByRole("button", { name: "History" }).click();
    await page.getByRole("row").nth(1).waitFor();
    await expectHarmless(page);
    expectClean();
    await page.context().close();
  }, 120_000);

  test("Proof shows them as text", async () => {
    const { page, expectClean } = await open("/proof");
    for (const name of ["html", "keys", "proto", "deep"]) {
      await page.goto(new URL(`/proof?run=echo-${name}`, desk.url).href);
      await page.getByText("Hash chain intact").waitFor();
      await expectHarmless(page);
    }
    expectClean();
    await page.context().close();
  }, 60_000);

  test("a value of 8 MB does not block the page", async () => {
    const text = `${TEXTS["html"]}${"x".repeat(7_900_000)}`;
    const run = await desk.engine.start(large, text, { id: "large-1" });
    await run.result({ timeout: "20 s" });
    const { page, expectClean } = await open("/runs/large-1");
    await page.getByRole("heading", { name: "large-1" }).waitFor();
    await page.getByText("Completed", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Journal", exact: true }).click();
    await page.getByText("RunStarted").first().waitFor();
    await expectHarmless(page);
    expectClean();
    await page.context().close();
  }, 90_000);
});
