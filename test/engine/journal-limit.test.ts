// The limit of a journal's length.

import { describe, expect, test } from "vitest";
import { signal, task, workflow, type RepriseError } from "reprise";
import { createTestEngine } from "reprise/testing";
import { collect, createFolder, rejection, storeAround } from "./world.ts";

const steps = workflow("steps", async (ctx, count: number) => {
  for (let n = 0; n < count; n += 1) await ctx.run(`step ${n}`, () => n);
  return count;
});

describe("a journal that reaches its limit", () => {
  test("stops the run with the next step, writes nothing partially, and the run continues when the limit is raised", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    {
      await using engine = await createTestEngine({ definitions: [steps], store, limits: { entries: 10 } });
      const run = await engine.start(steps, 30, { id: "run-1" });
      const error = (await rejection(run.result())) as RepriseError;
      expect(error.code).toBe("RUN_BLOCKED");
      expect(error.message).toContain("ctx.continueAsNew()");
      expect(error.message).toContain("limits.entries");
      expect(error.details).toMatchObject({ code: "JOURNAL_TOO_LONG", expected: 10, actual: 10 });
      expect(await run.info()).toMatchObject({ status: "blocked", entries: 10 });
      expect(await run.verify()).toMatchObject({ status: "same" });
      // Resumed under the same limit, it stops again at the same place.
      await run.resume();
      await rejection(run.result());
      expect((await run.info()).entries).toBe(10);
    }
    await using engine = await createTestEngine({ definitions: [steps], store, limits: { entries: 100 } });
    const run = engine.get(steps, "run-1");
    await run.resume();
    expect(await run.result()).toBe(30);
    expect(await run.verify()).toMatchObject({ status: "same" });
  });

  test("may still end, or continue as new", async () => {
    const loops = workflow("loops", async (ctx, n: number): Promise<string> => {
      for (let step = 0; step < 8; step += 1) await ctx.run(`step ${step}`, () => step);
      return n === 3 ? "over" : ctx.continueAsNew(n + 1);
    });
    await using engine = await createTestEngine({ definitions: [loops], limits: { entries: 9 } });
    expect(await (await engine.start(loops, 0)).result()).toBe("over");
  });

  test("loses no message that arrives while the run is stopped", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    const ports = { add: signal<number>() };
    const sums = workflow("sums", { ports }, async (ctx) => {
      let sum = 0;
      for (let n = 0; n < 20; n += 1) sum += await ctx.receive("add");
      return sum;
    });
    {
      await using engine = await createTestEngine({ definitions: [sums], store, limits: { entries: 5 } });
      const run = await engine.start(sums, undefined, { id: "run-1" });
      for (let n = 0; n < 20; n += 1) await run.signal("add", n);
      await engine.clock.advance(0);
      expect((await run.info()).status).toBe("blocked");
    }
    await using engine = await createTestEngine({ definitions: [sums], store });
    const run = engine.get(sums, "run-1");
    await run.resume();
    expect(await run.result()).toBe(190);
  });

  test("releases the leases of a commit in flight, and the work runs when the run is resumed", async () => {
    let held: (() => void) | undefined;
    const source = storeAround(async (writes, apply) => {
      if (held === undefined && writes.some((write) => write.write === "turn" && write.items.length > 0))
        await new Promise<void>((resolve) => (held = resolve));
      return apply();
    });
    let done = 0;
    const work = task("work", () => void (done += 1));
    const gate = Promise.withResolvers<void>();
    const both = workflow("both", async (ctx) => {
      const slow = ctx
        .run("slow", () => gate.promise)
        .then(async () => {
          for (let n = 0; n < 5; n += 1) await ctx.run(`step ${n}`, () => n);
        });
      await ctx.task(work);
      await slow;
      return "done";
    });
    await using engine = await createTestEngine({ definitions: [both, work], store: source, limits: { entries: 4 } });
    const run = await engine.start(both);
    const result = rejection(run.result());
    gate.resolve();
    while (held === undefined) await new Promise((resolve) => setImmediate(resolve));
    (held as () => void)();
    expect((await result).code).toBe("RUN_BLOCKED");
    await engine.clock.advance("1 minute");
    // Running or done: no lease is held by a worker that does not know it.
    expect(done).toBe(1);
  });

  test("may hold 100,000 tasks, and the worker warns of the length once", { timeout: 120_000 }, async () => {
    const warnings: string[] = [];
    const logger = { info: () => {}, warn: (message: string) => void warnings.push(message), error: () => {} };
    const tiny = task("tiny", (_ctx, n: number) => n);
    const wide = workflow("wide", async (ctx, count: number) => {
      const all = await Promise.all(Array.from({ length: count }, (_, n) => ctx.task(tiny, n)));
      return all.length;
    });
    await using engine = await createTestEngine({ definitions: [wide, tiny], logger });
    const run = await engine.start(wide, 100_000);
    expect(await run.result()).toBe(100_000);
    expect((await run.info()).entries).toBe(200_002);
    expect(warnings.filter((message) => message.includes("continueAsNew"))).toHaveLength(1);
  });

  test("an invalid limit is refused", async () => {
    for (const entries of [0, -1, 1.5, "many"])
      expect(
        (await rejection(createTestEngine({ definitions: [steps], limits: { entries: entries as number } }))).code,
      ).toBe("BAD_OPTIONS");
    await using engine = await createTestEngine({ definitions: [steps] });
    expect(await collect(engine.list())).toEqual([]);
  });
});
