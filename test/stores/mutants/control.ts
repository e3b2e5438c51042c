import type { Store } from "../../../src/kernel/index.ts";
import { answering, methods, rewriting, turns, type Mutant, without } from "./mutant.ts";

export const controlMutants: readonly Mutant[] = [
  methods("an item that is gone still looks held", (store) => ({
    readItemTokens: async (items: Parameters<Store["readItemTokens"]>[0]) =>
      (await store.readItemTokens(items)).map((token) => token ?? "somebody"),
  })),
  rewriting("deadlines are forgotten", (write) => {
    if (write.write === "start") return { ...write, run: without(write.run, "deadlineMs") };
    if (write.write !== "turn") return write;
    return { ...write, children: write.children.map((child) => ({ ...child, run: without(child.run, "deadlineMs") })) };
  }),
  rewriting(
    "a pause is answered but not written",
    (write) => (write.write === "pause" ? { ...write, id: "\u0007nobody" } : write),
    async (outcome, write, store) => {
      if (write.write !== "pause") return outcome;
      const record = await store.findRun(write.id);
      return record === undefined ? outcome : { status: "committed", run: record.run };
    },
  ),
  rewriting("whoever pauses a run by itself may, also when another holds it", (write) =>
    write.write === "pause" ? without(write, "own") : write,
  ),
  answering("a pause takes the turn away from its holder", async (outcome, write, store) => {
    if (write.write !== "pause") return outcome;
    const record = await store.findRun(write.id);
    const [pulse] = await store.readProgress(record === undefined ? [] : [record.run]);
    if (pulse?.token !== undefined) await store.write([{ write: "return-turn", run: pulse.run, token: pulse.token }]);
    return outcome;
  }),
  rewriting("a turn that comes back paused is due", async (write, store) => {
    if (write.write === "return-turn" || (write.write === "turn" && write.then === "release"))
      for (const { id, run } of await store.listRuns({ limit: 100, statuses: ["paused"] }))
        if (run === write.run) await store.write([{ write: "resume", id }]);
    return write;
  }),
  answering("a termination tells nobody", (outcome, write) =>
    write.write === "terminate" && "notified" in outcome ? { ...outcome, notified: [] } : outcome,
  ),
  rewriting("a termination keeps its reasons to itself", (write) =>
    write.write === "terminate" ? { ...write, data: "{}", answer: "{}", cancel: "{}" } : write,
  ),
  answering("every control is answered committed", (outcome, write) =>
    write.write === "pause" || write.write === "terminate"
      ? ({ ...outcome, status: "committed" } as typeof outcome)
      : outcome,
  ),
  turns("a commit of a paused run is void", async (turn, store) => {
    const [pulse] = await store.readProgress([turn.run]);
    return pulse?.status === "paused" ? { ...turn, token: "\u0007nobody" } : turn;
  }),
  rewriting("a retry brings nothing back", (write) =>
    write.write === "retry" ? { ...without(write, "deadlineMs"), items: [], answers: [] } : write,
  ),
  rewriting("a retried run has no place in its queue", (write) =>
    write.write === "retry" ? without(write, "slot") : write,
  ),
  rewriting("a retry does not look at singleton keys", (write) =>
    write.write === "retry" ? without(write, "singleton") : write,
  ),
  rewriting("a retry does not look at the children", (write) =>
    write.write === "retry" ? { ...write, children: [] } : write,
  ),
  rewriting("the writes of a retry are applied in reverse", (write) =>
    write.write === "retry" && write.children.length === 0 ? { ...write, head: 0 } : write,
  ),

  rewriting("a retried run forgets who spoke to it", async (write, store) => {
    if (write.write !== "message" || typeof write.to !== "string") return write;
    const record = await store.findRun(write.to);
    const journal = record === undefined ? [] : await store.readJournal(record.run, 0);
    return journal.some(({ type }) => type === "RunRetried") ? { ...without(write, "dedupId"), once: false } : write;
  }),
];
