// The words of remote stores mean what their SQL in SQLite says: every store case, spoken to both.

import { describe, test } from "vitest";
import { storeCases } from "../../src/testing/store-cases.ts";
import { createSqliteFixture } from "./sqlite-fixture.ts";
import { DifferentialStore } from "./differential/differential-store.ts";

describe("SQLite and its twin over rows in memory", () => {
  for (const { name, run } of storeCases) {
    test(name, async () => {
      const twins = new Map<string, DifferentialStore>();
      await using fixture = createSqliteFixture({
        durability: "relaxed",
        wrap(store, clock, path) {
          const twin = twins.get(path) ?? new DifferentialStore(path, clock);
          twins.set(path, twin);
          return twin.wrap(store);
        },
      });
      await run(fixture);
    });
  }
});
