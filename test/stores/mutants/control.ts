import type { Store } from "../../../src/kernel/index.ts";
import { answering, methods, rewriting, turns, type Mutant, without } from "./mutant.ts";

export const controlMutants: readonly Mutant[] = [
  methods("an item that was deleted still has a token", (store) => ({
    readItemTokens: async (items: Parameters<Store["readItemTokens"]>[0]) =>
      (await store.readItemTokens(items)).map((token) => token ?? "unknown"),
  })),
  rewriting("deadlines are forgotten", (write) => {
    if (write.write === "start") return { ...write, run: without(write.run, "deadlineMs") };
    if (write.write !== "turn") return write;
    return { ...write, children: write.children.map((child) => ({ ...child, run: without(child.run, "deadlineMs") })) };
  }),
  rewriting(
    "a pause returns committed without being written",
    (write) => (write.write === "pause" ? { ...write, id: "\u0007unknown" } : write),
    async (outcome, write, store) => {
      if (write.write !== "pause") return outcome;
      const record = await store.findRun(write.id);
      return record === undefined ? outcome : { status: "committed", run: record.run };
    },
  ),
  rewriting("a worker can pause a run that another worker holds", (write) =>
    write.write === "pause" ? without(write, "own") : write,
  ),
  answering("a pause voids the token of the turn", async (outcome, write, store) => {
    if (write.write !== "pause") return outcome;
    const record = await store.findRun(write.id);
    const [progress] = await store.readProgress(record === undefined ? [] : [record.run]);
    if (progress?.token !== undefined)
      await store.write([{ write: "return-turn", run: progress.run, token: progress.token }]);
    return outcome;
  }),
  rewriting("a paused turn that is returned is due", async (write, store) => {
    if (write.write === "return-turn" || (write.write === "turn" && write.then === "release"))
      for (const { id, run } of await store.listRuns({ limit: 100, statuses: ["paused"] }))
        if (run === write.run) await store.write([{ write: "resume", id }]);
    return write;
  }),
  answering("a termination notifies no run", (outcome, write) =>
    write.write === "terminate" && "notified" in outcome ? { ...outcome, notified: [] } : outcome,
  ),
  rewriting("a termination stores no reason", (write) =>
    write.write === "terminate" ? { ...write, data: "{}", answer: "{}", cancel: "{}" } : write,
  ),
  answering("every pause and termination returns committed", (outcome, write) =>
    write.write === "pause" || write.write === "terminate"
      ? ({ ...outcome, status: "committed" } as typeof outcome)
      : outcome,
  ),
  turns("a commit of a paused run is rejected", async (turn, store) => {
    const [progress] = await store.readProgress([turn.run]);
    return progress?.status === "paused" ? { ...turn, token: "\u0007unknown" } : turn;
  }),
  rewriting("a retry restores no items", (write) =>
    write.write === "retry" ? { ...without(write, "deadlineMs"), items: [], answers: [] } : write,
  ),
  rewriting("a retried run takes no slot of its queue", (write) =>
    write.write === "retry" ? without(write, "slot") : write,
  ),
  rewriting("a retry does not check singleton keys", (write) =>
    write.write === "retry" ? without(write, "singleton") : write,
  ),
  rewriting("a retry does not check the children", (write) =>
    write.write === "retry" ? { ...write, children: [] } : write,
  ),
  rewriting("the writes of a retry are applied in reverse", (write) =>
    write.write === "retry" && write.children.length === 0 ? { ...write, head: 0 } : write,
  ),

  rewriting("a retried run forgets its dedup ids", async (write, store) => {
    if (write.write !== "message" || typeof write.to !== "string") return write;
    const record = await store.findRun(write.to);
    const journal = record === undefined ? [] : await store.readJournal(record.run, 0);
    return journal.some(({ type }) => type === "RunRetried") ? { ...without(write, "dedupId"), once: false } : write;
  }),
];
