// What the pages compute from answers of the API: previews, differences of states, token streams.

import { expect, test } from "vitest";
import { preview } from "../../web/src/graph/preview.ts";
import { diffState, diffValues } from "../../web/src/graph/state-diff.ts";
import { EMPTY_STREAM, passagesOf, rateOf, withFrames } from "../../web/src/stream/stream-model.ts";

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
  expect(passages.map(({ isText, values }) => [isText, values.length])).toEqual([
    [false, 2],
    [true, 0],
  ]);
  expect(passages[0]!.values[1]!.text).toBe("{ done: 2 }");
});

test("the rate counts recent arrivals only", () => {
  expect(rateOf([], 1000)).toBe(0);
  const arrivals = Array.from({ length: 41 }, (_, index) => 1000 + index * 25);
  expect(Math.round(rateOf(arrivals, 2000))).toBe(40);
  expect(rateOf(arrivals, 20_000)).toBe(0);
});
