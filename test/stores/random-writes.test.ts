// Random lists of writes have the same outcomes and rows on SQLite and over rows in memory.

import { expect, test } from "vitest";
import { drawInt } from "../../src/base/index.ts";
import { createSqliteFixture } from "./sqlite-fixture.ts";
import { RandomWrites } from "./differential/random-writes.ts";
import { DifferentialStore } from "./differential/differential-store.ts";

const SEEDS = Number(process.env["WORDS_SEEDS"] ?? 6);
const FIRST = Number(process.env["WORDS_FIRST"] ?? 1);
const STEPS = 100;

for (let seed = FIRST; seed < FIRST + SEEDS; seed++) {
  test(
    `random writes ${seed} have the same results on SQLite and over rows in memory`,
    { timeout: 300_000 },
    async () => {
      let index = 0;
      const draw = (max: number): number => drawInt(BigInt(seed), "life", index++, Math.max(1, max));
      let rowStore: DifferentialStore | undefined;
      await using fixture = createSqliteFixture({
        durability: "relaxed",
        wrap: (store, clock, path) => (rowStore ??= new DifferentialStore(path, clock)).wrap(store),
      });
      const store = await fixture.open();
      try {
        const life = new RandomWrites(store, draw);
        for (let step = 0; step < STEPS; step++) {
          if (draw(2) === 0) fixture.clock.advance(draw(2_500));
          await life.step();
        }
        expect(index).toBeGreaterThan(STEPS);
      } finally {
        await store.close();
      }
    },
  );
}
