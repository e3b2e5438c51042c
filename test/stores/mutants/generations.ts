import type { NextGeneration, Store, TurnOutcome } from "../../../src/kernel/index.ts";
import { answering, methods, rewriting, turns, without, type Mutant } from "./mutant.ts";

const continuing = (name: string, change: (next: NextGeneration) => NextGeneration): Mutant =>
  turns(name, (turn) => (turn.next === undefined ? turn : { ...turn, next: change(turn.next) }));

export const generationsMutants: readonly Mutant[] = [
  continuing("a next generation keeps the version of the one before", (next) => ({ ...next, version: 1 })),
  continuing("a next generation with a claim is not leased", (next) => without(next, "claim")),
  continuing("carried messages are lost", (next) => ({ ...next, carried: [] })),
  answering("the next generation is not returned", (outcome, write) => {
    if (write.write !== "turn") return outcome;
    const { next: _, ...rest } = outcome as TurnOutcome & { next?: unknown };
    return rest as TurnOutcome;
  }),
  rewriting(
    "a start by id is compared with the newest generation",
    (write) => write,
    async (outcome, write, store) => {
      if (write.write !== "start" || (outcome as { status: string }).status !== "exists") return outcome;
      const { record } = outcome as { record: { run: number } };
      const [first] = await store.readJournal(record.run, 0, 1);
      return { ...outcome, first } as typeof outcome;
    },
  ),
  rewriting("dedup ids do not move to the next generation", (write) => {
    if (write.write !== "message" || write.dedupId === undefined) return write;
    const { dedupId: _, ...rest } = write;
    return rest;
  }),
  {
    name: "unread messages stay with the generation that ends",
    wrap: (store) =>
      turns("", async (turn) => {
        if (turn.next === undefined) return turn;
        const rows = await store.readInbox(turn.run, 0);
        return { ...turn, read: rows.at(-1)?.arrival ?? turn.read };
      }).wrap(store, { now: () => 0 }),
  },
  {
    name: "answers to old commands reach the next generation",
    wrap: (store) =>
      turns("", async (turn) => {
        if (turn.next === undefined) return turn;
        const rows = await store.readInbox(turn.run, 0);
        const carried = [
          ...turn.next.carried,
          ...rows.map(({ data }) => ({ type: "SignalReceived", target: "x", data }) as const),
        ];
        return { ...turn, next: { ...turn.next, carried } };
      }).wrap(store, { now: () => 0 }),
  },
  answering("a next generation has no parent", (outcome, write) => {
    const { next } = outcome as { next?: object };
    if (write.write !== "turn" || next === undefined) return outcome;
    return { ...outcome, next: { ...next, parent: undefined } } as TurnOutcome;
  }),
  methods("a generation is pruned when it has ended", (store: Store) => ({
    prune: async (before: number) => {
      const { runs } = await store.prune(before);
      return { runs: Math.max(runs, 1) };
    },
  })),
  rewriting("turns of all versions are claimed", async (write, store) =>
    write.write === "claim-turns"
      ? {
          ...write,
          definitions: (await store.listRuns({ limit: 100 }))
            .filter(({ definition }) => write.definitions.some(({ name }) => name === definition))
            .map(({ definition, version }) => ({ name: definition, version })),
        }
      : write,
  ),
  methods("runs are counted without their version", (store: Store) => ({
    countVersions: async () => (await store.countVersions()).slice(1),
  })),

  answering("a next generation is not paused", async (outcome, write, store) => {
    const { next } = outcome as { next?: { id: string; status: string } };
    if (write.write === "turn" && next?.status === "paused") await store.write([{ write: "resume", id: next.id }]);
    return outcome;
  }),
];
