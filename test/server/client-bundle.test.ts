// reprise/client in a browser: it bundles without a module of Node, and runs in Chromium against a real server.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";
import { createEngine, promise, stream, workflow } from "reprise";
import { createServer } from "reprise/server";
import { build } from "vite";
import { beforeAll, expect, test } from "vitest";

interface Chunk {
  readonly type: string;
  readonly code: string;
  readonly moduleIds: readonly string[];
  readonly imports: readonly string[];
}

let bundle: Chunk;

beforeAll(async () => {
  const output = await build({
    configFile: false,
    logLevel: "silent",
    root: import.meta.dirname,
    publicDir: false,
    resolve: { conditions: ["reprise-source", "browser"] },
    build: {
      write: false,
      target: "es2023",
      lib: { entry: join(import.meta.dirname, "../../src/http-client/index.ts"), formats: ["es"], fileName: "client" },
    },
  });
  [bundle] = (output as unknown as readonly { readonly output: readonly Chunk[] }[])[0]!.output as [Chunk];
});

test("the client bundles for browsers without a module of Node and without the engine", () => {
  expect(bundle.imports).toEqual([]);
  expect(bundle.code).not.toMatch(/["']node:|__vite-browser-external|createRequire/);
  const rooms = new Set(bundle.moduleIds.map((id) => /\/src\/([\w-]+)\//.exec(id)?.[1]));
  expect([...rooms].toSorted()).toEqual(["base", "http-client"]);
  const bytes = gzipSync(bundle.code).length;
  // For people who read the log of CI; the bound keeps out an accident such as the whole engine.
  console.log(`reprise/client: ${bytes} bytes gzip, ${bundle.code.length} minified`);
  expect(bytes).toBeLessThan(40_000);
});

/** Text: the tool that runs this file would change its imports. */
const PAGE = `async (module) => {
  const { createHttpClient, RepriseError } = await import(module);
  const client = createHttpClient({ url: location.origin });
  const run = await client.start("tale", "Ada");
  const words = [];
  for await (const { offset, value } of run.stream("words")) {
    words.push(offset + " " + (value instanceof Date ? value.toISOString() : [...value].join()));
    if (offset === 2) break;
  }
  await run.resolve("ok", 12n);
  const { name, answer } = await run.result();
  const other = await client.start("tale", "Bob");
  await other.resolve("ok", -1n);
  const error = await other.result().catch((one) => one);
  return {
    words,
    result: [name, typeof answer, String(answer)],
    error: [error instanceof RepriseError, error.code, error.cause instanceof RangeError, error.cause.message],
  };
}`;

const CHROMIUM = process.env["REPRISE_CHROMIUM"] ?? "/usr/bin/chromium";

const tale = workflow(
  "tale",
  { ports: { words: stream<unknown>(), ok: promise<bigint>() } },
  async (ctx, name: string) => {
    ctx.emit("words", new Date(0));
    ctx.emit("words", new Uint8Array([1, 2, 255]));
    const answer = await ctx.promise("ok");
    if (answer < 0n) throw new RangeError("below zero");
    return { name, answer };
  },
);

// skipped: a machine without Chromium; CI has one.
test.skipIf(!existsSync(CHROMIUM))(
  "a page starts a run, follows its stream and gets its result and its error",
  async () => {
    await using engine = await createEngine({ store: "sqlite::memory:", definitions: [tale], logger: false });
    const server = createServer(engine);
    const listening = await server.listen({ port: 0 });
    const browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
    });
    try {
      const context = await browser.newContext({ bypassCSP: true });
      const page = await context.newPage();
      await page.goto(`${listening.url}/openapi.json`);
      const source = `data:text/javascript;base64,${Buffer.from(bundle.code).toString("base64")}`;
      const seen = await page.evaluate(`(${PAGE})(${JSON.stringify(source)})`);
      expect(seen).toEqual({
        words: ["1 1970-01-01T00:00:00.000Z", "2 1,2,255"],
        result: ["Ada", "bigint", "12"],
        error: [true, "RUN_FAILED", true, "below zero"],
      });
    } finally {
      await browser.close();
      await listening.close();
    }
  },
);
