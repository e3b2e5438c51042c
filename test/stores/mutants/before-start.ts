import type { RunRecord } from "../../../src/kernel/index.ts";
import { answering, methods, records, rewriting, without, type Mutant } from "./mutant.ts";

export const earlyMutants: readonly Mutant[] = [
  rewriting("no message ever makes a run expected", (write) =>
    write.write === "message" ? without(write, "beforeStart") : write,
  ),
  rewriting("every message makes a run expected", (write) =>
    write.write === "message"
      ? { beforeStart: { definition: "checkout", kind: "workflow", version: 1, runtime: "" }, ...write }
      : write,
  ),
  records("an expected run looks like a started one", (record) =>
    record.status === "expected" ? { ...record, status: "queued" } : record,
  ),
  rewriting("a start ignores the expected run", (write, store) =>
    write.write === "start"
      ? expectedUnder(store, write.run.id).then((expected) =>
          expected === undefined ? write : { ...write, run: { ...write.run, definition: expected.definition } },
        )
      : write,
  ),
  rewriting("a start loses its messages", (write) => (write.write === "start" ? without(write, "messages") : write)),
  rewriting("the definition of a message is ignored", (write) =>
    write.write === "message" ? without(write, "definition") : write,
  ),
  rewriting("an expected run cannot be cancelled", (write) =>
    write.write === "message" && write.arrival.type === "CancelRequested"
      ? { ...write, arrival: { ...write.arrival, type: "PromiseRejected" } }
      : write,
  ),
  methods("an expected run is pruned at once", (store) => ({
    prune: async (endedBefore: number) => store.prune(endedBefore + 1),
  })),
  methods("an expected run is never pruned", () => ({ prune: async () => ({ runs: 0 }) })),
  answering("a start returns an expected run without its messages", (outcome) =>
    "record" in outcome && outcome.status === "started"
      ? { ...outcome, record: { ...outcome.record, arrivals: 0 } }
      : outcome,
  ),
  rewriting("a start deletes earlier messages", async (write, store) => {
    if (write.write !== "start") return write;
    const expected = await expectedUnder(store, write.run.id);
    if (expected?.definition === write.run.definition)
      await store.write([
        {
          write: "message",
          to: write.run.id,
          arrival: { type: "CancelRequested", target: "", data: "{}" },
          once: false,
        },
      ]);
    return write;
  }),
];

async function expectedUnder(
  store: { findRun(id: string): Promise<RunRecord | undefined> },
  id: string,
): Promise<RunRecord | undefined> {
  const record = await store.findRun(id);
  return record?.status === "expected" ? record : undefined;
}
