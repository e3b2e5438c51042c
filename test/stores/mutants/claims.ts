import type { ClaimedItem, ClaimedTurn, ClaimItemsOutcome } from "../../../src/kernel/index.ts";
import { writing, rewriting, answering, methods, without, type Mutant } from "./mutant.ts";

export const claimsMutants: readonly Mutant[] = [
  {
    name: "a turn may be claimed twice",
    wrap(store) {
      const before: ClaimedTurn[] = [];
      return writing(
        store,
        (write) => write,
        (outcome, write) => {
          if (write.write !== "claim-turns") return outcome;
          const claimed = outcome as readonly ClaimedTurn[];
          const again = before.splice(0, write.tokens.length - claimed.length);
          before.push(...claimed);
          return [...claimed, ...again];
        },
      );
    },
  },
  {
    name: "an item may be claimed twice",
    wrap(store) {
      const before: ClaimedItem[] = [];
      return writing(
        store,
        (write) => write,
        (outcome, write) => {
          if (write.write !== "claim-items") return outcome;
          const claimed = outcome as ClaimItemsOutcome;
          const again = before.splice(0, write.tokens.length - claimed.items.length);
          before.push(...claimed.items);
          return { ...claimed, items: [...claimed.items, ...again] };
        },
      );
    },
  },
  rewriting("turns of unnamed definitions are claimed", async (write, store) =>
    write.write === "claim-turns"
      ? {
          ...write,
          definitions: (await store.listRuns({ limit: 100 })).map(({ definition, version }) => ({
            name: definition,
            version,
          })),
        }
      : write,
  ),
  {
    name: "items of unnamed tasks are claimed",
    wrap(store) {
      const names = new Set<string>();
      return writing(store, (write) => {
        if (write.write === "turn") for (const item of write.items) names.add(item.name);
        return write.write === "claim-items" ? { ...write, names: [...names] } : write;
      });
    },
  },
  rewriting("timers can be claimed", (write) =>
    write.write === "turn"
      ? { ...write, items: write.items.map((item) => ({ ...without(item, "availableAt"), kind: "task" as const })) }
      : write,
  ),
  rewriting("priority does not count", (write) => {
    if (write.write === "start") return { ...write, run: { ...write.run, priority: 0 } };
    return write.write === "turn" ? { ...write, items: write.items.map((item) => ({ ...item, priority: 0 })) } : write;
  }),
  rewriting("a claim takes one more than it may", (write) =>
    write.write === "claim-turns"
      ? { ...write, tokens: [...write.tokens, `${write.worker} ${write.tokens.join()}`] }
      : write,
  ),
  methods("readProgress hides the token", (store) => ({
    readProgress: async (runs: readonly number[]) =>
      (await store.readProgress(runs)).map((pulse) => ({ ...pulse, token: undefined })),
  })),
  answering("a claimed turn has no inbox", (outcome, write) =>
    write.write === "claim-turns"
      ? (outcome as readonly ClaimedTurn[]).map((turn) => ({ ...turn, inbox: [] }))
      : outcome,
  ),
];
