// FlowStart: how the journal of a flow begins.

import type { RunNumber, Store } from "../kernel/index.ts";

export interface FlowStart {
  /** The data of the first entry, once it was read. */
  started: string | undefined;
  /** The head of the journal before the first turn: 1, and one more for each migration of the run before that turn. */
  firstHead: number;
}

export async function readFlowStart(store: Store, run: RunNumber): Promise<FlowStart> {
  const [first, second] = await store.readJournal(run, 0, 2);
  let next = second;
  let firstHead = 1;
  while (next?.type === "RunMigrated") {
    firstHead = next.seq;
    [next] = await store.readJournal(run, firstHead, 1);
  }
  return { started: first?.data, firstHead };
}
