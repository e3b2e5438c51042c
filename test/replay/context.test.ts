// The guarantees of `ctx`, live and on replay.

import { expect, test } from "vitest";
import { CancelledError, RepriseError, systemTimers, type ErrorCode } from "../../src/base/index.ts";
import { promise, task } from "../../src/kernel/index.ts";
import { replayJournal, workflow, workflowBody, type WorkflowContext } from "../../src/workflow/index.ts";
import { drained, LiveRun, STARTED_AT, testHost } from "./live-run.ts";
import { findDivergence } from "./replay-property.ts";

const work = task("work", (_ctx, input: unknown) => input);
const child = workflow("child", async (_ctx, input: unknown) => input);
const ports = { approval: promise<string>(), ping: promise() };

const forever = (): Promise<never> => Promise.withResolvers<never>().promise;

// ── time and random numbers ──

test("now, random and uuid are the same on replay, and now is the time of the last delivered entry", async () => {
  const drawing = workflow("drawing", async (ctx) => {
    const seen: unknown[] = [ctx.now(), ctx.random(), ctx.uuid()];
    await ctx.task(work, 1);
    seen.push(ctx.now(), ctx.random(), ctx.uuid());
    await ctx.sleep("1 h");
    return [...seen, ctx.now(), ctx.random()];
  });
  const run = await LiveRun.start(drawing);
  run.now += 1234;
  await run.finish("Task(0)");
  run.now += 3_600_000;
  await run.commit(run.fires("Timer(0)"));
  const outcome = run.execution.outcome as { value: unknown[] };
  expect(outcome.value[0]).toEqual(new Date(STARTED_AT));
  expect(outcome.value[3]).toEqual(new Date(STARTED_AT + 1234));
  expect(outcome.value[6]).toEqual(new Date(STARTED_AT + 1234 + 3_600_000));
  expect(new Set(outcome.value.map(String)).size).toBe(outcome.value.length);
  for (let cut = 1; cut < run.entries.length; cut += 1) expect(await findDivergence(drawing, run, cut)).toBeUndefined();
  const other = await LiveRun.start(drawing, undefined, { id: "run-2" });
  await other.finish("Task(0)");
  await other.commit(other.fires("Timer(0)"));
  expect((other.execution.outcome as { value: unknown[] }).value[1]).not.toBe(outcome.value[1]);
});

// ── log ──

test("a replay does not repeat log lines", async () => {
  const logging = workflow("logging", async (ctx) => {
    ctx.log.info("started");
    await ctx.task(work, 1);
    ctx.log.warn("worked");
    await ctx.task(work, 2);
    ctx.log.error("done");
  });
  const run = await LiveRun.start(logging);
  expect(run.logs).toEqual(["info: started"]);
  await run.finish("Task(0)");
  expect(run.logs).toEqual(["info: started", "warn: worked"]);
  const resumed = await LiveRun.resume(logging, run.entries);
  expect(resumed.logs).toEqual([]);
  await resumed.commit(resumed.answerOf("Task(1)", { value: 2 }));
  expect(resumed.logs).toEqual(["error: done"]);

  // The replay of an ended run logs nothing.
  const logs: string[] = [];
  const { identity: facts } = resumed.execution;
  await replayJournal(workflowBody(logging), {
    identity: facts,
    entries: resumed.entries,
    chain: resumed.chain,
    host: testHost(logs),
    timers: systemTimers,
  });
  expect(logs).toEqual([]);
});

// ── refusals ──

type Ctx = WorkflowContext<typeof ports>;

const REFUSALS: readonly (readonly [what: string, code: ErrorCode, call: (ctx: Ctx) => unknown])[] = [
  ["a task's input that is not data", "NOT_DATA", (ctx) => ctx.task(work, () => {})],
  ["an operation's input that is not data", "NOT_DATA", (ctx) => ctx.run("call", { fn: () => {} }, () => 1)],
  ["a child's input that is not data", "NOT_DATA", (ctx) => ctx.child(child, Symbol("x"))],
  ["a state value that is not data", "NOT_DATA", (ctx) => ctx.state.set("key", () => {})],
  ["what is shown with a promise and is not data", "NOT_DATA", (ctx) => ctx.promise("approval", { show: () => {} })],
  ["a port that is not declared", "UNKNOWN_PORT", (ctx) => ctx.promise("nobody" as "approval")],
  ["a port by the name of something every object has", "UNKNOWN_PORT", (ctx) => ctx.promise("toString" as "approval")],
  ["a bad duration", "BAD_DURATION", (ctx) => ctx.sleep("soon" as "1 s")],
  ["a negative duration", "BAD_DURATION", (ctx) => ctx.sleep(-1)],
  ["a date that is none", "BAD_DURATION", (ctx) => ctx.sleepUntil(new Date(Number.NaN))],
  ["a bad timeout", "BAD_DURATION", (ctx) => ctx.promise("approval", { timeout: "never" as "1 s" })],
  ["an empty operation name", "BAD_NAME", (ctx) => ctx.run("", () => 1)],
  ["an empty state key", "BAD_NAME", (ctx) => ctx.state.set("", 1)],
  ["a bad child id", "BAD_ID", (ctx) => ctx.child(child, 1, { id: "" })],
  [
    "an object that is not a task",
    "UNKNOWN_TASK",
    (ctx) => ctx.task({ kind: "task", name: "x" } as unknown as typeof work, 1),
  ],
  ["an operation without a function", "BAD_OPTIONS", (ctx) => ctx.run("call", 1 as unknown as () => number)],
  ["an invalid retry policy", "BAD_POLICY", (ctx) => ctx.task(work, 1, { retry: { maxAttempts: 0 } })],
];

for (const [what, code, call] of REFUSALS)
  test(`a refused call takes no command index: ${what}`, async () => {
    const refusing = workflow("refusing", { ports }, async (ctx) => {
      const context = ctx as unknown as Ctx;
      let refused: unknown;
      try {
        await call(context);
      } catch (error) {
        refused = error;
      }
      void ctx.task(work, 1);
      void ctx.sleep(1);
      void ctx.run("call", () => 1);
      void ctx.promise("approval");
      void ctx.child(child, 1);
      ctx.state.set("key", 1);
      await ctx.task(work, 2);
      return refused instanceof RepriseError ? refused.code : String(refused);
    });
    const run = await LiveRun.start(refusing);
    expect(run.requested).toEqual([
      "Task(0)",
      "Timer(0)",
      "Operation(0)",
      "Promise(0)",
      "ChildWorkflow(0)",
      "State(0)",
      "Task(1)",
    ]);
    expect(run.entries[1]?.data).toContain('"index":0');
    await run.finish("Task(1)");
    expect(run.execution.outcome).toEqual({ status: "returned", value: code });
    const resumed = await LiveRun.resume(refusing, run.entries);
    expect(resumed.stop).toBeUndefined();
    expect(resumed.execution.outcome).toEqual({ status: "returned", value: code });
  });

// ── unawaited rejections ──

test("a ctx promise that the code does not await causes no unhandled rejection", async () => {
  const unhandled: unknown[] = [];
  const listen = (reason: unknown): void => void unhandled.push(reason);
  const others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", listen);
  try {
    const careless = workflow("careless", { ports }, async (ctx) => {
      void ctx.task(work, 1);
      void ctx.run("call", () => 1);
      void ctx.child(child, 1);
      void ctx.child(child, 1, { detached: true });
      void ctx.promise("approval");
      ctx.sleep(1).cancel();
      // Refused.
      void ctx.task(work, () => {});
      void ctx.run("", () => 1);
      void ctx.promise("nobody" as "approval");
      void ctx.promise("approval", { timeout: "never" as "1 s" });
      await ctx.task(work, 2);
      // Already rejected.
      void ctx.promise("approval");
      await ctx.task(work, 3);
    });
    const run = await LiveRun.start(careless);
    const error = new Error("failed");
    for (const command of ["Task(0)", "Operation(0)", "ChildWorkflow(0)"])
      await run.commit(run.answerOf(command, { error }));
    await run.commit(run.settles("approval", { error }));
    await run.finish("Task(1)");
    await run.commit(run.cancels());
    await LiveRun.resume(careless, run.entries);
    for (let turn = 0; turn < 3; turn += 1) await drained();
    expect(run.types.at(-1)).toBe("RunCancelled");
    expect(unhandled).toEqual([]);
  } finally {
    process.off("unhandledRejection", listen);
    for (const other of others) process.on("unhandledRejection", other);
  }
});

// ── cancel ──

const cancellable = workflow("cancellable", { ports }, async (ctx) => {
  const seen: string[] = [];
  const first = await ctx.task(work, "first");
  seen.push(String(first));
  ctx.abortSignal.addEventListener("abort", () => seen.push("aborted"));
  try {
    await Promise.all([ctx.task(work, "second"), ctx.sleep("1 h"), ctx.promise("approval")]);
  } catch (error) {
    seen.push(error instanceof CancelledError ? error.message : "something else");
    // Refused from here on, without an index.
    await ctx.task(work, "never").catch(() => seen.push("refused"));
    try {
      ctx.state.set("seen", seen);
    } catch {
      seen.push("state refused");
    }
  }
  return seen;
});

test("a cancel takes effect at its journal position, live and on replay", async () => {
  const run = await LiveRun.start(cancellable);
  await run.finish("Task(0)");
  await run.commit(run.cancels("enough"));
  const value = ["first", "aborted", "The run was cancelled: enough", "refused", "state refused"];
  expect(run.execution.outcome).toEqual({ status: "returned", value });
  expect(run.execution.endStatus).toBe("completed");
  for (let cut = 1; cut < run.entries.length; cut += 1)
    expect(await findDivergence(cancellable, run, cut)).toBeUndefined();

  // Before the first task completes: the same code, another position.
  const early = await LiveRun.start(cancellable);
  await early.commit(early.cancels());
  expect(early.execution.endStatus).toBe("cancelled");
  expect(early.types).toEqual(["RunStarted", "TaskScheduled", "CancelRequested", "RunCancelled"]);
  const again = await LiveRun.resume(cancellable, early.entries);
  expect(again.stop).toBeUndefined();
  expect(again.execution.endStatus).toBe("cancelled");
});

test("a completion in the same commit as a cancel counts if it precedes the cancel", async () => {
  const racing = workflow("racing", async (ctx) => ctx.task(work, 1).catch((error: unknown) => String(error)));
  const before = await LiveRun.start(racing);
  await before.commit(before.answerOf("Task(0)", { value: "worked" }), before.cancels());
  expect(before.execution.outcome).toEqual({ status: "returned", value: "worked" });
  const after = await LiveRun.start(racing);
  expect(await after.commit(after.cancels(), after.answerOf("Task(0)", { value: "worked" }))).toBe(1);
  expect(after.execution.outcome).toEqual({ status: "returned", value: "CancelledError: The run was cancelled." });
  for (const run of [before, after]) expect(await findDivergence(racing, run, run.entries.length - 1)).toBeUndefined();
});

test("a second cancel has no effect", async () => {
  const stubborn = workflow("stubborn", async (ctx) => {
    await ctx.sleep("1 h").catch(() => {});
    return forever();
  });
  const run = await LiveRun.start(stubborn);
  await run.commit(run.cancels("one"));
  await run.commit(run.cancels("two"));
  expect(run.execution.refusal?.message).toBe("The run was cancelled: one");
  const resumed = await LiveRun.resume(stubborn, run.entries);
  expect(resumed.stop).toBeUndefined();
  expect(resumed.execution.outcome).toBeUndefined();
});

// ── timers ──

const deadline = workflow("deadline", async (ctx) => {
  const timer = ctx.sleep("1 minute");
  const winner = await Promise.race([ctx.task(work, "worked"), timer.then(() => "too late")]);
  timer.cancel();
  const cancelled = await timer.then(
    () => "fired",
    (error: unknown) => (error instanceof CancelledError ? error.message : String(error)),
  );
  await ctx.task(work, "after");
  return [winner, cancelled];
});

test("a canceled timer rejects, is recorded, and never fires", async () => {
  const run = await LiveRun.start(deadline);
  await run.finish("Task(0)");
  expect(run.requested).toEqual(["Timer(0)", "Task(0)", "Timer(0) cancel", "Task(1)"]);
  expect(run.types.slice(-2)).toEqual(["TimerCancelled", "TaskScheduled"]);
  expect(await run.commit(run.fires("Timer(0)"))).toBe(0);
  await run.finish("Task(1)");
  expect(run.execution.outcome).toEqual({ status: "returned", value: ["worked", "The timer was cancelled."] });
  for (const cut of [1, ...run.cuts]) expect(await findDivergence(deadline, run, cut)).toBeUndefined();
});

test("canceling a fired timer has no effect and writes no entry", async () => {
  const run = await LiveRun.start(deadline);
  await run.commit(run.fires("Timer(0)"));
  expect(run.types).not.toContain("TimerCancelled");
  await run.finish("Task(0)", "Task(1)");
  expect(run.execution.outcome).toEqual({ status: "returned", value: ["too late", "fired"] });
  for (const cut of [1, ...run.cuts]) expect(await findDivergence(deadline, run, cut)).toBeUndefined();
});

test("canceling a timer that fired in the same commit has no effect, also on replay", async () => {
  const run = await LiveRun.start(deadline);
  const fired = run.fires("Timer(0)");
  await run.commit(await run.perform("Task(0)"), fired);
  expect(run.types).not.toContain("TimerCancelled");
  await run.finish("Task(1)");
  expect(run.execution.outcome).toEqual({ status: "returned", value: ["worked", "fired"] });
  for (const cut of [1, ...run.cuts]) expect(await findDivergence(deadline, run, cut)).toBeUndefined();
});

test("canceling a timer has no effect after the cancel of the run is recorded, also on replay", async () => {
  const run = await LiveRun.start(deadline);
  await run.commit(await run.perform("Task(0)"), run.cancels());
  expect(run.types).toEqual([
    "RunStarted",
    "TimerStarted",
    "TaskScheduled",
    "TaskCompleted",
    "CancelRequested",
    "RunCancelled",
  ]);
  const resumed = await LiveRun.resume(deadline, run.entries.slice(0, -1));
  expect(resumed.requested).toEqual([]);
  expect(resumed.execution.endStatus).toBe("cancelled");
});

test("nothing is delivered after the end: a replay requests no more than the run did", async () => {
  const leaving = workflow("leaving", async (ctx) => {
    void ctx.sleep(1).then(() => ctx.task(work, "never"));
    return ctx.task(work, "done");
  });
  const run = await LiveRun.start(leaving);
  const fired = run.fires("Timer(0)");
  await run.commit(await run.perform("Task(0)"), fired);
  expect(run.types.slice(-3)).toEqual(["TaskCompleted", "TimerFired", "RunCompleted"]);
  expect(await findDivergence(leaving, run, run.entries.length - 1)).toBeUndefined();
});

// ── promises ──

test("a promise that is resolved before the wait keeps its value for all waits", async () => {
  const patient = workflow("patient", { ports }, async (ctx) => {
    await ctx.task(work, 1);
    const first = await ctx.promise("approval");
    const second = await ctx.promise("approval", { timeout: "1 h" });
    const [third, ping] = await Promise.all([ctx.promise("approval"), ctx.promise("ping", { timeout: "1 h" })]);
    return [first, second, third, ping];
  });
  const run = await LiveRun.start(patient);
  await run.commit(run.settles("approval", { value: "yes" }));
  expect(run.entries.at(-1)).toMatchObject({ type: "PromiseResolved", command: "" });
  expect(await run.commit(run.settles("approval", { value: "no" }))).toBe(0);
  await run.commit(run.settles("ping", {}));
  await run.finish("Task(0)");
  // Without a payload, a wait with a timeout resolves to `true`.
  expect(run.execution.outcome).toEqual({ status: "returned", value: ["yes", "yes", "yes", true] });
  for (const cut of [1, ...run.cuts]) expect(await findDivergence(patient, run, cut)).toBeUndefined();
});

test("a wait that times out returns undefined, and a later wait still gets the value", async () => {
  const impatient = workflow("impatient", { ports }, async (ctx) => [
    await ctx.promise("approval", { timeout: "1 s" }),
    await ctx.promise("approval"),
  ]);
  const run = await LiveRun.start(impatient);
  await run.commit(run.timesOut("Promise(0)"));
  await run.commit(run.settles("approval", { value: "yes" }));
  expect(run.execution.outcome).toEqual({ status: "returned", value: [undefined, "yes"] });
  for (const cut of [1, ...run.cuts]) expect(await findDivergence(impatient, run, cut)).toBeUndefined();
});

test("one entry settles two waits for a port, in the order of their creation", async () => {
  const both = workflow("both", { ports }, async (ctx) => {
    const order: string[] = [];
    await Promise.all([
      ctx.promise("approval").then((value) => order.push(`first ${value}`)),
      ctx.promise("approval", { timeout: 1000 }).then((value) => order.push(`second ${value}`)),
    ]);
    return order;
  });
  const run = await LiveRun.start(both);
  expect(await run.commit(run.settles("approval", { value: "yes" }), run.timesOut("Promise(1)"))).toBe(1);
  expect(run.execution.outcome).toEqual({ status: "returned", value: ["first yes", "second yes"] });
  for (const cut of [1, ...run.cuts]) expect(await findDivergence(both, run, cut)).toBeUndefined();
});

// ── children ──

test("the id of a child is derived from the run and the command, and is the same on every replay", async () => {
  const parent = workflow("parent", async (ctx) => {
    const [first, second] = [ctx.child(child, 1), ctx.child(child, 2)];
    const named = ctx.child(child, 3, { id: "named", detached: true });
    return [first.id, second.id, named.id, await first, await second];
  });
  const run = await LiveRun.start(parent);
  await run.commit(run.answerOf("ChildWorkflow(1)", { value: "b" }), run.answerOf("ChildWorkflow(0)", { value: "a" }));
  const { value } = run.execution.outcome as { value: string[] };
  expect(value.slice(2)).toEqual(["named", "a", "b"]);
  expect(value[0]).toMatch(/^[0-9a-f]{32}$/);
  expect(value[0]).not.toBe(value[1]);
  expect(run.entries[1]?.data).toContain(value[0]);
  for (const cut of [1, ...run.cuts]) expect(await findDivergence(parent, run, cut)).toBeUndefined();
});
