// The function of a step cannot request further steps.

import { expect, test } from "vitest";
import { task, workflow, type WorkflowContext } from "reprise";
import { createTestEngine } from "reprise/testing";
import { collect, rejection } from "./world.ts";

const inner = workflow("inner", async (ctx) => ctx.run("inner", () => 1));
const requests: readonly [what: string, request: (ctx: WorkflowContext) => unknown][] = [
  ["ctx.run", (ctx) => ctx.run("inner", () => 1)],
  ["ctx.run after an await", async (ctx) => (await Promise.resolve(), ctx.run("inner", () => 1))],
  ["ctx.task", (ctx) => ctx.task(plain)],
  ["ctx.child", (ctx) => ctx.child(inner)],
  ["ctx.sleep", (ctx) => ctx.sleep(1)],
  ["ctx.state.set", (ctx) => ctx.state.set("a", 1)],
];
const plain = task("plain", () => 1);

test.each(requests)("%s inside the function of a step is refused, and the run continues", async (_what, request) => {
  const outer = workflow("outer", async (ctx) => {
    const refusal = await ctx
      .run("outer", async () => void (await request(ctx)))
      .catch((error: Error) => error.message);
    return [refusal, await ctx.run("next", () => "next")];
  });
  await using engine = await createTestEngine({ definitions: [outer, inner, plain] });
  const run = await engine.start(outer);
  expect(await run.result()).toEqual([
    expect.stringContaining("The function of step `outer` used the ctx of its workflow."),
    "next",
  ]);
  expect((await collect(run.journal())).map(({ type }) => type)).toEqual([
    "RunStarted",
    "OperationFailed",
    "OperationCompleted",
    "RunCompleted",
  ]);
  expect((await run.verify()).status).toBe("same");
});

test("a workflow that starts at the end of a step is not inside the step", async () => {
  const outer = workflow("outer", async (ctx) => {
    const first = await ctx.run("first", async () => 1);
    return first + (await ctx.child(inner)) + (await ctx.task(plain));
  });
  await using engine = await createTestEngine({ definitions: [outer, inner, plain] });
  const nested = task("starts a run", async () => (await engine.start(outer)).result());
  await using starter = await createTestEngine({ definitions: [nested, workflow("w", (ctx) => ctx.task(nested))] });
  expect(await (await starter.start("w")).result()).toBe(3);
});

test("an error names a result that is not data, and the reason of a cancel", async () => {
  const wrong = workflow("wrong", async (ctx) => ctx.run("fetch", () => (() => 1) as never));
  const waits = workflow("waits", async (ctx) => ctx.sleep("1 day"));
  await using engine = await createTestEngine({ definitions: [wrong, waits] });
  expect((await rejection((await engine.start(wrong)).result())).message).toContain("The result of operation fetch");
  const run = await engine.start(waits, undefined, { id: "run-1" });
  await run.cancel("no longer needed");
  expect((await rejection(run.result())).message).toBe("Run run-1 was cancelled: no longer needed");
});
