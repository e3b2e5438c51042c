// The backend cases on PostgreSQL.

import { afterAll, beforeAll } from "vitest";
import { EMPTIABLE } from "../../../src/stores/rows/tables.ts";
import { openPostgresBackend } from "../../../src/stores/postgres/backend.ts";
import { describeOn, freshDatabase, type FreshDatabase } from "../../servers/index.ts";
import { testBackend } from "../backend-fixture.ts";

describeOn("postgres", "a backend on PostgreSQL", () => {
  let database: FreshDatabase;
  beforeAll(async () => {
    database = await freshDatabase("postgres");
  });
  afterAll(() => database[Symbol.asyncDispose]());

  testBackend(async () => {
    const { url } = database;
    const backend = await openPostgresBackend({ url });
    await (await backend.connect()).close();
    // Creating the tables takes longer than all cases.
    await database.run(`truncate ${EMPTIABLE.map((table) => `reprise."${table}"`).join(", ")}`);
    return { backend, other: await openPostgresBackend({ url }) };
  });
});
