import { expect, test } from "vitest";
import type { ClaimedItem, Write } from "../kernel/index.ts";
import { Claimer } from "./claimer.ts";
import { TurnBudget } from "./turn-budget.ts";

const WORKER = 7;
const item = { kind: "task", name: "job", data: "{}", suspicion: 0, slot: { queue: "narrow" } } as ClaimedItem;

/** The claims that follow a refill of a leased slot with four items ahead, which is answered with `items`. */
function requestsAfter(items: readonly ClaimedItem[]): number {
  let requests = 0;
  const claimer = new Claimer({
    claimant: WORKER,
    dispatch: { item: () => {} },
    eagerClaims: { newToken: () => "token" },
    filter: { itemsOf: () => ["job"], definitions: [] },
    gates: {
      keeps: () => true,
      request: () => [{ queue: "narrow", count: 4, slots: 4 }],
      onClaimed: () => {},
      onDispatched: () => {},
    },
    lease: { worker: WORKER },
    poller: { dueAt: () => {} },
    pump: { pollsSeparately: false, wake: () => (requests += 1), turn: new TurnBudget(() => {}) },
    quarantine: { isActive: false },
    runs: { room: 100 },
    slots: { free: 8 },
    tasks: { expect: () => ({}) },
  } as never);
  const refill = claimer.refill([{ write: "end-item", slot: { queue: "narrow" } } as Write]);
  refill!.resolve({ items, nextAt: undefined, held: true });
  return requests;
}

test("work that is held back makes a worker claim everywhere only when a refill found no item for its slots", () => {
  expect(requestsAfter([item])).toBe(0);
  expect(requestsAfter([])).toBe(1);
});
