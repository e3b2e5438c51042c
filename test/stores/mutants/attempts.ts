import type { Arrival, Entry, NewEntry } from "../../../src/kernel/index.ts";
import { answering, methods, rewriting, without, type Mutant } from "./mutant.ts";

function withoutFacts(entry: Entry): Entry {
  const { seq, type, command, data, at, mark } = entry;
  return { seq, type, command, data, at, mark };
}

function withoutRan<T extends Arrival | NewEntry>(one: T): T {
  return without(one, "ran") as T;
}

export const attemptsMutants: readonly Mutant[] = [
  rewriting("an entry forgets the execution that it ends", (write) =>
    write.write === "turn" ? { ...write, entries: write.entries.map(withoutFacts) } : write,
  ),
  rewriting("a node's entry forgets the execution that it ends", (write) =>
    write.write === "complete" ? { ...write, entries: write.entries.map(withoutRan) } : write,
  ),
  rewriting("a result in the inbox forgets its execution", (write) =>
    write.write === "end-item" ? { ...write, arrival: withoutRan(write.arrival) } : write,
  ),
  answering("every claim of an item is its first execution", (outcome) =>
    "items" in outcome ? { ...outcome, items: outcome.items.map((item) => ({ ...item, execution: 1 })) } : outcome,
  ),
  rewriting("a failed attempt is not recorded", (write) =>
    write.write === "return-item" ? without(write, "failed") : write,
  ),
  methods("lost and returned work is not recorded", (store) => ({
    readAttempts: async (...asked: Parameters<typeof store.readAttempts>) =>
      (await store.readAttempts(...asked)).filter(({ outcome }) => outcome === "failed"),
  })),
  methods("returned work counts as lost", (store) => ({
    readAttempts: async (...asked: Parameters<typeof store.readAttempts>) =>
      (await store.readAttempts(...asked)).map((one) => ({ ...one, outcome: "lost" as const })),
  })),
  methods("a lost turn does not say where the journal ended", (store) => ({
    readAttempts: async (...asked: Parameters<typeof store.readAttempts>) =>
      (await store.readAttempts(...asked)).map((one) => ({ ...one, seq: 0 })),
  })),
  methods("a failed attempt is recorded although its write was rejected", (store) => ({
    readAttempts: async (...asked: Parameters<typeof store.readAttempts>) => {
      const read = await store.readAttempts(...asked);
      const one = { step: "Task(0)", execution: 1, attempt: 0, outcome: "failed", at: 0, seq: 0 } as const;
      return read.length > 0 ? read : [{ ...one, worker: undefined, startedAt: undefined, data: undefined }];
    },
  })),
];
