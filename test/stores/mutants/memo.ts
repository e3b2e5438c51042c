import type { MemoAnswer, Store, TurnWrite, Write } from "../../../src/kernel/index.ts";
import { methods, rewriting, turns, type Mutant } from "./mutant.ts";

function withoutMemos(turn: TurnWrite): TurnWrite {
  return { ...turn, entries: turn.entries.map((entry) => ({ ...entry, memo: undefined })) };
}

function withoutMemo(write: Write): Write {
  if (write.write !== "end-item" || write.arrival.ran === undefined) return write;
  return { ...write, arrival: { ...write.arrival, ran: { ...write.arrival.ran, memo: undefined } } };
}

/** Answers of the memo, changed. */
function answers(name: string, change: (found: readonly (MemoAnswer | undefined)[]) => unknown): Mutant {
  return methods(name, (store) => ({
    readMemos: async (keys: readonly string[]) => change(await store.readMemos(keys)),
  }));
}

export const memoMutants: readonly Mutant[] = [
  turns("the memos of a turn get lost", withoutMemos),
  turns("the memos of a rejected turn are written", async (turn, store) => {
    const [progress] = await store.readProgress([turn.run]);
    return progress?.token === undefined ? turn : { ...turn, token: progress.token };
  }),
  rewriting("the memo of a task gets lost", withoutMemo),
  rewriting("the memo of a node gets lost", (write) =>
    write.write === "complete"
      ? { ...write, entries: write.entries.map((entry) => ({ ...entry, ran: undefined })) }
      : write,
  ),
  answers("the memo answers in another order", (found) => found.toReversed()),
  answers("a divergence is known", (found) =>
    found.map((one) => (one?.status === "divergent" ? { status: "known", result: "1" } : one)),
  ),
  answers("a damaged memo is known", (found) =>
    found.map((one) => (one?.status === "damaged" ? { status: "known", result: "13" } : one)),
  ),
  methods("a list of the memo has only its first page", (store) => ({
    async listMemos(filter: Parameters<Store["listMemos"]>[0]) {
      return { ...(await store.listMemos(filter)), next: undefined };
    },
  })),
  methods("a list of the memos of one run has those of others", (store) => ({
    listMemos: ({ run: _run, ...filter }: Parameters<Store["listMemos"]>[0]) => store.listMemos(filter),
  })),
  methods("clearing the memo clears nothing", () => ({ clearMemos: async () => 0 })),
  methods("a deleted run stays in the store", () => ({ deleteRun: async () => ({ status: "deleted", runs: 1 }) })),
];
