// Which failures the engine logs, by which process, how often and at which level.

import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { createEngine, END, FatalError, flow, graph, START, task, typed, workflow, type Logger } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createFolder, createGate, rejection } from "./world.ts";

interface Line {
  readonly level: string;
  readonly message: string;
  readonly data: Readonly<Record<string, unknown>>;
}

function recorder(): { readonly logger: Required<Logger>; readonly lines: Line[] } {
  const lines: Line[] = [];
  const log =
    (level: string) =>
    (message: string, data: object = {}) =>
      void lines.push({ level, message, data: data as Line["data"] });
  return { logger: { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") }, lines };
}

const twice = { retry: { maxAttempts: 2, baseDelay: 1_000, maxDelay: 1_000 } };

class Declined extends Error {
  readonly code = "CARD_DECLINED";
}

test("a failed run is one error with its id, its error and the commands that help; the failed step before it is one warning", async () => {
  const order = workflow("order", async (ctx) =>
    ctx.run("charge", () => {
      throw new Declined("card\ndeclined");
    }),
  );
  const { logger, lines } = recorder();
  await using engine = await createTestEngine({ definitions: [order], logger });
  const run = await engine.start(order, undefined, { id: "order 17" });
  await rejection(run.result());
  expect(lines).toEqual([
    {
      level: "warn",
      message: "Run order 17: operation charge failed: card declined. Next: `reprise show 'order 17'`.",
      data: {
        run: "order 17",
        definition: "order",
        step: "Operation(0)",
        name: "charge",
        attempt: 1,
        execution: 1,
        code: "CARD_DECLINED",
      },
    },
    {
      level: "error",
      message:
        "Run order 17 of order failed: card declined. Next: `reprise show 'order 17'`, then `reprise retry 'order 17'`.",
      data: { run: "order 17", definition: "order", code: "CARD_DECLINED" },
    },
  ]);
});

test("attempts that are retried log nothing; when they run out, a task, an operation, a node and an action log once each", async () => {
  const fail = (): never => {
    throw new Error("down");
  };
  const send = task("send", twice, fail);
  const steps = workflow("steps", async (ctx) => {
    await ctx.task(send).catch(() => {});
    await ctx.run("call", fail, twice).catch(() => {});
  });
  const nodes = graph("nodes", { state: {} }).node("plan", twice, fail).edge(START, "plan").edge("plan", END);
  const actions = flow("actions", { input: typed<number>() })
    .action("fetch", ["input"], { ...twice, catch: () => 0 }, (): number => fail())
    .spread("all", ["fetch"], { ...twice, settle: true }, () => [1], fail)
    .output(["all"], ({ all }) => all.length);
  const { logger, lines } = recorder();
  await using engine = await createTestEngine({ definitions: [steps, nodes, actions, send], logger });
  await engine.start(steps, undefined, { id: "s" });
  await engine.start(nodes, {}, { id: "n" });
  await engine.start(actions, 1, { id: "a" });
  await engine.clock.advance(900);
  expect(lines).toEqual([]);
  await engine.clock.advance("10 s");
  const shown = lines.map(({ level, data }) => `${level} ${String(data["run"])} ${String(data["step"])}`);
  expect(shown.sort()).toEqual([
    "error n undefined",
    "warn a all[0]",
    "warn a fetch",
    "warn n Node(1.0)",
    "warn s Operation(0)",
    "warn s Task(0)",
  ]);
  const ofTask = lines.find(({ data }) => data["step"] === "Task(0)");
  expect(ofTask).toMatchObject({
    message: "Run s: task send failed: All 2 attempts failed. Last error: down. Next: `reprise show s`.",
    data: { definition: "steps", name: "send", attempt: 2, execution: 2, code: "MAX_ATTEMPTS_EXCEEDED" },
  });
});

test("a failed child is a warning: its parent may handle it, and a parent that does not is an error", async () => {
  const child = workflow("child", async () => {
    throw new FatalError("no");
  });
  const handles = workflow("handles", async (ctx) =>
    ctx.child(child, undefined, { id: "child of h" }).catch(() => "handled"),
  );
  const fails = workflow("fails", async (ctx) => ctx.child(child, undefined, { id: "child of f" }));
  const { logger, lines } = recorder();
  await using engine = await createTestEngine({ definitions: [child, handles, fails], logger });
  await (await engine.start(handles, undefined, { id: "h" })).result();
  await rejection((await engine.start(fails, undefined, { id: "f" })).result());
  expect(lines.map(({ level, data }) => [level, data["run"]])).toEqual([
    ["warn", "child of h"],
    ["warn", "child of f"],
    ["error", "f"],
  ]);
  expect(lines[0]?.message).not.toContain("reprise retry");
});

test("a node that was aborted because another one failed logs nothing", async () => {
  const waits = createGate();
  const g = graph("two", { state: {} })
    .node("a", async () => {
      await waits.reached;
      throw new Error("a is broken");
    })
    .node("b", async (ctx) => {
      void waits.wait();
      await new Promise((_resolve, reject) =>
        ctx.abortSignal.addEventListener("abort", () => reject(new Error("aborted"))),
      );
      return {};
    })
    .edge(START, ["a", "b"]);
  const { logger, lines } = recorder();
  await using engine = await createTestEngine({ definitions: [g], logger });
  await rejection((await engine.start(g, {}, { id: "g" })).result());
  expect(lines.map(({ data }) => data["name"] ?? data["run"])).toEqual(["a", "g"]);
});

test("after a crash, the replay of failed steps logs nothing again", async () => {
  const flaky = task("flaky", () => {
    throw new Error("no");
  });
  const long = workflow("long", async (ctx) => {
    await ctx.run("first", () => Promise.reject(new Error("no"))).catch(() => {});
    await ctx.task(flaky).catch(() => {});
    await ctx.sleep("1 h");
    return "done";
  });
  const { logger, lines } = recorder();
  await using engine = await createTestEngine({ definitions: [long, flaky], logger });
  const run = await engine.start(long);
  await engine.clock.advance(0);
  expect(lines).toHaveLength(2);
  await engine.crash();
  await engine.clock.advance("1 h");
  expect(await run.result()).toBe("done");
  expect(lines).toHaveLength(2);
});

test("a failure is logged by the process that committed it, and not by the holder of the run", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const broken = task("broken", { label: "far" }, () => {
    throw new Error("no");
  });
  const calls = workflow("calls", async (ctx) => ctx.task(broken));
  const here = recorder();
  const there = recorder();
  await using near = await createEngine({ store, definitions: [calls, broken], logger: here.logger });
  await using far = await createEngine({
    store,
    definitions: [broken],
    worker: { labels: ["far"] },
    logger: there.logger,
  });
  await rejection((await near.start(calls, undefined, { id: "c" })).result());
  await far.drain();
  expect(there.lines.map(({ data }) => [data["run"], data["step"], data["name"]])).toEqual([
    ["c", "Task(0)", "broken"],
  ]);
  expect(here.lines.map(({ data }) => [data["run"], data["step"]])).toEqual([["c", undefined]]);
});

test("of a thousand runs that fail in a second, five are logged and one line counts the others", async () => {
  const bad = workflow("bad", async (ctx) => {
    await ctx.run("step", () => Promise.reject(new Error("no")));
  });
  const { logger, lines } = recorder();
  await using engine = await createTestEngine({ definitions: [bad], logger });
  for (let at = 0; at < 1_000; at += 1) await engine.start(bad);
  await engine.clock.advance(999);
  expect(lines).toHaveLength(10);
  await engine.clock.advance(1);
  expect(lines.slice(10).map(({ level, message, data }) => [level, message, data["count"]])).toEqual([
    [
      "warn",
      "995 more failures of operation step of bad within a second. Next: `reprise list --definition bad --status failed`.",
      995,
    ],
    [
      "error",
      "995 more runs of bad failed within a second. Next: `reprise list --definition bad --status failed`.",
      995,
    ],
  ]);
  await rejection((await engine.start(bad)).result());
  expect(lines).toHaveLength(14);
});

test("a process that stops logs what it held back", async () => {
  const bad = workflow("bad", async () => {
    throw new FatalError("no");
  });
  const { logger, lines } = recorder();
  const engine = await createTestEngine({ definitions: [bad], logger });
  for (let at = 0; at < 7; at += 1) await rejection((await engine.start(bad)).result());
  expect(lines).toHaveLength(5);
  await engine.close();
  expect(lines).toHaveLength(6);
});

test("a run whose deadline passes before it starts is logged as failed, once", async () => {
  const late = workflow("late", { deadline: "1 s" }, async () => "in time");
  const { logger, lines } = recorder();
  await using engine = await createTestEngine({ definitions: [late], logger });
  await engine.start(late, undefined, { id: "l", delay: "1 h" });
  await engine.clock.advance("2 h");
  expect(lines.map(({ level, data }) => [level, data])).toEqual([
    ["error", { run: "l", definition: "late", code: "DEADLINE_EXCEEDED" }],
  ]);
});

test("a canceled run logs nothing", async () => {
  const waits = workflow("waits", async (ctx) => ctx.sleep("1 h"));
  const { logger, lines } = recorder();
  await using engine = await createTestEngine({ definitions: [waits], logger });
  const run = await engine.start(waits);
  await run.cancel();
  await rejection(run.result());
  expect(lines).toEqual([]);
});

test("a logger that throws does not keep a run from failing", async () => {
  const bad = workflow("bad", async (ctx) => ctx.run("step", () => Promise.reject(new Error("no"))));
  const fail = (): never => {
    throw new Error("the log is full");
  };
  await using engine = await createTestEngine({ definitions: [bad], logger: { info: fail, warn: fail, error: fail } });
  expect(await rejection((await engine.start(bad)).result())).toMatchObject({ code: "RUN_FAILED" });
});

test.each([
  ["the default logger writes information, warnings and errors", "", ["info", "warn", "error"]],
  ["a level writes its lines and those above it", 'logger: "warn"', ["warn", "error"]],
  ["the lowest level writes every line", 'logger: "debug"', ["debug", "info", "warn", "error"]],
  ["false writes nothing", "logger: false", []],
])("%s to standard error", (_name, option, levels) => {
  const program = `
    import { createEngine, workflow } from "reprise";
    const bad = workflow("bad", async (ctx) => {
      ctx.log.debug("one");
      ctx.log.info("two");
      ctx.log.warn("three");
      throw new Error("four");
    });
    await using engine = await createEngine({ store: "sqlite::memory:", definitions: [bad], ${option} });
    await (await engine.start(bad, undefined, { id: "b" })).result().catch(() => {});
  `;
  const { stderr } = spawnSync(
    process.execPath,
    ["--conditions=reprise-source", "--input-type=module", "--eval", program],
    { encoding: "utf8" },
  );
  const lines = stderr.split("\n").filter((line) => line.startsWith("reprise "));
  expect(lines.map((line) => /^reprise (\w+): /.exec(line)?.[1])).toEqual(levels);
  if (levels.length > 0) expect(lines.at(-1)).toContain("reprise retry b`. { run: 'b', definition: 'bad' }");
});
