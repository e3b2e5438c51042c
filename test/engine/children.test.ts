// Children: runs of their own, matched by id.

import { expect, test } from "vitest";
import { promise, workflow, type RepriseError } from "reprise";
import { createTestEngine } from "reprise/testing";
import { collect, rejection } from "./world.ts";

const child = workflow("child", { ports: { go: promise<number>() } }, async (ctx, mode: "fail" | "wait" | "ok") => {
  if (mode === "fail") throw new RangeError("child failed", { cause: "why" });
  if (mode === "wait") return ctx.promise("go");
  return ctx.run("ok", () => 1);
});

test("a child's failure reaches the parent, which may catch it", async () => {
  const parent = workflow("parent", async (ctx) => {
    const caught = await ctx.child(child, "fail").catch((error: unknown) => error as Error);
    return { message: (caught as Error).message, cause: (caught as Error).cause, range: caught instanceof RangeError };
  });
  const careless = workflow("careless", async (ctx) => ctx.child(child, "fail"));
  await using engine = await createTestEngine({ definitions: [parent, careless, child] });
  expect(await (await engine.start(parent)).result()).toEqual({ message: "child failed", cause: "why", range: true });
  const error = await rejection((await engine.start(careless)).result());
  expect(error.code).toBe("RUN_FAILED");
  expect(error.cause).toBeInstanceOf(RangeError);
});

test("a child's default id is the same after a crash, and it is not started twice", async () => {
  const parent = workflow("parent", async (ctx) => {
    const waiting = ctx.child(child, "wait");
    return { id: waiting.id, got: await waiting };
  });
  await using engine = await createTestEngine({ definitions: [parent, child] });
  const run = await engine.start(parent, undefined, { id: "parent-1" });
  await engine.clock.advance(0);
  const [before] = await collect(engine.list({ definition: "child" }));
  await engine.crash();
  const children = await collect(engine.list({ definition: "child" }));
  expect(children.map(({ id }) => id)).toEqual([before?.id]);
  await engine.get(child, before?.id ?? "").resolve("go", 5);
  expect(await run.result()).toEqual({ id: before?.id, got: 5 });
  const twin = await engine.start(parent, undefined, { id: "parent-2" });
  await engine.clock.advance(0);
  expect(await collect(engine.list({ definition: "child" }))).toHaveLength(2);
  await twin.cancel();
});

test("per type too, code that starts a child with another id stops the run, and the old code continues it", async () => {
  let id = "order-1";
  const parent = workflow("parent", { determinism: "per-type" }, async (ctx) => ctx.child(child, "wait", { id }));
  await using engine = await createTestEngine({ definitions: [parent, child] });
  const run = await engine.start(parent);
  await engine.clock.advance(0);
  id = "order-2";
  await engine.crash();
  await engine.get(child, "order-1").resolve("go", 5);
  const stopped = await rejection(run.result());
  expect(stopped.message).toContain(
    "the journal recorded the child with id 'order-1'; the code now starts the child with id 'order-2'",
  );
  expect(await run.info()).toMatchObject({ status: "determinism_violation" });
  expect((await collect(engine.list({ definition: "child" }))).map((found) => found.id)).toEqual(["order-1"]);
  id = "order-1";
  await run.resume();
  expect(await run.result()).toBe(5);
});

test("a detached child outlives its parent and does not answer it", async () => {
  const parent = workflow("parent", async (ctx) => {
    const left = ctx.child(child, "wait", { id: "left-behind", detached: true });
    const refusal = await left.catch((error: unknown) => (error as RepriseError).code);
    return { refusal, id: left.id };
  });
  await using engine = await createTestEngine({ definitions: [parent, child] });
  const run = await engine.start(parent);
  expect(await run.result()).toEqual({ refusal: "USAGE", id: "left-behind" });
  await engine.get(child, "left-behind").resolve("go", 9);
  expect(await engine.get(child, "left-behind").result()).toBe(9);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a child whose id is taken fails with START_CONFLICT, and the other run is left alone", async () => {
  const parent = workflow("parent", async (ctx) =>
    ctx.child(child, "ok", { id: "taken" }).catch((error: unknown) => (error as RepriseError).code),
  );
  await using engine = await createTestEngine({ definitions: [parent, child] });
  const other = await engine.start(child, "wait", { id: "taken" });
  const run = await engine.start(parent);
  expect(await run.result()).toBe("START_CONFLICT");
  expect((await other.info()).status).toBe("waiting");
  await other.resolve("go", 1);
  expect(await other.result()).toBe(1);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a hundred children run beside each other and answer in the order asked", async () => {
  const square = workflow("square", async (ctx, n: number) => ctx.run("square", () => n * n));
  const parent = workflow("parent", async (ctx, count: number) =>
    Promise.all(Array.from({ length: count }, (_, n) => ctx.child(square, n))),
  );
  await using engine = await createTestEngine({ definitions: [parent, square] });
  const run = await engine.start(parent, 100);
  expect(await run.result()).toEqual(Array.from({ length: 100 }, (_, n) => n * n));
});

test("ctx.log is heard once, however often the run is replayed", async () => {
  const heard: string[] = [];
  const logger = { info: (message: string) => void heard.push(message), warn: () => {}, error: () => {} };
  const talker = workflow("talker", { ports: { go: promise() } }, async (ctx) => {
    ctx.log.info("began");
    await ctx.run("step", (op) => op.log.info("in the step"));
    ctx.log.info("after the step");
    await ctx.promise("go");
    ctx.log.info("continued");
  });
  await using engine = await createTestEngine({ definitions: [talker], logger });
  const run = await engine.start(talker);
  await engine.clock.advance(0);
  await engine.crash();
  await engine.crash();
  await run.resolve("go");
  await run.result();
  await run.replay();
  await run.verify();
  expect(heard).toEqual(["began", "in the step", "after the step", "continued"]);
});
