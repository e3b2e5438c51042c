// Deadlines: the total time a run may take.

import { expect, test } from "vitest";
import { promise, queue, task, workflow } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { collect, createGate, rejection, storeAround } from "./world.ts";

const waits = workflow("waits", { ports: { go: promise() } }, async (ctx) => ctx.promise("go"));

test("a run that does not end within its deadline fails with DEADLINE_EXCEEDED", async () => {
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [waits], store: source });
  const run = await engine.start(waits, undefined, { deadline: "1 hour" });
  await engine.clock.advance("59 minutes");
  expect((await run.info()).status).toBe("waiting");
  expect(await source.store.check()).toEqual([]);
  await engine.clock.advance("1 minute");
  const error = await rejection(run.result());
  expect(error).toMatchObject({ code: "RUN_FAILED", cause: { code: "DEADLINE_EXCEEDED" } });
  expect((error.cause as Error).message).toContain("deadline of 1 h.");
  expect((await run.info()).status).toBe("failed");
  const types = (await collect(run.journal())).map(({ type }) => type);
  expect(types).toEqual(["RunStarted", "PromiseCreated", "DeadlineExceeded", "RunFailed"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a run that ends in time leaves no deadline item", async () => {
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [waits], store: source });
  const run = await engine.start(waits, undefined, { deadline: "1 hour" });
  await run.resolve("go");
  await run.result();
  expect((await source.store.info()).items).toEqual({ ready: 0, leased: 0, delayed: 0 });
});

test("a definition sets the deadline of its runs, and a start may override it", async () => {
  const hurried = workflow("hurried", { deadline: "1 minute", ports: { go: promise() } }, async (ctx) =>
    ctx.promise("go"),
  );
  await using engine = await createTestEngine({ definitions: [hurried] });
  const one = await engine.start(hurried);
  const other = await engine.start(hurried, undefined, { deadline: "1 day" });
  await engine.clock.advance("1 minute");
  expect((await rejection(one.result())).cause).toMatchObject({ code: "DEADLINE_EXCEEDED" });
  expect((await other.info()).status).toBe("waiting");
});

test("a child has its own deadline; one that passes is a failure of that child only", async () => {
  const parent = workflow("parent", async (ctx) =>
    ctx.child(waits, undefined, { deadline: "1 hour" }).catch((error: { code?: string }) => error.code),
  );
  await using engine = await createTestEngine({ definitions: [parent, waits] });
  const run = await engine.start(parent);
  await engine.clock.advance("1 hour");
  expect(await run.result()).toBe("DEADLINE_EXCEEDED");
});

test("when the deadline passes, cleanup and undo run, and functions and children are cancelled", async () => {
  const did: string[] = [];
  const gate = createGate();
  const work = task("work", (ctx) => {
    ctx.abortSignal.addEventListener("abort", () => did.push("aborted"));
    return gate.wait();
  });
  const long = workflow("long", async (ctx) => {
    await ctx.run("step", () => 1, { undo: async () => void did.push("undo") });
    try {
      await Promise.all([ctx.task(work), ctx.child(waits, undefined, { id: "child" })]);
    } finally {
      await ctx.shield(() => ctx.run("cleanup", () => void did.push("cleanup")));
    }
  });
  await using engine = await createTestEngine({ definitions: [long, waits, work] });
  const run = await engine.start(long, undefined, { deadline: "1 hour" });
  await engine.clock.advance("1 hour");
  expect((await rejection(run.result())).cause).toMatchObject({ code: "DEADLINE_EXCEEDED" });
  expect(did).toEqual(["aborted", "cleanup", "undo"]);
  expect((await rejection(engine.get(waits, "child").result())).message).toContain("deadline of its parent");
  expect(await run.verify()).toMatchObject({ status: "same" });
  gate.open();
});

test("code that catches the deadline's error completes", async () => {
  const stubborn = workflow("stubborn", async (ctx) => ctx.sleep("1 day").catch(() => "anyway"));
  await using engine = await createTestEngine({ definitions: [stubborn] });
  const run = await engine.start(stubborn, undefined, { deadline: "1 hour" });
  await engine.clock.advance("1 hour");
  expect(await run.result()).toBe("anyway");
});

test("a run whose deadline passes before it starts fails, and its code does not run", async () => {
  const started: string[] = [];
  const later = workflow("later", async () => void started.push("started"));
  await using engine = await createTestEngine({ definitions: [later] });
  const run = await engine.start(later, undefined, { delay: "2 hours", deadline: "1 hour" });
  await engine.clock.advance("3 hours");
  expect((await rejection(run.result())).cause).toMatchObject({ code: "DEADLINE_EXCEEDED" });
  expect([started, (await run.info()).status]).toEqual([[], "failed"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a run whose deadline passes while it waits for its queue fails, and the others keep their order", async () => {
  const started: string[] = [];
  const build = workflow(
    "build",
    { ports: { go: promise() }, queue: queue("builds", { concurrency: 1 }) },
    async (ctx, id: string) => {
      started.push(id);
      await ctx.promise("go");
    },
  );
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [build], store: source });
  const first = await engine.start(build, "first");
  const late = await engine.start(build, "late", { deadline: "1 hour" });
  const next = await engine.start(build, "next");
  await engine.clock.advance("1 hour");
  expect((await rejection(late.result())).cause).toMatchObject({ code: "DEADLINE_EXCEEDED" });
  expect(await late.verify()).toMatchObject({ status: "same" });
  expect((await Array.fromAsync(engine.listQueues()))[1]).toMatchObject({ leased: 1, ready: 1 });
  await first.resolve("go");
  await engine.clock.advance(0);
  expect(started).toEqual(["first", "next"]);
  await next.resolve("go");
  await next.result();
  expect((await source.store.info()).items).toEqual({ ready: 0, leased: 0, delayed: 0 });
  expect(await source.store.check()).toEqual([]);
});

test("a debounced run that is delayed beyond its deadline fails; each start restarts the deadline", async () => {
  const started: number[] = [];
  const save = workflow("save", async (_ctx, n: number) => void started.push(n));
  await using engine = await createTestEngine({ definitions: [save] });
  const debounce = { key: "doc", by: "1 hour" } as const;
  const run = await engine.start(save, 1, { debounce, deadline: "40 minutes" });
  await engine.clock.advance("30 minutes");
  await engine.start(save, 2, { debounce, deadline: "40 minutes" });
  await engine.clock.advance("30 minutes");
  expect((await run.info()).status).toBe("queued");
  await engine.clock.advance("1 hour");
  expect((await rejection(run.result())).cause).toMatchObject({ code: "DEADLINE_EXCEEDED" });
  expect([started, (await run.info()).status]).toEqual([[], "failed"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a deadline covers all generations of a run", async () => {
  const counts = workflow("counts", async (ctx, n: number): Promise<string> => {
    await ctx.sleep("20 minutes");
    return ctx.continueAsNew(n + 1);
  });
  await using engine = await createTestEngine({ definitions: [counts] });
  const run = await engine.start(counts, 0, { deadline: "1 hour" });
  await engine.clock.advance("50 minutes");
  expect((await run.info()).status).toBe("waiting");
  await engine.clock.advance("10 minutes");
  expect((await rejection(run.result())).cause).toMatchObject({ code: "DEADLINE_EXCEEDED" });
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("the first of a cancel and a deadline decides how the run ends", async () => {
  const slow = workflow("slow", { ports: { go: promise() } }, async (ctx) => {
    try {
      await ctx.promise("go");
    } finally {
      await ctx.shield(() => ctx.sleep("2 hours"));
    }
  });
  await using engine = await createTestEngine({ definitions: [slow] });
  const [cancelled, late] = [
    await engine.start(slow, undefined, { deadline: "1 hour" }),
    await engine.start(slow, undefined, { deadline: "1 hour" }),
  ];
  await engine.clock.advance("1 minute");
  await cancelled.cancel();
  await engine.clock.advance("1 hour");
  await late.cancel();
  await engine.clock.advance("2 hours");
  expect((await cancelled.info()).status).toBe("cancelled");
  expect((await late.info()).status).toBe("failed");
});

test("an invalid deadline is refused before anything is written", async () => {
  await using engine = await createTestEngine({ definitions: [waits] });
  expect(await rejection(engine.start(waits, undefined, { deadline: 0 }))).toMatchObject({ code: "BAD_OPTIONS" });
  expect(await rejection(engine.start(waits, undefined, { deadline: "soon" as never }))).toMatchObject({
    code: "BAD_DURATION",
  });
  expect(() => workflow("never", { deadline: 0 }, async () => 1)).toThrow("deadline above 0");
  expect(await collect(engine.list())).toEqual([]);
});

test("a run that misses its deadline ends the same after a crash at every commit", async () => {
  const inner = workflow("inner", { deadline: "1 hour" }, async (ctx) => {
    await ctx.run("take", () => 1, { undo: async (n) => `gave back ${n}` });
    await ctx.sleep("2 hours");
  });
  const outer = workflow("outer", async (ctx) =>
    ctx.child(inner, undefined, { id: "inner" }).catch((error: { code?: string }) => error.code),
  );
  const { output, crashes } = await crashEverywhere(outer, undefined, { definitions: [inner] });
  expect(output).toBe("DEADLINE_EXCEEDED");
  expect(crashes).toBeGreaterThan(8);
});
