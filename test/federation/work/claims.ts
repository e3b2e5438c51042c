// What the tests compare of runs at several sites.

import { decode } from "../../../src/base/index.ts";
import { openStoreOf } from "../../../src/engine/index.ts";
import type { Entry, Store } from "../../../src/kernel/index.ts";
import { deriveClaim, listJournal } from "../../../src/receipts/index.ts";

/** The claim of a run, as text. */
export async function claimOf(engine: unknown, id: string): Promise<string> {
  return claimIn(openStoreOf(engine)!, id);
}

export async function claimIn(store: Store, id: string): Promise<string> {
  const record = await store.findRun(id);
  return (await deriveClaim(record!, listJournal(await entriesIn(store, id)))).text;
}

export async function entriesIn(store: Store, id: string): Promise<readonly Entry[]> {
  const record = await store.findRun(id);
  return store.readJournal(record!.run, 0);
}

/** What the journal says about the attempts of a failed task, without stacks. */
export async function failuresOf(engine: unknown, id: string) {
  const entries = await entriesIn(openStoreOf(engine)!, id);
  const failed = entries.find(({ type }) => type === "TaskFailed");
  const { attempt, error, failures } = decode(failed!.data) as Record<string, unknown>;
  return { attempt, error, failures };
}
