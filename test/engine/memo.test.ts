// F-36, F-37, T-18 (local): a pure step whose result is known is not executed, and a function that is not pure is found out.

import { describe, expect, test } from "vitest";
import {
  CancelledError,
  END,
  flow,
  graph,
  last,
  START,
  task,
  typed,
  workflow,
  type JournalEntry,
  type RepriseError,
} from "reprise";
import { crashEverywhere, createTestEngine, stub } from "reprise/testing";
import { collect, createGate, rejection, storeAround, watchEvents } from "./world.ts";

/** A store whose rows the test can read. */
function openable(): ReturnType<typeof storeAround> {
  return storeAround((_writes, apply) => apply());
}

async function memosIn({ store }: ReturnType<typeof openable>) {
  return (await store.listMemos({ limit: 1_000 })).groups;
}

async function runOn(engine: object, definition: object, input?: unknown, options?: object): Promise<unknown> {
  const { start } = engine as { start(...args: unknown[]): Promise<{ result(): Promise<unknown> }> };
  return (await start.call(engine, definition, input, options)).result();
}

/** Which steps of a run reused a result. */
async function reusedIn(run: { journal(): AsyncIterable<JournalEntry> }): Promise<string[]> {
  const entries = await collect(run.journal());
  return entries.flatMap(({ command, data }) =>
    typeof (data as { reused?: unknown }).reused === "string" ? [command ?? ""] : [],
  );
}

/** A function that counts its calls. */
function counted<A extends readonly unknown[], T>(call: (...args: A) => T) {
  const counter = { calls: 0, call: (...args: A): T => ((counter.calls += 1), call(...args)) };
  return counter;
}

describe("a pure operation", () => {
  test("is executed once for the same input, and the entry of a reused result says so", async () => {
    const double = counted((n: number) => 2 * n);
    const kid = workflow("kid", (ctx, n: number) =>
      ctx.run("double", { n }, (_op, input) => double.call(input.n), { pure: "1" }),
    );
    await using engine = await createTestEngine({ definitions: [kid] });
    expect(await runOn(engine, kid, 4)).toBe(8);
    const again = await engine.start(kid, 4);
    expect(await again.result()).toBe(8);
    expect(await runOn(engine, kid, 5)).toBe(10);
    expect(double.calls).toBe(2);
    expect(await reusedIn(again)).toEqual(["Operation(0)"]);
    const [, entry] = await collect(again.journal());
    expect(entry).toMatchObject({
      type: "OperationCompleted",
      data: { result: 8, reused: "161814c0fdfa834537e8b61b2558fe84c7e2c0a2989f3f160ea9aec8e8f32503" },
    });
    expect(entry).not.toHaveProperty("worker", expect.anything());
    expect(await again.verify()).toMatchObject({ status: "same" });
  });

  test("is executed again for another version, name or workflow", async () => {
    const calls: string[] = [];
    const say = (what: string) => (_op: unknown, n: number) => (calls.push(what), n);
    const first = workflow("first", async (ctx) => {
      await ctx.run("say", 1, say("1"), { pure: "1" });
      await ctx.run("say", 1, say("2"), { pure: "2" });
      await ctx.run("tell", 1, say("name"), { pure: "1" });
      await ctx.run("say", 1, say("again"), { pure: "1" });
    });
    const second = workflow("second", (ctx) => ctx.run("say", 1, say("workflow"), { pure: "1" }));
    await using engine = await createTestEngine({ definitions: [first, second] });
    await runOn(engine, first);
    await runOn(engine, second);
    expect(calls).toEqual(["1", "2", "name", "workflow"]);
  });

  test("reuses undefined, dates and errors as values", async () => {
    const values = [undefined, new Date(7), new Error("kept"), null, { a: [1n] }];
    const pick = counted((index: number) => values[index]);
    const picks = workflow("picks", async (ctx) => {
      const found: unknown[] = [];
      for (const index of values.keys())
        found.push(await ctx.run("pick", index, (_op, at) => pick.call(at) as any, { pure: "1" }));
      return found as any;
    });
    await using engine = await createTestEngine({ definitions: [picks] });
    expect(await runOn(engine, picks)).toEqual(values);
    expect(await runOn(engine, picks)).toEqual(values);
    expect(pick.calls).toBe(values.length);
  });

  test("of a node of a graph is reused by the next run of the graph", async () => {
    const count = counted((text: string) => text.length);
    const counts = graph("counts", { state: { n: last(0) } })
      .node("count", async (ctx) => ({
        n: await ctx.run("count", "four", (_op, text) => count.call(text), { pure: "1" }),
      }))
      .edge(START, "count")
      .edge("count", END);
    await using engine = await createTestEngine({ definitions: [counts] });
    expect(await runOn(engine, counts, {})).toEqual({ n: 4 });
    expect(await runOn(engine, counts, {})).toEqual({ n: 4 });
    expect(count.calls).toBe(1);
  });

  test("without an input, or with an undo, is refused with what to do", async () => {
    const noInput = workflow("no-input", (ctx) => ctx.run("now", () => 1, { pure: "1" } as object));
    const undone = workflow("undone", (ctx) =>
      ctx.run("pay", 1, (_op, n) => n, { pure: "1", undo: async () => undefined }),
    );
    const badVersion = workflow("bad-version", (ctx) => ctx.run("pay", 1, (_op, n) => n, { pure: "" }));
    await using engine = await createTestEngine({ definitions: [noInput, undone, badVersion] });
    const causes = await Promise.all(
      [noInput, undone, badVersion].map(async (one) => (await rejection(runOn(engine, one))).cause as RepriseError),
    );
    expect(causes.map(({ code }) => code)).toEqual(["BAD_OPTIONS", "BAD_OPTIONS", "BAD_OPTIONS"]);
    expect(causes.map(({ message }) => message)).toEqual([
      expect.stringContaining('ctx.run("now", input, (op, input) => …, { pure })'),
      expect.stringContaining("Remove `undo`, or `pure`"),
      expect.stringContaining('such as "1", got a text of 0 characters'),
    ]);
    expect(() => task("bad", { pure: 1 as never }, () => 1)).toThrow(/expected `pure` to be the version/);
  });
});

describe("a pure task", () => {
  test("is shared by workflows and flows that call it", async () => {
    const embed = counted((text: string) => text.length);
    const embedding = task("embed", { pure: "small-1" }, (_ctx, text: string) => embed.call(text));
    const alone = workflow("alone", (ctx, text: string) => ctx.task(embedding, text));
    const called = flow("called", { input: typed<string>() })
      .call("vector", ["input"], embedding, ({ input }) => input)
      .output(["vector"], ({ vector }) => vector);
    const many = flow("many", { input: typed<string[]>() })
      .spread("vectors", ["input"], ({ input }) => input, embedding)
      .output(["vectors"], ({ vectors }) => vectors);
    await using engine = await createTestEngine({ definitions: [embedding, alone, called, many] });
    expect(await runOn(engine, alone, "abc")).toBe(3);
    expect(await runOn(engine, called, "abc")).toBe(3);
    expect(await runOn(engine, many, ["abc", "abcd", "abc"])).toEqual([3, 4, 3]);
    const run = await engine.start(alone, "abcd");
    expect(await run.result()).toBe(4);
    expect(embed.calls).toBe(2);
    expect(await reusedIn(run)).toEqual(["Task(0)"]);
  });

  test("that fails, times out or is cancelled leaves no memo", async () => {
    const gate = createGate();
    let calls = 0;
    const work = task("work", { pure: "1", timeout: "1 second" }, async (_ctx, how: string) => {
      calls += 1;
      if (how === "fails" && calls === 1) throw new Error("no");
      if (how !== "fails" && calls < 3) await gate.wait();
      return calls;
    });
    const tries = workflow("tries", (ctx, how: string) => ctx.task(work, how));
    const source = openable();
    await using engine = await createTestEngine({ definitions: [work, tries], store: source });
    await rejection(runOn(engine, tries, "fails"));
    const late = await engine.start(tries, "late");
    await gate.reached;
    await engine.clock.advance("2 seconds");
    expect((await rejection(late.result())).cause).toMatchObject({ code: "ATTEMPT_TIMEOUT" });
    gate.open();
    expect(await memosIn(source)).toEqual([]);
    const stops = createGate();
    const held = workflow("held", (ctx) =>
      ctx.run("hold", 1, async (_op, n) => (await stops.wait(), n), { pure: "1" }),
    );
    await using other = await createTestEngine({ definitions: [held], store: openable() });
    const run = await other.start(held);
    await stops.reached;
    await run.cancel();
    expect(await rejection(run.result())).toBeInstanceOf(CancelledError);
    stops.open();
    expect(await runOn(engine, tries, "fails")).toBe(3);
    expect(await runOn(engine, tries, "fails")).toBe(3);
    expect(await memosIn(source)).toHaveLength(1);
  });

  test("whose input cannot be encoded in a flow is executed each time and does not fail", async () => {
    const isOdd = counted((map: ReadonlyMap<WeakKey, number>) => map.size);
    const schema = {
      "~standard": {
        version: 1,
        vendor: "test",
        // A function is no data: no key can be made of it.
        validate: (value: unknown) => ({ value: Object.assign(() => value, { size: 1 }) }),
      },
    } as const;
    const odd = task("odd", { pure: "1", input: schema as never }, (_ctx, map: any) => isOdd.call(map));
    const odds = flow("odds", { input: typed<number>() })
      .call("odd", ["input"], odd as never, (({ input }: { input: number }) => input) as never)
      .output(["odd"] as never, ((values: { odd: number }) => values.odd) as never);
    const source = openable();
    await using engine = await createTestEngine({ definitions: [odd, odds], store: source });
    expect(await runOn(engine, odds as never, 1 as never)).toBe(1);
    expect(await runOn(engine, odds as never, 1 as never)).toBe(1);
    expect(isOdd.calls).toBe(2);
    expect(await memosIn(source)).toEqual([]);
  });

  test("that is stubbed in a test is always called and remembers nothing", async () => {
    const price = task("price", { pure: "1" }, (_ctx, n: number) => n);
    const prices = workflow("prices", async (ctx) => [
      await ctx.task(price, 1),
      await ctx.run("rate", 1, (_op, n) => n, { pure: "1" }),
    ]);
    const stubbed = counted(() => 7);
    const source = openable();
    const stubs = [stub(price, stubbed.call), stub("rate", stubbed.call)];
    await using engine = await createTestEngine({ definitions: [price, prices], stubs, store: source });
    expect(await runOn(engine, prices)).toEqual([7, 7]);
    expect(await runOn(engine, prices)).toEqual([7, 7]);
    expect(stubbed.calls).toBe(4);
    expect(await memosIn(source)).toEqual([]);
  });
});

describe("a pure action of a flow", () => {
  test("is executed once for the same needs, and what follows from its value is derived again", async () => {
    const slow = counted((n: number) => ({ n, doubled: 2 * n }));
    const sums = flow("sums", { input: typed<{ n: number; tag: string }>() })
      .inline("n", ["input"], ({ input }) => input.n)
      .action("slow", ["n"], { pure: "1" }, (_ctx, { n }) => slow.call(n))
      .output(["slow", "input"], ({ slow: { doubled }, input }) => `${input.tag} ${doubled}`);
    await using engine = await createTestEngine({ definitions: [sums] });
    expect(await runOn(engine, sums, { n: 3, tag: "a" })).toBe("a 6");
    const run = await engine.start(sums, { n: 3, tag: "b" });
    expect(await run.result()).toBe("b 6");
    expect(slow.calls).toBe(1);
    expect(await reusedIn(run)).toEqual(["slow"]);
    expect(await run.verify()).toMatchObject({ status: "same" });
  });

  test("whose error a catch handled leaves no memo", async () => {
    const fails = counted((): number => {
      throw new Error("down");
    });
    const caught = flow("caught", { input: typed<number>() })
      .action("call", ["input"], { pure: "1", catch: () => -1 }, () => fails.call())
      .output(["call"], ({ call }) => call);
    const source = openable();
    await using engine = await createTestEngine({ definitions: [caught], store: source });
    expect([await runOn(engine, caught, 1), await runOn(engine, caught, 1)]).toEqual([-1, -1]);
    expect(fails.calls).toBe(2);
    expect(await memosIn(source)).toEqual([]);
  });
});

test("a run whose pure steps are all known executes nothing", async () => {
  const calls = counted((n: number) => n + 1);
  const add = task("add", { pure: "1" }, (_ctx, n: number) => calls.call(n));
  const steps = workflow("steps", async (ctx, from: number) => {
    let n = from;
    for (let step = 0; step < 5; step += 1) n = await ctx.task(add, n);
    return ctx.run("last", n, (_op, m) => calls.call(m), { pure: "1" });
  });
  await using engine = await createTestEngine({ definitions: [add, steps] });
  expect(await runOn(engine, steps, 1)).toBe(7);
  const run = await engine.start(steps, 1);
  expect(await run.result()).toBe(7);
  expect(calls.calls).toBe(6);
  expect(await collect(run.attempts())).toEqual([]);
});

test("a replay looks nothing up: it is the same after the memo was cleared", async () => {
  const double = counted((n: number) => 2 * n);
  const doubles = workflow("doubles", (ctx, n: number) =>
    ctx.run("double", n, (_op, m) => double.call(m), { pure: "1" }),
  );
  const source = openable();
  await using engine = await createTestEngine({ definitions: [doubles], store: source });
  await runOn(engine, doubles, 1);
  const reused = await engine.start(doubles, 1);
  await reused.result();
  expect(await source.store.clearMemos("all")).toBe(1);
  expect(await reused.verify()).toMatchObject({ status: "same" });
  expect(double.calls).toBe(1);
  await runOn(engine, doubles, 1);
  expect(double.calls).toBe(2);
});

describe("a function that is not pure", () => {
  async function diverge() {
    const gates = [createGate(), createGate()];
    let calls = 0;
    const guess = workflow("guess", (ctx) =>
      ctx.run("guess", "x", async () => ((calls += 1), await gates[calls - 1]?.wait(), calls), { pure: "1" }),
    );
    const source = openable();
    const warnings: string[] = [];
    const log = (message: string): void => void warnings.push(message);
    const logger = { info: () => {}, warn: log, error: log };
    const engine = await createTestEngine({ definitions: [guess], store: source, logger });
    const runs = [await engine.start(guess, undefined, { id: "one" })];
    await gates[0]!.reached;
    runs.push(await engine.start(guess, undefined, { id: "two" }));
    await gates[1]!.reached;
    gates[0]!.open();
    await runs[0]!.result();
    calls += 1;
    gates[1]!.open();
    await runs[1]!.result();
    return { engine, guess, source, warnings, calls: () => calls };
  }

  test("is found by two results for one input: both are kept with their runtimes, and the memo of the input is off", async () => {
    const { engine, guess, source, warnings, calls } = await diverge();
    await using _engine = engine;
    const [group, ...others] = await memosIn(source);
    expect(others).toEqual([]);
    expect(group).toMatchObject({ status: "divergent", rows: [{ runId: "one" }, { runId: "two" }] });
    expect(group!.rows.map(({ value }) => JSON.parse(value).value)).toEqual([2, 3]);
    for (const { by } of group!.rows) expect(JSON.parse(by)).toHaveProperty("node");
    const before = calls();
    await runOn(engine, guess);
    await runOn(engine, guess);
    expect(calls()).toBe(before + 2);
    expect((await memosIn(source))[0]!.rows).toHaveLength(2);
    expect(warnings.filter((line) => line.includes("although it is declared pure"))).not.toEqual([]);
  });

  test("is reused again after its rows were cleared", async () => {
    const { engine, guess, source, calls } = await diverge();
    await using _engine = engine;
    const [group] = await memosIn(source);
    expect(await source.store.clearMemos([group!.memo])).toBe(2);
    const before = calls();
    expect(await runOn(engine, guess)).toBe(await runOn(engine, guess));
    expect(calls()).toBe(before + 1);
  });
});

test("the memo of a run that is deleted is deleted with it", async () => {
  const double = counted((n: number) => 2 * n);
  const doubles = workflow("doubles", (ctx, n: number) =>
    ctx.run("double", n, (_op, m) => double.call(m), { pure: "1" }),
  );
  const source = openable();
  await using engine = await createTestEngine({ definitions: [doubles], store: source });
  await runOn(engine, doubles, 1, { id: "first" });
  await runOn(engine, doubles, 1);
  await engine.get(doubles, "first").delete();
  expect(await memosIn(source)).toEqual([]);
  await runOn(engine, doubles, 1);
  expect(double.calls).toBe(2);
});

test("a memo that cannot be read is not used, and no step fails because of it", async () => {
  const double = counted((n: number) => 2 * n);
  const doubles = workflow("doubles", (ctx, n: number) =>
    ctx.run("double", n, (_op, m) => double.call(m), { pure: "1" }),
  );
  const source = openable();
  const broken = {
    async "~open"(options: Parameters<(typeof source)["~open"]>[0]) {
      const store = await source["~open"](options);
      const readMemos = (): Promise<never> => Promise.reject(new Error("unreachable"));
      return new Proxy(store, {
        get(target, key) {
          const value: unknown = key === "readMemos" ? readMemos : Reflect.get(target, key);
          return typeof value === "function" ? (value.bind(target) as unknown) : value;
        },
      });
    },
  };
  await using engine = await createTestEngine({ definitions: [doubles], store: broken, logger: false });
  expect([await runOn(engine, doubles, 1), await runOn(engine, doubles, 1)]).toEqual([2, 2]);
  expect(double.calls).toBe(2);
  expect(await memosIn(source)).toEqual([]);
});

test("a step that is cancelled while its result is looked up is not executed", async () => {
  const gate = createGate();
  const double = counted((n: number) => 2 * n);
  const doubles = workflow("doubles", (ctx, n: number) =>
    ctx.run("double", n, (_op, m) => double.call(m), { pure: "1" }),
  );
  const source = openable();
  const slow = {
    async "~open"(options: Parameters<(typeof source)["~open"]>[0]) {
      const store = await source["~open"](options);
      return new Proxy(store, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key);
          if (key === "readMemos")
            return async (keys: readonly string[]) => (await gate.wait(), target.readMemos(keys));
          return typeof value === "function" ? (value.bind(target) as unknown) : value;
        },
      });
    },
  };
  await using engine = await createTestEngine({ definitions: [doubles], store: slow });
  const run = await engine.start(doubles, 1);
  await gate.reached;
  await run.cancel();
  expect(await rejection(run.result())).toBeInstanceOf(CancelledError);
  gate.open();
  await engine.close();
  expect(double.calls).toBe(0);
});

test("steps without `pure` never read the memo", async () => {
  let reads = 0;
  const source = openable();
  const watched = {
    async "~open"(options: Parameters<(typeof source)["~open"]>[0]) {
      const store = await source["~open"](options);
      return new Proxy(store, {
        get(target, key) {
          if (key === "readMemos" || key === "openMemoKeys") reads += 1;
          const value: unknown = Reflect.get(target, key);
          return typeof value === "function" ? (value.bind(target) as unknown) : value;
        },
      });
    },
  };
  const plain = workflow("plain", async (ctx) => [await ctx.run("a", () => 1), await ctx.run("b", 2, (_op, n) => n)]);
  await using engine = await createTestEngine({ definitions: [plain], store: watched });
  const before = reads;
  expect(await runOn(engine, plain)).toEqual([1, 2]);
  expect(reads).toBe(before);
});

test("a hit is no call: no attempt of it starts, and steps that start together are looked up in one read", async () => {
  const source = openable();
  const reads: number[] = [];
  const watched = {
    async "~open"(options: Parameters<(typeof source)["~open"]>[0]) {
      const store = await source["~open"](options);
      return new Proxy(store, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key);
          if (key === "readMemos")
            return (keys: readonly string[]) => (reads.push(keys.length), target.readMemos(keys));
          return typeof value === "function" ? (value.bind(target) as unknown) : value;
        },
      });
    },
  };
  const fan = workflow("fan", (ctx) =>
    Promise.all([1, 2, 3, 4].map((n) => ctx.run("square", n, (_op, m) => m * m, { pure: "1" }))),
  );
  await using engine = await createTestEngine({ definitions: [fan], store: watched });
  expect(await runOn(engine, fan)).toEqual([1, 4, 9, 16]);
  expect(await runOn(engine, fan)).toEqual([1, 4, 9, 16]);
  expect(reads).toEqual([4, 4]);
});

test("a workflow, a task and a flow with pure steps have the same output wherever they crash", async () => {
  const add = task("add", { pure: "1" }, (_ctx, n: number) => n + 1);
  const inner = flow("inner", { input: typed<number>() })
    .action("square", ["input"], { pure: "1" }, (_ctx, { input }) => input * input)
    .output(["square"], ({ square }) => square);
  const outer = workflow("outer", async (ctx, n: number) => {
    const [a, b] = await Promise.all([ctx.task(add, n), ctx.task(add, n)]);
    const once = await ctx.run("sum", [a, b], (_op, [x = 0, y = 0]) => x + y, { pure: "1" });
    const twice = await ctx.run("sum", [a, b], (_op, [x = 0, y = 0]) => x + y, { pure: "1" });
    return [await ctx.child(inner, once), await ctx.child(inner, twice)];
  });
  const { output, crashes } = await crashEverywhere(outer, 2, { definitions: [add, inner] });
  expect(output).toEqual([36, 36]);
  expect(crashes).toBeGreaterThanOrEqual(8);
});

test("events say nothing of a call that was not made", async () => {
  const doubles = workflow("doubles", (ctx, n: number) => ctx.run("double", n, (_op, m) => 2 * m, { pure: "1" }));
  await using engine = await createTestEngine({ definitions: [doubles] });
  await runOn(engine, doubles, 1);
  using watch = watchEvents();
  await runOn(engine, doubles, 1);
  expect(watch.events.filter(({ event }) => event === "attempt.started")).toEqual([]);
});
