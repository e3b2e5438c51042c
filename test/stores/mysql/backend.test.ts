// The backend cases on MariaDB.

import { afterAll, beforeAll } from "vitest";
import { systemRandom, systemTimers } from "../../../src/base/index.ts";
import type { Backend } from "../../../src/stores/remote/backend.ts";
import { EMPTIABLE } from "../../../src/stores/rows/tables.ts";
import { openMysqlBackend } from "../../../src/stores/mysql/backend.ts";
import { describeOn, freshDatabase, type FreshDatabase } from "../../servers/index.ts";
import { testBackend } from "../backend-fixture.ts";

const SKIPS: ReadonlyMap<string, string> = new Map([
  ["other processes receive a notification, and the sender does not", "MySQL has no notifications; processes poll"],
]);

describeOn("mysql", "a backend on MariaDB", () => {
  let database: FreshDatabase;
  beforeAll(async () => {
    database = await freshDatabase("mysql");
  });
  afterAll(() => database[Symbol.asyncDispose]());

  const open = (): Backend =>
    openMysqlBackend({ url: database.url, random: systemRandom, timers: systemTimers, durability: "full" });

  testBackend(async () => {
    const backend = open();
    await (await backend.connect()).close();
    // Creating the tables takes longer than all cases.
    await database.run(...EMPTIABLE.map((table) => `delete from reprise_${table}`));
    return { backend, other: open() };
  }, SKIPS);
});
