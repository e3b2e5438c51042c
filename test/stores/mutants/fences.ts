import type { ClaimItemsOutcome, Outcome, Write } from "../../../src/kernel/index.ts";
import { changed, writing, rewriting, answering, turns, methods, currentToken, type Mutant } from "./mutant.ts";

export const fencesMutants: readonly Mutant[] = [
  rewriting("the token of a turn is not checked", async (write, store) =>
    write.write === "turn" || write.write === "stop"
      ? { ...write, token: (await currentToken(store, write.run)) ?? write.token }
      : write,
  ),
  {
    name: "the token of an item is not checked",
    wrap(store) {
      const last = new Map<string, string>();
      const remember = (run: number, item: string, token: string) => last.set(`${run} ${item}`, token);
      const fresh = (run: number, item: string, token: string) => last.get(`${run} ${item}`) ?? token;
      return writing(
        store,
        (write) => {
          if (write.write === "end-item" || write.write === "return-item")
            return { ...write, token: fresh(write.run, write.item, write.token) };
          if (write.write !== "turn") return write;
          for (const item of write.items) if (item.claim) remember(write.run, item.item, item.claim.token);
          const finished = write.finished.map(({ item, token }) => ({ item, token: fresh(write.run, item, token) }));
          return { ...write, finished };
        },
        (outcome, write) => {
          if (write.write === "claim-items")
            for (const item of (outcome as ClaimItemsOutcome).items) remember(item.run, item.item, item.token);
          return outcome;
        },
      );
    },
  },
  turns("finished items do not fence the commit", (turn) => ({
    ...turn,
    finished: [],
    dropped: [...turn.dropped, ...turn.finished.map(({ item }) => item)],
  })),
  turns("the head of a commit is not checked", async (turn, store) => {
    const record = (await store.listRuns({ limit: 1_000 })).find(({ run }) => run === turn.run);
    if (record === undefined || record.head === turn.head) return turn;
    const shift = record.head - turn.head;
    return { ...turn, head: record.head, entries: turn.entries.map((entry) => ({ ...entry, seq: entry.seq + shift })) };
  }),
  turns("the chain of a commit is not checked", async (turn, store) => {
    const record = (await store.listRuns({ limit: 1_000 })).find(({ run }) => run === turn.run);
    return record === undefined ? turn : { ...turn, previousChain: record.chain };
  }),
  answering("a repeated commit is not recognized", (outcome) =>
    "status" in outcome && outcome.status === "already_committed" ? { status: "lease_lost" } : outcome,
  ),
  answering("every commit returns committed", (outcome, write) =>
    write.write === "turn" && "status" in outcome && outcome.status !== "committed"
      ? { status: "committed", more: false, children: [] }
      : outcome,
  ),
  {
    name: "a rejected write rejects the rest of its batch",
    wrap: (store) =>
      changed(store, {
        async write(writes: readonly Write[]) {
          let isVoid = false;
          const outcomes: Outcome[] = [];
          for (const write of writes) {
            const outcome: Outcome = isVoid ? { status: "lease_lost" } : ((await store.write([write]))[0] as Outcome);
            if ("status" in outcome && outcome.status === "lease_lost") isVoid = true;
            outcomes.push(outcome);
          }
          return outcomes;
        },
      }),
  },
  {
    name: "the writes of a batch are applied in reverse",
    wrap: (store) =>
      changed(store, {
        write: async (writes: readonly Write[]) => [...(await store.write(writes.toReversed()))].reverse(),
      }),
  },
  methods("a batch returns one outcome too many", (store) => ({
    write: async (writes: readonly Write[]) => [...(await store.write(writes)), { status: "committed" }],
  })),
  methods("a commit with an expired lease is rejected", (store) => ({
    async write(writes: readonly Write[]) {
      const { workers } = await store.info();
      const expired = workers.some(({ until }) => until <= store.now());
      return store.write(
        writes.map((write) => (expired && write.write === "turn" ? { ...write, token: "expired" } : write)),
      );
    },
  })),
];
