// Rows that a worker of an earlier version wrote: the columns that were added since are null.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { systemRandom } from "../../src/base/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { LEASE_MS, registerWorker, startWithTasks, takeItem } from "../../src/testing/store-cases/store-actions.ts";
import { createVirtualTime } from "../../src/testing/virtual-clock.ts";
import { createFolder } from "../engine/world.ts";

test("a task whose worker of an earlier version was lost does not get the same execution twice", async () => {
  using folder = createFolder();
  const path = folder.file("store.db");
  const time = createVirtualTime();
  const store = await openSqliteStore({ path, clock: time.clock, timers: time.timers, random: systemRandom });
  const old = await registerWorker(store, "old");
  const { run } = await startWithTasks(store, old, "order-1", 1);
  await takeItem(store, old);
  const db = new DatabaseSync(path);
  db.exec("update queue set executions = null, leased_at = null");
  db.close();
  time.advanceTo(time.now() + LEASE_MS);
  const worker = await registerWorker(store, "new");
  await store.reap(worker);
  expect((await takeItem(store, worker)).execution).toBe(2);
  expect(await store.readAttempts(run)).toMatchObject([{ step: "Task(0)", execution: 1, outcome: "lost" }]);
  await store.close();
});
