// Streams: chunks that a run emits while it executes.

import { promise, stream, workflow, type Run } from "reprise";
import { createClient, createEngine } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { expect, test } from "vitest";
import { MAX_TAKEOVERS } from "../../src/kernel/index.ts";
import { collect, createFolder, createGate, macrotask, rejection, storeAround } from "./world.ts";

const ports = { progress: stream<number>(), words: stream<string>(), go: promise() };

const report = workflow("report", { ports }, async (ctx, pages: number) => {
  for (let page = 1; page <= pages; page += 1) {
    await ctx.run("render", () => page);
    ctx.emit("progress", page);
  }
  ctx.emit("words", "done");
  return pages;
});

test("a reader receives every chunk in order with its offset, and the stream ends with the run", async () => {
  await using engine = await createTestEngine({ definitions: [report] });
  const run = await engine.start(report, 3);
  expect(await collect(run.stream("progress"))).toEqual([
    { offset: 1, value: 1 },
    { offset: 2, value: 2 },
    { offset: 3, value: 3 },
  ]);
  expect(await collect(run.stream("progress", { after: 2 }))).toEqual([{ offset: 3, value: 3 }]);
  expect(await collect(run.stream("progress", { after: 9 }))).toEqual([]);
  expect(await collect(run.stream("words"))).toEqual([{ offset: 1, value: "done" }]);
});

test("a chunk of workflow code appears once, however often it is replayed, and writes no entry", async () => {
  const slow = workflow("slow", { ports }, async (ctx) => {
    for (let n = 1; n <= 4; n += 1) {
      ctx.emit("progress", n);
      await ctx.sleep("1 hour");
    }
  });
  await using engine = await createTestEngine({ definitions: [slow] });
  const run = await engine.start(slow);
  for (let n = 0; n < 4; n += 1) {
    await engine.crash();
    await engine.clock.advance("1 hour");
  }
  await run.result();
  expect((await collect(run.stream("progress"))).map(({ value }) => value)).toEqual([1, 2, 3, 4]);
  const types = (await collect(run.journal())).map(({ type }) => type);
  expect(new Set(types)).toEqual(new Set(["RunStarted", "TimerStarted", "TimerFired", "RunCompleted"]));
  expect((await run.verify()).status).toBe("same");
});

test("after a crash at every commit, each chunk of the code appears exactly once", async () => {
  const branches = workflow("branches", { ports }, async (ctx) => {
    ctx.emit("words", "start");
    await Promise.all(
      [1, 2, 3].map(async (n) => {
        await ctx.run(`first ${n}`, () => n);
        ctx.emit("progress", n);
        await ctx.sleep(n);
        ctx.emit("progress", n * 10);
      }),
    );
    ctx.emit("words", "end");
    return "over";
  });
  const seen = new Set<string>();
  const { crashes } = await crashEverywhere(branches, undefined, {
    drive: async (engine, id) => {
      const run = engine.get(branches, id) as Run<typeof branches>;
      // Read by whichever process reaches the end.
      void Promise.all([collect(run.stream("words")), collect(run.stream("progress"))]).then(
        (chunks) => seen.add(JSON.stringify(chunks)),
        () => {},
      );
    },
  });
  await macrotask();
  expect(crashes).toBeGreaterThan(8);
  for (const text of seen) {
    const [words, progress] = JSON.parse(text) as { offset: number; value: unknown }[][];
    expect(words?.map(({ value }) => value)).toEqual(["start", "end"]);
    expect(progress?.map(({ offset }) => offset)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(progress?.map(({ value }) => Number(value)).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 10, 20, 30]);
  }
  expect(seen.size).toBeGreaterThan(0);
});

test("a replayed run does not emit stored chunks again", async () => {
  const sent: unknown[] = [];
  const store = storeAround((writes, apply) => {
    for (const write of writes) if (write.write === "turn") sent.push(...write.chunks.map(({ number }) => number));
    return apply();
  });
  const slow = workflow("slow", { ports }, async (ctx) => {
    ctx.emit("progress", 1);
    ctx.emit("progress", 2);
    await ctx.promise("go");
    ctx.emit("progress", 3);
  });
  await using engine = await createTestEngine({ definitions: [slow], store });
  const run = await engine.start(slow);
  await engine.crash();
  await run.resolve("go");
  await run.result();
  expect(sent).toEqual([0, 1, 2]);
});

test("an operation's chunks can be read before it ends", async () => {
  const gate = createGate();
  const chat = workflow("chat", { ports }, async (ctx) =>
    ctx.run("model", async ({ emit }) => {
      emit("words", "Hello");
      emit("words", "World");
      await gate.wait();
      emit("words", "!");
      return 3;
    }),
  );
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [chat] });
  const run = await engine.start(chat);
  const words = run.stream("words")[Symbol.asyncIterator]();
  const from = { step: "Operation(0)", execution: 1 };
  expect((await words.next()).value).toEqual({ offset: 1, value: "Hello", ...from });
  expect((await words.next()).value).toEqual({ offset: 2, value: "World", ...from });
  expect((await run.info()).entries).toBe(1);
  gate.open();
  expect((await words.next()).value).toEqual({ offset: 3, value: "!", ...from });
  expect(await words.next()).toEqual({ done: true, value: undefined });
  expect(await run.result()).toBe(3);
});

test("a retried operation resets the chunks of its earlier attempt, and an ended one emits nothing more", async () => {
  let late: (() => void) | undefined;
  const flaky = workflow("flaky", { ports }, async (ctx) => {
    await ctx.run(
      "model",
      (op) => {
        op.emit("words", `attempt ${op.attempt}`);
        late = () => op.emit("words", "late");
        if (op.attempt === 1) throw new Error("once");
      },
      { retry: { maxAttempts: 2 } },
    );
    late?.();
    await ctx.promise("go");
  });
  await using engine = await createTestEngine({ definitions: [flaky] });
  const run = await engine.start(flaky);
  await engine.clock.advance("1 minute");
  await engine.crash();
  late?.();
  await run.resolve("go");
  await run.result();
  expect(await collect(run.stream("words"))).toEqual([
    { offset: 1, value: "attempt 1", step: "Operation(0)", execution: 1 },
    { offset: 2, reset: { step: "Operation(0)", execution: 2 } },
    { offset: 3, value: "attempt 2", step: "Operation(0)", execution: 2 },
  ]);
});

test("another process reads a stream live, and continues from an offset", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("store.db")}`;
  const step = workflow("step", { ports: { ...ports, next: promise() } }, async (ctx) => {
    ctx.emit("progress", 1);
    await ctx.promise("go");
    ctx.emit("progress", 2);
    await ctx.promise("next");
    ctx.emit("progress", 3);
  });
  await using worker = await createEngine({ store, definitions: [step] });
  await using client = await createClient({ store, definitions: [step] });
  const run = await worker.start(step, undefined, { id: "step-1" });
  const far = client.get(step, "step-1");
  const chunks = far.stream("progress")[Symbol.asyncIterator]();
  expect((await chunks.next()).value).toEqual({ offset: 1, value: 1 });
  await run.resolve("go");
  expect((await chunks.next()).value).toEqual({ offset: 2, value: 2 });
  await chunks.return?.();
  await run.resolve("next");
  expect(await collect(far.stream("progress", { after: 2 }))).toEqual([{ offset: 3, value: 3 }]);
});

test("emit() does not wait for a reader or for the store", async () => {
  const many = workflow("many", { ports }, async (ctx) => {
    for (let n = 0; n < 3_000; n += 1) ctx.emit("progress", n);
    return "sent";
  });
  await using engine = await createTestEngine({ definitions: [many] });
  const run = await engine.start(many);
  expect(await run.result()).toBe("sent");
  const offsets = (await collect(run.stream("progress"))).map(({ offset }) => offset);
  expect(offsets).toEqual(Array.from({ length: 3_000 }, (_, n) => n + 1));
});

test("a reader may stop while it waits, and another may start at any offset", async () => {
  const waits = workflow("waits", { ports }, async (ctx) => {
    ctx.emit("progress", 1);
    await ctx.promise("go");
  });
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [waits] });
  const run = await engine.start(waits);
  const chunks = run.stream("progress")[Symbol.asyncIterator]();
  await chunks.next();
  const waiting = chunks.next();
  await macrotask();
  expect(await chunks.return?.()).toEqual({ done: true, value: undefined });
  expect(await waiting).toEqual({ done: true, value: undefined });
  for await (const { offset } of run.stream("progress")) if (offset === 1) break;
  await run.resolve("go");
  expect(await collect(run.stream("progress"))).toEqual([{ offset: 1, value: 1 }]);
});

test("a reader of a live run fails when the engine closes", async () => {
  const waits = workflow("waits", { ports }, async (ctx) => ctx.promise("go"));
  const engine = await createEngine({ store: "sqlite::memory:", definitions: [waits] });
  const run = await engine.start(waits);
  const reading = collect(run.stream("words"));
  await macrotask();
  await engine.close();
  expect((await rejection(reading)).code).toBe("ENGINE_CLOSED");
});

test("chunks do not clear a suspect whose operation kills its worker", async () => {
  const source = storeAround((_writes, apply) => apply());
  const poison = workflow("poison", { ports }, async (ctx) =>
    ctx.run("chat", async (op) => {
      op.emit("words", "hello");
      await new Promise(() => {});
    }),
  );
  await using engine = await createTestEngine({ definitions: [poison], store: source });
  const run = await engine.start(poison);
  for (let crashes = 0; crashes <= MAX_TAKEOVERS; crashes += 1) {
    await engine.clock.advance("1 s");
    await engine.crash();
  }
  expect((await run.info()).status).toBe("blocked");
});

test.each<[string, (run: Run<typeof report>) => unknown, string, string]>([
  ["an unknown stream", (run) => run.stream("nothing" as "words"), "UNKNOWN_PORT", "progress"],
  ["a port of another kind", (run) => run.stream("go" as "words"), "UNKNOWN_PORT", "no stream go"],
  ["an offset below 0", (run) => run.stream("words", { after: -1 }), "BAD_OPTIONS", "-1"],
  ["an offset that is no number", (run) => run.stream("words", { after: "1" as never }), "BAD_OPTIONS", "1"],
])("a reader of %s is refused", async (_what, read, code, text) => {
  await using engine = await createTestEngine({ definitions: [report] });
  const run = await engine.start(report, 1);
  const error = await rejection((async () => read(run))());
  expect([error.code, error.message]).toEqual([code, expect.stringContaining(text)]);
});

test("reading a run that does not exist is refused", async () => {
  await using engine = await createTestEngine({ definitions: [report] });
  const reading = collect((engine.get(report, "missing") as Run<typeof report>).stream("words"));
  expect((await rejection(reading)).code).toBe("RUN_NOT_FOUND");
});

test.each<[string, (ctx: any) => unknown, string, string]>([
  ["to an unknown stream", (ctx) => ctx.emit("nothing", 1), "UNKNOWN_PORT", "stream()"],
  ["to a port of another kind", (ctx) => ctx.emit("go", 1), "UNKNOWN_PORT", "stream()"],
  ["what is not data", (ctx) => ctx.emit("words", () => 1), "NOT_DATA", "A chunk of stream words"],
  [
    "inside a step",
    (ctx) => ctx.run("x", () => ctx.emit("words", "a")),
    "USAGE",
    "Use `emit` of the step's first argument",
  ],
  ["to an unknown stream from a step", (ctx) => ctx.run("x", (op: any) => op.emit("no", 1)), "UNKNOWN_PORT", "no"],
  [
    "what is not data from a step",
    (ctx) => ctx.run("x", (op: any) => op.emit("words", Symbol("s"))),
    "NOT_DATA",
    "words",
  ],
])("emitting %s is refused, and no chunk is stored", async (_what, emit, code, text) => {
  const wrong = workflow("wrong", { ports }, async (ctx) => {
    try {
      await emit(ctx);
    } catch (error) {
      const { code: given, message } = error as { code: string; message: string };
      return { given, message };
    }
    return undefined;
  });
  await using engine = await createTestEngine({ definitions: [wrong] });
  const run = await engine.start(wrong);
  expect(await run.result()).toEqual({ given: code, message: expect.stringContaining(text) });
  expect(await collect(run.stream("words"))).toEqual([]);
});
