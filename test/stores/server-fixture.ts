// Server fixture: runs the store cases on a real server, in a scratch schema or database, as `reprise doctor --store-cases` does.

import { afterAll, beforeAll, test } from "vitest";
import { systemRandom } from "../../src/base/index.ts";
import { scratchOnServer, type ScratchStore } from "../../src/stores/maintenance/index.ts";
import { createStoreTest } from "../../src/testing/store-test.ts";
import { storeCases } from "../../src/testing/store-cases.ts";
import { createFolder } from "../engine/world.ts";
import { describeOn, freshDatabase, type FreshDatabase } from "../servers/index.ts";

export function testStoreOn(kind: "postgres" | "mysql", name: string): void {
  describeOn(kind, name, () => {
    let database: FreshDatabase;
    let scratch: ScratchStore;
    beforeAll(async () => {
      database = await freshDatabase(kind);
      scratch = await scratchOnServer(database.url, systemRandom);
    });
    afterAll(async () => {
      await scratch.drop();
      await database[Symbol.asyncDispose]();
    });

    for (const one of storeCases)
      test(one.name, { timeout: 60_000 }, async () => {
        using folder = createFolder();
        await scratch.clear();
        await one.run(createStoreTest({ source: scratch.source, userSql: scratch.notes, folder: folder.path }));
      });
  });
}
