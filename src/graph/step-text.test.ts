import { describe, expect, test } from "vitest";
import { encode } from "../base/index.ts";
import { applyDelta, type Delta } from "../kernel/index.ts";
import { createItem, storedItem } from "./step-item.ts";
import { ROOT_PATH } from "./order-key.ts";
import { stepText } from "./step-text.ts";

const START = { node: "", path: ROOT_PATH };
const KEY = `sha256:${"0".repeat(64)}`;
const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)]);

const DELTAS: Readonly<Record<string, Delta>> = {
  "no change": {},
  "a number": { set: { count: 1 } },
  "odd numbers": { set: { a: -0, b: Number.NaN, c: 1e21, d: 0.1 } },
  "values that JSON lacks": { set: { at: new Date(0), big: 1n, map: new Map([[1, 2]]), none: undefined } },
  "text that is escaped": { set: { text: 'a "quoted"\n\u2028 \ud83d\ude00 line', 'na"me': 1 } },
  "names in another order": { set: { b: 1, a: 2 } },
  "names like array indexes": { set: { 10: 1, 9: 2, a: 3 } },
  "names like tags": { set: { $: 1, $$: 2, "$!": 3, a: 4 } },
  "a long value": { set: { text: "x".repeat(1_000) } },
  "a value that is nested deeply": { set: { deep: nested(190) } },
  "an append": { append: { list: [1, 2] }, set: { count: 1 } },
  "a merge": { merge: { object: { a: 1 } }, set: { count: 1 } },
};

const first = createItem("a", START, 0);
const FRONTIERS = {
  "no item": [],
  "one item": [first],
  "two items": [createItem('b "quoted"', first, 1), createItem("c", first, 2)],
  "items of a spread": [createItem("d", first, 0, { index: 0, input: { x: undefined } })],
};

describe.each(Object.entries(DELTAS))("a step with %s", (_name, delta) => {
  test.each(Object.entries(FRONTIERS))("that leads to %s has the text of the codec", (_frontier, items) => {
    const texts = applyDelta(new Map(), delta);
    const frontier = items.map(storedItem);
    const parts = { step: 7, delta, texts, items, waiting: [], key: KEY, label: undefined };
    expect(stepText(parts)).toBe(encode({ delta, frontier, key: KEY, step: 7 }));
    expect(stepText({ ...parts, label: 'asked "twice"' })).toBe(
      encode({ delta, frontier, key: KEY, label: 'asked "twice"', step: 7 }),
    );
    const waiting = [{ node: "j", arrived: [{ node: "a", path: first.path, edge: 0 }] }];
    expect(stepText({ ...parts, waiting })).toBe(encode({ delta, frontier, key: KEY, step: 7, waiting }));
  });
});

test("a step whose value is nested too deeply for its entry is refused, also if the value alone is not", () => {
  const delta = { set: { deep: nested(255) } };
  const texts = applyDelta(new Map(), delta);
  const parts = { step: 1, delta, texts, items: [], waiting: [], key: KEY, label: undefined };
  expect(() => stepText(parts)).toThrow(expect.objectContaining({ code: "PAYLOAD_TOO_DEEP" }));
});
