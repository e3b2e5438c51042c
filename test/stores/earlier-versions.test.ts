// Rows that a worker of an earlier version wrote: the columns that were added since are null.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { systemRandom } from "../../src/base/index.ts";
import { APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION } from "../../src/stores/sqlite/schema.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { LEASE_MS, registerWorker, startWithTasks, takeItem } from "../../src/testing/store-cases/store-actions.ts";
import { createVirtualTime } from "../../src/testing/virtual-clock.ts";
import { createFolder } from "../engine/world.ts";
import { startBefore, takesBudgets, type Dialect } from "./takes-budgets.ts";
import { REAL } from "./takes-keys.ts";

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

test("a store of the schema before contents and budgets keeps its runs, and takes both beside a process of the version before", async () => {
  using folder = createFolder();
  const path = folder.file("store.db");
  const before = MIGRATIONS.findIndex((migration) => migration.includes("create table run_contents"));
  const dialect: Dialect = { table: (name) => name, quote: '"', bytes: (hex) => `x'${hex}'` };
  const old = new DatabaseSync(path);
  for (const migration of MIGRATIONS.slice(0, before)) old.exec(migration);
  old.exec(`insert into meta values ('application', 'reprise'), ('schema', '${before}');
    pragma application_id = ${APPLICATION_ID}; pragma user_version = ${before}; pragma journal_mode = wal`);
  for (const sql of startBefore(dialect, 1)) old.exec(sql);
  const store = await openSqliteStore({ ...REAL, path });
  await takesBudgets(store, async () => startBefore(dialect, 2).forEach((sql) => old.exec(sql)));
  old.close();
  expect((await store.info()).schemaVersion).toBe(SCHEMA_VERSION);
  expect(await store.check()).toEqual([]);
  await store.close();
});
