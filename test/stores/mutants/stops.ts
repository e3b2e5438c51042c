import { rewriting, answering, records, type Mutant } from "./mutant.ts";

export const stopsMutants: readonly Mutant[] = [
  answering("a stopped run continues without a resume", async (outcome, write, store) => {
    if (write.write === "stop")
      for (const record of await store.listRuns({ limit: 100, statuses: ["blocked", "determinism_violation"] }))
        await store.write([{ write: "resume", id: record.id }]);
    return outcome;
  }),
  rewriting(
    "a stop returns committed without being written",
    (write) => (write.write === "stop" ? { write: "resume", id: "\u0007unknown" } : write),
    (outcome, write) => (write.write === "stop" ? { status: "committed" } : outcome),
  ),
  answering("every resume returns committed", (outcome, write) =>
    write.write === "resume" ? { status: "committed", run: 1 } : outcome,
  ),
  rewriting(
    "resume does nothing",
    (write) => (write.write === "resume" ? { ...write, id: "\u0007unknown" } : write),
    (outcome, write) => (write.write === "resume" ? { status: "committed", run: 1 } : outcome),
  ),
  records("evidence is lost", (record) => ({ ...record, evidence: undefined })),
];
