// The rig of the browser tests: one Chromium, and real servers over real stores with real worker processes.
//
// browser.B1. A page that logs an error, breaks the Content-Security-Policy or asks another site fails its test (`expectClean`).

import { fork, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { createClient, type Client } from "reprise";
import { createServer, type ServerOptions } from "reprise/server";
import { expect } from "vitest";
import { isCi, onPath } from "../../scripts/servers.mjs";
import { shop } from "./shop.ts";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The program, or undefined on a machine without one; in CI that is an error. */
export function findBrowser(): string | undefined {
  const found = onPath("chromium") ?? onPath("chromium-browser") ?? onPath("google-chrome");
  if (found === undefined && isCi()) throw new Error("The browser tests need Chromium on the PATH.");
  return found;
}

let browser: Promise<Browser> | undefined;

/** One for all files of this process. It ends with the process. */
export function sharedBrowser(): Promise<Browser> {
  browser ??= chromium.launch({ executablePath: findBrowser()!, args: FLAGS });
  return browser;
}

export interface OpenPageOptions extends BrowserContextOptions {
  readonly path?: string;
  readonly width?: number;
}

export interface TestPage {
  readonly page: Page;
  /** What went wrong so far: errors, refused content, requests to elsewhere. */
  readonly problems: readonly string[];
  /** Fails if anything went wrong (browser.B1). `allowed`: messages of outages that the test causes. */
  expectClean(allowed?: RegExp): void;
}

/** Opens a page of its own, without cookies of others. */
export async function openPage(url: string, options: OpenPageOptions = {}): Promise<TestPage> {
  const { path = "/", width = 1280, ...context } = options;
  const opened = await (
    await sharedBrowser()
  ).newContext({
    viewport: { width, height: 900 },
    reducedMotion: "reduce",
    ...context,
  });
  const page = await opened.newPage();
  // Shorter than the limit of a test, so that the failure names what was awaited.
  page.setDefaultTimeout(15_000);
  const problems: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") problems.push(message.text());
  });
  // An error that no script threw, such as a failed request, has an empty stack.
  page.on("pageerror", (error) => problems.push(`${error.name}: ${error.message}\n${error.stack ?? ""}`));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) problems.push(`request to ${request.url()}`);
  });
  await page.goto(new URL(path, url).href);
  return {
    page,
    problems,
    expectClean: (allowed) => {
      expect(problems.filter((problem) => allowed?.test(problem) !== true)).toEqual([]);
    },
  };
}

export interface TestSite extends AsyncDisposable {
  readonly url: string;
  readonly client: Client;
  readonly store: string;
  /** Where the worker processes run: files in it decide how steps behave (shop.ts). */
  readonly folder: string;
  startWorker(): Promise<ChildProcess>;
  /** Makes a file in the folder. */
  touch(name: string): void;
  /** Ends the server and its connections; the store and the workers continue. */
  stopServer(): Promise<void>;
  /** Starts it again at the same address. */
  startServer(): Promise<void>;
}

const workerPath = fileURLToPath(new URL("./shop-worker.ts", import.meta.url));

export interface SiteOptions {
  readonly workers?: number;
  /** In ms. */
  readonly lease?: number;
  readonly server?: ServerOptions;
}

/** A store, a server in this process, and worker processes that execute the runs. */
export async function openSite({
  workers = 1,
  lease = 1000,
  server: options = {},
}: SiteOptions = {}): Promise<TestSite> {
  const folder = mkdtempSync(join(tmpdir(), "reprise-web-"));
  const store = `sqlite:${join(folder, "shop.db")}`;
  const client = (await createClient({ store, definitions: shop, logger: false })) as unknown as Client;
  const processes = new Set<ChildProcess>();
  const serve = async (port: number) => {
    const server = createServer(client, options);
    return { server, listener: await server.listen({ port }) };
  };
  let serving = await serve(0);
  const { url } = serving.listener;
  const startWorker = async (): Promise<ChildProcess> => {
    const child = fork(workerPath, [folder, store, String(lease)], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    processes.add(child);
    child.once("exit", () => processes.delete(child));
    await new Promise<void>((resolve, reject) => {
      child.once("message", () => resolve());
      child.once("exit", (code) => reject(new Error(`A worker ended with code ${code}.`)));
    });
    return child;
  };
  await Promise.all(Array.from({ length: workers }, startWorker));
  const stopServer = async (): Promise<void> => {
    await serving.listener.close();
    await serving.server.close();
  };
  return {
    url,
    client,
    store,
    folder,
    startWorker,
    touch: (name) => writeFileSync(join(folder, name), ""),
    stopServer,
    startServer: async () => {
      serving = await serve(Number(new URL(url).port));
    },
    [Symbol.asyncDispose]: async () => {
      await stopServer();
      await client.close();
      const ended = [...processes].map((child) => new Promise((resolve) => child.once("exit", resolve)));
      for (const child of processes) child.kill("SIGKILL");
      await Promise.all(ended);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
