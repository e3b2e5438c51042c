// Every promise of a store, behind a network, on a simulated database.

import { describe, test } from "vitest";
import { storeCases } from "../../src/testing/store-cases.ts";
import { createSimWorld } from "./remote-world.ts";

for (const optimistic of [true, false])
  describe(`a store behind a network${optimistic ? "" : ", which remembers nothing"}`, () => {
    for (const { name, run } of storeCases)
      test(name, async () => {
        await using world = createSimWorld({ optimistic });
        await run(world);
      });
  });
