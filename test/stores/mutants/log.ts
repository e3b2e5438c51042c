import type { EndedRun, Store } from "../../../src/kernel/index.ts";
import { methods, rewriting, type Mutant } from "./mutant.ts";

/** Lists of noted runs, changed. */
function ended(name: string, change: (found: readonly EndedRun[]) => readonly EndedRun[]): Mutant {
  return methods(name, (store) => ({ listEnded: async (limit: number) => change(await store.listEnded(limit)) }));
}

export const logMutants: readonly Mutant[] = [
  ended("a run that continues as new is not noted", (found) =>
    found.filter(({ record }) => record.status !== "continued"),
  ),
  ended("noted runs come in the order of their numbers", (found) =>
    found.toSorted((a, b) => a.record.run - b.record.run),
  ),
  methods("every store is federated", (store) => ({
    async registerWorker(name: string, leaseMs: number) {
      await store.setFederated(true);
      return store.registerWorker(name, leaseMs);
    },
    isFederated: async () => false,
  })),
  methods("a run is noted once", (store) => {
    const sequenced = new Set<number>();
    return {
      async listEnded(limit: number) {
        const found = (await store.listEnded(limit)).filter(({ record }) => !sequenced.has(record.run));
        for (const { record } of found) sequenced.add(record.run);
        return found;
      },
    };
  }),
  methods("the log is read backwards", (store) => ({
    readLog: async (after: number, limit: number) => (await store.readLog(after, limit)).toReversed(),
  })),
  rewriting("the expected size of the log is not checked", async (write, store) =>
    write.write === "sequence" ? { ...write, expect: await store.logSize() } : write,
  ),
  rewriting("the notes of sequenced runs are not checked", (write) =>
    write.write === "sequence" ? { ...write, done: [] } : write,
  ),
  rewriting("a sequencer appends whatever others appended", async (write, store) =>
    write.write === "sequence" ? { ...write, expect: await store.logSize(), done: [] } : write,
  ),
  rewriting("no run is pinned", (write) =>
    write.write === "sequence" ? { ...write, done: write.done.map((one) => ({ ...one, keep: false })) } : write,
  ),
  methods("a release takes notes away", (store) => ({
    async write(writes: Parameters<Store["write"]>[0]) {
      const [first] = writes;
      if (first?.write !== "release") return store.write(writes);
      const done = (await store.listEnded(10)).map(({ record: { run, head } }) => ({ run, head, keep: true }));
      await store.write([{ write: "sequence", expect: await store.logSize(), records: [{ rec: "{}" }], done }]);
      return store.write(writes);
    },
  })),
  methods("a pinned run cannot be forgotten", (store) => ({ forget: (id: string) => store.deleteRun(id) })),
  ended("no run is adopted", (found) => found.map(({ record }) => ({ record, adopted: false }))),
  methods("every sweep says that it noted all runs", (store) => ({
    async noteEnded(after: number, limit: number) {
      const page = await store.noteEnded(after, limit);
      return { ...page, noted: limit };
    },
  })),
  methods("federation cannot be switched off", (store) => ({
    setFederated: async (on: boolean) => (on ? store.setFederated(on) : undefined),
  })),
  methods("a process never learns that its store is federated", () => ({ renewLease: async () => true })),
  methods("runs by number come in another order", (store) => ({
    readRuns: async (runs: readonly number[]) => (await store.readRuns(runs)).toReversed(),
  })),
];
