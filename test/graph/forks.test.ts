// Forks: what is rejected, what a fork inherits, and that a fork is a run like any other.

import { expect, test } from "vitest";
import {
  aesGcm,
  append,
  createEngine,
  END,
  graph,
  last,
  max,
  merge,
  promise,
  queue,
  START,
  task,
  workflow,
  type Channel,
} from "reprise";
import { createTestEngine } from "reprise/testing";
import { collect, rejection, until, watchEvents } from "../engine/world.ts";
import { openStores } from "./graph-stores.ts";

const steps = graph("steps", {
  state: { n: last(0), log: append<string>(), facts: merge<Record<string, number>>({}), best: max(0) },
})
  .node("add", async (ctx, state) => {
    if (state.n === 1) ctx.label("one");
    return { n: state.n + 1, log: [`at ${state.n}`], facts: { [`k${state.n}`]: 1 }, best: state.n };
  })
  .edge(START, "add")
  .edge("add", END, (state) => state.n >= 4)
  .edge("add", "add");
const plain = workflow("plain", async (ctx) => ctx.run("x", () => 1));

test.each<[string, unknown, string, RegExp]>([
  ["no options", undefined, "BAD_OPTIONS", /expected \{ step \} or \{ label \}, got undefined/],
  ["a list", [1], "BAD_OPTIONS", /expected \{ step \}/],
  ["neither step nor label", {}, "BAD_OPTIONS", /a step or a label/],
  ["both step and label", { step: 1, label: "one" }, "BAD_OPTIONS", /expected either a step or a label to fork from/],
  ["an unknown option", { step: 1, sttep: 2 }, "BAD_OPTIONS", /no option "sttep"/],
  ["a negative step", { step: -1 }, "BAD_OPTIONS", /expected a step of 0 or more/],
  ["a step with a fraction", { step: 1.5 }, "BAD_OPTIONS", /expected a step/],
  ["a step as text", { step: "1" }, "BAD_OPTIONS", /got '1'/],
  [
    "a step that is not committed",
    { step: 5 },
    "CHECKPOINT_NOT_FOUND",
    /step 5; its newest is step 4, and it is completed/,
  ],
  ["an unknown label", { label: "two" }, "CHECKPOINT_NOT_FOUND", /labelled two/],
  ["an empty label", { label: "" }, "BAD_NAME", /fork: label/],
  ["an empty id", { step: 1, id: "" }, "BAD_ID", /run id/],
  ["a patch that is no object", { step: 1, patch: [1] }, "BAD_OPTIONS", /values by channel as patch/],
  ["a patch that is an instance", { step: 1, patch: new Map() }, "BAD_OPTIONS", /as patch/],
  [
    "a patch of an unknown channel",
    { step: 1, patch: { m: 1 } },
    "BAD_INPUT",
    /no channel m; its channels are: best, facts, log, n/,
  ],
  [
    "a patch of __proto__",
    { step: 1, patch: JSON.parse('{"__proto__":1}') as object },
    "BAD_INPUT",
    /no channel __proto__/,
  ],
  [
    "no list for append",
    { step: 1, patch: { log: "x" } },
    "BAD_INPUT",
    /channel log of steps holds a list, got a value of type string/,
  ],
  ["no object for merge", { step: 1, patch: { facts: [1] } }, "BAD_INPUT", /holds an object, got a list/],
  ["no number for max", { step: 1, patch: { best: null } }, "BAD_INPUT", /holds a number, got null/],
  ["a value that is no data", { step: 1, patch: { n: () => 1 } }, "NOT_DATA", /The patch of n cannot be stored/],
  ["a lone surrogate", { step: 1, patch: { log: ["\ud800"] } }, "BAD_PAYLOAD", /surrogate/],
  [
    "a value that is too large",
    { step: 1, patch: { log: ["x".repeat(9_000_000)] } },
    "PAYLOAD_TOO_LARGE",
    /patch of log/,
  ],
  ["a bad deadline", { step: 1, deadline: 0 }, "BAD_OPTIONS", /deadline above 0/],
  ["bad tags", { step: 1, tags: "x" }, "BAD_OPTIONS", /array of tags/],
  ["an unknown version", { step: 1, version: 2 }, "UNKNOWN_DEFINITION", /Version 2 of steps/],
])("%s is rejected, and nothing is written", async (_what, options, code, message) => {
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [steps] });
  const run = await engine.start(steps, {}, { id: "r" });
  await run.result();
  const error = await rejection(run.fork(options as { step: number }));
  expect(error).toMatchObject({ code });
  expect(error.message).toMatch(message);
  expect(stores.sql("select id from runs")).toEqual([{ id: "r" }]);
  expect(stores.sql("select * from forks")).toEqual([]);
});

test("runs of workflows, and runs that are only expected, have no checkpoints", async () => {
  await using engine = await createTestEngine({ definitions: [plain, steps] });
  const run = await engine.start(plain, undefined, { id: "p" });
  await run.result();
  for (const ask of [run.stateAt(0), run.checkpoint(0), collect(run.checkpoints())])
    expect(await rejection(ask)).toMatchObject({
      code: "USAGE",
      message: expect.stringContaining("only runs of graphs"),
    });
  expect(await rejection(engine.get(steps, "missing").stateAt(0))).toMatchObject({ code: "RUN_NOT_FOUND" });
});

test("a repeated fork is the same run; the same id with another step, patch or origin is rejected", async () => {
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [steps] });
  const run = await engine.start(steps, {}, { id: "r" });
  const other = await engine.start(steps, {}, { id: "other" });
  await Promise.all([run.result(), other.result()]);
  const fork = await run.fork({ step: 1, id: "f", patch: { n: 2 } });
  await fork.result();
  const before = stores.sql("select * from journal");
  expect((await run.fork({ step: 1, id: "f", patch: { n: 2 } })).id).toBe("f");
  for (const ask of [
    run.fork({ step: 2, id: "f", patch: { n: 2 } }),
    run.fork({ step: 1, id: "f", patch: { n: 3 } }),
    run.fork({ step: 1, id: "f" }),
    other.fork({ step: 1, id: "f", patch: { n: 2 } }),
    run.fork({ step: 1, id: "other" }),
  ])
    expect(await rejection(ask)).toMatchObject({ code: "START_CONFLICT" });
  expect((await rejection(run.fork({ step: 1, id: "f" }))).message).toBe(
    "Run f is a fork from step 1 of run r; it cannot become this one with another patch. Use another id.",
  );
  expect(stores.sql("select * from journal")).toEqual(before);
  expect(await stores.store.check()).toEqual([]);
});

test("concurrent forks with one id create one run, and all callers get it", async () => {
  using stores = openStores();
  const engines = await Promise.all(
    [1, 2, 3, 4].map(() => createEngine({ store: `sqlite:${stores.path}`, definitions: [steps] })),
  );
  try {
    const run = await engines[0]!.start(steps, {}, { id: "r" });
    await run.result();
    const forks = await Promise.all(
      Array.from({ length: 20 }, (_, n) => engines[n % 4]!.get(steps, "r").fork({ step: 1, id: "f", patch: { n: 2 } })),
    );
    expect(new Set(forks.map(({ id }) => id))).toEqual(new Set(["f"]));
    const results = await Promise.all(forks.map((fork) => fork.result()));
    for (const result of results) expect(result).toEqual(results[0]);
    expect(stores.sql("select count(*) as count from runs")).toEqual([{ count: 2 }]);
  } finally {
    await Promise.all(engines.map((engine) => engine.close()));
  }
});

const asks = graph("asks", {
  state: { log: append<string>(), n: last(0) },
  ports: { early: promise<string>(), late: promise<string>() },
})
  .node("first", async (ctx) => ({ log: [await ctx.promise("early")] }))
  .node("second", async (ctx) => ({ log: [await ctx.promise("late")], n: 1 }))
  .node("third", async (ctx) => ({ log: [`again ${await ctx.promise("early")}`] }))
  .edge(START, "first")
  .edge("first", "second")
  .edge("second", "third");

test("a fork of a running graph starts from its newest committed step, and repeats its open waits", async () => {
  await using engine = await createTestEngine({ definitions: [asks] });
  const run = await engine.start(asks, {}, { id: "r" });
  await run.resolve("early", "hello");
  await engine.clock.advance(0);
  expect((await run.info()).status).toBe("waiting");
  const fork = await run.fork({ step: 1, id: "f", patch: { log: ["patched"] } });
  await engine.clock.advance(0);
  expect((await fork.info()).status).toBe("waiting");
  // It inherits the messages of its origin, and takes no other answer.
  expect(await rejection(fork.resolve("early", "again"))).toMatchObject({ code: "PROMISE_ALREADY_RESOLVED" });
  await fork.resolve("late", "fork");
  await run.resolve("late", "run");
  expect((await fork.result()).log).toEqual(["patched", "fork", "again hello"]);
  expect((await run.result()).log).toEqual(["hello", "run", "again hello"]);
  // Before the origin got a message, the fork has none either.
  const from0 = await run.fork({ step: 0, id: "g" });
  await from0.resolve("early", "again");
  await from0.resolve("late", "again");
  expect((await from0.result()).log).toEqual(["again", "again", "again again"]);
});

test("the messages that a fork inherits survive a crash, and reach its own forks", async () => {
  await using engine = await createTestEngine({ definitions: [asks] });
  const run = await engine.start(asks, {}, { id: "r" });
  await run.resolve("early", "hello");
  await engine.clock.advance(0);
  const fork = await run.fork({ step: 1, id: "f" });
  await engine.clock.advance(0);
  await engine.crash();
  await fork.resolve("late", "fork");
  expect((await fork.result()).log).toEqual(["hello", "fork", "again hello"]);
  const second = await fork.fork({ step: 2, id: "g" });
  expect((await second.result()).log).toEqual(["hello", "fork", "again hello"]);
});

test("failed, cancelled and terminated runs can be forked, and the fork runs", async () => {
  let broken = true;
  const fails = graph("fails", { state: { n: last(0), seen: append<string>() }, ports: { never: promise() } })
    .node("good", async () => ({ n: 1 }))
    .node("bad", async (ctx, state) => {
      if (state.n === 1 && broken) throw new Error("broken");
      if (state.n === 2) await ctx.promise("never");
      return { seen: [ctx.runId] };
    })
    .edge(START, "good")
    .edge("good", "bad");
  await using engine = await createTestEngine({ definitions: [fails] });
  const failed = await engine.start(fails, {}, { id: "failed" });
  await rejection(failed.result());
  broken = false;
  expect((await (await failed.fork({ step: 1, id: "f1" })).result()).seen).toEqual(["f1"]);
  expect((await failed.info()).status).toBe("failed");
  const waits = await failed.fork({ step: 1, id: "waits", patch: { n: 2 } });
  await engine.clock.advance(0);
  await waits.cancel("enough");
  await rejection(waits.result());
  expect((await waits.info()).status).toBe("cancelled");
  expect((await (await waits.fork({ step: 1, id: "f2", patch: { n: 3 } })).result()).seen).toEqual(["f2"]);
  const ended = await failed.fork({ step: 1, id: "ended", patch: { n: 2 } });
  await engine.clock.advance(0);
  await ended.terminate();
  expect((await (await ended.fork({ step: 1, id: "f3", patch: { n: 3 } })).result()).seen).toEqual(["f3"]);
});

test("a fork emits a started event, and a resumed event only when it continues later", async () => {
  using watched = watchEvents();
  await using engine = await createTestEngine({ definitions: [asks] });
  const run = await engine.start(asks, {}, { id: "r" });
  await run.resolve("early", "hello");
  await engine.clock.advance(0);
  const fork = await run.fork({ step: 1, id: "f" });
  await engine.clock.advance(0);
  await engine.crash();
  await fork.resolve("late", "fork");
  await fork.result();
  const emitted = watched.events.filter(
    (event) => "run" in event && event.run === "f" && event.event.startsWith("run."),
  );
  expect(emitted.map(({ event }) => event)).toEqual(["run.started", "run.resumed", "run.ended"]);
});

test("a fork of the last step ends at once, with its own output", async () => {
  await using engine = await createTestEngine({ definitions: [steps] });
  const run = await engine.start(steps, {}, { id: "r" });
  await run.result();
  const fork = await run.fork({ step: 4, patch: { n: 77, best: 5 }, tags: ["x"], priority: 3 });
  expect(await fork.result()).toMatchObject({ n: 77, best: 5 });
  expect(await fork.info()).toMatchObject({ status: "completed", tags: ["x"], kind: "graph" });
});

test("a fork has the deadline of its origin, counted from its own start, unless it gets its own", async () => {
  const slow = graph("slow", { state: { n: last(0) }, ports: { go: promise() }, deadline: "1 hour" })
    .node("wait", async (ctx) => {
      await ctx.promise("go");
    })
    .edge(START, "wait");
  await using engine = await createTestEngine({ definitions: [slow] });
  const run = await engine.start(slow, {}, { id: "r" });
  await engine.clock.advance("50 minutes");
  const fork = await run.fork({ step: 0, id: "f" });
  const short = await run.fork({ step: 0, id: "g", deadline: "1 minute" });
  await engine.clock.advance("20 minutes");
  expect((await rejection(run.result())).message).toMatch(/deadline/i);
  expect((await rejection(short.result())).message).toMatch(/deadline/i);
  expect((await fork.info()).status).toBe("waiting");
  await engine.clock.advance("1 hour");
  expect((await rejection(fork.result())).message).toMatch(/deadline/i);
});

test("a channel that became a list fails the run by name, and a fork that patches it with a list continues", async () => {
  using stores = openStores();
  const make = (log: Channel<any>) =>
    graph("changes", { state: { n: last(0), log }, ports: { go: promise() } })
      .node("say", async (ctx) => {
        await ctx.promise("go");
        return { log: ["said"] };
      })
      .edge(START, "say");
  const [text, list] = [make(last("text")), make(append<string>())];
  await using before = await createTestEngine({ store: stores.source, definitions: [text] });
  await before.start(text, {}, { id: "r" });
  await before.clock.advance(0);
  await before.close();
  await using after = await createTestEngine({ store: `sqlite:${stores.path}`, definitions: [list] });
  const run = after.get(list, "r");
  await run.resolve("go");
  expect((await rejection(run.result())).message).toMatch(
    /log.*append\(\) expected a list, but the stored value is string/,
  );
  expect(await run.stateAt(0)).toEqual({ n: 0, log: "text" });
  const fork = await run.fork({ step: 0, patch: { log: ["text"] } });
  await fork.resolve("go");
  expect((await fork.result()).log).toEqual(["text", "said"]);
});

test("a fork waits in the queue of its origin, and starts when there is room", async () => {
  let atWork = 0;
  let most = 0;
  const queued = graph("queued", {
    state: { n: last(0), key: last("") },
    queue: queue("narrow", { concurrency: 1 }),
    ports: { go: promise() },
  })
    .node("work", async (ctx) => {
      most = Math.max(most, (atWork += 1));
      await ctx.promise("go");
      atWork -= 1;
      return { n: 1 };
    })
    .edge(START, "work");
  using stores = openStores();
  await using engine = await createTestEngine({ store: stores.source, definitions: [queued] });
  const run = await engine.start(queued, {}, { id: "r" });
  await engine.clock.advance("1 s");
  const forks = [await run.fork({ step: 0, id: "f" }), await run.fork({ step: 0, id: "g" })];
  await engine.clock.advance("1 s");
  expect(await Promise.all([run, ...forks].map(async (one) => (await one.info()).status))).toEqual([
    "waiting",
    "queued",
    "queued",
  ]);
  expect(await stores.store.check()).toEqual([]);
  // Cancelled before it began, like any run.
  await forks[1]!.cancel();
  expect(await rejection(forks[1]!.result())).toMatchObject({ code: "CANCELLED" });
  await run.resolve("go");
  await run.result();
  await engine.clock.advance("1 s");
  await forks[0]!.resolve("go");
  expect(await forks[0]!.result()).toMatchObject({ n: 1 });
  expect(most).toBe(1);
  expect(await stores.store.check()).toEqual([]);
});

test("a fork continues with another version of the graph on request", async () => {
  const make = (version: number) =>
    graph("versions", { state: { n: last(0), by: last("") }, version })
      .node("one", async () => ({ n: 1 }))
      .node("two", async (_ctx, state) => ({ by: `version ${version}`, n: state.n + 1 }))
      .edge(START, "one")
      .edge("one", "two");
  const [first, second] = [make(1), make(2)];
  await using engine = await createTestEngine({ definitions: [first, second] });
  const run = await engine.start(first, {}, { id: "r" });
  expect(await run.result()).toEqual({ n: 2, by: "version 1" });
  expect(await (await run.fork({ step: 1 })).result()).toEqual({ n: 2, by: "version 1" });
  const fork = await run.fork({ step: 1, version: 2 });
  expect(await fork.result()).toEqual({ n: 2, by: "version 2" });
  expect((await fork.info()).version).toBe(2);
});

test("a fork without checkpoints continues from its journal", async () => {
  using stores = openStores();
  await using engine = await createTestEngine({ store: stores.source, definitions: [asks] });
  const run = await engine.start(asks, {}, { id: "r" });
  await run.resolve("early", "hello");
  await engine.clock.advance(0);
  const fork = await run.fork({ step: 1, id: "f", patch: { log: ["patched"] } });
  await engine.clock.advance(0);
  stores.sql("delete from checkpoints where run = (select run from runs where id = 'f')");
  await engine.crash();
  await fork.resolve("late", "fork");
  expect((await fork.result()).log).toEqual(["patched", "fork", "again hello"]);
});

test("prune keeps a run while a fork of it exists, and removes both when both are old", async () => {
  using stores = openStores();
  await using engine = await createTestEngine({ store: stores.source, definitions: [asks, steps] });
  const run = await engine.start(steps, {}, { id: "r" });
  await run.result();
  const { n } = await (await run.fork({ step: 2, id: "f" })).result();
  expect(n).toBe(4);
  const waiting = await run.fork({ step: 1, id: "g" });
  await waiting.result();
  await engine.clock.advance("1 hour");
  const late = await engine.get(steps, "f").fork({ step: 3, id: "late" });
  await late.result();
  const { store } = stores;
  // The newest fork ended just now: it stays, with the two runs it stands on.
  expect(await store.prune(store.now() - 60_000, { dryRun: true })).toEqual({ runs: 1 });
  expect(await store.prune(store.now() - 60_000)).toEqual({ runs: 1 });
  expect(await store.check()).toEqual([]);
  expect((await collect(late.checkpoints())).map(({ runId }) => runId)).toEqual(["r", "r", "f", "late", "late"]);
  await engine.clock.advance("1 hour");
  expect(await store.prune(store.now(), { dryRun: true })).toEqual({ runs: 3 });
  expect(await store.prune(store.now())).toEqual({ runs: 3 });
  expect(stores.sql("select * from forks")).toEqual([]);
  expect(stores.sql("select * from checkpoints")).toEqual([]);
  expect(await rejection(run.fork({ step: 1 }))).toMatchObject({ code: "RUN_NOT_FOUND" });
});

test("doctor finds a fork whose origin is missing, different or not retained", async () => {
  using stores = openStores();
  await using engine = await createEngine({ store: stores.source, definitions: [steps] });
  const run = await engine.start(steps, {}, { id: "r" });
  await run.result();
  const fork = await run.fork({ step: 2, id: "f" });
  await fork.result();
  const found = async (): Promise<string[]> => (await stores.store.check()).map(({ message }) => message);
  const damaged = async (damage: string, repair: string): Promise<string[]> => {
    stores.sql(damage);
    const messages = await found();
    stores.sql(repair);
    expect(await found()).toEqual([]);
    return messages;
  };
  expect(await found()).toEqual([]);
  expect(await damaged("update forks set step = 1", "update forks set step = 2")).toEqual([
    "The run is a fork of step 2 of run r, but its row in `forks` names step 1 of run r.",
  ]);
  expect(
    await damaged(
      "delete from forks",
      "insert into forks (run, origin, step) select f.run, r.run, 2 from runs f, runs r where f.id = 'f' and r.id = 'r'",
    ),
  ).toEqual(["The run is a fork of step 2 of run r, but has no row in `forks`: a prune may delete its origin."]);
  const chain = stores.sql<{ chain: string }>("select chain from checkpoints where step = 2 order by run limit 1")[0]!
    .chain;
  const other = await damaged(
    "update checkpoints set chain = 'x' where step = 2 and run = (select run from runs where id = 'r')",
    `update checkpoints set chain = '${chain}' where step = 2 and run = (select run from runs where id = 'r')`,
  );
  expect(other).toContain(
    "The run is a fork of step 2 of run r, but the checkpoint of that step is not the one it was forked from.",
  );
  stores.sql("insert into forks (run, origin, step) values (4711, 1, 1)");
  expect(await found()).toEqual(["Forks belong to run number 4711, which does not exist."]);
  stores.sql("delete from forks where run = 4711");
  for (const table of ["journal", "checkpoints", "runs", "tags"])
    stores.sql(`delete from ${table} where run = (select run from runs where id = 'r')`);
  for (const table of ["journal", "checkpoints"])
    stores.sql(`delete from ${table} where run not in (select run from runs)`);
  expect(await found()).toEqual(["The run is a fork of step 2 of run r, which does not exist."]);
  expect(await rejection(fork.stateAt(1))).toMatchObject({ code: "STORE_CORRUPT" });
});

test("forks in an encrypted store use its codec", async () => {
  using stores = openStores();
  const codec = aesGcm({ keys: { one: new Uint8Array(32).fill(7) }, current: "one" });
  await using engine = await createEngine({ store: stores.source, definitions: [steps], codec });
  const run = await engine.start(steps, { log: ["canary-1"] }, { id: "r" });
  await run.result();
  const fork = await run.fork({ step: 2, id: "f", patch: { log: ["canary-2"] } });
  expect((await fork.result()).log).toEqual(["canary-2", "at 2", "at 3"]);
  expect((await fork.stateAt(1)).log).toEqual(["canary-1", "at 0"]);
  expect((await run.diff(fork)).firstDivergence).toBe(2);
  expect(await stores.store.check()).toEqual([]);
  const blobs = stores.sql<{ data: Uint8Array }>(
    "select data from journal union all select state from checkpoints where state is not null",
  );
  for (const { data } of blobs) expect(Buffer.from(data).includes("canary")).toBe(false);
});

const price = task("price", (_ctx, item: string) => item.length);
const audit = workflow("audit", async (ctx, total: number) => {
  await ctx.sleep("1 hour");
  return ctx.run("sign", () => `signed ${total}`);
});
/** A spread, joins that wait over steps, a loop, a retry, a task, a child and chance. */
const rich = graph("rich", {
  state: { items: last<readonly string[]>([]), log: append<string>(), round: last(0), signed: last("") },
})
  .node("plan", async (ctx) => ({ items: await ctx.run("list", () => ["a", "bb", "ccc"]), log: ["plan"] }))
  .node("fan", async () => {})
  .node("each", { retry: { maxAttempts: 3, baseDelay: 10, maxDelay: 10 } }, async (ctx, _state, item: string) => {
    const cents = await ctx.task(price, item);
    if (item === "bb" && ctx.attempt === 1) throw new Error("once");
    return { log: [`${item} ${cents} ${ctx.random()}`] };
  })
  .node("slow", async () => ({ log: ["slow"] }))
  .node("slower", async (ctx) => ({ log: [`slower ${ctx.uuid()}`] }))
  .node("joined", async (_ctx, state) => ({ round: state.round + 1 }))
  .node("sign", async (ctx, state) => ({ signed: await ctx.child(audit, state.log.length) }))
  .edge(START, "plan")
  .edge("plan", ["fan", "slow"])
  .spread("fan", "each", (state) => state.items)
  .edge("slow", "slower")
  .join(["each", "slower"], "joined")
  .edge("joined", "plan", (state) => state.round < 2)
  .edge("joined", "sign")
  .edge("sign", END);

test("a fork from any step ends like its origin: spreads, waiting joins, retries, tasks, children and randomness", async () => {
  using stores = openStores();
  await using engine = await createTestEngine({ store: stores.source, definitions: [price, audit, rich] });
  const run = await engine.start(rich, {}, { id: "r" });
  await engine.clock.advance("2 hours");
  const end = await run.result();
  expect(end.signed).toBe("signed 12");
  const all = await collect(run.checkpoints());
  const forks = [];
  for (const { step } of all) forks.push(await run.fork({ step, id: `f${step}` }));
  await engine.clock.advance("2 hours");
  for (const fork of forks) {
    expect(await fork.result()).toEqual(end);
    expect(await run.diff(fork)).toEqual({ firstDivergence: undefined, steps: [], more: false });
    expect(await fork.verify()).toMatchObject({ status: "same" });
  }
  expect(await stores.store.check()).toEqual([]);
});

test("a fork that is killed at every commit ends the same", async () => {
  const world = graph("world", { state: { log: append<string>() } })
    .node("begin", async () => ({ log: ["begin"] }))
    .node("work", async (ctx, state) => ({ log: [`${await ctx.run("call", () => state.log.length)}`] }))
    .edge(START, "begin")
    .edge("begin", "work")
    .edge("work", END, (state) => state.log.length >= 6)
    .edge("work", "work");
  const killing = async (at: number): Promise<{ log: readonly string[]; commits: number }> => {
    let commits = 0;
    const dead: { crash?: () => Promise<void> } = {};
    using stores = openStores(async (writes, apply) => {
      const isCommit = writes.some(({ write }) => write === "turn" || write === "fork");
      if (dead.crash === undefined || !isCommit || (commits += 1) !== at) return apply();
      // Half of them after the commit, whose answer then never comes.
      if (at % 2 === 0) await apply();
      await dead.crash();
      throw new Error("dead");
    });
    await using engine = await createTestEngine({ store: stores.source, definitions: [world] });
    const run = await engine.start(world, {}, { id: "r" });
    await run.result();
    dead.crash = () => engine.crash();
    const options = { step: 2, id: "f", patch: { log: ["patched"] } };
    let made: { id: string } | undefined;
    // Whoever asked does not know whether it happened, and asks again.
    await until(async () => (made = await run.fork(options).catch(() => undefined)) !== undefined);
    expect(made?.id).toBe("f");
    const { log } = await engine.get(world, "f").result();
    expect(await stores.store.check()).toEqual([]);
    expect(stores.sql("select count(*) as count from runs")).toEqual([{ count: 2 }]);
    return { log, commits };
  };
  const { log, commits } = await killing(0);
  expect(log).toEqual(["patched", "1", "2", "3", "4", "5"]);
  expect(commits).toBeGreaterThan(4);
  for (let at = 1; at <= commits; at += 1) expect((await killing(at)).log).toEqual(log);
}, 120_000);

test("channels of any name and values of every data type survive checkpoints, forks and diffs", async () => {
  const odd = graph("odd", {
    state: {
      $: last(1),
      $$: last(2),
      'quo"te': append<Date>(),
      constructor: merge<{ m?: Map<string, bigint> }>({}),
      "10": last<unknown>(undefined),
      "9": last("nine"),
      "$!": last("between"),
    },
  })
    .node("go", async (ctx) => ({
      $: 3,
      'quo"te': [new Date(ctx.step)],
      constructor: { m: new Map([["k", 2n ** 70n]]) },
      "10": new Uint8Array([1, 2]),
    }))
    .edge(START, "go");
  using stores = openStores();
  await using engine = await createTestEngine({ store: stores.source, definitions: [odd] });
  const run = await engine.start(odd, {}, { id: "r" });
  const end = await run.result();
  expect(end).toEqual({
    $: 3,
    $$: 2,
    'quo"te': [new Date(1)],
    constructor: { m: new Map([["k", 2n ** 70n]]) },
    "10": new Uint8Array([1, 2]),
    "9": "nine",
    "$!": "between",
  });
  expect(await run.stateAt(1)).toEqual(end);
  const fork = await run.fork({ step: 0, id: "f", patch: { $$: -0, constructor: { m: new Map([["other", 1n]]) } } });
  const other = await fork.result();
  expect(other.$$).toBe(-0);
  expect(other.constructor).toEqual({ m: new Map([["k", 2n ** 70n]]) });
  const diff = await run.diff(fork);
  expect(diff.firstDivergence).toBe(0);
  expect(diff.steps[0]?.channels).toEqual({
    $$: { here: 2, there: -0 },
    constructor: { here: {}, there: { m: new Map([["other", 1n]]) } },
  });
  expect(await fork.verify()).toMatchObject({ status: "same" });
  await engine.crash();
  expect(await (await fork.fork({ step: 1 })).result()).toEqual(other);
  expect(await stores.store.check()).toEqual([]);
});

test("the id of a fork cannot be started, with or without an input", async () => {
  await using engine = await createTestEngine({ definitions: [steps] });
  const run = await engine.start(steps, {}, { id: "r" });
  await run.result();
  await run.fork({ step: 1, id: "f" });
  for (const input of [undefined, {}, { n: 1 }])
    expect(await rejection(engine.start(steps, input as {}, { id: "f" }))).toMatchObject({
      code: "START_CONFLICT",
      message: expect.stringContaining("a fork from step 1 of run r"),
    });
});
