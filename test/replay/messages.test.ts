// Signals, updates and promises against changed code.

import { expect, test } from "vitest";
import { promise, signal, update, type Definition } from "../../src/kernel/index.ts";
import { workflow, type WorkflowContext } from "../../src/workflow/index.ts";
import { drained, LiveRun } from "./live-run.ts";

const ports = { a: signal<number>(), b: signal<number>(), p: promise<number>(), u: update<number, number>() };
type Ctx = WorkflowContext<typeof ports>;

function code(run: (ctx: Ctx) => Promise<unknown>): Definition {
  return workflow("code", { ports }, run);
}

test("strict: other signals, another timeout and another `show` are violations; per type only other signals are", async () => {
  const cases: [then: (ctx: Ctx) => Promise<unknown>, now: (ctx: Ctx) => Promise<unknown>, lenient: boolean][] = [
    [(ctx) => ctx.receive("a"), (ctx) => ctx.receive("b"), false],
    [(ctx) => ctx.receive("a"), (ctx) => ctx.receive(["a", "b"]), false],
    [(ctx) => ctx.receive("a", { timeout: 5 }), (ctx) => ctx.receive("a", { timeout: 6 }), true],
    [(ctx) => ctx.receive("a", { timeout: 5 }), (ctx) => ctx.receive("a"), true],
    [(ctx) => ctx.promise("p", { timeout: 5 }), (ctx) => ctx.promise("p", { timeout: 6 }), true],
    [(ctx) => ctx.promise("p", { show: 1 }), (ctx) => ctx.promise("p", { show: 2 }), true],
  ];
  for (const [then, now, isFinePerType] of cases) {
    const { entries } = await LiveRun.start(code(then));
    expect((await LiveRun.resume(code(then), entries)).stop).toBeUndefined();
    expect((await LiveRun.resume(code(now), entries)).stop?.code).toBe("DETERMINISM_VIOLATION");
    const lenient = await LiveRun.resume(code(now), entries, { determinism: "per-type" });
    expect(lenient.stop === undefined).toBe(isFinePerType);
  }
});

test("a signal that another wait receives than in the journal is a violation", async () => {
  const both = code(async (ctx) => Promise.all([ctx.receive("a"), ctx.receive(["a", "b"])]));
  const run = await LiveRun.start(both);
  await run.commit(run.signals("a", 1));
  const swapped = run.entries.map((entry) =>
    entry.type === "SignalReceived" ? { ...entry, command: "Promise(1)" } : entry,
  );
  const resumed = await LiveRun.resume(both, swapped);
  expect(resumed.stop?.message).toContain(
    "the journal recorded that Promise(1) receives signal 'a'; in the code Promise(0) receives it now (at Promise(1))",
  );
});

test("per type, a receive that the code requests after its signal still matches its recorded command", async () => {
  const then = code(async (ctx) => [await ctx.receive("a"), await ctx.receive("a")]);
  const now = code(async (ctx) => {
    await ctx.run("new first step", () => 0);
    return [await ctx.receive("a"), await ctx.receive("a")];
  });
  const run = await LiveRun.start(then);
  await run.commit(run.signals("a", 1));
  const resumed = await LiveRun.resume(now, run.entries, { determinism: "per-type" });
  expect(resumed.stop).toBeUndefined();
  await resumed.finish("Operation(0)");
  await resumed.commit(resumed.signals("a", 2));
  expect(resumed.execution.outcome).toEqual({ status: "returned", value: [1, 2] });
  const named = resumed.entries.filter(({ type }) => type === "SignalReceived").map(({ command }) => command);
  expect(named).toEqual(["Promise(0)", "Promise(1)"]);
});

test("a wait that is created while its signal is announced is closing, and gets no timer", async () => {
  const run = await LiveRun.start(
    code(async (ctx) => [await ctx.receive("a"), await ctx.receive("a", { timeout: 5 })]),
  );
  const { execution } = run;
  expect(execution.signals.announce(execution, "a", 1)?.command).toBe("Promise(0)");
  execution.close("Promise(0)");
  expect(execution.signals.announce(execution, "a", 2)).toBeUndefined();
  execution.deliveries.deliver({
    type: "SignalReceived",
    command: "Promise(0)",
    data: { name: "a", value: 1 },
    at: run.now,
  });
  await drained();
  expect(execution.isOpen("Promise(1)")).toBe(false);
  expect(execution.requests).toMatchObject([{ kind: "promise", command: "Promise(1)", timeoutMs: undefined }]);
  execution.deliveries.deliver({ type: "SignalReceived", command: "", data: { name: "a", value: 2 }, at: run.now });
  await drained();
  expect(execution.outcome).toEqual({ status: "returned", value: [1, 2] });
});

test("a signal behind a cancel does not go to a wait that the cancel rejects", async () => {
  const cleans = code(async (ctx) => {
    await ctx.promise("p");
    const got = await ctx.receive("a").catch(() => "cancelled");
    return [got, await ctx.shield(() => ctx.receive("a", { timeout: 5 }))];
  });
  const run = await LiveRun.start(cleans);
  // The code has received `p` and waits for `a`; the cancel is not delivered yet.
  await run.commitBoth([run.settles("p", { value: 1 }), run.cancels()], () => [run.signals("a", 2)]);
  expect(run.stop).toBeUndefined();
  expect(run.execution.outcome).toEqual({ status: "returned", value: ["cancelled", 2] });
  const resumed = await LiveRun.resume(cleans, run.entries);
  expect(resumed.stop).toBeUndefined();
});
