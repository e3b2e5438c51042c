// What a reader of a stream sees when a step that emitted chunks is executed again.

import { append, createClient, createEngine, graph, promise, START, stream, workflow, type StreamChunk } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { expect, test } from "vitest";
import { collect, createFolder, createGate, rejection, storeAround } from "./world.ts";

const ports = { words: stream<string>(), other: stream<string>(), go: promise() };

const twice = { retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } };

/** What a reader shows that drops the values of a step when the step is reset. */
function shown(frames: readonly StreamChunk<string>[]): readonly string[] {
  let values: readonly StreamChunk<string>[] = [];
  for (const frame of frames)
    values = frame.reset ? values.filter(({ step }) => step !== frame.reset.step) : [...values, frame];
  return values.map(({ value }) => value ?? "a reset");
}

/** `value step execution`, or `reset step execution`. */
function texts(frames: readonly StreamChunk<string>[]): readonly string[] {
  return frames.map(({ value, step, execution, reset }) =>
    reset ? `reset ${reset.step} ${reset.execution}` : [value, step, execution].join(" ").trim(),
  );
}

test("after a crash in the middle of an operation, the stream has a reset before the chunks of the next execution", async () => {
  let calls = 0;
  const chat = workflow("chat", { ports }, async (ctx) => {
    ctx.emit("words", "code");
    return ctx.run("model", async (op) => {
      calls += 1;
      op.emit("words", "Once");
      op.emit("words", "upon");
      if (calls === 1) await new Promise(() => {});
      return op.execution;
    });
  });
  await using engine = await createTestEngine({ definitions: [chat] });
  const run = await engine.start(chat);
  await engine.clock.advance(1);
  await engine.crash();
  expect(await run.result()).toBe(2);
  const frames = await collect(run.stream("words"));
  expect(texts(frames)).toEqual([
    "code",
    "Once Operation(0) 1",
    "upon Operation(0) 1",
    "reset Operation(0) 2",
    "Once Operation(0) 2",
    "upon Operation(0) 2",
  ]);
  expect(frames.map(({ offset }) => offset)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(shown(frames)).toEqual(["code", "Once", "upon"]);
});

test("the reset appears when the next execution starts, also if it emits nothing, and only in streams that it concerns", async () => {
  const gate = createGate();
  const chat = workflow("chat", { ports }, async (ctx) => {
    await ctx.run("first", (op) => op.emit("other", "first"));
    await ctx.run("model", async (op) => {
      if (op.execution === 1) op.emit("words", "lost");
      await (op.execution === 1 ? new Promise(() => {}) : gate.wait());
    });
  });
  await using engine = await createTestEngine({ definitions: [chat] });
  const run = await engine.start(chat);
  await engine.clock.advance(1);
  await engine.crash();
  await gate.reached;
  const words = run.stream("words");
  expect((await words.next()).value).toMatchObject({ offset: 1, value: "lost" });
  expect((await words.next()).value).toEqual({ offset: 2, reset: { step: "Operation(1)", execution: 2 } });
  gate.open();
  await run.result();
  expect(texts(await collect(run.stream("other")))).toEqual(["first Operation(0) 1"]);
});

test("a reader that continues after an offset in another process sees the reset of chunks that the first one read", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("store.db")}`;
  const gate = createGate();
  const chat = workflow("chat", { ports }, async (ctx) =>
    ctx.run(
      "model",
      async (op) => {
        op.emit("words", `attempt ${op.attempt}`);
        if (op.attempt > 1) return;
        await gate.wait();
        throw new Error("once");
      },
      twice,
    ),
  );
  await using worker = await createEngine({ store, definitions: [chat], logger: false });
  const run = await worker.start(chat, undefined, { id: "c" });
  let offset = 0;
  {
    await using client = await createClient({ store, definitions: [chat] });
    for await (const chunk of client.get(chat, "c").stream("words")) {
      expect(chunk.value).toBe("attempt 1");
      offset = chunk.offset;
      break;
    }
  }
  gate.open();
  await run.result();
  await using client = await createClient({ store, definitions: [chat] });
  expect(texts(await collect(client.get(chat, "c").stream("words", { after: offset })))).toEqual([
    "reset Operation(0) 2",
    "attempt 2 Operation(0) 2",
  ]);
});

test("killed at every commit, a reader that drops what is reset shows each word once", async () => {
  const story = workflow("story", { ports }, async (ctx) => {
    ctx.emit("words", "begin");
    for (const part of ["a", "b"])
      await ctx.run(part, async (op) => {
        op.emit("words", `${part}1`);
        await Promise.resolve();
        op.emit("words", `${part}2`);
      });
    ctx.emit("words", "end");
    return "over";
  });
  const seen: string[] = [];
  const { crashes } = await crashEverywhere(story, undefined, {
    drive: async (engine, id) => {
      void collect(engine.get(story, id).stream("words")).then(
        (frames) => seen.push(shown(frames as StreamChunk<string>[]).join(" ")),
        () => {},
      );
    },
  });
  expect(crashes).toBeGreaterThan(4);
  expect(seen.length).toBeGreaterThan(0);
  expect(new Set(seen)).toEqual(new Set(["begin a1 a2 b1 b2 end"]));
});

test("a new attempt of a node resets its chunks and those of the operations of the attempt before", async () => {
  const g = graph("g", { state: { seen: append<string>() }, ports })
    .node("plan", twice, async (ctx) => {
      ctx.emit("words", `node ${ctx.attempt}`);
      await ctx.run("think", (op) => op.emit("words", `thought ${ctx.attempt}`));
      if (ctx.attempt === 1) throw new Error("once");
      return { seen: ["plan"] };
    })
    .edge(START, "plan");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 s");
  await run.result();
  const frames = await collect(run.stream("words"));
  expect(shown(frames)).toEqual(["node 2", "thought 2"]);
  expect(texts(frames).filter((text) => text.startsWith("reset"))).toEqual([
    "reset Node(1.0) 2",
    "reset Node(1.0)#0/Operation(0) 2",
  ]);
});

test("a node that continues after a crash resets its own chunks, and keeps those of its recorded operations", async () => {
  const g = graph("g", { state: { seen: append<string>() }, ports })
    .node("plan", async (ctx) => {
      ctx.emit("words", "node");
      await ctx.run("think", (op) => op.emit("words", "thought"));
      await ctx.promise("go");
      return { seen: ["plan"] };
    })
    .edge(START, "plan");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance(1);
  await engine.crash();
  await run.resolve("go");
  await run.result();
  const frames = await collect(run.stream("words"));
  expect([...shown(frames)].sort()).toEqual(["node", "thought"]);
  expect(frames.filter(({ reset }) => reset)).toHaveLength(1);
});

test("a retry of the run resets the chunks of the step that runs again", async () => {
  let broken = true;
  const fails = workflow("fails", { ports }, async (ctx) => {
    await ctx.run("kept", (op) => op.emit("words", "kept"));
    await ctx.run("model", (op) => {
      op.emit("words", broken ? "broken" : "fixed");
      if (broken) throw new Error("no");
    });
  });
  await using engine = await createTestEngine({ definitions: [fails] });
  const run = await engine.start(fails);
  await rejection(run.result());
  broken = false;
  await run.retry();
  await run.result();
  expect(shown(await collect(run.stream("words")))).toEqual(["kept", "fixed"]);
});

test("a step of a later generation does not reset the chunks of the first one's", async () => {
  const rounds = workflow("rounds", { ports }, async (ctx, round: number): Promise<void> => {
    await ctx.run(
      "model",
      (op) => {
        op.emit("words", `round ${round}.${op.attempt}`);
        if (round === 2 && op.attempt === 1) throw new Error("once");
      },
      twice,
    );
    if (round < 2) await ctx.continueAsNew(round + 1);
  });
  await using engine = await createTestEngine({ definitions: [rounds] });
  const run = await engine.start(rounds, 1);
  await engine.clock.advance("1 s");
  await run.result();
  const frames = await collect(run.stream("words"));
  expect(shown(frames)).toEqual(["round 1.1", "round 2.2"]);
  expect(texts(frames)[2]).toBe("reset Operation(0)@1 2");
});

test("a run without streams writes nothing about repeated executions", async () => {
  const sent: unknown[] = [];
  const store = storeAround((writes, apply) => {
    for (const write of writes) if (write.write === "turn") sent.push(...write.chunks);
    return apply();
  });
  const silent = workflow("silent", async (ctx) =>
    ctx.run(
      "model",
      (op) => {
        if (op.attempt === 1) throw new Error("once");
        return op.execution;
      },
      twice,
    ),
  );
  await using engine = await createTestEngine({ definitions: [silent], store });
  const run = await engine.start(silent);
  await engine.clock.advance("1 s");
  expect(await run.result()).toBe(2);
  expect(sent).toEqual([]);
});
