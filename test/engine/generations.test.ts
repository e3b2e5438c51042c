// ctx.continueAsNew: a run continues under its id with a new journal.

import { describe, expect, test } from "vitest";
import { CancelledError, promise, queue, signal, stream, task, workflow, type RepriseError } from "reprise";
import { crashEverywhere, createTestEngine, exportJournal } from "reprise/testing";
import { collect, createFolder, rejection, watchEvents } from "./world.ts";

const countdown = workflow("countdown", async (ctx, n: number): Promise<string> => {
  await ctx.run("tick", () => n);
  if (n > 0) return ctx.continueAsNew(n - 1);
  return `over in generation ${ctx.uuid().length}`;
});

describe("a run that continues as new", () => {
  test("keeps its id, has one journal per generation, and result() waits for the last generation", async () => {
    await using engine = await createTestEngine({ definitions: [countdown] });
    const run = await engine.start(countdown, 3, { id: "run-1", tags: ["a", "b"], priority: 7 });
    expect(await run.result()).toBe("over in generation 36");
    const info = await run.info();
    expect(info).toMatchObject({ id: "run-1", generation: 3, status: "completed", tags: ["a", "b"], version: 1 });
    for (const generation of [0, 1, 2]) {
      const types = (await collect(run.journal({ generation }))).map(({ type }) => type);
      expect(types).toEqual(["RunStarted", "OperationCompleted", "RunContinued"]);
      expect(await run.verify({ generation })).toMatchObject({ status: "same" });
      expect((await exportJournal(run, { generation })).generation).toBe(generation);
    }
    expect((await collect(run.journal())).at(-1)?.type).toBe("RunCompleted");
    expect((await exportJournal(run)).generation).toBe(3);
    expect(await run.verify()).toMatchObject({ status: "same" });
    const listed = await collect(engine.list());
    expect(listed.map(({ generation, status }) => [generation, status])).toEqual([
      [3, "completed"],
      [2, "continued"],
      [1, "continued"],
      [0, "continued"],
    ]);
    expect((await rejection(collect(run.journal({ generation: 9 })))).code).toBe("RUN_NOT_FOUND");
    expect((await rejection(run.verify({ generation: -1 }))).code).toBe("BAD_OPTIONS");
    // Still the run that was started with 3.
    expect(await (await engine.start(countdown, 3, { id: "run-1" })).result()).toBe("over in generation 36");
    expect((await rejection(engine.start(countdown, 0, { id: "run-1" }))).code).toBe("START_CONFLICT");
  });

  test("has other random numbers and other keys in each generation", async () => {
    const keys: string[] = [];
    const draws = workflow("draws", async (ctx, seen: readonly string[]): Promise<readonly string[]> => {
      await ctx.run("step", (op) => void keys.push(op.idempotencyKey));
      const all = [...seen, ctx.uuid(), ctx.idempotencyKey];
      return all.length < 6 ? ctx.continueAsNew(all) : all;
    });
    await using engine = await createTestEngine({ definitions: [draws] });
    const all = await (await engine.start(draws, [])).result();
    expect(new Set([...all, ...keys]).size).toBe(9);
  });

  test("has the same result after a crash at every commit", async () => {
    const work = task("work", (_ctx, n: number) => n * 2);
    const ports = { add: signal<number>(), chunks: stream<number>() };
    const sums = workflow(
      "sums",
      { ports },
      async (ctx, { sum, rounds }: { sum: number; rounds: number }): Promise<number> => {
        const n = await ctx.receive("add");
        ctx.emit("chunks", n);
        if (ctx.patched("double")) sum += await ctx.task(work, n);
        await ctx.sleep("1 hour");
        return rounds === 1 ? sum : ctx.continueAsNew({ sum, rounds: rounds - 1 });
      },
    );
    const { output, crashes } = await crashEverywhere(
      sums,
      { sum: 0, rounds: 3 },
      {
        definitions: [work],
        async drive(engine, id) {
          for (const n of [1, 10, 100]) await engine.get(sums, id).signal("add", n, { dedupId: `n-${n}` });
        },
      },
    );
    expect(output).toBe(222);
    expect(crashes).toBeGreaterThan(20);
  });

  test("carries unreceived signals over in order, journaled or not, before later ones", async () => {
    const ports = { add: signal<number>(), go: promise() };
    const inbox = workflow("inbox", { ports }, async (ctx, seen: readonly number[]): Promise<readonly number[]> => {
      if (seen.length === 0) await ctx.promise("go");
      const all = [...seen, await ctx.receive("add")];
      return all.length === 5 ? all : ctx.continueAsNew(all);
    });
    await using engine = await createTestEngine({ definitions: [inbox] });
    const run = await engine.start(inbox, [], { id: "run-1" });
    for (const n of [1, 2, 3]) await run.signal("add", n, { dedupId: String(n) });
    await engine.clock.advance(0);
    await Promise.all([run.resolve("go"), run.signal("add", 4)]);
    await engine.clock.advance(0);
    expect((await run.info()).generation).toBe(4);
    // The next generation recognizes a repeated signal.
    await run.signal("add", 1, { dedupId: "1" });
    await run.signal("add", 5);
    expect(await run.result()).toEqual([1, 2, 3, 4, 5]);
  });

  test("carries over a promise that was resolved early, and ends when it was cancelled instead", async () => {
    const ports = { first: promise(), later: promise<string>() };
    const early = workflow("early", { ports }, async (ctx, round: number): Promise<string> => {
      if (round === 0) {
        await ctx.promise("first");
        return ctx.continueAsNew(1);
      }
      const word = await ctx.promise("later");
      await ctx.sleep("1 hour");
      return word;
    });
    await using engine = await createTestEngine({ definitions: [early] });
    const run = await engine.start(early, 0, { id: "run-1" });
    await run.resolve("later", "hello");
    await engine.clock.advance(0);
    await Promise.all([run.resolve("first"), run.cancel("enough")]);
    const error = await rejection(run.result());
    expect([error instanceof CancelledError, error.message]).toEqual([true, "Run run-1 was cancelled: enough"]);
    const second = await engine.start(early, 0, { id: "run-2" });
    await second.resolve("later", "hello");
    await second.resolve("first");
    await engine.clock.advance(0);
    // The carried value is the port's only value.
    expect((await rejection(second.resolve("later", "again"))).code).toBe("PROMISE_ALREADY_RESOLVED");
    await engine.clock.advance("1 hour");
    expect(await second.result()).toBe("hello");
  });

  test("replies to its parent once, from its last generation, which also receives the parent's cancel", async () => {
    const parent = workflow(
      "parent",
      async (ctx, n: number) => `child: ${await ctx.child(countdown, n, { id: "child" })}`,
    );
    const forever = workflow("forever", async (ctx, n: number): Promise<never> => {
      await ctx.sleep("1 hour");
      return ctx.continueAsNew(n + 1);
    });
    const holder = workflow("holder", async (ctx) => ctx.child(forever, 0, { id: "endless" }));
    await using engine = await createTestEngine({ definitions: [parent, countdown, forever, holder] });
    expect(await (await engine.start(parent, 4)).result()).toBe("child: over in generation 36");
    const run = await engine.start(holder);
    await engine.clock.advance("5 hours");
    expect(await engine.find("endless")).toMatchObject({ generation: 5, status: "waiting" });
    await run.cancel();
    await rejection(run.result());
    await engine.clock.advance(0);
    expect((await engine.find("endless"))?.status).toBe("cancelled");
  });

  test("drops its open tasks and timers, keeps their entries, and does not cancel its children", async () => {
    const slow = task("slow", async (ctx) => {
      if (ctx.runId === "run-1") await new Promise((resolve) => ctx.abortSignal.addEventListener("abort", resolve));
    });
    const child = workflow("child", async (ctx) => ctx.sleep("2 hours"));
    const leaves = workflow("leaves", async (ctx, round: number): Promise<string> => {
      if (round === 1) {
        // Command numbers restart: replies to old commands must not settle new ones.
        await ctx.sleep("30 minutes");
        return "second";
      }
      void ctx.task(slow).catch(() => {});
      void ctx.sleep("10 minutes").catch(() => {});
      void ctx.child(child, undefined, { id: "left" }).catch(() => {});
      return ctx.continueAsNew(1);
    });
    await using engine = await createTestEngine({ definitions: [leaves, child, slow] });
    const run = await engine.start(leaves, 0, { id: "run-1" });
    await engine.clock.advance("20 minutes");
    expect((await run.info()).status).toBe("waiting");
    await engine.clock.advance("10 minutes");
    expect(await run.result()).toBe("second");
    expect((await collect(run.journal({ generation: 0 }))).map(({ type }) => type)).toEqual([
      "RunStarted",
      "TaskScheduled",
      "TimerStarted",
      "ChildWorkflowInitiated",
      "RunContinued",
    ]);
    expect(await run.verify({ generation: 0 })).toMatchObject({ status: "same" });
    expect((await engine.find("left"))?.status).toBe("waiting");
  });

  test("keeps its queue slot and its singleton key until the last generation has ended", async () => {
    const line = queue("line", { concurrency: 1 });
    const waits = workflow("waits", { queue: line }, async (ctx, n: number): Promise<number> => {
      await ctx.sleep("1 hour");
      return n === 2 ? n : ctx.continueAsNew(n + 1);
    });
    await using engine = await createTestEngine({ definitions: [waits] });
    await engine.start(waits, 0, { id: "first", singleton: "one" });
    await engine.start(waits, 2, { id: "second" });
    await engine.clock.advance("90 minutes");
    expect(await engine.find("first")).toMatchObject({ generation: 1, status: "waiting" });
    expect(await engine.find("second")).toMatchObject({ status: "queued", entries: 1 });
    expect((await engine.start(waits, 0, { singleton: "one" })).id).toBe("first");
    await engine.clock.advance("2 hours");
    expect(await engine.find("first")).toMatchObject({ generation: 2, status: "completed" });
    expect((await engine.find("second"))?.status).toBe("waiting");
  });

  test("continues its streams at the next offset", async () => {
    const ports = { out: stream<number>() };
    const emits = workflow("emits", { ports }, async (ctx, n: number): Promise<void> => {
      ctx.emit("out", n);
      ctx.emit("out", n + 1);
      if (n < 4) return ctx.continueAsNew(n + 2);
    });
    await using engine = await createTestEngine({ definitions: [emits] });
    const run = await engine.start(emits, 0);
    await run.result();
    const chunks = await collect(run.stream("out"));
    expect(chunks.map(({ offset, value }) => [offset, value])).toEqual([0, 1, 2, 3, 4, 5].map((n) => [n + 1, n]));
  });

  test("does not starve other runs when it continues without end, and stops when the engine closes", async () => {
    const endless = workflow("endless", async (ctx, n: number): Promise<never> => ctx.continueAsNew(n + 1));
    const other = workflow("other", async (ctx) => {
      for (let n = 0; n < 5; n += 1) await ctx.run(`step ${n}`, () => n);
      return "done";
    });
    await using engine = await createTestEngine({ definitions: [endless, other] });
    const loops = await Promise.all([1, 2, 3].map(() => engine.start(endless, 0)));
    for (let n = 0; n < 20; n += 1) expect(await (await engine.start(other)).result()).toBe("done");
    for (const loop of loops) expect((await loop.info()).generation).toBeGreaterThan(5);
    await Promise.all(loops.map((loop) => loop.cancel()));
    for (const loop of loops) expect(await rejection(loop.result())).toBeInstanceOf(CancelledError);
  });

  test("ignores code after continueAsNew, also in a catch around it", async () => {
    const rest: string[] = [];
    const continues = workflow("continues", async (ctx, n: number): Promise<string> => {
      if (n === 1) return "second";
      try {
        void ctx.continueAsNew(1);
        await ctx.run("after", () => void rest.push("after"));
        rest.push("never here");
      } catch {
        rest.push("caught");
      }
      return "first";
    });
    await using engine = await createTestEngine({ definitions: [continues] });
    const run = await engine.start(continues, 0);
    expect(await run.result()).toBe("second");
    expect(rest.filter((word) => word !== "after")).toEqual([]);
    expect(await run.verify({ generation: 0 })).toMatchObject({ status: "same" });
  });

  test("is replayed against the input it continued with", async () => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("runs.db")}`;
    const counts = (by: number) =>
      workflow("counts", async (ctx, n: number): Promise<number> => (n < 3 ? ctx.continueAsNew(n + by) : n));
    {
      await using engine = await createTestEngine({ definitions: [counts(1)], store });
      await (await engine.start("counts", 0, { id: "run-1" })).result();
    }
    await using engine = await createTestEngine({ definitions: [counts(2)], store });
    const verdict = await engine.get("counts", "run-1").verify({ generation: 0 });
    expect(verdict).toMatchObject({
      status: "mismatch",
      message: "the journal recorded another end of the run than the code now reaches.",
    });
  });

  test("refuses an invalid input or option at the call", async () => {
    using watched = watchEvents();
    const wrong = workflow("wrong", async (ctx, what: string): Promise<string> => {
      if (what === "function") return ctx.continueAsNew((() => {}) as never);
      if (what === "option") return ctx.continueAsNew("", { verson: 2 } as never);
      if (what === "inside") return ctx.run("step", () => ctx.continueAsNew(""));
      return ctx.continueAsNew("x", { version: 0 });
    });
    await using engine = await createTestEngine({ definitions: [wrong] });
    const causeOf = async (what: string) =>
      (await rejection((await engine.start(wrong, what)).result())).cause as RepriseError;
    expect((await causeOf("function")).code).toBe("NOT_DATA");
    expect((await causeOf("option")).code).toBe("BAD_OPTIONS");
    expect((await causeOf("version")).code).toBe("BAD_OPTIONS");
    expect((await causeOf("inside")).code).toBe("USAGE");
    expect(watched.events.some((event) => event.event === "run.ended" && event.status === "continued")).toBe(false);
  });
});
