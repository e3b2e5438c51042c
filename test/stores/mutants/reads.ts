import type { Store } from "../../../src/kernel/index.ts";
import { changed, writing, methods, without, type Mutant } from "./mutant.ts";

export const readsMutants: readonly Mutant[] = [
  methods("a list is oldest first", (store) => ({
    listRuns: async (filter: Parameters<Store["listRuns"]>[0]) => (await store.listRuns(filter)).toReversed(),
  })),
  ...(
    [
      "before",
      "tags",
      "definition",
      "kind",
      "statuses",
      "createdAfter",
      "createdBefore",
      "endedAfter",
      "endedBefore",
      "errorCode",
      "idContains",
      "parent",
    ] as const
  ).map((part) =>
    methods(`a list ignores ${part}`, (store) => ({
      listRuns: (filter: Parameters<Store["listRuns"]>[0]) => store.listRuns(without(filter, part) as typeof filter),
    })),
  ),
  methods("a list ignores its limit", (store) => ({
    listRuns: (filter: Parameters<Store["listRuns"]>[0]) => store.listRuns({ ...filter, limit: 1_000 }),
  })),
  methods("counts of runs ignore the definition", (store) => ({
    countStatuses: (upTo: number) => store.countStatuses(upTo),
  })),
  methods("counts of runs have no bound", (store) => ({
    countStatuses: (_upTo: number, definition?: string) => store.countStatuses(1_000, definition),
  })),
  ...(["definition", "status", "endedAfter", "limit"] as const).map((part) =>
    methods(`the times of ended runs ignore ${part}`, (store) => ({
      async readRunTimes(filter: Parameters<Store["readRunTimes"]>[0]) {
        if (part === "endedAfter") return store.readRunTimes({ ...filter, endedAfter: 0 });
        if (part === "limit") return store.readRunTimes({ ...filter, limit: 1_000 });
        const values = part === "status" ? ["completed", "failed"] : ["checkout", "refund"];
        const found = await Promise.all(values.map((value) => store.readRunTimes({ ...filter, [part]: value })));
        return found.flat();
      },
    })),
  ),
  methods("the times of ended runs are oldest first", (store) => ({
    readRunTimes: async (filter: Parameters<Store["readRunTimes"]>[0]) => {
      const found = await store.readRunTimes({ ...filter, limit: 1_000 });
      return found
        .toReversed()
        .slice(0, filter.limit)
        .map((one) => ({ ...one, endedAt: one.createdAt - 1 }));
    },
  })),
  methods("tags match by their beginning", (store) => ({
    async listRuns(filter: Parameters<Store["listRuns"]>[0]) {
      const { tags: [tag] = [], ...rest } = filter;
      const found = await store.listRuns(rest);
      return tag === undefined
        ? found
        : found.filter((record) => record.tags.some((other) => other.toLowerCase().startsWith(tag.toLowerCase())));
    },
  })),
  methods("a list needs one of several tags", (store) => ({
    listRuns: (filter: Parameters<Store["listRuns"]>[0]) =>
      store.listRuns({ ...filter, ...(filter.tags && { tags: filter.tags.slice(0, 1) }) }),
  })),
  methods("a journal is always read from its beginning", (store) => ({
    readJournal: (run: number, _after: number, limit?: number) => store.readJournal(run, 0, limit),
  })),
  methods("a journal is read without limit", (store) => ({
    readJournal: (run: number, after: number) => store.readJournal(run, after),
  })),
  methods("the end of a run is read without its last entry", (store) => ({
    async readEnd(run: number) {
      const end = await store.readEnd(run);
      return end && { ...end, last: undefined };
    },
  })),
  methods("a live run is read with an entry as its end", (store) => ({
    async readEnd(run: number) {
      const end = await store.readEnd(run);
      return end && { ...end, last: end.last ?? (await store.readJournal(run, 0, 1))[0] };
    },
  })),
  methods("an inbox is always read from its beginning", (store) => ({
    readInbox: (run: number) => store.readInbox(run, 0),
  })),
  methods("a connection does not notice commits of other connections", () => ({ pollChanges: () => false })),
  methods("info counts nothing", (store) => ({
    info: async () => ({ ...(await store.info()), runs: {}, workers: [], items: { ready: 9, leased: 9, delayed: 9 } }),
  })),
  methods("prune ignores the age of runs", (store) => ({ prune: () => store.prune(Number.MAX_SAFE_INTEGER) })),
  methods("a dry run prunes", (store) => ({ prune: (endedBefore: number) => store.prune(endedBefore) })),
  methods("prune removes nothing", () => ({ prune: async () => ({ runs: 0 }) })),
  {
    name: "prune ignores families",
    wrap(store) {
      const pruned = new Set<string>();
      return changed(store, {
        async prune(endedBefore: number) {
          const before = pruned.size;
          for (const record of await store.listRuns({ limit: 100 }))
            if (record.endedAt !== undefined && record.endedAt < endedBefore) pruned.add(record.id);
          return { runs: pruned.size - before };
        },
        findRun: async (id: string) => (pruned.has(id) ? undefined : store.findRun(id)),
      });
    },
  },
  methods("rekeying adds a message", (store) => ({
    async rekey() {
      for (const { run, arrivals } of await store.listRuns({ limit: 10 }))
        if (arrivals > 0)
          await store.write([
            {
              write: "message",
              to: "with tasks",
              arrival: { type: "PromiseResolved", target: `lost ${run}`, data: "{}" },
              once: false,
            },
          ]);
      return { payloads: 0, unreadable: 0 };
    },
  })),
  methods("a backup is empty", () => ({ backup: async () => undefined })),
  methods("check counts beyond its total", (store) => ({
    async check(onProgress?: (done: number, total: number) => void) {
      onProgress?.(2, 1);
      return store.check();
    },
  })),
  methods("check reports a problem that does not exist", () => ({
    check: async () => [{ invariant: "I0", run: undefined, seq: undefined, message: "?" }],
  })),
  methods("time is the wall clock", (_store, clock) => ({ now: () => clock.now() })),
  methods("time stands still", (store) => {
    const start = store.now();
    return { now: () => start };
  }),
  {
    name: "a connection sees only the runs it started itself",
    wrap(store) {
      const own = new Set<string>();
      const noting = writing(store, (write) => {
        if (write.write === "start") own.add(write.run.id);
        if (write.write === "turn") for (const child of write.children) own.add(child.run.id);
        return write;
      });
      return changed(noting, {
        listRuns: async (filter: Parameters<Store["listRuns"]>[0]) =>
          (await store.listRuns(filter)).filter(({ id }) => own.has(id)),
      });
    },
  },
  methods("a journal is read backwards", (store) => ({
    readJournal: async (run: number, after: number, limit?: number) =>
      (await store.readJournal(run, after, limit)).toReversed(),
  })),
];
