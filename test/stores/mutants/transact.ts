import type { Store, TurnWrite } from "../../../src/kernel/index.ts";
import { methods, type Mutant } from "./mutant.ts";

type Transact = Store["transact"];
type Make = Parameters<Transact>[1];

/** Builds the commit from the holder's entries and the current row of the run. */
function committing(
  name: string,
  change: (turn: TurnWrite | undefined, known: TurnWrite) => TurnWrite | undefined,
): Mutant {
  return methods(name, (store) => ({
    async transact(call: Parameters<Transact>[0], write: Make) {
      const [record] = await store.listRuns({ limit: 1 });
      if (record === undefined) return store.transact(call, write);
      const token = (await store.readProgress([record.run]))[0]?.token ?? "";
      const nothing = {
        entries: [],
        finished: [],
        items: [],
        dropped: [],
        children: [],
        messages: [],
        chunks: [],
        outgoing: [],
      };
      // oxlint-disable-next-line unicorn/no-thenable -- `then` is a field of the port, and a write is never awaited.
      const stay = { write: "turn", read: 0, then: "hold", ...nothing } as const;
      const known = { ...stay, run: record.run, token, head: record.head, chain: record.chain };
      const at = { ...known, previousChain: record.chain };
      return store.transact(call, (result) => change(write(result), at));
    },
  }));
}

export const transactMutants: readonly Mutant[] = [
  methods("user SQL runs twice", (store) => ({
    transact: (call: Parameters<Transact>[0], write: Make) =>
      store.transact((db) => {
        try {
          call(db);
        } catch {}
        return call(db);
      }, write),
  })),
  committing("user SQL is committed although the fence does not hold", (turn, known) =>
    turn === undefined ? undefined : { ...turn, token: known.token },
  ),
  methods("user SQL is committed although its function threw", (store) => ({
    transact: (call: Parameters<Transact>[0], write: Make) =>
      store.transact((db) => {
        try {
          return call(db);
        } catch {
          return undefined;
        }
      }, write),
  })),
  committing("user SQL that its run no longer needs is committed", (turn, known) => turn ?? known),
];
