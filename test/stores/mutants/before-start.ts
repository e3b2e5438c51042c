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
  records("an expected run looks like any other", (record) =>
    record.status === "expected" ? { ...record, status: "queued" } : record,
  ),
  rewriting("a start does not look at what is expected", (write, store) =>
    write.write === "start"
      ? expectedUnder(store, write.run.id).then((expected) =>
          expected === undefined ? write : { ...write, run: { ...write.run, definition: expected.definition } },
        )
      : write,
  ),
  rewriting("a start forgets the messages that come with it", (write) =>
    write.write === "start" ? without(write, "messages") : write,
  ),
  rewriting("the definition of a message is not looked at", (write) =>
    write.write === "message" ? without(write, "definition") : write,
  ),
  rewriting("an expectation cannot be cancelled", (write) =>
    write.write === "message" && write.arrival.type === "CancelRequested"
      ? { ...write, arrival: { ...write.arrival, type: "PromiseRejected" } }
      : write,
  ),
  methods("an expectation is pruned at once", (store) => ({
    prune: async (endedBefore: number) => store.prune(endedBefore + 1),
  })),
  methods("an expectation is never pruned", () => ({ prune: async () => ({ runs: 0 }) })),
  answering("a start answers an expected run without its messages", (outcome) =>
    "record" in outcome && outcome.status === "started"
      ? { ...outcome, record: { ...outcome.record, arrivals: 0 } }
      : outcome,
  ),
  rewriting("a start wins over messages that came before", async (write, store) => {
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
