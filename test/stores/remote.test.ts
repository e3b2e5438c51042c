// Every store case, on a remote store with a simulated database.

import { describe, test } from "vitest";
import { createStoreTest } from "../../src/testing/store-test.ts";
import { storeCases } from "../../src/testing/store-cases.ts";
import { createFolder } from "../engine/world.ts";
import { simulatedSource, simUserSql } from "./remote-fixture.ts";

for (const optimistic of [true, false])
  describe(`a remote store${optimistic ? "" : " without a row cache"}`, () => {
    for (const { name, run } of storeCases)
      test(name, async () => {
        using folder = createFolder();
        const source = simulatedSource({ optimistic });
        await run(createStoreTest({ source, userSql: simUserSql, folder: folder.path }));
      });
  });
