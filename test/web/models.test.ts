// What the pages compute from answers of the API: previews, differences of states, token streams.

import { expect, test } from "vitest";
import { preview } from "../../web/src/graph/preview.ts";
import { diffState, diffValues } from "../../web/src/graph/state-diff.ts";
import { amount } from "../../web/src/format.ts";
import { EMPTY_STREAM, passagesOf, rateOf, usageOf, withFrames } from "../../web/src/stream/stream-model.ts";

test("a preview reads like code and is bounded in length, depth and time", () => {
  expect(preview({ order: "57802", cents: 7200, to: null, list: [1, { a: true }], "a b": [] })).toBe(
    '{ order: "57802", cents: 7200, to: null, list: [ 1, { a: true } ], "a b": [] }',
  );
  expect(preview("x".repeat(8_000_000), 50)).toHaveLength(50);
  let deep: unknown = 1;
  for (let level = 0; level < 5000; level += 1) deep = { deep };
  expect(preview(deep)).toContain("{ … }");
  expect(
    preview(
      Array.from({ length: 1_000_000 }, () => 0),
      20,
    ),
  ).toHaveLength(20);
  expect(preview(JSON.parse('{"__proto__":{"polluted":1}}'))).toBe("{ __proto__: { polluted: 1 } }");
  expect(preview(undefined)).toBe("undefined");
});

test("an appended message is one line, a changed value two, and nothing else is listed unless all is asked for", () => {
  const before = { order: null, messages: [{ role: "user" }] };
  const state = { order: { id: "o" }, messages: [{ role: "user" }, { role: "tool" }], intent: "refund" };
  expect(diffState(state, before, ["order", "messages"], false).lines).toEqual([
    { kind: "del", name: "order", text: "null" },
    { kind: "add", name: "", text: '{ id: "o" }' },
    { kind: "add", name: "messages[1]", text: '{ role: "tool" }' },
  ]);
  expect(diffState(state, before, ["order", "messages"], true).lines.at(-1)).toEqual({
    kind: "same",
    name: "intent",
    text: '"refund"',
  });
  expect(diffValues("a", { x: 1, y: [1, 2] }, { x: 1, y: [1, 3] })).toEqual([
    { kind: "del", name: "a.y[1]", text: "2" },
    { kind: "add", name: "", text: "3" },
  ]);
});

test("a difference with many lines is cut and says how many lines are left out", () => {
  const state = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`c${index}`, index]));
  const { lines, leftOut } = diffState(state, undefined, [], true);
  expect(lines).toHaveLength(200);
  expect(leftOut).toBe(300);
});

test("a higher execution discards the text of the lower one and says so", () => {
  let model = withFrames(EMPTY_STREAM, [
    { offset: 1, value: "before ", step: "Run(0)", execution: 1 },
    { offset: 2, value: "lost ", step: "Run(1)", execution: 1 },
    { offset: 3, value: "text", step: "Run(1)", execution: 1 },
  ]);
  model = withFrames(model, [
    { offset: 3, value: "repeated frame" },
    { offset: 4, reset: { step: "Run(1)", execution: 2 } },
    { offset: 5, value: "kept", step: "Run(1)", execution: 2 },
  ]);
  expect(passagesOf(model.chunks).map(({ text }) => text)).toEqual(["before ", "kept"]);
  expect(model.discarded).toEqual([{ step: "Run(1)", execution: 1, chunks: 2, repeatedBy: 2 }]);
  expect(model.offset).toBe(5);
  const unannounced = withFrames(model, [{ offset: 6, value: "third", step: "Run(1)", execution: 3 }]);
  expect(passagesOf(unannounced.chunks).map(({ text }) => text)).toEqual(["before ", "third"]);
});

test("a stream keeps its newest chunks and counts the dropped ones", () => {
  const frames = Array.from({ length: 30 }, (_, index) => ({ offset: index + 1, value: "x".repeat(30_000) }));
  const model = withFrames(EMPTY_STREAM, frames);
  expect(model.chars).toBeLessThanOrEqual(400_000);
  expect(model.dropped).toBeGreaterThan(0);
  expect(model.chunks.at(-1)!.offset).toBe(30);
});

test("values that are no text are listed one by one", () => {
  const model = withFrames(EMPTY_STREAM, [
    { offset: 1, value: { done: 1 } },
    { offset: 2, value: { done: 2 } },
    { offset: 3, value: "text" },
  ]);
  const passages = passagesOf(model.chunks);
  expect(passages.map(({ kind, values }) => [kind, values.length])).toEqual([
    ["value", 2],
    ["text", 0],
  ]);
  expect(passages[0]!.values[1]!.text).toBe("{ done: 2 }");
});

test("token frames of a model read as its text, with what each call cost and why an execution failed", () => {
  const frame = (offset: number, execution: number, value: object) => ({
    offset,
    step: "Operation(0)",
    execution,
    value: { call: "c1", execution, ...value },
  });
  const failed = withFrames(EMPTY_STREAM, [
    frame(1, 1, { part: "begin", model: "fast" }),
    frame(2, 1, { part: "text", delta: "I am" }),
    frame(3, 1, { part: "failed", error: "connection reset", again: true }),
  ]);
  expect(failed.calls).toEqual([{ step: "Operation(0)", execution: 1, model: "fast", error: "connection reset" }]);
  const model = withFrames(failed, [
    frame(4, 2, { part: "begin", model: "fast" }),
    frame(5, 2, { part: "reasoning", delta: "they are angry" }),
    frame(6, 2, { part: "text", delta: "I am " }),
    frame(7, 2, { part: "text", delta: "sorry." }),
    frame(8, 2, { part: "tool-input", delta: '{"order":1}' }),
    frame(9, 2, { part: "end", finish: "stop", usage: { tokens: 316, calls: 1, usd: 0.0002855 } }),
    { offset: 10, step: "Operation(1)", value: { part: "text", delta: "no token frame" } },
  ]);
  expect(passagesOf(model.chunks).map(({ kind, text }) => [kind, text])).toEqual([
    ["reasoning", "they are angry"],
    ["text", "I am sorry."],
    ["tool-input", '{"order":1}'],
    ["value", ""],
  ]);
  expect(model.discarded).toEqual([
    { step: "Operation(0)", execution: 1, chunks: 1, repeatedBy: 2, error: "connection reset" },
  ]);
  expect(usageOf(model.calls)).toEqual({ tokens: 316, usd: 0.0002855 });
  expect(usageOf(failed.calls)).toBeUndefined();
});

test("an amount has two significant digits, and cents", () => {
  expect([0, 2, 2.5, 0.97, 0.05, 0.0002855, 1234.567].map((usd) => amount("usd", usd))).toEqual([
    "$0",
    "$2",
    "$2.50",
    "$0.97",
    "$0.05",
    "$0.00029",
    "$1,234.57",
  ]);
  expect([amount("tokens", 3907), amount("calls", 1)]).toEqual(["3,907 tokens", "1 call"]);
});

test("the rate counts recent arrivals only", () => {
  expect(rateOf([], 1000)).toBe(0);
  const arrivals = Array.from({ length: 41 }, (_, index) => 1000 + index * 25);
  expect(Math.round(rateOf(arrivals, 2000))).toBe(40);
  expect(rateOf(arrivals, 20_000)).toBe(0);
});
