import type { Store } from "../../../src/kernel/index.ts";
import { methods, rewriting, turns, without, type Mutant } from "./mutant.ts";

export const promisesMutants: readonly Mutant[] = [
  turns("promises are not listed", (turn) =>
    turn.promises === undefined ? turn : { ...turn, promises: { ...turn.promises, opened: [] } },
  ),
  turns("promises stay listed when they are settled", (turn) =>
    turn.promises === undefined ? turn : { ...turn, promises: { ...turn.promises, closed: [] } },
  ),
  turns("promises stay listed when their run ends", (turn) =>
    turn.then === "hold" || turn.then === "release" ? turn : without(turn, "promises"),
  ),
  turns("the promises of a rejected turn are listed", async (turn, store) => {
    const [progress] = await store.readProgress([turn.run]);
    return turn.promises === undefined || progress?.token === undefined ? turn : { ...turn, token: progress.token };
  }),
  rewriting("a retried run has no open promises", (write) =>
    write.write === "retry" ? without(write, "promises") : write,
  ),
  methods("the name of a promise is ignored by lists", (store) => ({
    listPromises: (filter: Parameters<Store["listPromises"]>[0]) => store.listPromises(without(filter, "name")),
  })),
  methods("the definition of a run is ignored by lists of promises", (store) => ({
    listPromises: (filter: Parameters<Store["listPromises"]>[0]) => store.listPromises(without(filter, "definition")),
  })),
  methods("a list of promises has only its first page", (store) => ({
    async listPromises(filter: Parameters<Store["listPromises"]>[0]) {
      return { ...(await store.listPromises(filter)), next: undefined };
    },
  })),
  turns("settlements of a turn get lost", (turn) => without(turn, "settlements")),
  turns("a settlement does not check the definition of the other run", async (turn, store) => {
    if (turn.settlements === undefined) return turn;
    const settlements = [];
    for (const one of turn.settlements)
      settlements.push({ ...one, definition: (await store.findRun(one.to))?.definition ?? one.definition });
    return { ...turn, settlements };
  }),
  rewriting("a retry sends no settlement", (write) =>
    write.write === "retry" ? without(write, "settlements") : write,
  ),
];
