// Shield: steps requested inside `ctx.shield` continue when the run is canceled.

import { expect, test } from "vitest";
import { CancelledError, createEngine, promise, task, workflow } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { collect, createFolder, createGate, rejection, storeAround, within } from "./world.ts";

test("cleanup in `finally` may use tasks, operations, timers and children inside a shield, also after the cancel", async () => {
  const did: string[] = [];
  const release = task("release", (_ctx, what: string) => void did.push(`task ${what}`));
  const tidy = workflow("tidy", async (ctx) => ctx.run("tidy", () => void did.push("child")));
  const rental = workflow("rental", { ports: { back: promise() } }, async (ctx) => {
    try {
      await ctx.promise("back");
    } finally {
      await ctx.shield(async () => {
        await ctx.task(release, "car");
        await ctx.run("log", () => void did.push("operation"));
        await ctx.sleep("1 hour");
        await ctx.child(tidy);
      });
    }
  });
  await using engine = await createTestEngine({ definitions: [rental, release, tidy] });
  const run = await engine.start(rental);
  await engine.clock.advance(0);
  await run.cancel("enough");
  await engine.clock.advance("30 minutes");
  expect(did).toEqual(["task car", "operation"]);
  expect((await run.info()).status).toBe("waiting");
  await engine.clock.advance("30 minutes");
  const error = await rejection(run.result());
  expect(error).toBeInstanceOf(CancelledError);
  expect(error.message).toContain("enough");
  expect(did).toEqual(["task car", "operation", "child"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a cancel lets steps inside a shield finish and aborts steps outside", async () => {
  const inside = createGate<string>();
  const outside = createGate<string>();
  const signals = new Map<string, AbortSignal>();
  const work = task("work", (ctx, name: "inside" | "outside") => {
    signals.set(name, ctx.abortSignal);
    return (name === "inside" ? inside : outside).wait();
  });
  const both = workflow("both", async (ctx) => {
    const shielded = ctx.shield(() => ctx.task(work, "inside"));
    const outside = await ctx.task(work, "outside").catch((error: Error) => error.name);
    return { outside, shielded: await shielded };
  });
  await using engine = await createTestEngine({ definitions: [both, work] });
  const run = await engine.start(both);
  await Promise.all([inside.reached, outside.reached]);
  await run.cancel();
  await engine.clock.advance(0);
  expect(signals.get("outside")?.aborted).toBe(true);
  expect(signals.get("inside")?.aborted).toBe(false);
  inside.open("done");
  expect(await run.result()).toEqual({ outside: "CancelledError", shielded: "done" });
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("code after a shield is canceled", async () => {
  const calls: string[] = [];
  const late = workflow("late", { ports: { go: promise() } }, async (ctx) => {
    await ctx.promise("go").catch(() => {});
    await ctx.shield(() => ctx.run("inside", () => void calls.push("inside")));
    await ctx.run("outside", () => void calls.push("outside"));
  });
  await using engine = await createTestEngine({ definitions: [late] });
  const run = await engine.start(late);
  await engine.clock.advance(0);
  await run.cancel();
  expect(await rejection(run.result())).toBeInstanceOf(CancelledError);
  expect(calls).toEqual(["inside"]);
});

test("a shielded timer survives a cancel and a crash, and can still fire or be canceled", async () => {
  const slow = workflow("slow", { ports: { go: promise() } }, async (ctx) => {
    const [first, second] = await ctx.shield(async () => {
      const timers = [ctx.sleep("2 hours"), ctx.sleep("1 day")] as const;
      await timers[0];
      timers[1].cancel();
      return Promise.all([timers[0].then(() => "fired"), timers[1].catch((error: Error) => error.name)]);
    });
    return { first, second };
  });
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [slow], store: source });
  const run = await engine.start(slow);
  await engine.clock.advance("1 hour");
  await run.cancel();
  await engine.clock.advance(0);
  await engine.crash();
  expect(await source.store.check()).toEqual([]);
  await engine.clock.advance("1 hour");
  expect(await run.result()).toEqual({ first: "fired", second: "CancelledError" });
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a shielded wait for a promise survives a cancel, and the store still lists the run as waiting", async () => {
  const source = storeAround((_writes, apply) => apply());
  const asks = workflow("asks", { ports: { sure: promise<boolean>() } }, async (ctx) =>
    ctx.shield(() => ctx.promise("sure")),
  );
  await using engine = await createTestEngine({ definitions: [asks], store: source });
  const run = await engine.start(asks);
  await engine.clock.advance(0);
  await run.cancel();
  await engine.clock.advance(0);
  expect((await run.info()).status).toBe("waiting");
  expect(await source.store.check()).toEqual([]);
  await run.resolve("sure", true);
  expect(await run.result()).toBe(true);
});

test("a second cancel does not affect the cleanup and writes no entry", async () => {
  const gate = createGate();
  const tidy = workflow("tidy", { ports: { go: promise() } }, async (ctx) => {
    try {
      await ctx.promise("go");
    } finally {
      await ctx.shield(() => ctx.run("tidy", () => gate.wait()));
    }
  });
  await using engine = await createTestEngine({ definitions: [tidy] });
  const run = await engine.start(tidy);
  await engine.clock.advance(0);
  await run.cancel("first");
  await gate.reached;
  await run.cancel("second");
  gate.open();
  expect((await rejection(run.result())).message).toContain("first");
  const types = (await collect(run.journal())).map(({ type }) => type);
  expect(types.filter((type) => type === "CancelRequested")).toHaveLength(1);
});

test("ctx.shield inside a step is refused", async () => {
  const wrong = workflow("wrong", async (ctx) => ctx.run("step", () => ctx.shield(async () => 1)));
  await using engine = await createTestEngine({ definitions: [wrong] });
  const run = await engine.start(wrong);
  expect((await rejection(run.result())).cause).toMatchObject({ code: "USAGE" });
});

test("a shielded cleanup that is killed at every commit completes once, and the run ends cancelled", async () => {
  const child = workflow("child", { ports: { go: promise() } }, async (ctx) => {
    try {
      await ctx.promise("go");
    } finally {
      await ctx.shield(async () => {
        await ctx.run("close", () => "closed");
        await ctx.sleep("1 minute");
      });
    }
  });
  const parent = workflow("parent", async (ctx) =>
    ctx.child(child, undefined, { id: "child" }).catch((error: Error) => error.name),
  );
  const { output, crashes } = await crashEverywhere(parent, undefined, {
    definitions: [child],
    drive: async (engine) => {
      await engine.clock.advance(0);
      if ((await engine.find("child")) !== undefined) await engine.get(child.name as never, "child").cancel();
    },
  });
  expect(output).toBe("CancelledError");
  expect(crashes).toBeGreaterThan(8);
});

test("a running task in another process is aborted within a second after the cancel of its run", async () => {
  using folder = createFolder();
  const reached = createGate();
  const aborted = createGate<unknown>();
  const work = task("work", (ctx) => {
    ctx.abortSignal.addEventListener("abort", () => aborted.open(ctx.abortSignal.reason));
    void reached.wait();
    return new Promise<void>(() => {});
  });
  const busy = workflow("busy", async (ctx) => ctx.task(work));
  const store = `sqlite:${folder.file("shared.db")}`;
  // This process has only the workflow, the other one only the task.
  const stand = task("work", () => new Promise<void>(() => {}));
  await using client = await createEngine({ store, definitions: [busy, stand], worker: { concurrency: 1 } });
  await using _other = await createEngine({ store, definitions: [work] });
  // The only task slot of this process is taken, so the other process claims the next task.
  const first = await client.start(busy);
  const run = await client.start(busy);
  await within(5_000, reached.reached);
  const cancelled = performance.now();
  await run.cancel();
  expect(await within(5_000, aborted.opened)).toBeInstanceOf(CancelledError);
  expect(performance.now() - cancelled).toBeLessThan(1_000);
  expect(await rejection(run.result())).toBeInstanceOf(CancelledError);
  await first.cancel();
});
