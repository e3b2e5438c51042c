import type { ForkWrite, Outcome, Store, Write } from "../../../src/kernel/index.ts";
import { answering, methods, rewriting, writing, type Mutant } from "./mutant.ts";

function forks(name: string, change: (fork: ForkWrite, store: Store) => ForkWrite | Promise<ForkWrite>): Mutant {
  return rewriting(name, (write, store) => (write.write === "fork" ? change(write, store) : write));
}

function isFork(write: Write): write is ForkWrite {
  return write.write === "fork";
}

export const forksMutants: readonly Mutant[] = [
  answering("a fork has only its first entry", (outcome: Outcome, write: Write) =>
    isFork(write) && "status" in outcome && outcome.status === "started"
      ? { ...outcome, record: { ...outcome.record, head: 1 } }
      : outcome,
  ),
  forks("a fork loses its label", (fork) => ({
    ...fork,
    ...(fork.step && { step: { ...fork.step, checkpoint: { ...fork.step.checkpoint, label: undefined } } }),
  })),
  forks("a fork ignores the key of its checkpoint", async (fork, store) => {
    const runs = await store.listRuns({ limit: 10 });
    for (const { run } of runs) {
      const row = await store.findCheckpoint(run, 9, false);
      if (row !== undefined) return { ...fork, origin: { run, step: row.step, key: row.key } };
    }
    return fork;
  }),
  forks("a fork at an entry ignores its mark", ({ origin, ...fork }) => ({
    ...fork,
    origin: "mark" in origin ? { ...origin, mark: undefined } : origin,
  })),
  answering("a fork at an entry has another head", (outcome: Outcome, write: Write) =>
    isFork(write) && write.step === undefined && "status" in outcome && outcome.status === "started"
      ? { ...outcome, record: { ...outcome.record, head: 2 } }
      : outcome,
  ),
  {
    name: "a fork replaces the run that has its id",
    wrap: (store) =>
      writing(store, async (write) => {
        if (!isFork(write) || (await store.findRun(write.run.id)) === undefined) return write;
        return { ...write, run: { ...write.run, id: `${write.run.id} again` } };
      }),
  },
  {
    name: "a run is pruned though a fork of it stays",
    wrap: (store) =>
      writing(store, async (write) => {
        if (!isFork(write)) return write;
        // A run with the same two entries and no row in `forks`.
        await store.write([{ write: "start", run: write.run }]);
        return write;
      }),
  },
  forks("settled promises of a fork accept a second value", (fork) => ({ ...fork, settled: [] })),
  forks("a flow's fork forgets its counters", (fork) =>
    fork.flow ? { ...fork, flow: { ...fork.flow, counters: [] } } : fork,
  ),
  forks("a flow's fork queues no node", (fork) => (fork.flow ? { ...fork, flow: { ...fork.flow, items: [] } } : fork)),
  methods("steps are read by the seq of their entries", (store) => ({
    readSteps: (run: number, after: number, _upTo: number, limit?: number) => store.readJournal(run, after, limit),
  })),
  methods("the oldest checkpoint with a label is found", (store) => ({
    async findLabeledCheckpoint(run: number, label: string, step: number) {
      const rows = await store.readCheckpoints(run, -1);
      return rows.find((row) => row.label === label && row.step <= step);
    },
  })),
  methods("a label is searched in all steps", (store) => ({
    findLabeledCheckpoint: (run: number, label: string) =>
      store.findLabeledCheckpoint(run, label, Number.MAX_SAFE_INTEGER),
  })),
];
