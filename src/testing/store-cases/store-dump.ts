import assert from "node:assert/strict";
import type { Store } from "../../kernel/index.ts";

/** Everything the port shows of runs. Two equal dumps mean that nothing was written in between. */
export async function dumpStore(store: Store): Promise<unknown> {
  const records = await store.listRuns({ limit: 10_000 });
  const runs = [];
  for (const record of records) {
    // Lists leave the evidence out.
    const evidence = (await store.findRun(record.id))?.evidence;
    runs.push({
      record,
      evidence,
      journal: await store.readJournal(record.run, 0),
      inbox: await store.readInbox(record.run, 0),
      readiness: await store.readReadiness(record.run),
    });
  }
  const { items, workers } = await store.info();
  const schedules = await store.listSchedules("", 10_000);
  return { runs, progress: await store.readProgress(records.map((record) => record.run)), items, workers, schedules };
}

export async function assertNothingWritten(store: Store, action: () => Promise<void>): Promise<void> {
  const before = await dumpStore(store);
  await action();
  assert.deepEqual(await dumpStore(store), before, "something was written");
}
