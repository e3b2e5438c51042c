import { rewriting, answering, items, methods, without, type Mutant } from "./mutant.ts";

export const itemsMutants: readonly Mutant[] = [
  items("items and timers are ready a millisecond early", (item) =>
    item.availableAt === undefined ? item : { ...item, availableAt: item.availableAt - 1 },
  ),
  items("items and timers are ready a millisecond late", (item) =>
    item.availableAt === undefined ? item : { ...item, availableAt: item.availableAt + 1 },
  ),
  methods("every item looks ready", (store) => ({
    readItems: async (...asked: Parameters<typeof store.readItems>) =>
      (await store.readItems(...asked)).map((one) => one && { ...one, state: "ready" as const }),
  })),
  items("an item is never leased by the write that inserts it", (item) => without(item, "claim")),
  items("an item is claimed with the data of entry 1", (item) => ({ ...item, seq: 1 })),
  rewriting("an item ends but its result is lost", (write) =>
    write.write === "end-item" ? { ...write, write: "return-item", attempt: 0 } : write,
  ),
  rewriting("a returned item forgets its attempt", (write) =>
    write.write === "return-item" ? { ...write, attempt: 0 } : write,
  ),
  rewriting("a returned item forgets its failures", (write) =>
    write.write === "return-item" ? without(write, "failures") : write,
  ),
  rewriting("a returned item is ready at once", (write) =>
    write.write === "return-item" ? without(write, "availableAt") : write,
  ),
  rewriting("a returned item stays in its queue", (write) =>
    write.write === "return-item" ? without(write, "into") : write,
  ),
  rewriting("fire-due ignores its limit", (write) => (write.write === "fire-due" ? { ...write, limit: 1_000 } : write)),
  answering("fire-due does not return the next time", (outcome) =>
    "ready" in outcome ? { ...outcome, nextAt: undefined } : outcome,
  ),
  answering("a timer fires twice", async (outcome, _write, store) => {
    if (!("ready" in outcome)) return outcome;
    for (const run of outcome.runs) {
      const record = (await store.listRuns({ limit: 100 })).find((other) => other.run === run);
      const row = (await store.readInbox(run, 0)).at(-1);
      if (record && row) await store.write([{ write: "message", to: record.id, arrival: row, once: false }]);
    }
    return outcome;
  }),
  rewriting("timers never fire", (write) => (write.write === "fire-due" ? { ...write, limit: 0 } : write)),
];
