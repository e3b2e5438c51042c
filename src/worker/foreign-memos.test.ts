// Which foreign results are computed anyway (foreign-memos.G2).

import { expect, test } from "vitest";
import { isSampled } from "./foreign-memos.ts";

const CALLS = Array.from({ length: 10_000 }, (_, n) => [`memo-${n % 100}`, `call-${n}`] as const);

test("the share of sampled results is about the share that is asked for", () => {
  for (const share of [0.01, 0.05, 0.5, 0.9]) {
    const count = CALLS.filter(([memo, call]) => isSampled(memo, call, share)).length;
    expect(Math.abs(count / CALLS.length - share)).toBeLessThan(0.02);
  }
});

test("a share of 0 samples nothing, and a share of 1 everything", () => {
  expect(CALLS.some(([memo, call]) => isSampled(memo, call, 0))).toBe(false);
  expect(CALLS.every(([memo, call]) => isSampled(memo, call, 1))).toBe(true);
});

test("the same step is treated alike every time, and a larger share samples all that a smaller one does", () => {
  for (const [memo, call] of CALLS.slice(0, 500)) {
    expect(isSampled(memo, call, 0.3)).toBe(isSampled(memo, call, 0.3));
    if (isSampled(memo, call, 0.1)) expect(isSampled(memo, call, 0.3)).toBe(true);
  }
});

test("every known result is sampled sooner or later, because the calls decide and not the key alone", () => {
  const sampled = new Set(CALLS.filter(([memo, call]) => isSampled(memo, call, 0.05)).map(([memo]) => memo));
  expect(sampled.size).toBeGreaterThan(95);
});
