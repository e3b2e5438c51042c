// Random flows against an oracle: branches, nested branches, spreads of any width, failures, children, any order of ends.
// Thousands of them in test/slow.

import { test } from "vitest";
import { runRandomFlows } from "./random-runs.ts";

test(
  "random flows give the result of the oracle, every node at most once, in any order of completion",
  { timeout: 120_000 },
  () => runRandomFlows(1, 60, false),
);

test("random flows give the same result when the process dies in between", { timeout: 120_000 }, () =>
  runRandomFlows(10_001, 20, true),
);
