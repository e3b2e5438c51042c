// Hundreds of random flows; REPRISE_SEEDS=n for as many as you like.

import { test } from "vitest";
import { runRandomFlows } from "../../flow/random-runs.ts";

const SEEDS = Number(process.env["REPRISE_SEEDS"] ?? 400);

test(
  "hundreds of random flows give the result of the oracle, every node at most once, in any order of completion",
  { timeout: 600_000 + SEEDS * 400 },
  () => runRandomFlows(1_000, SEEDS, false),
);

test(
  "hundreds of random flows give the same result when the process dies in between",
  { timeout: 600_000 + SEEDS * 400 },
  () => runRandomFlows(20_000, Math.ceil(SEEDS / 3), true),
);
