// The determinism guard names the location of a call that is not deterministic, and its replacement.

import { execFile } from "node:child_process";
import { randomBytes, randomInt, randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { promise, task, workflow, type RepriseError } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createFolder, rejection } from "./world.ts";

const SOURCES: readonly (readonly [called: string, instead: string, call: () => unknown])[] = [
  ["Date.now()", "ctx.now()", () => Date.now()],
  ["new Date()", "ctx.now()", () => new Date()],
  ["Date()", "ctx.now()", () => Date()],
  ["performance.now()", "ctx.now()", () => performance.now()],
  ["process.hrtime()", "ctx.now()", () => process.hrtime()],
  ["process.hrtime.bigint()", "ctx.now()", () => process.hrtime.bigint()],
  ["Math.random()", "ctx.random()", () => Math.random()],
  ["crypto.randomUUID()", "ctx.uuid()", () => crypto.randomUUID()],
  ["crypto.getRandomValues()", "ctx.random()", () => crypto.getRandomValues(new Uint8Array(1))],
  ["randomUUID()", "ctx.uuid()", () => randomUUID()],
  ["randomBytes()", "ctx.random()", () => randomBytes(1)],
  ["randomInt()", "ctx.random()", () => randomInt(9)],
  ["setTimeout()", "ctx.sleep()", () => setTimeout(() => {}, 0)],
  ["setInterval()", "ctx.sleep()", () => setInterval(() => {}, 1e6).unref()],
  ["setImmediate()", "ctx.sleep()", () => setImmediate(() => {})],
  ["setTimeout()", "ctx.sleep()", () => wait(0)],
  ["AbortSignal.timeout()", "ctx.sleep()", () => AbortSignal.timeout(1)],
  ["fetch()", "ctx.run()", () => fetch("data:,x")],
  ["new WeakRef()", "a plain reference", () => new WeakRef({})],
  ["new FinalizationRegistry()", "a plain reference", () => new FinalizationRegistry(() => {})],
];

describe("the guard", () => {
  test.each(SOURCES)("stops a run whose code calls %s, and names %s", async (called, instead, call) => {
    const calls = workflow("calls", async (ctx) => {
      await ctx.run("first", () => 1);
      await ctx.sleep(0);
      return call() === undefined;
    });
    await using engine = await createTestEngine({ definitions: [calls] });
    const run = await engine.start(calls);
    const result = rejection(run.result());
    await engine.clock.advance(1);
    const error = (await result) as RepriseError;
    expect(error.code).toBe("RUN_BLOCKED");
    expect(error.message).toContain(`\`${called}\` is not deterministic in workflow code (test/engine/guard.test.ts:`);
    expect(error.message.replaceAll("`", "")).toContain(`Use ${instead}`);
    expect(error.message).toContain(`To continue, run \`reprise resume ${run.id}\`.`);
    expect(error.details).toMatchObject({ code: "NONDETERMINISM", actual: called });
    expect((await run.info()).status).toBe("blocked");
  });

  test.each(SOURCES)("lets steps, tasks and code outside workflows call %s", async (_called, _instead, call) => {
    const cleanUp = (made: unknown): void => clearInterval(made as NodeJS.Timeout);
    const inTask = task("in a task", () => cleanUp(call()));
    const calls = workflow("calls", async (ctx) => {
      await ctx.run("in a step", () => cleanUp(call()));
      await ctx.run("later in a step", async () => {
        await Promise.resolve();
        cleanUp(call());
      });
      await ctx.task(inTask);
      return "done";
    });
    await using engine = await createTestEngine({ definitions: [calls, inTask] });
    cleanUp(call());
    expect(await (await engine.start(calls)).result()).toBe("done");
  });

  test("names the line of the call, and the fixed code completes the run", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    const ports = { go: promise<string>() };
    const wrong = workflow("stamp", { ports }, async (ctx) => {
      const word = await ctx.promise("go");
      return `${word} ${new Date().getFullYear() > 0}`; // line 78
    });
    {
      await using engine = await createTestEngine({ definitions: [wrong], store });
      const run = await engine.start(wrong, undefined, { id: "run-1" });
      await run.resolve("go", "done");
      const error = (await rejection(run.result())) as RepriseError;
      expect(error.details?.["where"]).toBe("test/engine/guard.test.ts:78");
      expect(await run.verify()).toMatchObject({ status: "mismatch", where: "test/engine/guard.test.ts:78" });
    }
    const right = workflow("stamp", { ports }, async (ctx) => {
      const word = await ctx.promise("go");
      return `${word} ${ctx.now().getFullYear() > 0}`;
    });
    await using engine = await createTestEngine({ definitions: [right], store });
    const run = engine.get(right, "run-1");
    await run.resume();
    expect(await run.result()).toBe("done true");
    expect(await run.verify()).toMatchObject({ status: "same" });
  });

  test("in mode warn, logs one warning per location, and the run continues", async () => {
    const warnings: string[] = [];
    const logger = { info: () => {}, warn: (message: string) => void warnings.push(message), error: () => {} };
    const loops = workflow("loops", async (ctx) => {
      for (let n = 0; n < 3; n += 1) await ctx.run(`step ${n}`, () => n);
      return [1, 2, 3].map(() => typeof Math.random()).join();
    });
    await using engine = await createTestEngine({ definitions: [loops], guard: "warn", logger });
    expect(await (await engine.start(loops)).result()).toBe("number,number,number");
    expect(await (await engine.start(loops)).result()).toBe("number,number,number");
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/`Math\.random\(\)` .*\(test\/engine\/guard\.test\.ts:\d+\).*`ctx\.random\(\)`\.$/);
  });

  test("is off for one engine while it is on for another", async () => {
    const calls = workflow("calls", async () => typeof Date.now());
    await using strict = await createTestEngine({ definitions: [calls] });
    await using free = await createTestEngine({ definitions: [calls], guard: "off" });
    expect(await (await free.start(calls)).result()).toBe("number");
    expect((await rejection((await strict.start(calls)).result())).code).toBe("RUN_BLOCKED");
  });

  // In a separate process: other tests may have left an engine open in this one.
  test("patches functions with the first guard and restores them with the last", async () => {
    const program = `
      import { createTestEngine } from "reprise/testing";
      import { workflow } from "reprise";
      const calls = workflow("calls", async () => 1);
      const names = ["Date", "setTimeout", "fetch", "WeakRef"];
      const before = [...names.map((name) => globalThis[name]), Date.now, Math.random, process.hrtime];
      const isUntouched = () =>
        [...names.map((name) => globalThis[name]), Date.now, Math.random, process.hrtime].every((one, n) => one === before[n]);
      const seen = [isUntouched()];
      const off = await createTestEngine({ definitions: [calls], guard: "off" });
      seen.push(isUntouched());
      const one = await createTestEngine({ definitions: [calls] });
      const two = await createTestEngine({ definitions: [calls], guard: "warn" });
      await one.crash();
      seen.push(isUntouched());
      await one.close();
      seen.push(isUntouched());
      await two.close();
      seen.push(isUntouched());
      await off.close();
      process.stdout.write(seen.join());`;
    const { stdout } = await promisify(execFile)(process.execPath, [
      "--conditions=reprise-source",
      "--input-type=module",
      "--eval",
      program,
    ]);
    expect(stdout).toBe("true,true,false,false,true");
  });

  test("preserves Date, promisify and instanceof", async () => {
    const calls = workflow("calls", async () => 1);
    const old = new Date(5);
    await using engine = await createTestEngine({ definitions: [calls] });
    class MyDate extends Date {}
    expect(old instanceof Date && new Date(1) instanceof Date && new MyDate(7) instanceof MyDate).toBe(true);
    expect([new Date(2020, 1, 2).getMonth(), new Date("2020-01-01").getTime(), Date.UTC(2020)]).toEqual([
      1, 1577836800000, 1577836800000,
    ]);
    expect(new MyDate(7).getTime()).toBe(7);
    expect(typeof Date()).toBe("string");
    expect(await promisify(setTimeout)(0, "value")).toBe("value");
    expect(new WeakRef(engine).deref()).toBe(engine);
  });

  test("ignores the engine's calls for ctx.log, ctx.now, ctx.random and ctx.uuid", async () => {
    const lines: string[] = [];
    const logger = {
      info: (message: string) => void lines.push(`${Date.now() > 0} ${message}`),
      warn: () => {},
      error: () => {},
    };
    const logs = workflow("logs", async (ctx) => {
      ctx.log.info("hello");
      await ctx.sleep(5);
      ctx.log.info("again");
      return [typeof ctx.random(), typeof ctx.uuid(), ctx.now() instanceof Date, ctx.abortSignal.aborted];
    });
    await using engine = await createTestEngine({ definitions: [logs], logger });
    const run = await engine.start(logs);
    await engine.clock.advance(5);
    expect(await run.result()).toEqual(["number", "string", true, false]);
    expect(lines).toEqual(["true hello", "true again"]);
  });

  test("lets code catch the error and continue", async () => {
    const catches = workflow("catches", async (ctx) => {
      try {
        return Date.now();
      } catch (error) {
        return ctx.run("report", () => (error as RepriseError).code);
      }
    });
    await using engine = await createTestEngine({ definitions: [catches] });
    expect(await (await engine.start(catches)).result()).toBe("NONDETERMINISM");
  });

  test("refuses an unknown mode", async () => {
    const calls = workflow("calls", async () => 1);
    const error = await rejection(createTestEngine({ definitions: [calls], guard: "loud" as "warn" }));
    expect(error).toMatchObject({ code: "BAD_OPTIONS", message: expect.stringContaining("'loud'") as string });
  });
});
