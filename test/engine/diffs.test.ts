// Diffs: how two runs of a workflow differ, command by command.

import { expect, test } from "vitest";
import { promise, signal, task, workflow, type RepriseError } from "reprise";
import { createTestEngine } from "reprise/testing";
import { rejection, storeAround } from "./world.ts";

const price = task("price", (_ctx, item: string) => item.length);
const discount = task("discount", (_ctx, cents: number) => cents - 1);

const order = workflow(
  "order",
  { ports: { go: promise<number>(), note: signal<string>() } },
  async (ctx, item: string) => {
    const cents = await ctx.task(price, item);
    ctx.state.set("cents", cents);
    const paid = cents > 4 ? await ctx.task(discount, cents) : await ctx.run("round", cents, (_op, n) => n + 1);
    await ctx.sleep("1 minute");
    const note = await ctx.receive("note");
    const go = await ctx.promise("go");
    if (go < 0) throw new Error(`refused: ${note}`);
    return paid + go;
  },
);

test("two runs that did the same are the same; otherwise the first difference is named, and all that follow", async () => {
  await using engine = await createTestEngine({ definitions: [order, price, discount] });
  const runs = [];
  for (const [id, item, note, go] of [
    ["a", "book", "now", 1],
    ["b", "book", "now", 1],
    ["c", "book", "later", 1],
    ["d", "magazine", "now", 1],
    ["e", "book", "now", -1],
  ] as const) {
    const run = await engine.start(order, item, { id });
    // Before the code waits for it, and after: that is no difference.
    if (id === "b") await run.signal("note", note);
    await engine.clock.advance("1 minute");
    if (id !== "b") await run.signal("note", note);
    await run.resolve("go", go);
    await run.result().catch(() => undefined);
    runs.push(run);
  }
  const [a, b, c, d, e] = runs as [(typeof runs)[0], ...typeof runs];
  expect(await a.diff(b!)).toEqual({ firstDivergence: undefined, commands: [], more: false });
  expect(await a.diff(c!)).toEqual({
    firstDivergence: "Signal(note) 0",
    commands: [{ command: "Signal(note) 0", in: "both", input: { here: "now", there: "later" } }],
    more: false,
  });
  const other = await a.diff(d!);
  expect(other.firstDivergence).toBe("input");
  expect(other.commands.map(({ command, in: where }) => `${command} ${where}`)).toEqual([
    "input both",
    "Task(0) both",
    "State(0) both",
    "Task(1) there",
    "Operation(0) here",
    "output both",
  ]);
  expect(other.commands[1]).toEqual({
    command: "Task(0)",
    in: "both",
    input: { here: "book", there: "magazine" },
    answer: { here: { status: "completed", value: 4 }, there: { status: "completed", value: 8 } },
  });
  expect(await a.diff(d!, { limit: 1 })).toMatchObject({ firstDivergence: "input", commands: [{}], more: true });
  const failed = await a.diff(e!);
  expect(failed.firstDivergence).toBe("Promise(1)");
  expect(failed.commands.at(-1)).toMatchObject({
    command: "output",
    answer: {
      here: { status: "completed", value: 6 },
      there: { status: "failed", error: { message: "refused: now" } },
    },
  });
  expect((await e!.diff(a)).commands.at(-1)).toMatchObject({ answer: { there: { value: 6 } } });
});

test("entries that a retry made void do not count", async () => {
  let isDown = false;
  const call = workflow("call", async (ctx) => {
    const first = await ctx.run("first", () => 1);
    return first + (await ctx.run("second", () => (isDown ? Promise.reject(new Error("down")) : 2)));
  });
  await using engine = await createTestEngine({ definitions: [call] });
  const a = await engine.start(call);
  await a.result();
  isDown = true;
  const b = await engine.start(call);
  await rejection(b.result());
  expect((await a.diff(b)).firstDivergence).toBe("Operation(1)");
  isDown = false;
  await b.retry();
  await b.result();
  expect(await a.diff(b)).toEqual({ firstDivergence: undefined, commands: [], more: false });
});

test("a fork is compared from the command it was forked at; what it shares is not read", async () => {
  const read: number[] = [];
  let answer = 1;
  const steps = workflow("steps", async (ctx) => {
    let sum = 0;
    for (let n = 0; n < 20; n += 1) sum += await ctx.run("add", n, () => answer);
    return sum;
  });
  const source = storeAround((_writes, apply) => apply());
  await using engine = await createTestEngine({ definitions: [steps], store: source });
  const run = await engine.start(steps, undefined, { id: "o" });
  await run.result();
  const same = await run.fork({ at: "Operation(15)", id: "same" });
  await same.result();
  answer = 2;
  const fork = await run.fork({ at: "Operation(18)", id: "f" });
  await fork.result();
  const origin = (await source.store.findRun("o"))?.run;
  const { readJournal } = source.store;
  source.store.readJournal = async (number, after, limit) => {
    const entries = await readJournal.call(source.store, number, after, limit);
    if (number === origin) read.push(...entries.map(({ seq }) => seq));
    return entries;
  };
  expect(await run.diff(same)).toEqual({ firstDivergence: undefined, commands: [], more: false });
  const diff = await run.diff(fork);
  expect(diff.commands.map(({ command }) => command)).toEqual(["Operation(18)", "Operation(19)", "output"]);
  expect(diff.commands[0]).toEqual({
    command: "Operation(18)",
    in: "both",
    answer: { here: { status: "completed", value: 1 }, there: { status: "completed", value: 2 } },
  });
  expect((await same.diff(fork)).firstDivergence).toBe("Operation(18)");
  // The first entry of a run says whether it is a fork.
  expect(Math.min(...read.filter((seq) => seq > 1))).toBe(17);
});

test("runs of other definitions, and other options, are refused; other versions are compared", async () => {
  const greet = (version: number) =>
    workflow("greet", { version }, async (ctx) => ctx.run(`version ${version}`, () => version));
  const [one, two] = [greet(1), greet(2)];
  const other = workflow("other", async () => 1);
  await using engine = await createTestEngine({ definitions: [one, two, other] });
  const [a, b, c] = [await engine.start(one), await engine.start(two), await engine.start(other)];
  for (const run of [a, b, c]) await run.result();
  const diff = await a.diff(b);
  expect(diff.commands[0]).toEqual({
    command: "Operation(0)",
    in: "both",
    name: { here: "version 1", there: "version 2" },
    answer: { here: { status: "completed", value: 1 }, there: { status: "completed", value: 2 } },
  });
  const error = (await rejection(a.diff(c as never))) as RepriseError;
  expect([error.code, error.message]).toMatchObject([
    "USAGE",
    expect.stringContaining("Only runs of the same definition"),
  ]);
  expect(await rejection(a.diff(b, { limit: 0 }))).toMatchObject({ code: "BAD_OPTIONS" });
});

test("a promise that a fork waits for again is compared by its value", async () => {
  const asks = workflow("asks", { ports: { go: promise<number>() } }, async (ctx) => {
    await ctx.run("begin", () => 0);
    return ctx.promise("go");
  });
  await using engine = await createTestEngine({ definitions: [asks] });
  const run = await engine.start(asks);
  await engine.clock.advance(0);
  await run.resolve("go", 1);
  await run.result();
  const fork = await run.fork({ at: "Promise(0)" });
  await engine.clock.advance(0);
  expect((await run.diff(fork)).commands.map(({ command, in: where }) => [command, where])).toEqual([
    ["Promise(0)", "both"],
    ["output", "here"],
  ]);
  await fork.resolve("go", 1);
  await fork.result();
  expect(await run.diff(fork)).toEqual({ firstDivergence: undefined, commands: [], more: false });
});
