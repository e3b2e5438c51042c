// Fake timers of test frameworks: the engine keeps real time, whoever installs them and when.

import { execFile } from "node:child_process";
import { mock } from "node:test";
import { promisify } from "node:util";
import { afterEach, expect, test, vi } from "vitest";
import { createEngine, task, workflow, type RepriseError } from "reprise";
import { rejection } from "./world.ts";

afterEach(() => {
  vi.useRealTimers();
  mock.timers.reset();
});

let attempts = 0;
const flaky = task("flaky", { retry: { maxAttempts: 2, baseDelay: 1 } }, () => {
  attempts += 1;
  if (attempts === 1) throw new Error("not yet");
  return "done";
});
const waits = workflow("waits", async (ctx) => {
  await ctx.run("first", () => 1);
  await ctx.sleep(5);
  return ctx.task(flaky);
});
const asksTheClock = workflow("asks the clock", async () => performance.now() > Date.now());

const silent = { info: () => {}, warn: () => {}, error: () => {} };

async function expectRealTime(): Promise<void> {
  attempts = 0;
  const definitions = [waits, flaky, asksTheClock];
  await using engine = await createEngine({ store: "sqlite::memory:", definitions, logger: silent });
  expect(await (await engine.start(waits)).result()).toBe("done");
  const error = (await rejection((await engine.start(asksTheClock)).result())) as RepriseError;
  expect(error.message).toContain("`performance.now()` is not deterministic");
}

/** A test of another file may have left an engine open in this process; its guard is then below the fake timers. */
const isGuarded = (): boolean => !/\[native code\]/.test(Function.prototype.toString.call(Date.now));
const GUARDED = "the guard of an engine that another test left open is active";

test("an engine created after vi.useFakeTimers() keeps real time and its guard", async ({ skip }) => {
  skip(isGuarded(), GUARDED);
  vi.useFakeTimers({ now: 0 });
  await expectRealTime();
  expect(Date.now()).toBe(0);
});

test("an engine created before vi.useFakeTimers() keeps real time", async () => {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [waits, flaky] });
  vi.useFakeTimers({ now: 0 });
  attempts = 0;
  expect(await (await engine.start(waits)).result()).toBe("done");
});

test("an engine created after the mock timers of node:test keeps real time and its guard", async () => {
  mock.timers.enable({ apis: ["Date", "setImmediate", "setInterval", "setTimeout"], now: 0 });
  await expectRealTime();
  expect(Date.now()).toBe(0);
});

// In separate processes: other tests may have left an engine open in this one.
async function outputOf(program: string): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--conditions=reprise-source",
    "--input-type=module",
    "--eval",
    program,
  ]);
  return stdout;
}

test("fake timers and engines can end in any order, and the functions are what they were", async () => {
  const stdout = await outputOf(`
    import { mock } from "node:test";
    import { createEngine, workflow } from "reprise";
    const definitions = [workflow("empty", async () => 1)];
    const open = () => createEngine({ store: "sqlite::memory:", definitions });
    const all = () => [Date, Date.now, setTimeout, setInterval, setImmediate, performance.now, process.hrtime, fetch];
    const before = all();
    const isUntouched = () => all().every((one, n) => one === before[n]);
    const seen = [];
    {
      mock.timers.enable();
      const engine = await open();
      mock.timers.reset();
      await engine.close();
      seen.push(isUntouched());
    }
    {
      mock.timers.enable();
      const engine = await open();
      await engine.close();
      mock.timers.reset();
      seen.push(isUntouched());
    }
    {
      const engine = await open();
      mock.timers.enable();
      await engine.close();
      mock.timers.reset();
      // The mock put back what it found. The next engine removes it.
      await (await open()).close();
      seen.push(isUntouched());
    }
    process.stdout.write(seen.join());`);
  expect(stdout).toBe("true,true,true");
});

test("a package that was loaded after fake timers were installed refuses to create an engine, and says why", async () => {
  const stdout = await outputOf(`
    import { mock } from "node:test";
    mock.timers.enable();
    const { createClient, createEngine, workflow } = await import("reprise");
    const { createTestEngine } = await import("reprise/testing");
    const definitions = [workflow("empty", async () => 1)];
    for (const create of [createEngine, createClient, createTestEngine])
      console.log(await create({ store: "sqlite::memory:", definitions }).then(String, (error) => error.code + " " + error.message));`);
  expect(stdout.trim().split("\n")).toEqual(
    ["createEngine", "createClient", "createTestEngine"].map(
      (name) =>
        `BAD_OPTIONS ${name}: fake timers were installed before "reprise" was loaded, so it has no real clock. Import "reprise" first, then install them; or, for virtual time, use createTestEngine and engine.clock without them.`,
    ),
  );
});
