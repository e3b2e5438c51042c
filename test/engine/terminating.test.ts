// Terminating: the run ends at once, its code is not asked.

import { expect, test } from "vitest";
import { CancelledError, createClient, createEngine, promise, task, workflow } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { collect, createFolder, createGate, rejection, storeAround, within } from "./world.ts";

test("a terminated run ends cancelled at once: no cleanup, no undo, nothing left in the queue", async () => {
  const did: string[] = [];
  const stubborn = workflow("stubborn", { ports: { go: promise() } }, async (ctx) => {
    await ctx.run("step", () => 1, { undo: async () => void did.push("undo") });
    try {
      await Promise.race([ctx.promise("go"), ctx.sleep("1 day")]);
    } finally {
      await ctx.shield(() => ctx.run("cleanup", () => void did.push("cleanup")));
    }
  });
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [stubborn], store: source });
  const run = await engine.start(stubborn);
  await engine.clock.advance(0);
  await run.terminate("no patience");
  const error = await rejection(run.result());
  expect(error).toBeInstanceOf(CancelledError);
  expect(error.message).toContain("terminated: no patience");
  await engine.clock.advance("2 days");
  expect(did).toEqual([]);
  const last = (await collect(run.journal())).at(-1);
  expect(last).toMatchObject({ type: "RunCancelled", data: { terminated: true, reason: "no patience" } });
  expect((await run.info()).status).toBe("cancelled");
  expect((await source.store.info()).items).toEqual({ ready: 0, leased: 0, delayed: 0 });
  expect(await source.store.check()).toEqual([]);
  expect(await run.verify()).toMatchObject({ status: "same" });
  await run.terminate();
  expect((await run.info()).status).toBe("cancelled");
});

test("running functions of a terminated run are aborted, and their late results change nothing", async () => {
  const gate = createGate<string>();
  const signals: AbortSignal[] = [];
  const call = (ctx: { abortSignal: AbortSignal }): Promise<string> => {
    signals.push(ctx.abortSignal);
    return gate.wait();
  };
  const work = task("work", call);
  const busy = workflow("busy", async (ctx) => Promise.all([ctx.task(work), ctx.run("work", call)]));
  await using engine = await createTestEngine({ definitions: [busy, work] });
  const run = await engine.start(busy);
  await engine.clock.advance(0);
  await run.terminate();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  const before = await run.info();
  gate.open("late");
  await engine.clock.advance("1 hour");
  expect(await run.info()).toEqual(before);
});

test("the parent of a terminated run is answered, and its children are asked to stop", async () => {
  const leaf = workflow("leaf", { ports: { go: promise() } }, async (ctx) => ctx.promise("go"));
  const middle = workflow("middle", async (ctx) => ctx.child(leaf, undefined, { id: "leaf" }));
  const top = workflow("top", async (ctx) =>
    ctx.child(middle, undefined, { id: "middle" }).catch((error: Error) => `${error.name}: ${error.message}`),
  );
  await using engine = await createTestEngine({ definitions: [top, middle, leaf] });
  const run = await engine.start(top);
  await engine.clock.advance(0);
  await engine.get(middle, "middle").terminate("enough");
  expect(await run.result()).toBe("CancelledError: Run middle was terminated: enough");
  expect(await rejection(engine.get(leaf, "leaf").result())).toBeInstanceOf(CancelledError);
  const [, cancel] = (await collect(engine.get(leaf, "leaf").journal())).slice(-3);
  expect(cancel).toMatchObject({ type: "CancelRequested" });
});

test("a run that is paused, blocked or violated can be terminated", async () => {
  const broken = workflow("broken", async () => new Promise<void>(() => {}));
  const waits = workflow("waits", { ports: { go: promise() } }, async (ctx) => ctx.promise("go"));
  await using engine = await createTestEngine({ definitions: [broken, waits] });
  const blocked = await engine.start(broken);
  await rejection(blocked.result());
  await blocked.terminate();
  expect(await blocked.info()).toMatchObject({ status: "cancelled" });
  expect((await blocked.info()).error).toBeUndefined();
  const paused = await engine.start(waits);
  await paused.pause();
  await paused.terminate();
  expect(await paused.info()).toMatchObject({ status: "cancelled" });
});

test("a worker in another process that holds the run cannot commit, and its function is aborted", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const reached = createGate();
  const aborted = createGate();
  const busy = workflow("busy", async (ctx) =>
    ctx.run("work", async (op) => {
      op.abortSignal.addEventListener("abort", () => aborted.open());
      reached.open();
      await new Promise<void>(() => {});
    }),
  );
  await using worker = await createEngine({ store, definitions: [busy] });
  await using client = await createClient({ store, definitions: [busy] });
  const run = await worker.start(busy);
  await within(5_000, reached.opened);
  const started = performance.now();
  await client.get(busy, run.id).terminate();
  await within(5_000, aborted.opened);
  expect(performance.now() - started).toBeLessThan(1_000);
  expect(await rejection(within(5_000, run.result()))).toBeInstanceOf(CancelledError);
});

test("a reason that is not a text, and a run that does not exist, are refused", async () => {
  const quick = workflow("quick", async () => 1);
  await using engine = await createTestEngine({ definitions: [quick] });
  expect(await rejection(engine.get(quick, "unknown").terminate())).toMatchObject({ code: "RUN_NOT_FOUND" });
  const run = await engine.start(quick);
  expect(await rejection(run.terminate(5 as never))).toMatchObject({ code: "BAD_OPTIONS" });
  expect(await run.result()).toBe(1);
});

test("a parent whose child is terminated ends the same, killed at every commit", async () => {
  const child = workflow("child", { ports: { go: promise() } }, async (ctx) => ctx.promise("go"));
  const parent = workflow("parent", async (ctx) =>
    ctx.child(child, undefined, { id: "child" }).catch((error: Error) => error.message),
  );
  const { output } = await crashEverywhere(parent, undefined, {
    definitions: [child],
    drive: async (engine) => {
      await engine.clock.advance(0);
      if ((await engine.find("child")) !== undefined) await engine.get(child.name as never, "child").terminate("x");
    },
  });
  expect(output).toBe("Run child was terminated: x");
});
