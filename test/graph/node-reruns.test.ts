// Node reruns: after a crash every request gets its own answer, in the order of the answers.

import { expect, test } from "vitest";
import { append, graph, last, promise, type RepriseError, START, task, workflow } from "reprise";
import { createTestEngine } from "reprise/testing";
import { createGate } from "../engine/world.ts";
import { openStores } from "./graph-stores.ts";

const upper = task("upper", async (_ctx, text: string) => text.toUpperCase());
const reversed = workflow("reversed", async (_ctx, text: string) => [...text].toReversed().join(""));

test.each(["run", "task", "child"] as const)(
  "a node that calls ctx.%s with another request after a crash gets no recorded answer: the run stops, names both requests and continues with the right code",
  async (way) => {
    let question = "old";
    let asked = 0;
    const g = graph("asks", { state: { answer: last("") }, ports: { go: promise() } })
      .node("ask", async (ctx) => {
        asked += 1;
        const ways = {
          run: () => ctx.run("llm", { question }, (_op, request) => `answer to ${request.question}`),
          task: () => ctx.task(upper, question),
          child: () => ctx.child(reversed, question),
        };
        const answer = await ways[way]();
        await ctx.promise("go", { show: question });
        return { answer };
      })
      .edge(START, "ask");
    await using engine = await createTestEngine({ definitions: [g, upper, reversed] });
    const run = await engine.start(g, {}, { id: "r" });
    await engine.clock.advance(10);
    question = "new";
    await engine.crash();
    await run.resolve("go");
    await engine.clock.advance(10);
    const { status, error } = await run.info();
    expect(status).toBe("determinism_violation");
    const command = { run: "Operation(0)", task: "Task(0)", child: "ChildWorkflow(0)" }[way];
    expect(error).toMatchObject({
      code: "DETERMINISM_VIOLATION",
      message: expect.stringMatching(
        /another request of node 'ask' in step 1 than its code now makes .* fork the run from step 0/,
      ),
      details: { where: `Node(1.0)#0/${command}` },
    });
    const { expected, actual } = (error as RepriseError).details as { expected: string; actual: string };
    expect([expected, actual]).toEqual([expect.stringContaining("new"), expect.stringContaining("old")]);
    // To make the new request, fork the run; to continue the run, restore the old code.
    const fork = await run.fork({ step: 0, id: "fork" });
    await fork.resolve("go");
    await engine.clock.advance(10);
    question = "old";
    await run.resume();
    await engine.clock.advance(10);
    const answerTo = { run: (q: string) => `answer to ${q}`, task: (q: string) => q.toUpperCase() };
    const right = way === "child" ? (q: string) => [...q].toReversed().join("") : answerTo[way];
    expect(await run.result()).toEqual({ answer: right("old") });
    expect(await fork.result()).toEqual({ answer: right("new") });
    expect(await run.replay()).toMatchObject({ status: "same" });
    expect(asked).toBeGreaterThan(2);
  },
);

test("a failed call that is due for a retry is not retried with another request", async () => {
  let question = "old";
  const seen: string[] = [];
  const g = graph("tries", { state: { answer: last("") } })
    .node("ask", { timeout: "1 day" }, async (ctx) => ({
      answer: await ctx.run(
        "llm",
        question,
        (op, request) => {
          seen.push(`${request} ${op.attempt}`);
          if (op.attempt === 1) throw new Error("busy");
          return request;
        },
        { retry: { maxAttempts: 3, baseDelay: "1 minute", maxDelay: "1 hour" } },
      ),
    }))
    .edge(START, "ask");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {}, { id: "r" });
  await engine.clock.advance(10);
  question = "new";
  await engine.crash();
  await engine.clock.advance("1 hour");
  expect(await run.info()).toMatchObject({ status: "determinism_violation" });
  question = "old";
  await run.resume();
  await engine.clock.advance("1 hour");
  expect(await run.result()).toEqual({ answer: "old" });
  expect(seen).toEqual(["old 1", "old 2"]);
});

test("the show value and the timeout of a promise may change after a crash: the answer stays", async () => {
  let show = "old";
  const g = graph("shows", { state: { answer: last("") }, ports: { go: promise<string>() } })
    .node("ask", async (ctx) => ({ answer: (await ctx.promise("go", { show, timeout: show.length * 1000 })) ?? "" }))
    .edge(START, "ask");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {}, { id: "r" });
  await engine.clock.advance(10);
  show = "newer";
  await engine.crash();
  await run.resolve("go", "yes");
  await engine.clock.advance(10);
  expect(await run.result()).toEqual({ answer: "yes" });
});

test("calls that follow parallel calls get their own answers and keys after a crash, whichever finished first", async () => {
  let armed = false;
  const dead: { crash?: () => Promise<void> } = {};
  using stores = openStores(async (writes, apply) => {
    const done = await apply();
    const isHit = writes.some(
      (write) => write.write === "turn" && write.entries.some(({ command }) => command === "Node(1.0)#0/Operation(3)"),
    );
    if (!armed || !isHit) return done;
    armed = false;
    await dead.crash?.();
    throw new Error("dead");
  });
  const gates = { a0: createGate(), a1: createGate(), b0: createGate(), b1: createGate() };
  const keys = new Map<string, Set<string>>();
  const g = graph("pipes", { state: { out: append<string>() } })
    .node("both", async (ctx) => ({
      out: await Promise.all(
        ([0, 1] as const).map(async (n) => {
          const a = await ctx.run("a", n, () => gates[`a${n}`].wait().then(() => `a${n}`));
          return ctx.run("b", a, async (op, text) => {
            keys.set(text, (keys.get(text) ?? new Set()).add(op.idempotencyKey));
            await gates[`b${n}`].wait();
            return `b of ${text}`;
          });
        }),
      ),
    }))
    .edge(START, "both");
  await using engine = await createTestEngine({ store: stores.source, definitions: [g] });
  dead.crash = () => engine.crash();
  const run = await engine.start(g, {}, { id: "r" });
  await Promise.all([gates.a0.reached, gates.a1.reached]);
  gates.a1.open();
  await gates.b1.reached;
  gates.a0.open();
  await gates.b0.reached;
  armed = true;
  gates.b0.open();
  await engine.clock.advance(10);
  gates.b1.open();
  await engine.clock.advance(10);
  expect(await run.result()).toEqual({ out: ["b of a0", "b of a1"] });
  expect([...keys.values()].map(({ size }) => size)).toEqual([1, 1]);
  expect(await run.replay()).toMatchObject({ status: "same" });
});

test("messages for other nodes do not change the time of a node that runs again", async () => {
  const times: number[] = [];
  const g = graph("times", { state: { n: last(0) }, ports: { other: promise(), go: promise() } })
    .node("asks", async (ctx) => {
      const go = ctx.promise("go");
      times.push(ctx.now().getTime());
      await ctx.run("x", () => 1);
      await ctx.run("y", ctx.now().getTime(), () => 1);
      await go;
      await ctx.run("z", ctx.now().getTime(), () => 1);
      await ctx.promise("other");
    })
    .node("waits", async (ctx) => void (await Promise.all([ctx.promise("other"), ctx.promise("go")])))
    .edge(START, ["asks", "waits"]);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {}, { id: "r" });
  await engine.clock.advance(1_000);
  await run.resolve("go");
  await engine.clock.advance(1_000);
  await engine.crash();
  await run.resolve("other");
  await engine.clock.advance(1_000);
  await run.result();
  expect(new Set(times).size).toBe(1);
  expect(await run.replay()).toMatchObject({ status: "same" });
});

test("changed code that no longer makes its first call continues", async () => {
  const build = (isOld: boolean) =>
    graph("changed", { state: { out: append<string>() }, ports: { go: promise<string>(), end: promise() } })
      .node("asks", async (ctx) => {
        const go = ctx.promise("go");
        const other = isOld ? ctx.task(upper, "x") : undefined;
        const out = [await go];
        await other;
        await ctx.promise("end");
        return { out };
      })
      .edge(START, "asks");
  using stores = openStores();
  {
    const old = build(true);
    await using engine = await createTestEngine({ store: stores.source, definitions: [old, upper] });
    const run = await engine.start(old, {}, { id: "r" });
    await engine.clock.advance(10);
    await run.resolve("go", "went");
    await engine.clock.advance(10);
  }
  const g = build(false);
  await using engine = await createTestEngine({ store: stores.source, definitions: [g, upper] });
  const run = engine.get(g, "r");
  await run.resolve("end");
  await engine.clock.advance("1 minute");
  expect(await run.result()).toEqual({ out: ["went"] });
});

test("a node gets the answers from before a crash before new ones", async () => {
  const numbers = Array.from({ length: 20 }, (_, n) => n);
  const gate = createGate();
  let starts = 0;
  let order: number[] = [];
  const g = graph("many", { state: { out: append<string>() } })
    .node("all", async (ctx) => {
      starts += 1;
      order = [];
      const out = numbers.map(async (n) => {
        await ctx.run("first", n, () => (n === 0 && starts === 1 ? gate.wait() : undefined));
        order.push(n);
        return ctx.run("next", n, (_op, asked) => `next ${asked}`);
      });
      return { out: await Promise.all(out) };
    })
    .edge(START, "all");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {}, { id: "r" });
  await gate.reached;
  await engine.clock.advance(10);
  expect(order).toEqual(numbers.slice(1));
  await engine.crash();
  await engine.clock.advance(10);
  expect(await run.result()).toEqual({ out: numbers.map((n) => `next ${n}`) });
  expect(order).toEqual([...numbers.slice(1), 0]);
  expect(await run.replay()).toMatchObject({ status: "same" });
});
