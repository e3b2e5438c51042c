import { offerKey, type OfferBudgetOutcome, type ReserveOutcome, type Write } from "../../../src/kernel/index.ts";
import { answering, methods, rewriting, turns, without, type Mutant } from "./mutant.ts";

const RESERVED = { status: "reserved" } as const;
const NOTHING = { usd: 0, tokens: 0, calls: 0 } as const;

/** A store that reserves once per step: what later executions pay is in no book. */
function perStep(): Mutant {
  const isRepeated = (write: Write): boolean => write.write === "reserve" && write.execution > 1;
  return rewriting(
    "only the first execution of a step reserves",
    (write) => (write.write === "reserve" && isRepeated(write) ? { ...write, reserve: NOTHING } : write),
    (outcome, write) => (isRepeated(write) ? RESERVED : outcome),
  );
}

export const budgetsMutants: readonly Mutant[] = [
  perStep(),
  answering("a reservation that does not fit is granted", (outcome, write) =>
    write.write === "reserve" && (outcome as ReserveOutcome).status !== "lease_lost" ? RESERVED : outcome,
  ),
  turns("the end of an execution is not settled", (turn) => ({
    ...turn,
    entries: turn.entries.map((entry) => without(entry, "charge")),
  })),
  turns("a failed execution is spent", (turn) => ({
    ...turn,
    entries: turn.entries.map((entry) =>
      entry.charge === "free" ? { ...entry, charge: { ...NOTHING, calls: 1 } } : entry,
    ),
  })),
  turns("the end of any execution settles the reservation", (turn) => ({
    ...turn,
    entries: turn.entries.map((entry) => without(entry, "execution")),
  })),
  turns("the end of a run keeps its reservations", (turn) =>
    turn.then === "hold" || turn.then === "release" ? turn : without(turn, "budget"),
  ),
  turns("children pay from no budget", (turn) => ({
    ...turn,
    children: turn.children.map((child) =>
      child.run.budget === undefined ? { ...child, run: { ...child.run, budget: "none" as const } } : child,
    ),
  })),
  turns("the budget of a child is ignored", (turn) => ({
    ...turn,
    children: turn.children.map((child) => ({ ...child, run: without(child.run, "budget") })),
  })),
  rewriting("a raise adds nothing", (write) =>
    write.write === "answer-budget" && write.add !== undefined ? { ...write, add: {} } : write,
  ),
  rewriting("a decline is a raise by nothing", (write) =>
    write.write === "answer-budget" && write.add === undefined ? { ...write, add: {} } : write,
  ),
  rewriting("an offer wakes a call again that was woken", (write) =>
    write.write === "offer-budget" ? { ...write, except: [] } : write,
  ),
  methods("a message does not say which calls were woken", (store) => ({
    readInbox: async (run: number, after: number) =>
      (await store.readInbox(run, after)).map((row) => (row.data.includes("woken") ? { ...row, data: "{}" } : row)),
  })),
  answering("an offer that wakes calls is the last one", (outcome, write) =>
    write.write === "offer-budget" ? { ...(outcome as OfferBudgetOutcome), mayFree: false } : outcome,
  ),
  answering("an offer says that no call that was woken before still waits", (outcome, write) =>
    write.write === "offer-budget" ? { ...(outcome as OfferBudgetOutcome), pending: [] } : outcome,
  ),
  answering("an offer sees only the oldest requests", async (outcome, write, store) => {
    if (write.write !== "offer-budget") return outcome;
    const { woken, ...rest } = outcome as OfferBudgetOutcome;
    const record = await store.findRun(write.id);
    const seen = new Set((await store.readBudget(record!.budget!))!.waiting.map(offerKey));
    return { ...rest, woken: woken.filter((call) => seen.has(offerKey(call))) };
  }),
  rewriting("a budget always asks", (write) =>
    write.write === "start" && typeof write.run.budget === "object"
      ? { ...write, run: { ...write.run, budget: { ...write.run.budget, onReached: "ask" as const } } }
      : write,
  ),
  rewriting("a reservation needs no token", async (write, store) => {
    if (write.write !== "reserve" || write.item !== undefined) return write;
    const [progress] = await store.readProgress([write.run]);
    return { ...write, token: progress?.token ?? write.token };
  }),
  rewriting("the item of a request is not released", (write) =>
    write.write === "reserve" ? without(write, "item") : write,
  ),
];
