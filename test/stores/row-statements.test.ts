// The row statements of remote stores do what the SQL of SQLite does: every store case, on both.

import { describe, test } from "vitest";
import { storeCases } from "../../src/testing/store-cases.ts";
import { createSqliteFixture } from "./sqlite-fixture.ts";
import { DifferentialStore } from "./differential/differential-store.ts";

describe("SQLite and row statements", () => {
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
