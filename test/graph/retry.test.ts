// Retry of graphs: the items of the failed step without a result run again, from the same checkpoint (rules.G12).

import { expect, test } from "vitest";
import { append, channel, END, graph, last, promise, START, stream, task, workflow } from "reprise";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { collect, createFolder, createGate, rejection, storeAround } from "../engine/world.ts";

const unchanged = () => storeAround((_writes, apply) => apply());

test("only the items of the failed step without a result run again; finished ones and earlier steps keep theirs", async () => {
  const ran: string[] = [];
  let broken = true;
  const others = createGate();
  const g = graph("wide", { state: { seen: append<string>() } })
    .node("plan", async () => {
      ran.push("plan");
      return { seen: ["plan"] };
    })
    .node("each", async (_ctx, _state, item: number) => {
      ran.push(`each ${item}`);
      if (item === 2 && broken) {
        await others.opened;
        throw new Error("broken");
      }
      if (ran.length === 5) others.open();
      return { seen: [`each ${item}`] };
    })
    .node("after", async () => {
      ran.push("after");
      return { seen: ["after"] };
    })
    .edge(START, "plan")
    .spread("plan", "each", () => [0, 1, 2, 3])
    .edge("each", "after");
  const source = unchanged();
  await using engine = await createTestEngine({ definitions: [g], store: source });
  const run = await engine.start(g, {});
  await rejection(run.result());
  broken = false;
  ran.length = 0;
  await run.retry();
  const expected = ["plan", "each 0", "each 1", "each 2", "each 3", "after"];
  expect(await run.result()).toEqual({ seen: expected });
  expect(ran).toEqual(["each 2", "after"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(await source.store.check()).toEqual([]);
  const retried = (await collect(run.journal())).filter(({ type }) => type === "RunRetried");
  expect(retried.map(({ data }) => data)).toMatchObject([
    {
      step: 2,
      kept: [
        [0, 1],
        [3, 3],
      ],
    },
  ]);
});

test("a node that runs again starts with its first attempt and the same key, and gets no recordings of the earlier epoch", async () => {
  const seen: string[] = [];
  const keys = new Set<string>();
  let broken = true;
  const price = task("price", (ctx, n: number) => {
    keys.add(`task ${ctx.idempotencyKey}`);
    seen.push(`task ${n}`);
    return n;
  });
  const g = graph("calls", { state: { sum: last(0) } })
    .node("sum", { retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } }, async (ctx) => {
      seen.push(`attempt ${ctx.attempt}`);
      keys.add(`node ${ctx.idempotencyKey}`);
      const one = await ctx.run("one", (op) => {
        keys.add(`operation ${op.idempotencyKey}`);
        seen.push("one");
        return 1;
      });
      const two = await ctx.task(price, 2);
      if (broken) throw new Error("broken");
      return { sum: one + two };
    })
    .edge(START, "sum");
  const source = unchanged();
  await using engine = await createTestEngine({ definitions: [g, price], store: source });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 s");
  expect(await rejection(run.result())).toMatchObject({ cause: { code: "MAX_ATTEMPTS_EXCEEDED" } });
  broken = false;
  await run.retry();
  expect(await run.result()).toEqual({ sum: 3 });
  expect(seen).toEqual([1, 2, 1].flatMap((attempt) => [`attempt ${attempt}`, "one", "task 2"]));
  expect(keys.size).toBe(3);
  const commands = (await collect(run.journal())).flatMap(({ type, command }) =>
    type === "OperationCompleted" ? [command] : [],
  );
  expect(commands).toEqual(["Node(1.0)#0/Operation(0)", "Node(1.0)#1/Operation(0)", "Node(1.0)~1#0/Operation(0)"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(await source.store.check()).toEqual([]);
});

test("a step can fail and be retried repeatedly, and each epoch gets its own recordings after a crash", async () => {
  const calls: string[] = [];
  let life = 0;
  const g = graph("stubborn", { state: { got: append<string>() }, ports: { go: promise<string>() } })
    .node("kept", async () => ({ got: ["kept"] }))
    .node("tries", async (ctx) => {
      const mine = life;
      const one = await ctx.run("one", () => {
        calls.push(`life ${mine}`);
        return `one of ${mine}`;
      });
      if (mine < 2) throw new Error(`life ${mine}`);
      return { got: [one, await ctx.promise("go")] };
    })
    .edge(START, ["kept", "tries"]);
  const source = unchanged();
  await using engine = await createTestEngine({ definitions: [g], store: source });
  const run = await engine.start(g, {});
  for (; life < 2; await run.retry()) {
    expect(await rejection(run.result())).toMatchObject({ cause: { message: `life ${life}` } });
    life += 1;
  }
  await engine.clock.advance("1 s");
  await engine.crash();
  await engine.clock.advance("1 s");
  await run.resolve("go", "went");
  expect(await run.result()).toEqual({ got: ["kept", "one of 2", "went"] });
  expect(calls).toEqual(["life 0", "life 1", "life 2"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(await source.store.check()).toEqual([]);
});

test("after MAX_STEPS_EXCEEDED a retry continues from the last checkpoint with code that allows more steps", async () => {
  const ran: number[] = [];
  const loop = (maxSteps: number) =>
    graph("loop", { state: { n: last(0) }, maxSteps })
      .node("add", async (ctx, state) => {
        ran.push(ctx.step);
        return { n: state.n + 1 };
      })
      .edge(START, "add")
      .edge("add", END, (state) => state.n === 5)
      .edge("add", "add");
  using folder = createFolder();
  const store = `sqlite:${folder.file("loop.db")}`;
  {
    const short = loop(3);
    await using engine = await createTestEngine({ definitions: [short], store });
    const run = await engine.start(short, {}, { id: "r" });
    expect(await rejection(run.result())).toMatchObject({ cause: { code: "MAX_STEPS_EXCEEDED" } });
    await run.retry();
    expect(await rejection(run.result())).toMatchObject({ cause: { code: "MAX_STEPS_EXCEEDED" } });
    expect(ran).toEqual([1, 2, 3]);
  }
  await using engine = await createTestEngine({ definitions: [loop(10)], store });
  const again = engine.get("loop", "r");
  await again.retry();
  expect(await again.result()).toEqual({ n: 5 });
  expect(ran).toEqual([1, 2, 3, 4, 5]);
  expect(await again.verify()).toMatchObject({ status: "same" });
});

test("after a reducer threw, a retry folds the stored results with the current code and runs no node", async () => {
  let ran = 0;
  let broken = true;
  const add = (sum: number, n: number): number => {
    if (broken && n === 2) throw new Error("bug in the reducer");
    return sum + n;
  };
  const g = graph("folds", { state: { sum: channel(0, add) } })
    .node("each", async (_ctx, _state, item: number) => {
      ran += 1;
      return { sum: item };
    })
    .spread(START, "each", () => [1, 2, 3]);
  const source = unchanged();
  await using engine = await createTestEngine({ definitions: [g], store: source });
  const run = await engine.start(g, {});
  expect(await rejection(run.result())).toMatchObject({ cause: { cause: { message: "bug in the reducer" } } });
  broken = false;
  await run.retry();
  expect(await run.result()).toEqual({ sum: 6 });
  expect(ran).toBe(3);
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(await source.store.check()).toEqual([]);
});

test("an unknown channel and an unknown goto target fail their node, and a retry runs it again", async () => {
  let broken = true;
  const g = graph("strays", { state: { n: last(0) } })
    .node("wrong", async () => (broken ? ({ typo: 1 } as object) : { n: 1 }))
    .edge(START, "wrong");
  const lost = graph("lost", { state: { n: last(0) } })
    .node("wrong", async () => (broken ? ({ goto: "nowhere" } as object) : { n: 2 }))
    .edge(START, "wrong");
  await using engine = await createTestEngine({ definitions: [g, lost] });
  const runs = [await engine.start(g, {}), await engine.start(lost, {})];
  for (const run of runs) expect(await rejection(run.result())).toMatchObject({ cause: { code: "BAD_GRAPH" } });
  broken = false;
  for (const run of runs) await run.retry();
  expect(await Promise.all(runs.map((run) => run.result()))).toEqual([{ n: 1 }, { n: 2 }]);
});

test("a retried graph gets its full deadline again, also with a snapshot in between", async () => {
  const ran: string[] = [];
  let slow = true;
  const g = graph("late", { state: { big: last("") }, ports: { never: promise() }, deadline: "1 hour" })
    .node("grow", async () => {
      ran.push("grow");
      return { big: "x".repeat(40_000) };
    })
    .node("wait", async (ctx) => {
      ran.push("wait");
      if (slow) await ctx.promise("never");
      return { big: "y".repeat(40_000) };
    })
    .node("end", async () => void ran.push("end"))
    .edge(START, "grow")
    .edge("grow", "wait")
    .edge("wait", "end");
  const source = unchanged();
  await using engine = await createTestEngine({ definitions: [g], store: source });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 hour");
  expect(await rejection(run.result())).toMatchObject({ cause: { code: "DEADLINE_EXCEEDED" } });
  await run.retry();
  await engine.clock.advance("30 minutes");
  expect((await run.info()).status).toBe("waiting");
  await engine.clock.advance("30 minutes");
  expect(await rejection(run.result())).toMatchObject({ cause: { code: "DEADLINE_EXCEEDED" } });
  slow = false;
  await run.retry();
  expect((await run.result()).big[0]).toBe("y");
  expect(ran).toEqual(["grow", "wait", "wait", "wait", "end"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(await source.store.check()).toEqual([]);
});

test("a promise whose rejection failed a node is open again after the retry, and the others keep their values", async () => {
  const g = graph("asks", {
    state: { big: last(""), said: append<string>() },
    ports: { first: promise<string>(), second: promise<string>() },
  })
    .node("first", async (ctx) => ({ said: [await ctx.promise("first")], big: "x".repeat(40_000) }))
    .node("grow", async () => ({ big: "y".repeat(40_000) }))
    .node("second", async (ctx) => ({ said: [await ctx.promise("first"), await ctx.promise("second")] }))
    .edge(START, "first")
    .edge("first", "grow")
    .edge("grow", "second");
  const source = unchanged();
  await using engine = await createTestEngine({ definitions: [g], store: source });
  const run = await engine.start(g, {});
  // Before a node waits for it: the message is stored with the snapshot.
  await run.reject("second", new Error("no"));
  await run.resolve("first", "1");
  expect(await rejection(run.result())).toMatchObject({ cause: { message: "no" } });
  await run.retry();
  await engine.clock.advance("1 s");
  await engine.crash();
  await engine.clock.advance("1 s");
  await run.resolve("second", "2");
  expect((await run.result()).said).toEqual(["1", "1", "2"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(await source.store.check()).toEqual([]);
});

test("a failed child of a node: the node runs again and starts another child, the failed one stays as it is", async () => {
  let broken = true;
  const sub = graph("sub", { state: { n: last(0) }, output: (state) => state.n })
    .node("work", async () => {
      if (broken) throw new Error("broken");
      return { n: 7 };
    })
    .edge(START, "work");
  const ids: string[] = [];
  const g = graph("top", { state: { n: last(0) } })
    .node("child", async (ctx) => {
      const child = ctx.child(sub, {});
      ids.push(child.id);
      return { n: await child };
    })
    .edge(START, "child");
  const source = unchanged();
  await using engine = await createTestEngine({ definitions: [g, sub], store: source });
  const run = await engine.start(g, {});
  await rejection(run.result());
  broken = false;
  await run.retry();
  expect(await run.result()).toEqual({ n: 7 });
  expect(new Set(ids).size).toBe(2);
  expect((await engine.get(sub, ids[0]!).info()).status).toBe("failed");
  expect(await run.verify()).toMatchObject({ status: "same" });
  expect(await source.store.check()).toEqual([]);
});

test("a failed graph is retried with the workflow that waits for it, from its own last checkpoint", async () => {
  let broken = true;
  const ran: string[] = [];
  const sub = graph("sub", { state: { n: last(0) }, output: (state) => state.n })
    .node("first", async () => {
      ran.push("first");
      return { n: 1 };
    })
    .node("second", async (_ctx, state) => {
      ran.push("second");
      if (broken) throw new Error("broken");
      return { n: state.n + 1 };
    })
    .edge(START, "first")
    .edge("first", "second");
  const parent = workflow("parent", async (ctx) => ctx.child(sub, {}));
  const source = unchanged();
  await using engine = await createTestEngine({ definitions: [parent, sub], store: source });
  const run = await engine.start(parent);
  await rejection(run.result());
  broken = false;
  await run.retry();
  expect(await run.result()).toBe(2);
  expect(ran).toEqual(["first", "second", "second"]);
  expect(await source.store.check()).toEqual([]);
});

test("code of an abandoned epoch does not affect the next one", async () => {
  const gate = createGate();
  const spilled = createGate();
  let life = 0;
  const g = graph("late", { state: { n: last(0) }, ports: { go: promise<number>(), words: stream<string>() } })
    .node("deaf", { timeout: 10 }, async (ctx) => {
      if (life > 0) return { n: await ctx.promise("go") };
      await gate.wait();
      ctx.emit("words", "late");
      ctx.send("mail", "late");
      await ctx.run("late", () => 1).catch(() => {});
      spilled.open();
      return { n: -1 };
    })
    .edge(START, "deaf");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 s");
  expect(await rejection(run.result())).toMatchObject({ cause: { code: "ATTEMPT_TIMEOUT" } });
  life = 1;
  await run.retry();
  await engine.clock.advance("1 s");
  gate.open();
  await Promise.race([spilled.opened, new Promise((resolve) => setImmediate(resolve))]);
  await run.resolve("go", 5);
  expect(await run.result()).toEqual({ n: 5 });
  const types = (await collect(run.journal())).map(({ type }) => type);
  expect(types).not.toContain("MessageSent");
  expect(types).not.toContain("OperationCompleted");
  expect(await collect(run.stream("words"))).toEqual([]);
});

test("a retried graph ends the same, killed at every commit", async () => {
  const repaired = new Set<string>();
  const price = task("price", (_ctx, n: number) => n * 10);
  const g = graph("retried", { state: { got: append<string>() } })
    .node("plan", async (ctx) => ({ got: [await ctx.run("plan", () => "plan")] }))
    .node("each", async (ctx, _state, item: number) => {
      const cents = await ctx.task(price, item);
      if (item === 1 && !repaired.has(ctx.runId)) throw new Error("broken");
      return { got: [`${item} ${cents}`] };
    })
    .node("after", async (ctx) => ({ got: [await ctx.run("after", () => "after")] }))
    .edge(START, "plan")
    .spread("plan", "each", () => [0, 1, 2])
    .edge("each", "after");
  const { output, crashes } = await crashEverywhere(
    g,
    {},
    {
      definitions: [price],
      drive: async (engine, id) => {
        repaired.delete(id);
        await engine.clock.advance(0);
        repaired.add(id);
        const run = engine.get(g, id);
        if ((await run.info()).status === "failed") await run.retry();
      },
    },
  );
  expect(output).toEqual({ got: ["plan", "0 0", "1 10", "2 20", "after"] });
  expect(crashes).toBeGreaterThan(10);
}, 120_000);
