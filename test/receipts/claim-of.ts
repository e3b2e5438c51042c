// The claim of a run in a store file.

import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import { deriveClaim, storeJournal } from "../../src/receipts/index.ts";
import { storeOf } from "../../src/stores/index.ts";

export { createFolder } from "../engine/world.ts";

/** The key of its claim. */
export async function claimOf(url: string, id: string): Promise<string> {
  const ports = { clock: systemClock, timers: systemTimers, random: systemRandom, durability: "full" } as const;
  const store = await storeOf(url)["~open"]({ ...ports, readOnly: true });
  try {
    const record = await store.findRun(id);
    if (record === undefined) throw new Error(`There is no run ${id}.`);
    return (await deriveClaim(record, storeJournal(store, record))).key;
  } finally {
    await store.close();
  }
}
