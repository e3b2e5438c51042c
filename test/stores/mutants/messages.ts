import type { Store } from "../../../src/kernel/index.ts";
import { answering, methods, rewriting, turns, without, type Mutant } from "./mutant.ts";

export const messagesMutants: readonly Mutant[] = [
  rewriting("the dedup ids of messages are ignored", (write) =>
    write.write === "message" ? without(write, "dedupId") : write,
  ),
  rewriting("the dedup id of a message is treated as a target", (write) =>
    write.write === "message" && write.dedupId !== undefined
      ? { ...without(write, "dedupId"), once: true, arrival: { ...write.arrival, target: write.dedupId } }
      : write,
  ),
  answering("the refusal of a second settlement does not have the first one", (outcome) =>
    "settled" in outcome ? without(outcome, "settled") : outcome,
  ),
  methods("the dedup ids of messages are never deleted", () => ({
    reap: async () => ({ workers: 0, turns: 0, items: 0 }),
  })),
  turns("messages that the code never took are not counted", (turn) => without(turn, "unread")),
  methods("a run counts all its messages as read", (store) => ({
    async findRun(...args: Parameters<Store["findRun"]>) {
      const record = await store.findRun(...args);
      return record && { ...record, read: record.arrivals };
    },
  })),
  answering("a turn does not return the children that its messages reached", (outcome) =>
    "reached" in outcome ? without(outcome, "reached") : outcome,
  ),
  rewriting("a run's start does not say that it accepts updates", (write) =>
    write.write === "start"
      ? { ...write, run: { ...write.run, started: write.run.started.replace(',"updates":true', "") } }
      : write,
  ),
];
