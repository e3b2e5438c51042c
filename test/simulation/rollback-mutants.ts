// Mutants of what keeps lost history from mixing runs. There are several layers, and each would hide that another is missing:
// a mutant takes away its own layer and those in front of it, and must be found by the violation that is its own.
//
// Layers, from the front: the check that history is whole (Y1, Y3, Y4 of stores/remote/history.ts), numbers that are never
// given twice, the comparison of what is held (reconcile), the identity of a run that is in memory.

import type { OutcomeOf, RunRecord, Store } from "../../src/kernel/index.ts";
import type { SimBackend, SimConnection } from "./store/sim-backend.ts";
import { changed, writing } from "../stores/mutants/mutant.ts";
import type { Fault } from "./faults.ts";
import type { SimMutant } from "./mutants.ts";

type Change = (backend: SimBackend) => void;

/** No commit looks at history any more, and every server looks the same. */
const UNCHECKED: Change = (backend) =>
  changeLinks(backend, (connection) => {
    const commit = connection.commit.bind(connection);
    connection.commit = (batch, mark, changes) => commit(batch, mark, changes);
    Object.defineProperty(connection, "server", { value: "the only one" });
  });

/** Lines of writers are looked at, the incarnation is not. */
const UNCHECKED_INCARNATION: Change = (backend) =>
  changeLinks(backend, (connection) => {
    const commit = connection.commit.bind(connection);
    connection.commit = (batch, mark, changes, check) =>
      commit(batch, mark, changes, check && { ...check, incarnation: undefined });
  });

/** Numbers of runs follow the counter alone. */
const COUNTED: Change = (backend) => {
  const reserve = backend.reserve.bind(backend);
  backend.reserve = (connection, counter, count) => reserve(connection, counter, count, 0);
};

function changeLinks(backend: SimBackend, change: (connection: SimConnection) => void): void {
  const connect = backend.connect.bind(backend);
  backend.connect = async () => {
    const connection = await connect();
    change(connection);
    return connection;
  };
}

/** What is held is never compared. */
function unreconciled(store: Store): Store {
  return changed(store, { readHeld: () => Promise.resolve({ turns: [], items: [], messages: [] }) });
}

/** A run in memory is taken for the one that was claimed when their heads agree, and so does the fence of its commits. */
function headOnly(store: Store): Store {
  /** As this process last knew it, by number. */
  const known = new Map<number, Pick<RunRecord, "id" | "generation" | "head" | "chain">>();
  /** What the database has instead. */
  const real = new Map<number, string>();
  return writing(
    store,
    (write) => {
      if (write.write !== "turn") return write;
      const previousChain = real.get(write.run);
      real.delete(write.run);
      return previousChain === undefined ? write : { ...write, previousChain };
    },
    (outcome, write) => {
      if (write.write === "start") note(known, (outcome as OutcomeOf<typeof write>).record);
      if (write.write === "turn") {
        const { status } = outcome as OutcomeOf<typeof write>;
        const before = known.get(write.run);
        if (status === "committed" && before !== undefined)
          known.set(write.run, { ...before, head: write.head + write.entries.length, chain: write.chain });
      }
      if (write.write !== "claim-turns") return outcome;
      return (outcome as OutcomeOf<typeof write>).map((turn) => {
        const { record } = turn;
        const before = known.get(record.run);
        if (before?.head !== record.head || before.chain === record.chain) {
          note(known, record);
          return turn;
        }
        real.set(record.run, record.chain);
        return { ...turn, record: { ...record, ...before } };
      });
    },
  );
}

function note(known: Map<number, Pick<RunRecord, "id" | "generation" | "head" | "chain">>, record: RunRecord): void {
  const { run, id, generation, head, chain } = record;
  known.set(run, { id, generation, head, chain });
}

interface Parts {
  readonly faults?: readonly Fault[];
  readonly backend?: readonly Change[];
  readonly wrap?: (store: Store) => Store;
}

function mutant(name: string, foundAs: RegExp, foundBy: number, { faults = [], backend = [], wrap }: Parts): SimMutant {
  const wrapBackend = (it: SimBackend): SimBackend => {
    for (const change of backend) change(it);
    return it;
  };
  const world = { store: "remote", mode: "rc", workers: 3, scale: 1, faults, always: ["rollback"] } as const;
  return { name, scenario: ["orders"], foundBy, foundAs, options: { ...world, wrapBackend, ...(wrap && { wrap }) } };
}

export const ROLLBACK_MUTANTS: readonly SimMutant[] = [
  mutant("no commit checks that history is whole", /^I16/, 22, { backend: [UNCHECKED] }),
  mutant("a process does not check the incarnation", /^I39/, 4, {
    faults: ["pause"],
    backend: [UNCHECKED_INCARNATION],
  }),
  mutant("a number is given again after the counter went back", /^I38/, 2, { backend: [COUNTED] }),
  mutant("a worker never compares what it holds", /^I16/, 4, { backend: [UNCHECKED], wrap: unreconciled }),
  mutant("a run in memory is taken when only its head agrees", /^I44/, 273, {
    backend: [UNCHECKED, COUNTED],
    wrap: headOnly,
  }),
];
