// Pictures of the dashboard on real runs, for comparison with the design and for the README:
//   node --conditions=reprise-source test/web/screenshots.ts [folder]
// dashboard.png is the picture of the README (docs/images). It writes every page in light and dark at 1280 px and at 390 px into the folder (default coverage/screenshots, which git ignores).

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { createClient } from "reprise";
import { createServer } from "reprise/server";
import { provideWeb } from "../../scripts/web.mjs";
import { createSituations, type Situations } from "../server/situations.ts";
import { SHOP } from "../server/situation-definitions.ts";
import { findBrowser, sharedBrowser } from "./browser.ts";

interface Picture {
  readonly name: string;
  readonly path: string;
  /** What must be on the page before the picture is taken. */
  readonly ready: string;
  readonly prepare?: (page: Page) => Promise<void>;
}

const PICTURES: readonly Picture[] = [
  {
    name: "runs",
    path: "/?started=24h",
    ready: "tr[data-run='order-1042'] .why code, tr[data-run='order-1042'] .why .cut",
    prepare: async (page) => {
      await page.locator("tr[data-run='order-1040'] input").check();
    },
  },
  { name: "run", path: "/runs/order-1042?step=Task(1)", ready: ".panel .attempts" },
  { name: "run-failed", path: "/runs/order-1040", ready: ".tl .gr[data-step]" },
  { name: "run-journal", path: "/runs/order-1042?view=journal", ready: ".journal .entry" },
  { name: "run-graph", path: "/runs/answer-7", ready: "main svg.gsvg" },
  { name: "run-flow", path: "/runs/thumbs-1", ready: "main svg.gsvg" },
  { name: "approvals", path: "/approvals", ready: "main .card" },
  { name: "queues", path: "/queues", ready: "main .card" },
  { name: "schedules", path: "/schedules", ready: "main .card" },
  { name: "proof", path: "/proof?run=invoice-9", ready: "main .card" },
];

const SHOTS = [
  { suffix: "1280-light", width: 1280, colorScheme: "light" },
  { suffix: "1280-dark", width: 1280, colorScheme: "dark" },
  { suffix: "390-light", width: 390, colorScheme: "light" },
  { suffix: "390-dark", width: 390, colorScheme: "dark" },
] as const;

/** Live data never stop arriving: the picture is taken when no request was under way for a moment. */
async function settle(page: Page, ready: string): Promise<void> {
  await page.locator(ready).first().waitFor();
  await page.locator(".live .dot:not(.off)").waitFor();
  await page.waitForLoadState("domcontentloaded");
  await page.evaluate("document.fonts.ready.then(() => true)");
}

async function take(url: string, folder: string, pictures: readonly Picture[]): Promise<void> {
  const browser = await sharedBrowser();
  for (const { suffix, width, colorScheme } of SHOTS) {
    const context = await browser.newContext({
      viewport: { width, height: 900 },
      colorScheme,
      reducedMotion: "reduce",
      deviceScaleFactor: 1,
    });
    for (const { name, path, ready, prepare } of pictures) {
      const page = await context.newPage();
      await page.goto(new URL(path, url).href);
      await settle(page, ready);
      await prepare?.(page);
      await page.locator(".why.muted").first().waitFor({ state: "detached" });
      await page.screenshot({ path: join(folder, `${name}-${suffix}.png`), fullPage: true });
      await page.close();
    }
    await context.close();
  }
}

/** The workers are called web instead of by the name of this machine. */
function nameWorkers(): void {
  const patch =
    "import os from 'node:os';import {syncBuiltinESMExports} from 'node:module';os.hostname=()=>'web';syncBuiltinESMExports()";
  process.env["NODE_OPTIONS"] = `--import=data:text/javascript,${encodeURIComponent(patch)}`;
}

/** The picture of the README: the first screen of a run that survived a crash. */
async function takeForReadme(url: string, folder: string): Promise<void> {
  const page = await (await sharedBrowser()).newPage({ viewport: { width: 1180, height: 640 }, colorScheme: "light" });
  await page.goto(new URL("/runs/order-1042?step=Task(1)", url).href);
  await settle(page, ".panel .attempts");
  await page.screenshot({ path: join(folder, "dashboard.png") });
  await page.close();
}

async function takeAll(folder: string, situations: Situations): Promise<void> {
  const server = createServer(situations.client);
  const listener = await server.listen({ port: 0 });
  const { url } = listener;
  await takeForReadme(url, folder);
  await take(url, folder, PICTURES);
  const page = await (await sharedBrowser()).newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(url);
  await settle(page, "tr[data-run='order-1042'] .why .cut");
  await listener.close();
  await server.close();
  await page.getByText("The server does not answer").waitFor();
  await page.screenshot({ path: join(folder, "runs-error-1280-light.png"), fullPage: true });
  await page.close();
}

if (findBrowser() === undefined) throw new Error("The pictures need Chromium on the PATH.");
provideWeb();
const folder = process.argv[2] ?? "coverage/screenshots";
mkdirSync(folder, { recursive: true });
const store = mkdtempSync(join(tmpdir(), "reprise-pictures-"));
try {
  nameWorkers();
  await using situations = await createSituations(store);
  await takeAll(folder, situations);
  await using empty = await createClient({
    store: `sqlite:${join(store, "empty.db")}`,
    definitions: [...SHOP],
    logger: false,
  });
  await using server = createServer(empty);
  const listener = await server.listen({ port: 0 });
  await take(listener.url, folder, [{ name: "runs-empty", path: "/", ready: ".start" }]);
  await listener.close();
} finally {
  await (await sharedBrowser()).close();
  rmSync(store, { recursive: true, force: true });
}
