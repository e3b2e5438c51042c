// A missing `await`: the engine warns about it when the run has ended.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { createEngine, promise, signal, task, workflow, type Definition } from "reprise";
import { createTestEngine } from "reprise/testing";
import { watchEvents } from "./world.ts";

interface Warning {
  readonly message: string;
  readonly data: unknown;
}

function listen(): { readonly warnings: Warning[]; readonly logger: object } {
  const warnings: Warning[] = [];
  const logger = {
    info: () => {},
    warn: (message: string, data?: unknown) => void warnings.push({ message, data }),
    error: () => {},
  };
  return { warnings, logger };
}

/** The warnings of one run, after everything that follows from its end. */
async function warningsOf(definition: Definition, ...definitions: readonly object[]): Promise<Warning[]> {
  const { warnings, logger } = listen();
  await using engine = await createTestEngine({
    definitions: [definition as never, ...(definitions as never[])],
    logger: logger as never,
  });
  const run = await engine.start(definition as never, undefined as never, { id: "run-1" });
  await engine.clock.advance("1 minute");
  await run.result();
  return warnings;
}

const stuck = task("stuck", () => new Promise<string>(() => {}));

test("a run that ends before a timer that its code never awaited logs the timer and the line of the call", async () => {
  const hasty = workflow("hasty", async (ctx) => {
    await ctx.run("first", () => 1);
    void ctx.sleep("1 day"); // the call
    return "done";
  });
  using watched = watchEvents();
  const [warning, ...more] = await warningsOf(hasty);
  expect(more).toEqual([]);
  expect(warning?.message).toMatch(
    /^Run run-1 of hasty ended without awaiting timer `sleep` \(Timer\(0\), at test\/engine\/unawaited\.test\.ts:\d+\), which had not ended: the engine dropped it\. Await the call, or remove it\.$/,
  );
  const lines = readFileSync(import.meta.filename, "utf8").split("\n");
  const place = `test/engine/unawaited.test.ts:${lines.findIndex((line) => line.endsWith("// the call")) + 1}`;
  expect(warning?.data).toMatchObject({
    run: "run-1",
    command: "Timer(0)",
    name: "sleep",
    place,
  });
  expect(watched.events.filter(({ event }) => event === "command.unawaited")).toEqual([
    {
      event: "command.unawaited",
      run: "run-1",
      definition: "hasty",
      command: "Timer(0)",
      name: "sleep",
      place,
    },
  ]);
});

test("tasks, steps, promises and signals that nothing awaited are named, in the order of the code", async () => {
  const ports = { paid: promise(), tick: signal() };
  const careless = workflow("careless", { ports }, async (ctx) => {
    void ctx.task(stuck);
    void ctx.run("endless", () => new Promise<void>(() => {}));
    void ctx.promise("paid");
    void ctx.receive("tick");
    await ctx.sleep(1);
  });
  const warnings = await warningsOf(careless, stuck);
  expect(warnings.map(({ message }) => /awaiting (.+?) \(/.exec(message)?.[1])).toEqual([
    "task `stuck`",
    "step `endless`",
    "the wait for `paid`",
    "the wait for `tick`",
  ]);
});

test("what the code awaits in any way, cancels or starts as a child is not reported", async () => {
  const child = workflow("child", async (ctx) => ctx.sleep("1 day"));
  const careful = workflow("careful", { ports: { paid: promise() } }, async (ctx) => {
    const inBranch = (async () => ctx.promise("paid"))();
    inBranch.catch(() => {});
    void ctx.child(child);
    ctx.task(stuck).then(
      () => {},
      () => {},
    );
    ctx.sleep("1 day", { id: "canceled" }).cancel();
    const quick = ctx.sleep(5);
    await Promise.race([ctx.sleep("1 day"), quick]);
    await Promise.any([ctx.task(stuck), ctx.run("quick", () => 1)]);
    return "done";
  });
  expect(await warningsOf(careful, child, stuck)).toEqual([]);
});

test("a call that has ended by then, and a run that fails, are not reported", async () => {
  const short = workflow("short", async (ctx) => {
    void ctx.run("quick", () => 1);
    await ctx.sleep("10 s");
  });
  expect(await warningsOf(short)).toEqual([]);
  const { warnings, logger } = listen();
  const failing = workflow("failing", async (ctx) => {
    void ctx.sleep("1 day");
    await ctx.run("fail", () => Promise.reject(new Error("down")));
  });
  await using engine = await createTestEngine({ definitions: [failing], logger: logger as never });
  await (await engine.start(failing)).result().catch(() => {});
  await engine.clock.advance(0);
  expect(warnings.map(({ message }) => message)).toEqual([expect.stringMatching(/: operation fail failed: down\./)]);
});

test("the log has each call once, the event comes for every run, and the code is replayed once", async () => {
  let executions = 0;
  const hasty = workflow("hasty", async (ctx) => {
    executions += 1;
    void ctx.sleep("1 day");
  });
  const { warnings, logger } = listen();
  using watched = watchEvents();
  await using engine = await createTestEngine({ definitions: [hasty], logger: logger as never });
  for (let n = 0; n < 3; n += 1) {
    await (await engine.start(hasty)).result();
    await engine.clock.advance(0);
  }
  expect(warnings).toHaveLength(1);
  expect(watched.events.filter(({ event }) => event === "command.unawaited")).toHaveLength(3);
  expect(executions).toBe(4);
});

test("an engine that is closed right after the result still logs the warning", async () => {
  const { warnings, logger } = listen();
  const hasty = workflow("hasty", async (ctx) => {
    void ctx.sleep("1 day");
  });
  {
    await using engine = await createEngine({
      store: "sqlite::memory:",
      definitions: [hasty],
      logger: logger as never,
    });
    await (await engine.start(hasty)).result();
  }
  expect(warnings.map(({ message }) => message)).toEqual([expect.stringContaining("timer `sleep`")]);
});

test("a generation that continues as new without awaiting a call is reported", async () => {
  const looping = workflow("looping", async (ctx, n: number | void): Promise<string> => {
    if (n === 1) return "done";
    void ctx.sleep("1 day");
    return ctx.continueAsNew(1);
  });
  expect(await warningsOf(looping)).toHaveLength(1);
});
