// Nodes: their context, and their end when the run fails, is cancelled, paused, released or killed.

import { expect, test } from "vitest";
import {
  append,
  createEngine,
  END,
  goto,
  graph,
  last,
  promise,
  START,
  stream,
  task,
  workflow,
  type JournalEntry,
} from "reprise";
import { sqlite } from "reprise/sqlite";
import { crashEverywhere, createTestEngine } from "reprise/testing";
import { collect, createFolder, createGate, rejection, storeAround, until, within } from "../engine/world.ts";

async function entriesOf(run: { journal(): AsyncIterable<JournalEntry> }): Promise<JournalEntry[]> {
  const entries: JournalEntry[] = [];
  for await (const entry of run.journal()) entries.push(entry);
  return entries;
}
async function typesOf(run: { journal(): AsyncIterable<JournalEntry> }): Promise<string[]> {
  return (await entriesOf(run)).map(({ type, command }) => (command === undefined ? type : `${type} ${command}`));
}

test("a node that fails its last attempt fails the run, aborts its siblings, keeps their results, and leaves no checkpoint", async () => {
  const gate = createGate();
  const aborted: string[] = [];
  const g = graph("fails", { state: { seen: append<string>() } })
    .node("first", async (ctx) => {
      ctx.abortSignal.addEventListener("abort", () => {
        aborted.push((ctx.abortSignal.reason as Error).message);
        gate.open();
      });
      await gate.wait();
      return { seen: ["first"] };
    })
    .node("second", async (ctx) => {
      await new Promise((_resolve, reject) => {
        ctx.abortSignal.addEventListener("abort", () => reject(new Error("aborted")));
      });
    })
    .node("third", async () => {
      await gate.reached;
      throw new Error("third failed");
    })
    .edge(START, ["first", "second", "third"])
    .edge("first", END)
    .edge("second", END)
    .edge("third", END);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  expect(await rejection(run.result())).toMatchObject({ code: "RUN_FAILED", cause: { message: "third failed" } });
  expect(aborted).toEqual(["Node third of the same step failed, so this node was aborted."]);
  const types = await typesOf(run);
  expect(types.slice(1, 3)).toEqual(["StepCommitted", "NodeFailed Node(1.2)"]);
  expect(types.slice(3).toSorted()).toEqual(["NodeCompleted Node(1.0)", "NodeFailed Node(1.1)", "RunFailed"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("the first failure in fold order is the run's failure", async () => {
  const gate = createGate();
  const g = graph("fails", { state: {} })
    .node("slow", async () => {
      await gate.wait();
      throw new Error("slow failed");
    })
    .node("fast", async (ctx) => {
      await gate.reached;
      ctx.abortSignal.throwIfAborted();
      gate.open();
      throw new Error("fast failed");
    })
    .edge(START, ["slow", "fast"]);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  expect(await rejection(run.result())).toMatchObject({ cause: { message: "slow failed" } });
});

test("a sibling that ignores the abort is abandoned after a while", async () => {
  const gate = createGate();
  const g = graph("fails", { state: {} })
    .node("deaf", { timeout: "1 day" }, async () => gate.wait())
    .node("broken", async () => {
      await gate.reached;
      throw new Error("broken");
    })
    .edge(START, ["deaf", "broken"]);
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [g] });
  const run = await engine.start(g, {});
  expect(await rejection(run.result())).toMatchObject({ cause: { message: "broken" } });
  expect(await typesOf(run)).toContain("NodeFailed Node(1.0)");
  gate.open();
}, 20_000);

test("the waits of a sibling are dropped when another node fails, and its further calls are rejected", async () => {
  const gate = createGate();
  const refused: unknown[] = [];
  const note = (error: unknown): void => void refused.push((error as { code: string }).code);
  const g = graph("fails", { state: {}, ports: { never: promise() } })
    .node("waits", async (ctx) => {
      const never = ctx.promise("never");
      void gate.wait();
      await never.catch(note);
      await ctx.run("cleanup", () => 1).catch(note);
    })
    .node("broken", async () => {
      await gate.reached;
      throw new Error("broken");
    })
    .edge(START, ["waits", "broken"]);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  expect(await rejection(run.result())).toMatchObject({ cause: { message: "broken" } });
  expect(refused).toEqual(["NODE_STOPPED", "NODE_STOPPED"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("items that have not started when a node fails do not start", async () => {
  let ran = 0;
  const g = graph("fails", { state: {}, maxConcurrentNodes: 1 })
    .node("each", async (_ctx, _state, item: number) => {
      ran += 1;
      throw new Error(`broken ${item}`);
    })
    .spread(START, "each", () => [1, 2, 3, 4]);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  expect(await rejection(run.result())).toMatchObject({ code: "RUN_FAILED" });
  expect(ran).toBe(1);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a sibling between two attempts is not retried when another node fails", async () => {
  let tries = 0;
  const failed = createGate();
  const g = graph("fails", { state: {} })
    .node("flaky", { retry: { maxAttempts: 5, baseDelay: "1 hour", maxDelay: "1 hour" } }, async () => {
      tries += 1;
      failed.open();
      throw new Error("flaky");
    })
    .node("broken", async () => {
      await failed.opened;
      await new Promise((resolve) => setImmediate(resolve));
      throw new Error("broken");
    })
    .edge(START, ["flaky", "broken"]);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  expect(await rejection(run.result())).toMatchObject({ cause: { message: "broken" } });
  expect(tries).toBe(1);
});

test("a cancel reaches running nodes within a second: signals abort, waits reject, and the run ends cancelled", async () => {
  const at = createGate();
  const heard: string[] = [];
  const g = graph("long", { state: {}, ports: { never: promise() } })
    .node("works", async (ctx) => {
      ctx.abortSignal.addEventListener("abort", () => heard.push("signal"));
      void at.wait();
      await new Promise(() => {});
    })
    .node("waits", async (ctx) => {
      await ctx.promise("never").catch((error: unknown) => {
        heard.push((error as { code: string }).code);
        throw error;
      });
    })
    .edge(START, ["works", "waits"]);
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [g] });
  const run = await engine.start(g, {});
  await at.reached;
  const cancelled = run.cancel("enough").then(() => rejection(run.result()));
  expect(await within(1_000, cancelled)).toMatchObject({ code: "CANCELLED" });
  await until(() => heard.length === 2);
  expect(heard.toSorted()).toEqual(["CANCELLED", "signal"]);
  expect((await run.info()).status).toBe("cancelled");
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a cancelled run takes no further step, also when it was not in memory", async () => {
  const steps: string[] = [];
  const g = graph("long", { state: { n: last(0) }, ports: { go: promise() } })
    .node("one", async (ctx) => {
      await ctx.promise("go").catch(() => {});
      steps.push("one");
      return { n: 1 };
    })
    .node("two", async () => void steps.push("two"))
    .edge(START, "one")
    .edge("one", "two");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance(0);
  await run.cancel();
  await engine.crash();
  expect(await rejection(run.result())).toMatchObject({ code: "CANCELLED" });
  expect(steps).not.toContain("two");
});

test("a waiting node does not prevent a pause, and continues after resume", async () => {
  let calls = 0;
  const g = graph("asks", { state: { name: last("") }, ports: { name: promise<string>() } })
    .node("ask", async (ctx) => {
      const before = await ctx.run("before", () => ++calls);
      const name = await ctx.promise("name");
      return { name: `${name} ${before}` };
    })
    .edge(START, "ask");
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [g], store: source });
  const run = await engine.start(g, {});
  await engine.clock.advance(0);
  await run.pause();
  await run.resolve("name", "Ada");
  await engine.clock.advance("1 day");
  expect((await run.info()).status).toBe("paused");
  expect(await source.store.check()).toEqual([]);
  await run.resume();
  expect(await run.result()).toEqual({ name: "Ada 1" });
});

test("a paused run starts no node; a running one may finish", async () => {
  const gate = createGate();
  const ran: string[] = [];
  const g = graph("steps", { state: {} })
    .node("one", async () => {
      ran.push("one");
      await gate.wait();
    })
    .node("two", async () => {
      ran.push("two");
    })
    .edge(START, "one")
    .edge("one", "two");
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [g] });
  const run = await engine.start(g, {});
  await gate.reached;
  await run.pause();
  gate.open();
  await until(async () => (await typesOf(run)).includes("NodeCompleted Node(1.0)"));
  expect(ran).toEqual(["one"]);
  await run.resume();
  await run.result();
  expect(ran).toEqual(["one", "two"]);
});

test("a run whose nodes wait for days is released, and a node that continues on its own gets the turn back", async () => {
  const gate = createGate();
  const g = graph("mixed", { state: { got: append<string>() }, ports: { name: promise<string>() } })
    .node("both", { timeout: "1 day" }, async (ctx) => {
      const name = ctx.promise("name");
      await gate.wait();
      const own = await ctx.run("own", () => "own");
      return { got: [own, await name] };
    })
    .edge(START, "both");
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createEngine({ store: source, definitions: [g] });
  const run = await engine.start(g, {});
  await gate.reached;
  await until(async () => (await run.info()).status === "waiting");
  gate.open();
  await until(async () => (await typesOf(run)).some((type) => type.startsWith("OperationCompleted")));
  await run.resolve("name", "Ada");
  expect(await run.result()).toEqual({ got: ["own", "Ada"] });
  expect(await source.store.check()).toEqual([]);
});

test("a node that ends, fails an attempt or emits while its run is being released is not lost", async () => {
  const gate = createGate();
  let tries = 0;
  const g = graph("mixed", {
    state: { n: last(0) },
    ports: { never: promise(), words: stream<string>() },
  })
    .node("both", { retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } }, async (ctx) => {
      tries += 1;
      if (ctx.attempt > 1) return { n: 7 };
      void ctx.promise("never").catch(() => {});
      await gate.wait();
      ctx.emit("words", "before the failure");
      throw new Error("while away");
    })
    .edge(START, "both");
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [g] });
  const run = await engine.start(g, {});
  await gate.reached;
  await until(async () => (await run.info()).status === "waiting");
  gate.open();
  expect(await run.result()).toEqual({ n: 7 });
  expect(tries).toBe(2);
  expect(await collect(run.stream("words"))).toEqual([
    { offset: 1, value: "before the failure", step: "Node(1.0)", execution: 1 },
    { offset: 2, reset: { step: "Node(1.0)", execution: 2 } },
  ]);
});

test("after a crash a node runs again, and the journal answers the calls of its attempt", async () => {
  const calls: string[] = [];
  const other = task("other", () => {
    calls.push("task");
    return "task";
  });
  const sub = workflow("sub", async (ctx) => {
    calls.push("child");
    return ctx.run("in child", () => "child");
  });
  const g = graph("asks", { state: { got: append<string>() }, ports: { name: promise<string>() } })
    .node("ask", async (ctx) => {
      calls.push("node");
      const one = await ctx.run("one", () => {
        calls.push("one");
        return "one";
      });
      const two = await ctx.task(other);
      const three = await ctx.child(sub);
      const four = await ctx.promise("name");
      return { got: [one, two, three, four, ctx.uuid()] };
    })
    .edge(START, "ask");
  await using engine = await createTestEngine({ definitions: [g, other, sub] });
  const run = await engine.start(g, {}, { id: "r" });
  await engine.clock.advance(0);
  await engine.crash();
  await engine.clock.advance(0);
  await run.resolve("name", "Ada");
  const { got } = await run.result();
  expect(got.slice(0, 4)).toEqual(["one", "task", "child", "Ada"]);
  expect(calls.filter((call) => call !== "node" && call !== "child")).toEqual(["one", "task"]);
  expect(calls.filter((call) => call === "node")).toHaveLength(2);
  const again = await engine.start(g, {}, { id: "r2" });
  await again.resolve("name", "Ada");
  expect((await again.result()).got[4]).not.toBe(got[4]);
});

test("a failed attempt is repeated when it is due, also by another process", async () => {
  const at: number[] = [];
  const g = graph("flaky", { state: { n: last(0) } })
    .node("try", { retry: { maxAttempts: 3, baseDelay: "1 minute", maxDelay: "1 minute" } }, async (ctx) => {
      at.push(engine.clock.now().getTime());
      if (ctx.attempt < 3) throw new Error(`attempt ${ctx.attempt}`);
      return { n: ctx.attempt };
    })
    .edge(START, "try");
  await using engine = await createTestEngine({ definitions: [g], now: new Date(0) });
  const run = await engine.start(g, {});
  await engine.clock.advance("30 s");
  await engine.crash();
  await engine.clock.advance("2 minutes");
  expect(await run.result()).toEqual({ n: 3 });
  expect(at.map((ms) => Math.round(ms / 60_000))).toEqual([0, 1, 2]);
});

test("MaxAttempts counts the first try: 3 executions with attempt 1, 2, 3, then MAX_ATTEMPTS_EXCEEDED; what is not retryable runs once", async () => {
  const seen: string[] = [];
  const g = graph("flaky", { state: {} })
    .node("always", { retry: { maxAttempts: 3, baseDelay: 1, maxDelay: 1 } }, async (ctx) => {
      seen.push(`step ${ctx.step} attempt ${ctx.attempt} ${ctx.idempotencyKey}`);
      throw new Error("again");
    })
    .edge(START, "always");
  const once = graph("once", { state: {} })
    .node("always", { retry: { maxAttempts: 3, baseDelay: 1, maxDelay: 1, retryable: () => false } }, async () => {
      seen.push("once");
      throw new Error("not again");
    })
    .edge(START, "always");
  await using engine = await createTestEngine({ definitions: [g, once] });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 s");
  expect(await rejection(run.result())).toMatchObject({ cause: { code: "MAX_ATTEMPTS_EXCEEDED" } });
  const key = seen[0]?.split(" ").at(-1);
  expect(seen).toEqual([1, 2, 3].map((attempt) => `step 1 attempt ${attempt} ${key}`));
  const [frontier] = (await entriesOf(run)).filter(({ type }) => type === "StepCommitted");
  expect(frontier?.data).toMatchObject({ frontier: [{ node: "always" }] });
  seen.length = 0;
  expect(await rejection((await engine.start(once, {})).result())).toMatchObject({ cause: { message: "not again" } });
  expect(seen).toEqual(["once"]);
});

test("durable waits do not count against the timeout of a node", async () => {
  const g = graph("slow", { state: { n: last(0) }, ports: { go: promise<number>() } })
    .node("waits", async (ctx) => {
      const n = await ctx.promise("go");
      await gate.wait();
      return { n };
    })
    .edge(START, "waits");
  const gate = createGate();
  await using engine = await createTestEngine({ definitions: [g] });
  const patient = await engine.start(g, {});
  await engine.clock.advance("1 day");
  await patient.resolve("go", 1);
  gate.open();
  expect(await patient.result()).toEqual({ n: 1 });
});

test("a node that exceeds its timeout fails, and its signal aborts", async () => {
  const aborted = createGate<string>();
  const g = graph("slow", { state: {} })
    .node("works", { timeout: 20 }, async (ctx) => {
      ctx.abortSignal.addEventListener("abort", () => aborted.open((ctx.abortSignal.reason as { code: string }).code));
      await new Promise(() => {});
    })
    .edge(START, "works");
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [g] });
  const run = await engine.start(g, {});
  expect(await rejection(run.result())).toMatchObject({ cause: { code: "ATTEMPT_TIMEOUT" } });
  expect(await aborted.opened).toBe("ATTEMPT_TIMEOUT");
});

test("code of an attempt that has ended is ignored", async () => {
  const gate = createGate();
  let late = 0;
  const g = graph("slow", { state: { n: last(0) } })
    .node("works", { timeout: 20, retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } }, async (ctx) => {
      if (ctx.attempt === 2) return { n: 1 };
      await gate.wait();
      await ctx.run("late", () => ++late);
      return { n: 0 };
    })
    .node("after", async (ctx) => {
      gate.open();
      await ctx.run("after", () => new Promise((resolve) => setTimeout(resolve, 5)));
    })
    .edge(START, "works")
    .edge("works", "after");
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [g] });
  const run = await engine.start(g, {});
  expect(await run.result()).toEqual({ n: 1 });
  expect(late).toBe(0);
  expect((await typesOf(run)).filter((type) => type.includes("Node(1.0)#"))).toEqual([]);
});

test("idempotency keys are the same in every attempt and different for every call", async () => {
  const keys: string[][] = [[], []];
  const g = graph("keys", { state: {} })
    .node("calls", { retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } }, async (ctx) => {
      const mine = keys[ctx.attempt - 1]!;
      mine.push(ctx.idempotencyKey);
      await ctx.run("a", (op) => void mine.push(op.idempotencyKey));
      await ctx.run("b", (op) => void mine.push(op.idempotencyKey));
      if (ctx.attempt === 1) throw new Error("again");
    })
    .edge(START, "calls");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 s");
  await run.result();
  expect(keys[0]).toEqual(keys[1]);
  expect(new Set(keys[0]).size).toBe(3);
});

test("a node that requires idempotency has the key that its function computes from the state", async () => {
  let key = "";
  const g = graph("keys", { state: { order: last("o-1") } })
    .node(
      "pay",
      { effects: { requiresIdempotency: true }, idempotencyKey: (state) => `pay-${state.order}` },
      async (ctx) => void (key = ctx.idempotencyKey),
    )
    .edge(START, "pay");
  await using engine = await createTestEngine({ definitions: [g] });
  await (await engine.start(g, {})).result();
  expect(key).toBe("pay-o-1");
});

test("workflows and graphs can be children of nodes, and graphs children of workflows, each with its own id", async () => {
  const leaf = graph("leaf", { state: { n: last(0) }, output: (state) => state.n * 2 })
    .node("double", async (_ctx, state) => ({ n: state.n }))
    .edge(START, "double");
  const flow = workflow("flow", async (ctx, n: number) => (await ctx.child(leaf, { n })) + 1);
  const ids: string[] = [];
  const top = graph("top", { state: { all: append<number>() } })
    .node("each", async (ctx, _state, item: number) => {
      const one = ctx.child(leaf, { n: item });
      const two = ctx.child(flow, item);
      ids.push(one.id, two.id);
      return { all: [await one, await two] };
    })
    .spread(START, "each", () => [1, 2, 3])
    .edge("each", END);
  await using engine = await createTestEngine({ definitions: [top, leaf, flow] });
  const run = await engine.start(top, {});
  expect(await run.result()).toEqual({ all: [2, 3, 4, 5, 6, 7] });
  expect(new Set(ids).size).toBe(6);
  expect(await run.verify()).toMatchObject({ status: "same" });
});

test("a child of a failed attempt is cancelled, and the next attempt starts another", async () => {
  const slow = workflow("slow", { ports: { never: promise() } }, async (ctx) => ctx.promise("never"));
  const ids: string[] = [];
  const g = graph("tries", { state: {} })
    .node("tries", { retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } }, async (ctx) => {
      const child = ctx.child(slow);
      ids.push(child.id);
      await ctx.run("wait a little", () => undefined);
      if (ctx.attempt === 1) throw new Error("again");
      await child.catch(() => {});
    })
    .edge(START, "tries");
  await using engine = await createTestEngine({ definitions: [g, slow] });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 s");
  expect(ids).toHaveLength(2);
  expect(ids[0]).not.toBe(ids[1]);
  expect((await engine.get("slow", ids[0]!).info()).status).toBe("cancelled");
  await engine.get("slow", ids[1]!).cancel();
  await run.result();
});

test("a graph is started by a schedule", async () => {
  const g = graph("nightly", { state: { n: last(0) } })
    .node("count", async (_ctx, state) => ({ n: state.n + 1 }))
    .edge(START, "count");
  await using engine = await createTestEngine({ definitions: [g] });
  await engine.schedule("each hour", g, { n: 4 }, { every: "1 hour" });
  await engine.clock.advance("1 hour");
  const [started] = await collect(engine.list({ definition: "nightly" }));
  expect(await engine.get(g, started!.id).result()).toEqual({ n: 5 });
});

test("a node can wait for a person's decision inside try and catch", async () => {
  const caught: unknown[] = [];
  const g = graph("asks", { state: { ok: last<boolean | null>(null) }, ports: { ok: promise<boolean>() } })
    .node("ask", async (ctx) => {
      try {
        return { ok: await ctx.promise("ok", { show: "sure?" }) };
      } catch (error) {
        caught.push(error);
        return { ok: false };
      }
    })
    .edge(START, "ask");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 day");
  await engine.crash();
  await engine.clock.advance("1 day");
  expect(caught).toEqual([]);
  await run.resolve("ok", true);
  expect(await run.result()).toEqual({ ok: true });
});

test("a decision that arrives while a node ends is available to a later node, also after a crash", async () => {
  const g = graph("asks", { state: { big: last(""), said: last("") }, ports: { word: promise<string>() } })
    .node("grow", async () => ({ big: "x".repeat(40_000) }))
    .node("grow more", async (ctx) => {
      await ctx.run("resolve", () => engine.get("asks", ctx.runId).resolve("word", "hello"));
      return { big: "y".repeat(40_000) };
    })
    .node("wait", async (ctx) => {
      await ctx.run("pause", () => engine.get("asks", ctx.runId).pause());
    })
    .node("ask", async (ctx) => ({ said: await ctx.promise("word") }))
    .edge(START, "grow")
    .edge("grow", "grow more")
    .edge("grow more", "wait")
    .edge("wait", "ask");
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [g], store: source });
  const run = await engine.start(g, {});
  await engine.clock.advance("1 s");
  await engine.crash();
  await run.resume();
  expect((await run.result()).said).toBe("hello");
  expect(await source.store.check()).toEqual([]);
});

test("a node cannot register an undo", async () => {
  const g = graph("undoes", { state: {} })
    .node("books", async (ctx) => {
      await ctx.run("book", () => 1, { undo: async () => {} });
    })
    .edge(START, "books");
  await using engine = await createTestEngine({ definitions: [g] });
  expect(await rejection((await engine.start(g, {})).result())).toMatchObject({ cause: { code: "USAGE" } });
});

test("closing an engine lets a running node finish, and does not wait for a waiting one", async () => {
  const gate = createGate();
  let finished = false;
  const g = graph("works", { state: {}, ports: { never: promise() } })
    .node("works", async () => {
      void gate.wait();
      await new Promise((resolve) => setTimeout(resolve, 50));
      finished = true;
    })
    .node("waits", async (ctx) => {
      await ctx.promise("never");
    })
    .edge(START, ["works", "waits"]);
  const engine = await createEngine({ store: "sqlite::memory:", definitions: [g] });
  await engine.start(g, {});
  await gate.reached;
  await within(5_000, engine.close());
  expect(finished).toBe(true);
});

test("closing an engine stores the call that a node waits for, and does not wait for the node", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const gate = createGate<string>();
  const called: string[] = [];
  const g = graph("calls", { state: { said: append<string>() }, output: ({ said }) => said })
    .node("calls", async (ctx) => {
      const first = await ctx.run("first", () => (called.push("first"), gate.wait()));
      return { said: [first, await ctx.run("second", () => (called.push("second"), "two"))] };
    })
    .edge(START, "calls");
  const warnings: string[] = [];
  const log = (message: string): void => void warnings.push(message);
  {
    const engine = await createEngine({ store, definitions: [g], logger: { info() {}, warn: log, error: log } });
    await engine.start(g, {}, { id: "run-1" });
    await gate.reached;
    const closed = engine.close({ grace: "1 h" });
    gate.open("one");
    await closed;
  }
  expect(warnings).toEqual([]);
  expect(called).toEqual(["first"]);
  await using engine = await createEngine({ store, definitions: [g] });
  expect(await engine.get(g, "run-1").result()).toEqual(["one", "two"]);
  expect(called).toEqual(["first", "second"]);
});

test("a node continues with its goto, and a goto to an unknown node fails", async () => {
  const g = graph("goes", { state: { way: append<string>() } })
    .node("a", async () => goto(["b", "c"], { way: ["a"] }))
    .node("b", async () => ({ way: ["b"] }))
    .node("c", async () => goto(END, { way: ["c"] }))
    .edge(START, "a");
  const lost = graph("lost", { state: {} })
    .node("a", async () => goto("nowhere" as "a"))
    .edge(START, "a");
  await using engine = await createTestEngine({ definitions: [g, lost] });
  expect(await (await engine.start(g, {})).result()).toEqual({ way: ["a", "b", "c"] });
  expect(await rejection((await engine.start(lost, {})).result())).toMatchObject({ cause: { code: "BAD_GRAPH" } });
});

test("a node may return the result of ctx.label, which is undefined", async () => {
  const g = graph("labelled", { state: { n: last(0) } })
    .node("a", async (ctx) => ctx.label("done"))
    .edge(START, "a");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, { n: 1 });
  expect(await run.result()).toEqual({ n: 1 });
  const steps = (await collect(run.journal())).filter(({ type }) => type === "StepCommitted");
  expect(steps.map(({ data }) => (data as { label?: string }).label)).toEqual([undefined, "done"]);
});

test("user SQL of a node is applied once, together with its entry", async () => {
  const g = graph("writes", { state: { ids: append<number>() } })
    .node("each", async (ctx, _state, item: number) => {
      const id = await ctx.tx("insert", sqlite, (db) => {
        db.exec("create table if not exists rows (id integer primary key, n integer)");
        return Number(db.prepare("insert into rows (n) values (?)").run(item).lastInsertRowid);
      });
      return { ids: [id] };
    })
    .node("count", async (ctx) => ({
      ids: [await ctx.tx("count", sqlite, (db) => Number(db.prepare("select count(*) as n from rows").get()?.["n"]))],
    }))
    .spread(START, "each", () => [10, 20, 30])
    .join(["each"], "count");
  const { output, crashes } = await crashEverywhere(g, {});
  expect(output.ids.toSorted()).toEqual([1, 2, 3, 3]);
  expect(crashes).toBeGreaterThan(5);
}, 60_000);

test("runs with waiting nodes that fit stay in memory; the others run their nodes again when the answer arrives", async () => {
  let began = 0;
  const g = graph("waits", { state: { n: last(0) }, ports: { go: promise<number>() } })
    .node("waits", async (ctx) => {
      began += 1;
      const first = await ctx.run("first", () => 1);
      return { n: first + (await ctx.promise("go")) };
    })
    .edge(START, "waits");
  await using engine = await createTestEngine({ definitions: [g], worker: { memory: "1 MiB" } });
  const runs = await Promise.all(Array.from({ length: 1_010 }, (_, n) => engine.start(g, {}, { id: `r${n}` })));
  await engine.clock.advance("1 s");
  expect(began).toBe(1_010);
  for (const run of runs) await run.resolve("go", 1);
  for (const run of runs) expect(await run.result()).toEqual({ n: 2 });
  expect(began).toBeGreaterThan(1_010);
}, 60_000);
