// Verdicts: which one counts, and what a runtime that the run never had excuses.

import { expect, test } from "vitest";
import type { Runtime } from "../kernel/index.ts";
import type { ReplayDifference } from "../workflow/index.ts";
import { verdictOf, worstOf, type Verdict } from "./verdict.ts";

const HERE: Runtime = { node: "26.10.0", v8: "14.6", icu: "78.3", tz: "2026c", arch: "x64" };
const SAME: Runtime = { ...HERE, node: "26.9.0" };
const OTHER: Runtime = { ...HERE, node: "24.21.0", v8: "13.6" };

function differing(differs?: ReplayDifference["differs"], runtimes: readonly Runtime[] = [OTHER]): Verdict {
  const difference = { where: "entry 3", message: "another end.", expected: 1, actual: 2 };
  const replay = { status: "mismatch", ...difference, ...(differs && { differs }) } as const;
  return verdictOf({ replay, runtimes, here: HERE });
}

test("a value that differs is inconclusive only if no recorded runtime has this V8, ICU, time zone data and processor", () => {
  expect(differing("value")).toMatchObject({
    status: "inconclusive",
    runtime: { differs: ["v8"] },
    message: expect.stringContaining("v8 14.6 instead of 13.6"),
  });
  expect(differing("value", [OTHER, SAME]).status).toBe("code_differs");
  for (const name of ["icu", "tz", "arch"] as const)
    expect(differing("value", [{ ...HERE, [name]: "other" }])).toMatchObject({ runtime: { differs: [name] } });
  // A row of an earlier version does not name the processor, and a run without any record proves nothing either.
  const { arch: _, ...old } = SAME;
  expect(differing("value", [old]).status).toBe("code_differs");
  expect(differing("value", []).status).toBe("code_differs");
});

test("another command is a difference of the code on every runtime, and so is another input, which is named", () => {
  expect(differing()).toMatchObject({ status: "code_differs", runtime: { differs: ["v8"] } });
  expect(differing()).not.toHaveProperty("code");
  expect(differing("input")).toMatchObject({ status: "code_differs", code: "input-diverged", where: "entry 3" });
});

test("of many verdicts the first counts of damaged, not trusted, other code, impure, incomplete, inconclusive", () => {
  const order = [
    "damaged",
    "unsigned",
    "untrusted",
    "code_differs",
    "impure",
    "incomplete",
    "inconclusive",
    "verified",
  ] as const;
  const verdicts = order.map((status) => ({ status, message: "" }) as Verdict);
  for (const [index, status] of order.entries())
    expect(worstOf(verdicts.slice(index).toReversed())?.status).toBe(status);
  expect(worstOf([])).toBeUndefined();
});

test("an entry that is not there is incomplete, one that does not fit its mark is damage", () => {
  const fault = { seq: 4, problem: "entry 4 is missing; found 5" };
  const rest = { runtimes: [SAME], here: HERE };
  expect(verdictOf({ fault: { ...fault, isMissing: true }, ...rest }).status).toBe("incomplete");
  expect(verdictOf({ fault, ...rest })).toEqual({
    status: "damaged",
    where: "entry 4",
    message: "entry 4 is missing; found 5.",
  });
  const missing = [1, 2, 3, 4].map((n) => ({ as: "child", id: `c-${n}` }) as const);
  expect(verdictOf({ missing, ...rest })).toMatchObject({
    status: "incomplete",
    message: "the journal names runs that are not here: child c-1, child c-2, child c-3 and 1 more.",
  });
});
