import { expect, test } from "vitest";
import { append, channel, findMisfit, last, max, merge } from "./channel.ts";

test("last keeps the newest value, append extends a list, merge overwrites keys, max keeps the largest", () => {
  expect(last("a").reduce("a", "b")).toBe("b");
  expect(append([1]).reduce([1], [2, 3])).toEqual([1, 2, 3]);
  expect(merge<{ a?: number; b?: number }>({}).reduce({ a: 1, b: 1 }, { b: 2 })).toEqual({ a: 1, b: 2 });
  expect([max().reduce(Number.NEGATIVE_INFINITY, -5), max(3).reduce(3, 2)]).toEqual([-5, 3]);
  expect(channel(0, (sum, cents: number) => sum + cents).reduce(1, 2)).toBe(3);
});

test("a reducer does not modify the value before it", () => {
  const list = Object.freeze([1]);
  expect(append<number>().reduce(list, [2])).toEqual([1, 2]);
  const object = Object.freeze({ a: 1 });
  expect(merge<{ a?: number }>({}).reduce(object, { a: 2 })).toEqual({ a: 2 });
  expect([list, object]).toEqual([[1], { a: 1 }]);
});

test("append refuses a stored value that is no list, as code before it may have stored", () => {
  expect(() => append<number>().reduce(null as never, [1])).toThrow(/expected a list, but the stored value is null/);
});

test("last refuses an unknown conflict, and marks the one that allows a single change", () => {
  expect(() => last(0, { conflict: "first" as never })).toThrow(/"last" or "fail", got first/);
  expect([last(0)["~single"], last(0, { conflict: "fail" })["~single"]]).toEqual([undefined, true]);
});

test.each([
  ["append", append(), [[1], []], [null, {}, "a", undefined]],
  ["merge", merge({}), [{ a: 1 }, Object.create(null)], [null, [], new Map(), 1]],
  ["max", max(), [0, Number.POSITIVE_INFINITY], [Number.NaN, "1", null]],
  ["last", last<unknown>(0), [null, "a", []], []],
] as const)("%s accepts what its reducer can fold, and names what it cannot", (_name, one, fitting, others) => {
  for (const value of fitting) expect(findMisfit(one as never, value)).toBeUndefined();
  for (const value of others)
    expect(findMisfit(one as never, value)).toMatch(/^holds (a list|an object|a number), got /);
});
