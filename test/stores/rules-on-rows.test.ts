// The rules have the same effect on SQLite and on the working set of remote stores: every store case, on both.

import { describe, test } from "vitest";
import { storeCases } from "../../src/testing/store-cases.ts";
import { createSqliteFixture } from "./sqlite-fixture.ts";
import { DifferentialStore } from "./differential/differential-store.ts";

describe("SQLite and a working set", () => {
  for (const { name, run } of storeCases) {
    test(name, async () => {
      const twins = new Map<string, DifferentialStore>();
      await using fixture = createSqliteFixture({
        durability: "relaxed",
        wrap(store, clock, path) {
          const rowStore = twins.get(path) ?? new DifferentialStore(path, clock);
          twins.set(path, rowStore);
          return rowStore.wrap(store);
        },
      });
      await run(fixture);
    });
  }
});
