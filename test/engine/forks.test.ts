// Forks of workflows: what a fork shares with its origin, and what it requests again.

import { expect, test } from "vitest";
import { promise, signal, task, workflow } from "reprise";
import { createTestEngine, expectReplay, saveJournal } from "reprise/testing";
import { collect, createFolder, createGate, rejection, until } from "./world.ts";

const calls: string[] = [];
const price = task("price", async (_, item: string) => {
  calls.push(`price ${item}`);
  return item.length;
});
const order = workflow("order", async (ctx, items: string[]) => {
  const started = ctx.now().getTime();
  const token = ctx.uuid();
  let total = 0;
  for (const item of items) total += await ctx.task(price, item);
  const later = ctx.uuid();
  const key = await ctx.run("charge", { total }, ({ idempotencyKey }) => {
    calls.push(`charge ${total}`);
    return idempotencyKey;
  });
  return { started, token, total, later, key };
});

test("a fork at a task shares the entries before its answer and executes the rest", async () => {
  calls.length = 0;
  await using engine = await createTestEngine({ definitions: [order, price] });
  const run = await engine.start(order, ["a", "bb", "ccc"], { id: "order-7" });
  const was = await run.result();
  expect(calls).toEqual(["price a", "price bb", "price ccc", "charge 6"]);
  calls.length = 0;
  await engine.clock.advance("1 hour");
  const fork = await run.fork({ at: "Task(1)", id: "order-8", tags: ["again"] });
  const is = await fork.result();
  expect(calls).toEqual(["price bb", "price ccc", "charge 6"]);
  // What the code computed before the fork is as recorded; what it computes afterwards is the fork's.
  expect([is.started, is.token, is.total]).toEqual([was.started, was.token, was.total]);
  expect(is.later).not.toBe(was.later);
  expect(is.key).not.toBe(was.key);
  expect(await fork.info()).toMatchObject({ id: "order-8", tags: ["again"], input: ["a", "bb", "ccc"] });
  expect(await fork.replay()).toMatchObject({ status: "same" });
  expect(await fork.verify()).toMatchObject({ status: "same" });
  expect((await collect(fork.journal())).map(({ run: by, seq, type, command }) => [by, seq, type, command])).toEqual([
    ["order-7", 1, "RunStarted", undefined],
    ["order-7", 2, "TaskScheduled", "Task(0)"],
    ["order-7", 3, "TaskCompleted", "Task(0)"],
    ["order-7", 4, "TaskScheduled", "Task(1)"],
    [undefined, 1, "RunStarted", undefined],
    [undefined, 2, "TaskScheduled", "Task(1)"],
    [undefined, 3, "TaskCompleted", "Task(1)"],
    [undefined, 4, "TaskScheduled", "Task(2)"],
    [undefined, 5, "TaskCompleted", "Task(2)"],
    [undefined, 6, "OperationCompleted", "Operation(0)"],
    [undefined, 7, "RunCompleted", undefined],
  ]);
});

test("a fork gets another answer, and calls only what follows from it", async () => {
  calls.length = 0;
  await using engine = await createTestEngine({ definitions: [order, price] });
  const run = await engine.start(order, ["a", "bb", "ccc"], { id: "order-7" });
  await run.result();
  calls.length = 0;
  const fork = await run.fork({ answers: { "Task(2)": 40, "Task(1)": 20 } });
  expect(await fork.result()).toMatchObject({ total: 61 });
  expect(calls).toEqual(["charge 61"]);
  expect(await fork.verify()).toMatchObject({ status: "same" });
  // The entries that the fork has itself: what it was given, and what it executed.
  const own = (await collect(fork.journal())).filter(({ run: by }) => by === undefined);
  expect(own.map(({ type, command }) => [type, command])).toEqual([
    ["RunStarted", undefined],
    ["TaskScheduled", "Task(1)"],
    ["TaskCompleted", "Task(1)"],
    ["TaskScheduled", "Task(2)"],
    ["TaskCompleted", "Task(2)"],
    ["OperationCompleted", "Operation(0)"],
    ["RunCompleted", undefined],
  ]);
});

test("a fork with recorded effects calls nothing, and stops where the origin has no answer", async () => {
  calls.length = 0;
  await using engine = await createTestEngine({ definitions: [order, price] });
  const run = await engine.start(order, ["a", "bb", "ccc"], { id: "order-7" });
  const was = await run.result();
  calls.length = 0;
  await engine.clock.advance("1 hour");
  const same = await run.fork({ at: "Task(0)", effects: "recorded" });
  expect(await same.result()).toEqual(was);
  const changed = await run.fork({ answers: { "Task(1)": 20 }, effects: "recorded" });
  expect(await rejection(changed.result())).toMatchObject({
    code: "RUN_BLOCKED",
    message: expect.stringContaining("requests Operation(0) (charge), but the origin of this fork did not request it"),
  });
  expect(await changed.info()).toMatchObject({ status: "blocked" });
  const both = await run.fork({ answers: { "Task(1)": 20, "Operation(0)": "key" }, effects: "recorded" });
  expect(await both.result()).toMatchObject({ total: 24, key: "key" });
  expect(calls).toEqual([]);
  for (const fork of [same, both]) expect(await fork.verify()).toMatchObject({ status: "same" });
});

const ship = workflow("ship", { ports: { by: signal<string>() } }, async (ctx, to: string) => {
  calls.push(`ship ${to}`);
  return `${to} by ${await ctx.receive("by")}`;
});
const slow = task("slow", async (_, item: string) => {
  calls.push(`slow ${item}`);
  await slowGate.wait();
  return item;
});
let slowGate = createGate();
const busy = workflow(
  "busy",
  { ports: { approve: promise<boolean>(), rest: signal<number>() }, determinism: "strict" },
  async (ctx) => {
    const item = ctx.task(slow, "x");
    const child = ctx.child(ship, "home", { id: "home-delivery" });
    const reminder = ctx.sleep("3 days");
    const approved = ctx.promise("approve", { timeout: "5 days" });
    await child.signal("by", "bike");
    const first = await ctx.run("first", () => {
      calls.push("first");
      return calls.length;
    });
    await reminder;
    const at = ctx.now().getTime();
    return { first, at, item: await item, child: await child, approved: await approved };
  },
);

test("what is open where a workflow is forked is requested again by the fork", async () => {
  calls.length = 0;
  slowGate = createGate();
  await using engine = await createTestEngine({ definitions: [busy, ship, slow] });
  const begin = engine.clock.now().getTime();
  const run = await engine.start(busy, undefined, { id: "a" });
  await until(async () => (await collect(run.journal())).some(({ type }) => type === "ChildWorkflowCompleted"));
  await engine.clock.advance("1 day");
  calls.length = 0;
  const fork = await run.fork({ at: "Operation(0)", id: "b" });
  await until(async () => (await collect(fork.journal())).some(({ type }) => type === "ChildWorkflowCompleted"));
  // The child of the fork is another run, and received the message of the fork.
  expect(calls.toSorted()).toEqual(["first", "ship home", "slow x"]);
  const started = (await collect(fork.journal())).findLast(({ type }) => type === "ChildWorkflowInitiated");
  const { childExecutionId } = started!.data as { childExecutionId: string };
  expect(childExecutionId).toMatch(/^home-delivery~[0-9a-f]{8}$/);
  expect(await engine.get(ship, childExecutionId).result()).toBe("home by bike");
  // The task and the promise are open in both runs, and each is settled for itself.
  const open = await collect(engine.promises());
  expect(open.map(({ runId, name }) => [runId, name]).toSorted()).toEqual([
    ["a", "approve"],
    ["b", "approve"],
  ]);
  await fork.resolve("approve", false);
  await run.resolve("approve", true);
  slowGate.open();
  // The timer keeps the time when it is due.
  await engine.clock.advance("2 days");
  expect(await fork.result()).toMatchObject({ at: begin + 3 * 86_400_000, item: "x", approved: false });
  expect(await run.result()).toMatchObject({ item: "x", approved: true });
  expect(await fork.verify()).toMatchObject({ status: "same" });
});

test("a fork of a fork shares the history of both, wherever it begins", async () => {
  calls.length = 0;
  await using engine = await createTestEngine({ definitions: [order, price] });
  const run = await engine.start(order, ["a", "bb", "ccc"], { id: "a" });
  const was = await run.result();
  const first = await run.fork({ answers: { "Task(1)": 20 }, id: "b" });
  const second = await first.result();
  calls.length = 0;
  // After the place where the first fork begins, and before it.
  const late = await first.fork({ answers: { "Task(2)": 300 }, id: "c" });
  expect(await late.result()).toMatchObject({ token: was.token, total: 321 });
  const early = await first.fork({ answers: { "Task(0)": 1000 }, id: "d" });
  expect(await early.result()).toMatchObject({ token: was.token, total: 1005 });
  expect(calls).toEqual(["charge 321", "price bb", "price ccc", "charge 1005"]);
  const same = await late.fork({ at: "Operation(0)", effects: "recorded", id: "e" });
  expect(await same.result()).toEqual(await late.result());
  const writers = async (of: typeof run): Promise<unknown> => [
    ...new Set((await collect(of.journal())).map((entry) => entry.run)),
  ];
  expect(await writers(late)).toEqual(["a", "b", undefined]);
  expect(await writers(early)).toEqual(["a", undefined]);
  expect(await writers(same)).toEqual(["a", "b", "c", undefined]);
  for (const fork of [first, late, early, same]) expect(await fork.verify()).toMatchObject({ status: "same" });
  expect(second.later).not.toBe((await late.result()).later);
});

test("the same id with the same options is the same fork, and with others it is refused", async () => {
  await using engine = await createTestEngine({ definitions: [order, price] });
  const run = await engine.start(order, ["a", "bb"], { id: "a" });
  await run.result();
  const fork = await run.fork({ answers: { "Task(1)": 20 }, id: "b" });
  expect((await run.fork({ answers: { "Task(1)": 20 }, id: "b" })).id).toBe(fork.id);
  expect(await rejection(run.fork({ answers: { "Task(1)": 21 }, id: "b" }))).toMatchObject({
    code: "START_CONFLICT",
    message: "Run b is a fork from Task(1) of run a; it cannot become this one with another answer. Use another id.",
  });
  expect(await rejection(run.fork({ at: "Task(0)", id: "a" }))).toMatchObject({ code: "START_CONFLICT" });
});

test.each<[string, unknown, string, RegExp]>([
  ["no options", undefined, "BAD_OPTIONS", /expected \{ at \}/],
  ["no place", {}, "BAD_OPTIONS", /a command such as "Task\(3\)" as at, got undefined/],
  ["a step", { step: 1 }, "BAD_OPTIONS", /no option "step"/],
  ["an empty command", { at: "" }, "BAD_OPTIONS", /as at, got ''/],
  ["a command that was not requested", { at: "Task(9)" }, "CHECKPOINT_NOT_FOUND", /has not requested Task\(9\)/],
  ["an answer to no command", { answers: { "Task(9)": 1 } }, "CHECKPOINT_NOT_FOUND", /has not requested Task\(9\)/],
  [
    "an answer before the fork",
    { at: "Task(1)", answers: { "Task(0)": 1 } },
    "BAD_OPTIONS",
    /answered before Task\(1\)/,
  ],
  ["an answer that is no data", { answers: { "Task(0)": () => 1 } }, "NOT_DATA", /The answer of Task\(0\)/],
  ["other effects", { at: "Task(0)", effects: "none" }, "BAD_OPTIONS", /"live" or "recorded"/],
  ["answers as a list", { answers: [1] }, "BAD_OPTIONS", /values by command/],
  ["a version that is not registered", { at: "Task(0)", version: 7 }, "UNKNOWN_DEFINITION", /version 7/i],
  ["a generation that does not exist", { at: "Task(0)", generation: 3 }, "RUN_NOT_FOUND", /generation 3/],
])("%s is refused, and nothing is written", async (_, options, code, message) => {
  await using engine = await createTestEngine({ definitions: [order, price] });
  const run = await engine.start(order, ["a", "bb"], { id: "a" });
  await run.result();
  const refused = await rejection(run.fork(options as { at: string }));
  expect(refused).toMatchObject({ code, message: expect.stringMatching(message) });
  expect(await collect(engine.list())).toHaveLength(1);
});

const racing = task("racing", async (_, { name, waits }: { name: string; waits: boolean }) => {
  calls.push(name);
  if (waits) await slowGate.wait();
  return name;
});
const dialog = workflow(
  "dialog",
  { ports: { approve: promise<{ ok: boolean }>(), left: signal<number>(), right: signal<number>() } },
  async (ctx) => {
    const slowOne = ctx.task(racing, { name: "slow", waits: true });
    const quick = ctx.task(racing, { name: "quick", waits: false });
    const winner = await Promise.race([slowOne, quick]);
    const approved = await ctx.promise("approve");
    const one = await ctx.receive("left");
    const any = await ctx.receive(["left", "right"]);
    await ctx.send("mail", { winner });
    return { winner, approved, one, any, slow: await slowOne, id: ctx.runId };
  },
);

test("promises and signals get other answers; a race with recorded effects has the winner of the origin; nothing is sent", async () => {
  calls.length = 0;
  slowGate = createGate();
  const sent: unknown[] = [];
  const outbox = { mail: async (payload: unknown) => void sent.push(payload) };
  await using engine = await createTestEngine({ definitions: [dialog, racing], outbox });
  const run = await engine.start(dialog, undefined, { id: "t" });
  await run.resolve("approve", { ok: true });
  await run.signal("left", 1);
  await run.signal("right", 2);
  slowGate.open();
  const was = await run.result();
  await until(() => sent.length === 1);
  expect(was).toEqual({
    winner: "quick",
    approved: { ok: true },
    one: 1,
    any: { name: "right", value: 2 },
    slow: "slow",
    id: "t",
  });
  calls.length = 0;
  const same = await run.fork({ at: "Task(0)", effects: "recorded" });
  expect(await same.result()).toEqual(was);
  const changed = await run.fork({ answers: { "Promise(0)": { ok: false } }, effects: "recorded" });
  expect(await changed.result()).toEqual({ ...was, approved: { ok: false } });
  expect(await rejection(changed.resolve("approve", { ok: true }))).toMatchObject({ code: expect.any(String) });
  expect(calls).toEqual([]);
  expect(sent).toHaveLength(1);
  for (const fork of [same, changed]) expect(await fork.verify()).toMatchObject({ status: "same" });
});

test("a live run is forked where it waits, and a generation by its number", async () => {
  const rounds = workflow("rounds", { ports: { go: promise<number>() } }, async (ctx, n: number) => {
    const more = await ctx.promise("go");
    if (n < 2) return ctx.continueAsNew(n + 1);
    return [n, more];
  });
  await using engine = await createTestEngine({ definitions: [rounds] });
  const run = await engine.start(rounds, 1, { id: "r" });
  await run.resolve("go", 5);
  await until(async () => (await run.info()).generation === 1);
  await until(async () => (await run.info()).status === "waiting");
  const live = await run.fork({ answers: { "Promise(0)": 6 } });
  expect(await live.result()).toEqual([2, 6]);
  expect((await run.info()).status).toBe("waiting");
  const first = await run.fork({ at: "Promise(0)", generation: 0 });
  await first.resolve("go", 8);
  await until(async () => (await first.info()).generation === 1);
  await first.resolve("go", 9);
  expect(await first.result()).toEqual([2, 9]);
  await run.resolve("go", 7);
  expect(await run.result()).toEqual([2, 7]);
});

test("a failed run is forked at the step that failed; a fork retries what failed after it, not before", async () => {
  let fails = true;
  const flaky = workflow("flaky", async (ctx) => {
    const first = await ctx.run("first", () => 1).catch(() => 0);
    await ctx.run("second", () => {
      if (fails) throw new Error("down");
    });
    return first;
  });
  await using engine = await createTestEngine({ definitions: [flaky] });
  const run = await engine.start(flaky, undefined, { id: "f" });
  await rejection(run.result());
  const again = await run.fork({ at: "Operation(1)", id: "g" });
  await rejection(again.result());
  fails = false;
  await again.retry();
  expect(await again.result()).toBe(1);
  expect(await again.verify()).toMatchObject({ status: "same" });
  // The origin is kept while the fork exists.
  expect(await rejection(run.delete())).toMatchObject({ code: "RUN_IN_USE", message: expect.stringContaining("g") });
  await again.delete();
  await run.delete();
});

test("the saved journal of a fork replays without its origin", async () => {
  using folder = createFolder();
  await using engine = await createTestEngine({ definitions: [order, price] });
  const run = await engine.start(order, ["a", "bb"], { id: "a" });
  await run.result();
  const fork = await run.fork({ answers: { "Task(1)": 20 }, id: "b" });
  await fork.result();
  await saveJournal(fork, folder.file("fork.json"));
  await expectReplay(folder.file("fork.json"), { definitions: [order, price] });
  const cheaper = workflow("order", async (ctx, items: string[]) => ctx.run("other", { items }, () => 1));
  const refused = await rejection(expectReplay(folder.file("fork.json"), { definitions: [cheaper, price] }));
  expect(refused).toMatchObject({ code: "DETERMINISM_VIOLATION" });
});
