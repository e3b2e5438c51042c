import type { Store } from "../../../src/kernel/index.ts";
import { answering, methods, rewriting, turns, without, type Mutant } from "./mutant.ts";

export const messagesMutants: readonly Mutant[] = [
  rewriting("the ids of messages are not looked at", (write) =>
    write.write === "message" ? without(write, "dedupId") : write,
  ),
  rewriting("the id of a message is taken for a target", (write) =>
    write.write === "message" && write.dedupId !== undefined
      ? { ...without(write, "dedupId"), once: true, arrival: { ...write.arrival, target: write.dedupId } }
      : write,
  ),
  methods("the ids of messages are never forgotten", () => ({
    reap: async () => ({ workers: 0, turns: 0, items: 0 }),
  })),
  turns("what the code never took is not counted", (turn) => without(turn, "unread")),
  methods("a run says it has taken in whatever came", (store) => ({
    async findRun(...args: Parameters<Store["findRun"]>) {
      const record = await store.findRun(...args);
      return record && { ...record, read: record.arrivals };
    },
  })),
  answering("nobody is told whom a turn's messages reached", (outcome) =>
    "reached" in outcome ? without(outcome, "reached") : outcome,
  ),
  rewriting("nobody notes that a run takes updates", (write) =>
    write.write === "start"
      ? { ...write, run: { ...write.run, started: write.run.started.replace(',"updates":true', "") } }
      : write,
  ),
];
