import { expect, test } from "vitest";
import type { Write } from "../../kernel/index.ts";
import { rolledBackOutcome } from "./rolled-back-outcome.ts";

const outcomeOf = (write: object): unknown => rolledBackOutcome(write as Write);

test("a turn and a stop of a lost history are void, as if their lease were lost", () => {
  expect(outcomeOf({ write: "turn" })).toEqual({ status: "lease_lost" });
  expect(outcomeOf({ write: "stop" })).toEqual({ status: "lease_lost" });
});

test("a completion is void if it came from a turn; the token of an item fences it otherwise", () => {
  expect(outcomeOf({ write: "complete", fence: { turn: "t" } })).toEqual({ status: "stale" });
  expect(outcomeOf({ write: "complete", fence: { item: "a", token: "t" } })).toBeUndefined();
});

test("a write that depends on nothing that was read is applied", () => {
  for (const write of ["start", "message", "end-item", "return-turn", "claim-turns", "pause"])
    expect(outcomeOf({ write })).toBeUndefined();
});
