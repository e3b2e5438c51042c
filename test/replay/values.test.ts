// Values: live code and replayed code receive the same values, byte for byte (rules.A4).

import { expect, test } from "vitest";
import { CancelledError, encode, FatalError } from "../../src/base/index.ts";
import { promise, task, type Definition } from "../../src/kernel/index.ts";
import { workflow } from "../../src/workflow/index.ts";
import { LiveRun } from "./live-run.ts";

/** Creates new values, so that no two are the same object by accident. */
function makeValues(): unknown[] {
  const cause = new RangeError("too far");
  return [
    undefined,
    null,
    -0,
    0,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    123n,
    -(2n ** 70n),
    new Date(1_234_567_890_123),
    new Date(Number.NaN),
    new Map<unknown, unknown>([
      ["a", 1],
      [{ key: 2n }, new Set([1])],
    ]),
    new Set<unknown>(["a", -0, undefined]),
    new Uint8Array([0, 1, 255]),
    new TypeError("wrong", { cause }),
    new FatalError("never again"),
    new CancelledError("enough"),
    Object.assign(new Error("with data"), { code: "E_TEST", retryAfter: 3n }),
    { $: "date", $$: { v: 0 }, nested: [undefined, { gone: undefined, date: new Date(0) }] },
    "a\u{1F600}\u0000b",
    [],
  ];
}

const VALUES = makeValues().length;
const valueAt = (index: number): unknown => makeValues()[index];

/** Compares text, which distinguishes -0 from 0 and undefined from absent, and structure. */
function expectSame(actual: unknown, expected: unknown): void {
  expect(encode(actual)).toBe(encode(expected));
  expect(actual).toStrictEqual(expected);
}

const echo = task("echo", (_ctx, input: unknown) => input);
const inner = workflow("inner", async (_ctx, input: unknown) => input);

/** The values that the code received, to compare both executions. */
function collecting(seen: unknown[]): Definition {
  return workflow("collecting", { ports: { answer: promise<unknown>() } }, async (ctx, input: unknown) => {
    seen.push(input);
    seen.push(await ctx.task(echo, input));
    seen.push(await ctx.run("call", input, (_op, given: unknown) => given));
    seen.push(await ctx.child(inner, input));
    seen.push(await ctx.promise("answer"));
    ctx.state.set("key", input);
    seen.push(ctx.state.get("key"));
    return input;
  });
}

test("ACCEPTANCE 39: values round-trip identically, live and replayed, everywhere a value can go", async () => {
  for (let index = 0; index < VALUES; index += 1) {
    const live: unknown[] = [];
    const run = await LiveRun.start(collecting(live), valueAt(index));
    await run.finish("Task(0)", "Operation(0)");
    await run.commit(run.answerOf("ChildWorkflow(0)", { value: valueAt(index) }));
    await run.commit(run.settles("answer", { value: valueAt(index) }));
    expect(live).toHaveLength(6);
    for (const seen of live) expectSame(seen, valueAt(index));
    expect(run.execution.outcome?.status).toBe("returned");

    const replayed: unknown[] = [];
    const again = await LiveRun.resume(collecting(replayed), run.entries);
    expect(again.stop).toBeUndefined();
    expect(replayed).toHaveLength(6);
    for (const seen of replayed) expectSame(seen, valueAt(index));
    expect(again.requested).toEqual([]);
    expect(replayed).toStrictEqual(live);

    // The output in the journal.
    const end = run.entries.at(-1);
    expect(end?.type).toBe("RunCompleted");
    expect(end?.data).toBe(valueAt(index) === undefined ? "{}" : `{"output":${encode(valueAt(index))}}`);
  }
});

test("ACCEPTANCE 39: code catches the same error live and on replay, from every source", async () => {
  const errors = [
    () => new TypeError("wrong", { cause: new Error("deeper") }),
    () => new FatalError("never again"),
    () => Object.assign(new Error("with data"), { code: 7, at: new Date(0) }),
    () => new AggregateError([new Error("one"), new Error("two")], "both"),
  ];
  for (const makeError of errors) {
    const failing = (seen: unknown[]): Definition =>
      workflow("failing", { ports: { answer: promise<unknown>() } }, async (ctx) => {
        const keep = (error: unknown): void => void seen.push(error);
        await ctx.task(echo, 1).catch(keep);
        await ctx
          .run("call", () => {
            throw makeError();
          })
          .catch(keep);
        await ctx.child(inner, 1).catch(keep);
        await ctx.promise("answer").catch(keep);
        // Already settled: the second wait returns immediately.
        await ctx.promise("answer").catch(keep);
        throw seen.at(-1);
      });
    const live: unknown[] = [];
    const run = await LiveRun.start(failing(live));
    await run.commit(run.answerOf("Task(0)", { error: makeError() }));
    await run.finish("Operation(0)");
    await run.commit(run.answerOf("ChildWorkflow(0)", { error: makeError() }));
    await run.commit(run.settles("answer", { error: makeError() }));
    expect(live).toHaveLength(5);
    const replayed: unknown[] = [];
    const again = await LiveRun.resume(failing(replayed), run.entries);
    expect(again.stop).toBeUndefined();
    expect(replayed).toHaveLength(5);
    for (const error of [...live, ...replayed]) {
      expect(error).toBeInstanceOf(makeError().constructor);
      expect(encode(error)).toBe(encode(makeError()));
    }
    expect(again.execution.outcome?.status).toBe("threw");
    expect(run.types.at(-1)).toBe("RunFailed");
  }
});

test("changing a received value affects neither the journal nor other receivers", async () => {
  const shared = workflow("shared", async (ctx, input: { list: number[] }) => {
    input.list.push(9);
    ctx.state.set("list", input.list);
    input.list.push(10);
    const [first, second] = [ctx.state.get("list") as number[], ctx.state.get("list") as number[]];
    first.push(11);
    const echoed = (await ctx.task(echo, input)) as { list: number[] };
    input.list.push(12);
    return { second, echoed };
  });
  const run = await LiveRun.start(shared, { list: [1] });
  await run.finish("Task(0)");
  const expected = { status: "returned", value: { second: [1, 9], echoed: { list: [1, 9, 10] } } };
  expect(run.execution.outcome).toEqual(expected);
  const again = await LiveRun.resume(shared, run.entries);
  expect(again.stop).toBeUndefined();
  expect(again.execution.outcome).toEqual(expected);
});

test("a thrown value that is not an Error is recorded as the cause of an Error", async () => {
  const odd = workflow("odd", async (ctx) => {
    await ctx.task(echo, 1);
    // oxlint-disable-next-line no-throw-literal
    throw "a text";
  });
  const run = await LiveRun.start(odd);
  await run.finish("Task(0)");
  expect(run.entries.at(-1)).toMatchObject({ type: "RunFailed" });
  expect(run.entries.at(-1)?.data).toContain('"message":"a text"');
});
