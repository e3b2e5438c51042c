// Replay differences: code that differs from the journal, reported with step, node and attempt.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import {
  append,
  createClient,
  createEngine,
  END,
  goto,
  graph,
  last,
  START,
  task,
  type AnyTask,
  type Definition,
  type Replay,
  type ReplayOptions,
} from "reprise";
import { createTestEngine, expectReplay, saveJournal } from "reprise/testing";
import { createFolder, createGate, rejection } from "../engine/world.ts";
import { openStores, type GraphStores } from "./graph-stores.ts";

const price = task("price", (_ctx, n: number) => n);

interface Changes {
  readonly request?: number;
  readonly operation?: string;
  readonly more?: "call" | "task" | "nothing";
  readonly less?: boolean;
  readonly result?: string;
  readonly goto?: "end" | "last";
  readonly fails?: boolean;
  readonly message?: string;
  readonly node?: string;
  readonly reduce?: (log: readonly string[], more: readonly string[]) => readonly string[];
  readonly output?: (state: { readonly log: readonly string[] }) => unknown;
  readonly asked?: () => void;
}

/** Two steps: `work` asks twice and decides where to go, `last` ends. Changed as today's code may be. */
function build(now: Changes = {}) {
  return graph("changing", {
    state: {
      log:
        now.reduce === undefined
          ? append<string>()
          : { ...append<string>(), reduce: now.reduce, "~kind": "custom" as never },
    },
    output: now.output ?? ((state) => state.log.length),
  })
    .node("work", async (ctx) => {
      const first = await ctx.run(now.operation ?? "first", { n: now.request ?? 1 }, (_op, { n }) => {
        now.asked?.();
        return `first ${n}`;
      });
      const second = now.less === true ? "second" : await ctx.run("second", () => "second");
      if (now.more === "call") await ctx.run("third", () => "third");
      if (now.more === "task") void ctx.task(price, 1).catch(() => {});
      ctx.send("mail", now.message ?? "hello");
      if (now.fails === true) throw new Error("broken today");
      const change = { log: [now.result ?? `${first} ${second}`] };
      if (now.goto === "end") return goto(END, change);
      return now.goto === "last" ? goto("other", change) : change;
    })
    .node("last", async () => ({ log: ["last"] }))
    .node("other", async () => ({ log: ["other"] }))
    .edge(START, "work")
    .edge("work", (now.node ?? "last") as "last")
    .edge("last", END);
}

async function record(stores: GraphStores, definition: Definition): Promise<unknown> {
  await using engine = await createEngine({
    store: stores.source,
    definitions: [definition, price],
    outbox: { mail: async () => {} },
  });
  const run = await engine.start(definition as never, {} as never, { id: "r" } as never);
  return await run.result();
}

async function replay(
  stores: GraphStores,
  definition: Definition,
  options?: ReplayOptions,
  more: readonly AnyTask[] = [price],
): Promise<Replay> {
  await using engine = await createClient({
    store: `sqlite:${stores.path}`,
    definitions: [definition, ...more],
  });
  return await engine.get(definition as never, "r").replay(options);
}

const OTHERS: readonly (readonly [what: string, now: Changes, found: object])[] = [
  [
    "another request",
    { request: 2 },
    {
      where: "Node(1.0)#0/Operation(0)",
      message:
        "the journal recorded another step input than the code now passes (at Node(1.0)#0/Operation(0)). Restore the code.",
      expected: '{"n":2}',
      actual: '{"n":1}',
      node: "work",
      attempt: 1,
    },
  ],
  [
    "another name of a call",
    { operation: "primary" },
    { where: "Node(1.0)#0/Operation(0)", expected: "primary", actual: "first", node: "work", attempt: 1 },
  ],
  [
    "a call that is not recorded",
    { more: "call" },
    { where: "Node(1.0)", expected: "Node(1.0)#0/Operation(2) third", actual: undefined, node: "work", attempt: 1 },
  ],
  [
    "a task that is not recorded",
    { more: "task" },
    { where: "Node(1.0)", expected: "Node(1.0)#0/Task(0)", node: "work", attempt: 1 },
  ],
  [
    "a recorded call that is not made",
    { less: true },
    { where: "Node(1.0)", expected: undefined, actual: "Node(1.0)#0/Operation(1)", node: "work", attempt: 1 },
  ],
  [
    "another result",
    { result: "today" },
    {
      where: "Node(1.0)",
      message: "Node work, attempt 1, step 1: the code returned another result",
      expected: { change: { log: ["today"] } },
      actual: { change: { log: ["first 1 second"] } },
      node: "work",
      attempt: 1,
    },
  ],
  [
    "another goto",
    { goto: "end" },
    { where: "Node(1.0)", expected: { change: { log: ["first 1 second"] }, goto: [null] }, node: "work", attempt: 1 },
  ],
  [
    "a failure where there was none",
    { fails: true },
    {
      where: "Node(1.0)",
      message: "Node work, attempt 1, step 1: the code failed its last attempt, but in the journal it completed",
      node: "work",
      attempt: 1,
    },
  ],
  ["another message", { message: "bye" }, { where: "Node(1.0)", node: "work", attempt: 1 }],
  [
    "another frontier",
    { node: "other" },
    {
      where: "step 1",
      message: "the journal recorded another frontier than the code now computes (at step 1). Restore the code.",
      expected: ["other"],
      actual: ["last"],
    },
  ],
  [
    "another state",
    { reduce: (log, more) => [...log, ...more.map((line) => line.toUpperCase())] },
    {
      where: "step 1",
      message: "the journal recorded another state than the code now computes (at step 1). Restore the code.",
      expected: { log: ["FIRST 1 SECOND"] },
      actual: { log: ["first 1 second"] },
    },
  ],
];

test.each(OTHERS)("a replay finds %s, and a lenient one continues with the recording", async (_what, now, found) => {
  using stores = openStores();
  const output = await record(stores, build());
  expect(await replay(stores, build())).toMatchObject({ status: "same", calls: { recorded: 2, live: 0 } });
  const strict = await replay(stores, build(now));
  expect(strict).toMatchObject({ status: "mismatch", step: 1, ...found });
  const lenient = await replay(stores, build(now), { strict: false });
  expect(lenient).toMatchObject({ status: "same", end: { status: "completed", output } });
  expect(lenient.status === "same" && lenient.warnings?.[0]).toMatchObject({ step: 1, ...found });
});

test("a replay finds another end, and a lenient one returns how the code ends now", async () => {
  using stores = openStores();
  await record(stores, build());
  const now = build({ output: (state) => state.log });
  expect(await replay(stores, now)).toMatchObject({
    status: "mismatch",
    message: "the journal recorded another end of the run than the code now reaches.",
    actual: "completed 2",
  });
  expect(await replay(stores, now, { strict: false })).toMatchObject({
    status: "same",
    warnings: [{ message: "the journal recorded another end of the run than the code now reaches." }],
    end: { status: "completed", output: ["first 1 second", "last"] },
  });
});

test("live nodes make their calls again: equal answers pass, and another answer is a mismatch with both values", async () => {
  using stores = openStores();
  let calls = 0;
  let answer = "yes";
  const build2 = () =>
    graph("asks", { state: { log: append<string>() } })
      .node("one", async (ctx) => ({ log: [await ctx.run("ask", { n: 1 }, () => (calls++, answer))] }))
      .node("two", async (ctx) => ({ log: [await ctx.run("ask", { n: 2 }, () => (calls++, answer))] }))
      .edge(START, "one")
      .edge("one", "two");
  await record(stores, build2());
  expect(calls).toBe(2);
  expect(await replay(stores, build2(), { live: ["two"] })).toMatchObject({
    status: "same",
    calls: { recorded: 1, live: 1 },
  });
  expect(calls).toBe(3);
  answer = "no";
  expect(await replay(stores, build2(), { live: ["two"] })).toMatchObject({
    status: "mismatch",
    where: "Node(2.0)#0/Operation(0)",
    expected: "no",
    actual: "yes",
    step: 2,
    node: "two",
    attempt: 1,
  });
  expect(await replay(stores, build2(), { live: ["one", "two"], strict: false })).toMatchObject({
    status: "same",
    warnings: [{ node: "one" }, { node: "two" }],
    end: { output: { log: ["yes", "yes"] } },
  });
  expect(calls).toBe(6);
  expect(await rejection(replay(stores, build2(), { live: ["three"] }))).toMatchObject({ code: "BAD_OPTIONS" });
});

test("a node that is not recordable does not run: its recorded result counts", async () => {
  using stores = openStores();
  let ran = 0;
  const g = graph("writes", { state: { n: last(0) } })
    .node("write", { effects: { recordable: false } }, async (ctx) => {
      await ctx.run("call", () => 1);
      return { n: (ran += 1) };
    })
    .node("after", async (_ctx, { n }) => ({ n: n * 10 }))
    .edge(START, "write")
    .edge("write", "after");
  await record(stores, g);
  expect(await replay(stores, g)).toMatchObject({
    status: "same",
    calls: { recorded: 0, live: 0 },
    end: { output: { n: 10 } },
  });
  expect(ran).toBe(1);
});

test("a node that uses the network without ctx.run is caught by name before anything is sent", async () => {
  let requests = 0;
  const server = createServer((_request, response) => {
    requests += 1;
    response.end("answer");
  }).listen(0);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  try {
    using stores = openStores();
    const g = graph("careless", { state: { text: last("") } })
      .node("fetch", async () => {
        try {
          return { text: await (await fetch(url)).text() };
        } catch {
          return { text: "answer" };
        }
      })
      .edge(START, "fetch");
    await record(stores, g);
    expect(requests).toBe(1);
    expect(await replay(stores, g)).toMatchObject({
      status: "mismatch",
      where: "Node(1.0)",
      expected: "fetch()",
      step: 1,
      node: "fetch",
      attempt: 1,
      message: expect.stringContaining(
        "wrap the call in ctx.run(), or declare effects: { recordable: false }",
      ) as string,
    });
    expect(requests).toBe(1);
  } finally {
    server.close();
  }
});

test("a timed-out attempt, an aborted sibling and a cancelled run replay to the same result", async () => {
  const hangs = createGate();
  const g = graph("slow", { state: { n: last(0) } })
    .node("slow", { timeout: 1_000, retry: { maxAttempts: 2, baseDelay: 1, maxDelay: 1 } }, async (ctx) => {
      await ctx.run("first", () => 1);
      if (ctx.attempt === 1) await hangs.wait();
      return { n: 1 };
    })
    .node("fails", async (ctx) => {
      await ctx.run("second", () => 2);
      throw new Error("broken");
    })
    .node(
      "waits",
      { timeout: "1 day" },
      (ctx) =>
        new Promise<void>((_, reject) => {
          ctx.abortSignal.addEventListener("abort", () => reject(new Error("aborted")));
        }),
    )
    .edge(START, "slow")
    .edge("slow", ["fails", "waits"]);
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await hangs.reached;
  await engine.clock.advance("1 minute");
  expect(await rejection(run.result())).toMatchObject({ cause: { message: "broken" } });
  expect(await run.replay()).toMatchObject({ status: "same", end: { status: "failed" }, calls: { recorded: 3 } });
  const cancelled = await engine.start(g, {});
  await engine.clock.advance(10);
  await cancelled.cancel();
  await rejection(cancelled.result());
  expect(await cancelled.replay()).toMatchObject({ status: "same", end: { status: "cancelled" } });
});

test("a replay waits for code that waits for a local promise between its calls", async () => {
  const soon = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 2));
  const g = graph("own", { state: { log: append<string>() } })
    .node("each", async (ctx, _state, item: number) => {
      await soon();
      // Asked for first, answered last.
      const later = new Promise<void>((resolve) => setTimeout(resolve, 10));
      const slow = ctx.run("a", () => later.then(() => "a"));
      const never = ctx.run("never", () => new Promise<string>(() => {}));
      const raced = await Promise.race([slow, ctx.run("b", () => "b"), never]);
      await slow;
      await soon();
      return { log: [`${item} ${raced} ${await ctx.run("c", () => "c")}`] };
    })
    .spread(START, "each", () => [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [g] });
  const run = await engine.start(g, {});
  const output = await run.result();
  expect(await run.replay()).toMatchObject({ status: "same", end: { output } });
});

test("a run that has not ended replays as far as its journal, without making its open calls", async () => {
  const gate = createGate();
  let calls = 0;
  const g = graph("going", { state: { n: last(0) } })
    .node("one", async (ctx) => ({ n: await ctx.run("one", () => ++calls) }))
    .node("two", async (ctx) => {
      await ctx.run("before", () => ++calls);
      await ctx.run("two", () => (calls++, gate.wait()));
    })
    .edge(START, "one")
    .edge("one", "two");
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [g] });
  const run = await engine.start(g, {});
  await gate.reached;
  const replayed = await run.replay();
  expect(replayed).toMatchObject({ status: "same", calls: { live: 0 } });
  expect(replayed).not.toHaveProperty("end");
  expect(calls).toBe(3);
  gate.open();
  await run.result();
  expect(calls).toBe(3);
});

test("a fork replays from its first checkpoint, against its own journal", async () => {
  const g = graph("forked", { state: { log: append<string>(), n: last(0) } })
    .node("add", async (ctx, { n }) => {
      const drawn = ctx.random();
      return { n: n + 1, log: [await ctx.run("note", { n }, (_op, asked) => `${asked.n} ${drawn}`)] };
    })
    .edge(START, "add")
    .edge("add", END, ({ n }) => n >= 4)
    .edge("add", "add");
  await using engine = await createTestEngine({ definitions: [g] });
  const run = await engine.start(g, {});
  await run.result();
  const fork = await run.fork({ step: 2, patch: { n: 0 } });
  const output = await fork.result();
  expect(output.log).toHaveLength(6);
  expect(await fork.replay()).toMatchObject({ status: "same", calls: { recorded: 4 }, end: { output } });
  expect(await fork.verify()).toMatchObject({ status: "same" });
});

test("invalid options of a replay are rejected", async () => {
  const definition = build();
  await using engine = await createTestEngine({ definitions: [definition, price] });
  const run = engine.get(definition, "none");
  for (const options of [{ strict: 1 }, { live: "work" }, { live: [1] }, { lenient: true }])
    expect(await rejection(run.replay(options as never))).toMatchObject({ code: "BAD_OPTIONS" });
});

test("a golden run of a graph replays from its file against the current code, also for forks, and a change is named", async () => {
  using folder = createFolder();
  const file = folder.file("golden.json");
  const forked = folder.file("fork.json");
  {
    await using engine = await createTestEngine({ definitions: [build(), price] });
    const run = await engine.start(build(), {});
    await run.result();
    await saveJournal(run, file);
    const fork = await run.fork({ step: 0, patch: { log: ["patched"] } });
    await fork.result();
    await saveJournal(fork, forked);
  }
  for (const golden of [file, forked]) {
    await expectReplay(golden, { definitions: [build(), price] });
    expect(await rejection(expectReplay(golden, { definitions: [build({ request: 2 }), price] }))).toMatchObject({
      code: "REPLAY_MISMATCH",
      details: { file: golden, step: 1, node: "work", attempt: 1, expected: '{"n":2}', actual: '{"n":1}' },
    });
  }
});
