import type { ClaimedItem, ClaimItemsOutcome, ClaimedTurn } from "../../../src/kernel/index.ts";
import { writing, rewriting, answering, turns, records, without, type Mutant } from "./mutant.ts";

export const turnsMutants: readonly Mutant[] = [
  rewriting(
    "a turn returns committed without being written",
    (write) =>
      write.write === "turn"
        ? { write: "message", to: "\u0007unknown", arrival: { type: "StateSet", target: "", data: "" }, once: false }
        : write,
    (outcome, write) => (write.write === "turn" ? { status: "committed", more: false, children: [] } : outcome),
  ),
  turns("a release forgets what arrived since the last read (lost wake-up)", async (turn, store) => {
    const arrivals = (await store.readProgress([turn.run]))[0]?.arrivals ?? 0;
    return turn.then === "release" ? { ...turn, read: Math.max(turn.read, arrivals) } : turn;
  }),
  answering("a turn is due only before its first message (lost wake-up)", (outcome, write) =>
    write.write === "claim-turns"
      ? (outcome as readonly ClaimedTurn[]).filter((turn) => turn.inbox.length === 0)
      : outcome,
  ),
  answering("more is never true", (outcome) => ("more" in outcome ? { ...outcome, more: false } : outcome)),
  answering("more is always true", (outcome) => ("more" in outcome ? { ...outcome, more: true } : outcome)),
  turns("nothing is ever read", (turn) => ({ ...turn, read: 0 })),
  turns("a turn is never released", (turn) => (turn.then === "release" ? { ...turn, then: "hold" } : turn)),
  turns("a turn is always released", (turn) => (turn.then === "hold" ? { ...turn, then: "release" } : turn)),
  turns("an end is treated as a release", (turn) =>
    turn.then === "hold" || turn.then === "release" ? turn : { ...turn, then: "release" },
  ),
  turns("every end is a completion", (turn) =>
    turn.then === "hold" || turn.then === "release" ? turn : { ...turn, then: "completed" },
  ),
  turns("dropped items stay", (turn) => ({ ...turn, dropped: [] })),
  turns("messages of a turn get lost", (turn) => ({ ...turn, messages: [] })),
  turns("messages of a turn by id get lost", (turn) => ({
    ...turn,
    messages: turn.messages.filter(({ to }) => typeof to === "number"),
  })),
  turns("children are not started", (turn) => ({ ...turn, children: [] })),
  turns("a child whose id is taken is ignored", async (turn, store) => {
    const free = [];
    const seen = new Set<string>();
    for (const child of turn.children) {
      if (seen.has(child.run.id) || (await store.findRun(child.run.id)) !== undefined) continue;
      seen.add(child.run.id);
      free.push(child);
    }
    return { ...turn, children: free };
  }),
  turns("a detached child is treated like any other", (turn) => ({
    ...turn,
    children: turn.children.map((child) => ({ ...child, detached: false })),
  })),
  turns("every child is detached", (turn) => ({
    ...turn,
    children: turn.children.map((child) => ({ ...child, detached: true })),
  })),
  turns("a child is never leased to its starter", (turn) => ({
    ...turn,
    children: turn.children.map((child) => without(child, "claim")),
  })),
  turns("messages to a run that does not exist go to the newest one", async (turn, store) => {
    const messages = [];
    for (const { to, arrival } of turn.messages) {
      const [pulse] = typeof to === "number" ? await store.readProgress([to]) : [true];
      const [newest] = await store.listRuns({ limit: 1, statuses: ["queued", "waiting"] });
      messages.push({ to: pulse === undefined ? (newest?.run ?? to) : to, arrival });
    }
    return { ...turn, messages };
  }),
  rewriting(
    "an ended run is resumed by a message",
    (write) => write,
    async (outcome, write, store) => {
      if (write.write !== "message" || !("status" in outcome) || outcome.status !== "ended") return outcome;
      return { status: "committed", run: (await store.findRun(write.to))?.run ?? 0 };
    },
  ),
  records("unread messages are not counted", (record) => ({ ...record, unread: 0 })),
  turns("finished items stay", (turn) => ({ ...turn, finished: [] })),
  {
    name: "the items of an ended run beyond the first thousand can be claimed",
    wrap(store) {
      const made = new Map<number, ClaimedItem[]>();
      const left: ClaimedItem[] = [];
      return writing(
        store,
        (write) => {
          if (write.write !== "turn") return write;
          const items = made.get(write.run) ?? [];
          for (const { item, name, seq } of write.items)
            items.push({
              run: write.run,
              runId: "",
              definition: "d",
              generation: 0,
              item,
              kind: "task",
              name,
              token: item,
              attempt: 0,
              execution: 1,
              failures: undefined,
              suspicion: 0,
              seq,
              data: "",
            });
          made.set(write.run, items);
          if (write.then !== "hold" && write.then !== "release") left.push(...items.slice(1_000));
          return write;
        },
        (outcome, write) =>
          write.write === "claim-items"
            ? { ...(outcome as ClaimItemsOutcome), items: [...(outcome as ClaimItemsOutcome).items, ...left] }
            : outcome,
      );
    },
  },
];
