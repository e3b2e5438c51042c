import type { QueueUse, RunWork, SlotUser } from "../../../src/kernel/index.ts";
import { methods, type Mutant } from "./mutant.ts";

function work(name: string, change: (work: RunWork) => Partial<RunWork>): Mutant {
  return methods(name, (store) => ({
    readRunWork: async (run: number) => {
      const found = await store.readRunWork(run);
      return found && { ...found, ...change(found) };
    },
  }));
}

function use(name: string, change: (use: QueueUse) => Partial<QueueUse>): Mutant {
  return methods(name, (store) => ({
    readQueueUse: async (kind: SlotUser, queue: string, key?: string) => {
      const found = await store.readQueueUse(kind, queue, key);
      return found && { ...found, ...change(found) };
    },
  }));
}

export const runWorkMutants: readonly Mutant[] = [
  work("the holder of a turn is forgotten", ({ turn }) => ({ turn: { ...turn, worker: undefined } })),
  work("takeovers are not reported", ({ turn }) => ({ turn: { ...turn, takeovers: 0 } })),
  work("every open item is ready", ({ items }) => ({ items: items.map((one) => ({ ...one, state: "ready" })) })),
  work("children are not listed", () => ({ children: [] })),
  work("undelivered messages are not listed", () => ({ messages: [] })),
  work("waiting nodes are not listed", () => ({ nodes: [] })),
  use("the holders of slots are not listed", ({ whole }) => ({ whole: { ...whole, holders: [] } })),
  use("a rate always admits more", ({ whole }) => ({ whole: { ...whole, opensAt: undefined } })),
];
