// Thousands of random flows.

import { test } from "vitest";
import { runRandomFlows } from "../../flow/random-runs.ts";

test(
  "1,500 random flows give what the oracle says, every node at most once, in any order of ends",
  { timeout: 600_000 },
  () => runRandomFlows(1_000, 1_500, false),
);

test("500 random flows give the same when the process dies on the way", { timeout: 600_000 }, () =>
  runRandomFlows(20_000, 500, true),
);
