// Stopped runs: code that does not match its journal, and code that needs a task or definition that is not registered.

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { promise, task, workflow, type Definition, type AnyTask, type RepriseError } from "reprise";
import { createTestEngine } from "reprise/testing";
import { collect, createFolder, rejection, storeAround, watchEvents } from "./world.ts";

const ports = { go: promise<string>() };
const greet = task("greet", (_ctx, name: string) => `Hello, ${name}`);
const rightCode = workflow("greeter", { ports }, async (ctx, name: string) => {
  const greeting = await ctx.task(greet, name);
  const word = await ctx.promise("go");
  return `${greeting} ${await ctx.run("shout", () => word.toUpperCase())}`;
});
const shout = task("shout", (_ctx, name: string) => name.toUpperCase());
const wrongCode = workflow("greeter", { ports }, async (ctx, name: string) => {
  const greeting = await ctx.task(shout, name);
  return `${greeting} ${await ctx.promise("go")}`;
});

describe("ACCEPTANCE 24: a determinism violation", () => {
  test("stops the run with evidence, is not retried, and the fixed code completes it", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    {
      await using engine = await createTestEngine({ definitions: [rightCode, greet], store });
      await engine.start(rightCode, "Ada", { id: "run-1" });
      await engine.clock.advance(0);
    }
    {
      using watched = watchEvents();
      await using engine = await createTestEngine({ definitions: [wrongCode, shout, greet], store });
      const run = engine.get(wrongCode, "run-1");
      const result = rejection(run.result());
      await run.resolve("go", "bye");
      const error = (await result) as RepriseError;
      const text =
        "the journal recorded task 'greet'; the code now calls task 'shout' (at Task(0)). Restore the code, or guard";
      expect(error.code).toBe("DETERMINISM_VIOLATION");
      expect(error.message).toContain(text);
      expect(error.details).toMatchObject({ where: "Task(0)", expected: "shout", actual: "greet", seq: 2 });
      const info = await run.info();
      expect(info.status).toBe("determinism_violation");
      expect(info.error?.message).toContain(text);
      expect(info.entries).toBe(4);
      // Not retried: neither by time nor by a message nor by another process.
      await engine.clock.advance("30 days");
      await engine.crash();
      expect((await rejection(run.result())).code).toBe("DETERMINISM_VIOLATION");
      expect(watched.events.filter(({ event }) => event === "run.stopped")).toHaveLength(1);
      // Resumed with the same code, it stops again and loses nothing.
      await run.resume();
      expect((await rejection(run.result())).code).toBe("DETERMINISM_VIOLATION");
      expect(watched.events.filter(({ event }) => event === "run.stopped")).toHaveLength(2);
      expect(await run.verify()).toMatchObject({ status: "mismatch", where: "Task(0)" });
    }
    {
      await using engine = await createTestEngine({ definitions: [rightCode, greet], store });
      const run = engine.get(rightCode, "run-1");
      await run.resume();
      expect(await run.result()).toBe("Hello, Ada BYE");
      expect(await run.verify()).toMatchObject({ status: "same" });
      expect((await rejection(run.resume())).message).toContain("completed");
    }
  });

  test("a new operation in the place of a recorded command is not executed, and the restored code completes the run", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    let calls = 0;
    const inserted = workflow("greeter", { ports }, async (ctx, name: string) => {
      await ctx.run("check", () => (calls += 1));
      return `${await ctx.task(greet, name)} ${await ctx.promise("go")}`;
    });
    {
      await using engine = await createTestEngine({ definitions: [rightCode, greet], store });
      await engine.start(rightCode, "Ada", { id: "run-1" });
      await engine.clock.advance(0);
    }
    {
      await using engine = await createTestEngine({ definitions: [inserted, greet], store });
      const run = engine.get(inserted, "run-1");
      const result = rejection(run.result());
      await run.resolve("go", "bye");
      expect(await result).toMatchObject({ code: "DETERMINISM_VIOLATION", details: { where: "Operation(0)" } });
      expect(calls).toBe(0);
    }
    await using engine = await createTestEngine({ definitions: [rightCode, greet], store });
    const run = engine.get(rightCode, "run-1");
    await run.resume();
    expect(await run.result()).toBe("Hello, Ada BYE");
  });

  test("ACCEPTANCE 25: a longer loop continues with a new command; a shorter loop is stopped with an orphan command", async () => {
    const step = task("step", (_ctx, n: number) => n);
    const loop = (rounds: number, determinism: "strict" | "per-type") =>
      workflow("loop", { ports, determinism }, async (ctx) => {
        const go = ctx.promise("go");
        let sum = 0;
        for (let n = 0; n < rounds; n += 1) sum += await ctx.task(step, n);
        await go;
        return sum;
      });
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    {
      const before = loop(3, "strict");
      await using engine = await createTestEngine({ definitions: [before, step], store });
      for (const id of ["longer", "strict", "lenient"]) await engine.start(before, undefined, { id });
      await engine.clock.advance(0);
    }
    const finish = async (
      code: ReturnType<typeof loop>,
      id: string,
    ): Promise<{ output: unknown; warnings: string[] }> => {
      const warnings: string[] = [];
      const logger = { info: () => {}, warn: (message: string) => void warnings.push(message), error: () => {} };
      await using engine = await createTestEngine({ definitions: [code, step], store, logger });
      await engine.get(code, id).resolve("go", "");
      return { output: await engine.get(code, id).result(), warnings };
    };
    expect(await finish(loop(4, "strict"), "longer")).toEqual({ output: 6, warnings: [] });
    const lenient = await finish(loop(2, "per-type"), "lenient");
    expect(lenient.output).toBe(1);
    expect(lenient.warnings.join()).toContain("Task(2)");
    const error = await rejection(finish(loop(2, "strict"), "strict"));
    expect(error.code).toBe("DETERMINISM_VIOLATION");
    expect(error.message).toContain("the code now ends without requesting it (at Task(2))");
  });
});

describe("an unregistered", () => {
  const inner = workflow("inner", async () => "inner");
  const asksTask = workflow("asks", async (ctx) => {
    const first = await ctx.run("first", () => 1);
    return `${first} ${await ctx.task(greet, "Ada")}`;
  });
  const asksChild = workflow("asks", async (ctx) => {
    const first = await ctx.run("first", () => 1);
    return `${first} ${await ctx.child(inner)}`;
  });
  const cases: [string, typeof asksTask, Definition | AnyTask, string][] = [
    ["task", asksTask, greet, "1 Hello, Ada"],
    ["child definition", asksChild, inner, "1 inner"],
  ];
  test.each(cases)(
    "%s blocks the run before anything is written for it; resume completes it",
    async (_what, asks, missing, output) => {
      using folder = createFolder();
      const store = `sqlite:${folder.file("runs.db")}`;
      {
        await using engine = await createTestEngine({ definitions: [asks], store });
        const run = await engine.start(asks, undefined, { id: "run-1" });
        const error = await rejection(run.result());
        expect(error.code).toBe("RUN_BLOCKED");
        expect(error.message).toContain(missing.name);
        expect((await run.info()).status).toBe("blocked");
        expect((await collect(run.journal())).map(({ type }) => type)).toEqual(["RunStarted", "OperationCompleted"]);
        expect((await collect(engine.list())).map(({ id }) => id)).toEqual(["run-1"]);
      }
      {
        await using engine = await createTestEngine({ definitions: [asks, missing as typeof asks], store });
        await engine.get(asks, "run-1").resume();
        expect(await engine.get(asks, "run-1").result()).toBe(output);
      }
    },
  );
});

test("a worker does not claim a run of a definition that it does not have", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("runs.db")}`;
  {
    await using engine = await createTestEngine({ definitions: [rightCode, greet], store, worker: false });
    await engine.start(rightCode, "Ada", { id: "run-1" });
  }
  {
    const unrelated = workflow("unrelated", async () => 1);
    await using engine = await createTestEngine({ definitions: [unrelated, greet], store });
    await engine.clock.advance("1 day");
    expect((await engine.find("run-1"))?.status).toBe("queued");
  }
  await using engine = await createTestEngine({ definitions: [rightCode, greet], store });
  await engine.get(rightCode, "run-1").resolve("go", "x");
  expect(await engine.get(rightCode, "run-1").result()).toBe("Hello, Ada X");
});

test("a worker repeats a stop that the store rejected", async () => {
  let failures = 0;
  const source = storeAround((writes, apply) => {
    if (failures > 0 || !writes.some(({ write }) => write === "stop")) return apply();
    failures += 1;
    return Promise.reject(new Error("disk I/O error"));
  });
  const asks = workflow("asks", async (ctx) => ctx.task(greet, "Ada"));
  await using engine = await createTestEngine({ definitions: [asks], store: source });
  const run = await engine.start(asks);
  const result = rejection(run.result());
  await engine.clock.advance("1s");
  expect(failures).toBe(1);
  expect((await run.info()).status).toBe("blocked");
  expect((await result).code).toBe("RUN_BLOCKED");
});

describe("a workflow that waits for a promise the engine does not own", () => {
  const foreign = (wait: () => Promise<unknown>) =>
    workflow("foreign", async (ctx) => {
      await ctx.run("first", () => 1);
      await wait();
      return ctx.run("second", () => 2);
    });

  test("is blocked with the source location and the next step, instead of waiting forever", async () => {
    const gate = Promise.withResolvers<void>();
    const waits = foreign(() => gate.promise);
    await using engine = await createTestEngine({ definitions: [waits] });
    const run = await engine.start(waits, undefined, { id: "run-1" });
    const error = await rejection(run.result());
    expect(error.code).toBe("RUN_BLOCKED");
    expect(error.message).toContain("after Operation(0)");
    expect(error.message).toContain("ctx.run()");
    const line =
      1 +
      readFileSync(import.meta.filename, "utf8")
        .split("\n")
        .indexOf("      await wait();");
    expect(error.message).toContain(`(at test/engine/stopped-runs.test.ts:${line}, after Operation(0))`);
    expect((error as RepriseError).details).toMatchObject({ code: "STALLED", expected: "a promise made by ctx" });
    // Ignored: the promise settles after the run was stopped.
    gate.resolve();
    await engine.clock.advance("1 hour");
    expect(await run.info()).toMatchObject({ status: "blocked", entries: 2 });
  });

  test("continues when the code is fixed and the run is resumed", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("foreign.db")}`;
    {
      await using engine = await createTestEngine({ definitions: [foreign(() => new Promise(() => {}))], store });
      await rejection((await engine.start("foreign", undefined, { id: "run-1" })).result());
    }
    const right = foreign(() => Promise.resolve());
    await using engine = await createTestEngine({ definitions: [right], store });
    const run = engine.get(right, "run-1");
    await run.resume();
    expect(await run.result()).toBe(2);
  });
});
