// Two copies of the package in one process, as bundlers make them: definitions and errors of one work in the other.

import { execFile } from "node:child_process";
import { cp, symlink } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import * as first from "reprise";
import { createFolder, rejection } from "./world.ts";

/** Loads the sources once more, from another folder, so that every module of the package is evaluated again. */
async function loadCopy(): Promise<typeof first> {
  const sources = folder.file("src");
  await cp(new URL("../../src", import.meta.url), sources, { recursive: true });
  await symlink(new URL("../../node_modules", import.meta.url), folder.file("node_modules"));
  const copy = (await import(pathToFileURL(join(sources, "index.ts")).href)) as typeof first;
  expect(copy.workflow).not.toBe(first.workflow);
  expect(copy.FatalError).not.toBe(first.FatalError);
  return copy;
}

const folder = createFolder();
afterAll(() => folder[Symbol.dispose]());
const second = await loadCopy();

test("an engine runs the task, workflow, graph and flow of another copy of the package", async () => {
  const slow = second.queue("slow", { concurrency: 1 });
  const double = second.task("double", { queue: slow }, (_ctx, n: number) => n * 2);
  const count = second
    .graph("count", {
      state: { n: second.last(0), log: second.append<string>() },
      ports: { go: second.promise<number>() },
    })
    .node("add", async (ctx, { n }) => ({ n: n + (await ctx.task(double, 1)), log: ["add"] }))
    .node("wait", async (ctx) => second.goto(second.END, { n: await ctx.promise("go"), log: ["wait"] }))
    .edge(second.START, "add")
    .edge("add", "wait", ({ n }) => n >= 4)
    .edge("add", "add");
  const sums = second
    .flow("sums", { input: second.typed<readonly number[]>() })
    .spread("doubled", ["input"], { concurrency: 2 }, ({ input }) => input, double)
    .inline("sum", ["doubled"], ({ doubled }) => doubled.reduce((a, b) => a + b, 0))
    .output(["sum"], ({ sum }) => sum);
  const whole = second.workflow("whole", { ports: { name: second.signal<string>() } }, async (ctx, id: string) => {
    const child = ctx.child(count, {}, { id: `${id}-count` });
    const sum = await ctx.child(sums, [1, 2, 3]);
    return { name: await ctx.receive("name"), sum, n: (await child).n, four: await ctx.task(double, 2) };
  });
  await using engine = await first.createEngine({
    store: "sqlite::memory:",
    definitions: [whole, count, sums, double],
  });
  const run = await engine.start(whole, "w", { id: "w" });
  await run.signal("name", "Ann");
  await engine.get(count, "w-count").resolve("go", 7, { beforeStart: true });
  expect(await run.result()).toEqual({ name: "Ann", sum: 12, n: 7, four: 4 });
  expect(await run.replay()).toMatchObject({ status: "same" });
  const graphRun = engine.get(count, "w-count");
  expect(await graphRun.stateAt(2)).toEqual({ n: 4, log: ["add", "add"] });
  expect(await graphRun.replay()).toMatchObject({ status: "same" });
});

test("START, END and definitions of two copies can be mixed in one graph and in one flow", async () => {
  const half = second.task("half", (_ctx, n: number) => n / 2);
  const mixed = second
    .graph("mixed", { state: { n: first.max(0) } })
    .node("a", async () => first.goto(first.END, { n: 1 }))
    .node("b", async () => ({ n: 2 }))
    .edge(first.START, ["a", "b"])
    .edge("b", first.END);
  const pipeline = first
    .flow("pipeline", { input: first.typed<number>() })
    .call("half", ["input"], { timeout: "1 minute" }, half, ({ input }) => input)
    .call("graph", ["half"], mixed, ({ half }) => ({ n: half }))
    .output(["graph"], ({ graph }) => graph.n);
  await using engine = await first.createEngine({ store: "sqlite::memory:", definitions: [pipeline, mixed, half] });
  const run = await engine.start(pipeline, 20);
  expect(await run.result()).toBe(10);
});

test("an error of one copy is an instance of the same class, and of its base class, in the other", () => {
  const { RepriseError, FatalError, CancelledError, RetryLaterError } = first;
  const fatal = new second.FatalError("no");
  expect(fatal).toBeInstanceOf(FatalError);
  expect(fatal).toBeInstanceOf(RepriseError);
  expect([fatal instanceof CancelledError, fatal instanceof RetryLaterError]).toEqual([false, false]);
  expect(new second.CancelledError()).toBeInstanceOf(CancelledError);
  expect(new second.RetryLaterError("1 s")).toBeInstanceOf(RetryLaterError);
  expect(new second.RepriseError("USAGE", "no")).not.toBeInstanceOf(FatalError);
  expect(new Error("no")).not.toBeInstanceOf(RepriseError);
});

test("a subclass in user code is recognized by its prototype only", () => {
  class NoStock extends first.FatalError {}
  expect(new NoStock("no")).toBeInstanceOf(second.FatalError);
  expect(new NoStock("no")).toBeInstanceOf(NoStock);
  expect(new first.FatalError("no")).not.toBeInstanceOf(NoStock);
  expect(new second.FatalError("no")).not.toBeInstanceOf(NoStock);
});

test("an engine does not retry a FatalError of another copy", async () => {
  let attempts = 0;
  const fails = second.workflow("fails", async (ctx) =>
    ctx.run(
      "try",
      () => {
        attempts += 1;
        throw new second.FatalError("no stock");
      },
      { retry: { maxAttempts: 5, baseDelay: 1 } },
    ),
  );
  await using engine = await first.createEngine({ store: "sqlite::memory:", definitions: [fails] });
  const error = await rejection((await engine.start(fails)).result());
  expect(error).toMatchObject({ code: "RUN_FAILED", cause: { code: "FATAL" } });
  expect(attempts).toBe(1);
});

// In a separate process: other tests may have left an engine open in this one.
test.each(["0,1,2", "0,2,1", "1,0,2", "1,2,0", "2,0,1", "2,1,0"])(
  "guards of both copies restore every function, closed in the order %s",
  async (order) => {
    const program = `
    import * as first from "reprise";
    const second = await import(${JSON.stringify(pathToFileURL(folder.file("src/index.ts")).href)});
    const names = ["Date", "setTimeout", "setInterval", "setImmediate", "fetch", "WeakRef", "FinalizationRegistry"];
    const all = () => [...names.map((name) => globalThis[name]), Date.now, Math.random, process.hrtime, process.hrtime.bigint,
      performance.now, AbortSignal.timeout, crypto.randomUUID];
    const before = all();
    const isUntouched = () => all().every((one, n) => one === before[n]);
    const seen = [];
    for (let round = 0; round < 2; round += 1) {
      const engines = [];
      for (const { createEngine, workflow } of [first, second, first])
        engines.push(await createEngine({
          store: "sqlite::memory:",
          definitions: [workflow("asks", async () => Date.now())],
          logger: { info() {}, warn() {}, error() {} },
        }));
      for (const engine of [${order}].map((index) => engines[index])) {
        const run = await engine.start("asks");
        const error = await run.result().catch((error) => error);
        seen.push(error.details.code, isUntouched());
        await engine.close();
      }
      seen.push(isUntouched());
    }
    process.stdout.write(seen.join());`;
    const { stdout } = await promisify(execFile)(process.execPath, [
      "--conditions=reprise-source",
      "--input-type=module",
      "--eval",
      program,
    ]);
    const round = ["NONDETERMINISM", false, "NONDETERMINISM", false, "NONDETERMINISM", false, true];
    expect(stdout).toBe([...round, ...round].join());
  },
);
