// Mutants of the protection against lost history. It has several layers, and each would hide that another one is missing:
// a mutant removes its own layer and those before it, and must be found by its own violation.
//
// Layers, in order: the check that history is complete (remote.Y1, remote.Y3, remote.Y4), numbers that are never
// used twice, the comparison of held work (reconcile), the identity of a run in memory.

import type { OutcomeOf, RunRecord, Store } from "../../src/kernel/index.ts";
import type { SimBackend, SimConnection } from "./store/sim-backend.ts";
import { changed, writing } from "../stores/mutants/mutant.ts";
import type { Fault } from "./faults.ts";
import type { SimMutant } from "./mutants.ts";

type Change = (backend: SimBackend) => void;

/** No commit checks history, and every server has the same identity. */
const UNCHECKED: Change = (backend) =>
  changeConnections(backend, (connection) => {
    const commit = connection.commit.bind(connection);
    connection.commit = (batch, mark, changes) => commit(batch, mark, changes);
    Object.defineProperty(connection, "server", { value: "the only one" });
  });

/** Rows of writers are checked, the incarnation is not. */
const UNCHECKED_INCARNATION: Change = (backend) =>
  changeConnections(backend, (connection) => {
    const commit = connection.commit.bind(connection);
    connection.commit = (batch, mark, changes, check) =>
      commit(batch, mark, changes, check && { ...check, incarnation: undefined });
  });

/** Run numbers come from the counter alone. */
const COUNTED: Change = (backend) => {
  const reserve = backend.reserve.bind(backend);
  backend.reserve = (connection, counter, count) => reserve(connection, counter, count, 0);
};

export function changeConnections(backend: SimBackend, change: (connection: SimConnection) => void): void {
  const connect = backend.connect.bind(backend);
  backend.connect = async () => {
    const connection = await connect();
    change(connection);
    return connection;
  };
}

/** Held work is never compared. */
export function unreconciled(store: Store): Store {
  return changed(store, { readHeld: () => Promise.resolve({ turns: [], items: [], messages: [] }) });
}

/** A run in memory is used for the claimed run when their heads are equal; so is the fence of its commits. */
function headOnly(store: Store): Store {
  /** The run as this process last knew it, by number. */
  const known = new Map<number, Pick<RunRecord, "id" | "generation" | "head" | "chain">>();
  /** What the database contains instead. */
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
  /** Kinds of faults that every world has, besides rollbacks. */
  readonly always?: readonly Fault[];
  readonly backend?: readonly Change[];
  readonly wrap?: (store: Store) => Store;
}

function mutant(
  name: string,
  foundAs: RegExp,
  foundBy: number,
  { faults = [], always = [], backend = [], wrap }: Parts,
): SimMutant {
  const wrapBackend = (it: SimBackend): SimBackend => {
    for (const change of backend) change(it);
    return it;
  };
  const world = {
    store: "remote",
    mode: "rc",
    workers: 3,
    scale: 1,
    faults,
    always: ["rollback", ...always],
  } as const;
  return { name, scenario: ["orders"], foundBy, foundAs, options: { ...world, wrapBackend, ...(wrap && { wrap }) } };
}

export const ROLLBACK_MUTANTS: readonly SimMutant[] = [
  mutant("no commit checks that history is complete", /^I16/, 22, { backend: [UNCHECKED] }),
  mutant("a process does not check the incarnation", /^I39/, 4, {
    faults: ["pause"],
    backend: [UNCHECKED_INCARNATION],
  }),
  mutant("a number is used again after the counter went back", /^I38/, 2, { backend: [COUNTED] }),
  mutant("a worker never compares its held work", /^I16/, 4, { backend: [UNCHECKED], wrap: unreconciled }),
  // Only a process that starts after the rollback reserves the same numbers again. The run gets entries of another one; the check
  // of the chain detects it when the run is loaded again, and otherwise it ends with values of the other one.
  mutant("a run in memory is used when only its head is equal", /^I44|^I8 journal hash chain/, 19, {
    always: ["kill"],
    backend: [UNCHECKED, COUNTED],
    wrap: headOnly,
  }),
];
