// Random worlds of peers (T-04, T-05, T-06, T-09). REPRISE_SEEDS=10000 for more; a failure names its seed.

import { expect, test } from "vitest";
import { MUTANTS, RULES } from "./rules.ts";
import { storyOf, World } from "./world.ts";

const SEEDS = Number(process.env["REPRISE_SEEDS"] ?? 1_500);

test(
  `after every partition heals, peers agree on state, order and snapshots, in ${SEEDS} worlds`,
  { timeout: 30_000 + SEEDS * 100 },
  () => {
    for (let seed = 1; seed <= SEEDS; seed += 1) expect([seed, storyOf(seed, RULES)]).toEqual([seed, undefined]);
  },
);

test("worlds have what they are for: relays, tombstones, erasures, rotations, snapshots that are cuts", () => {
  const counts = { tomb: 0, erase: 0, key: 0, put: 0, links: 0, heads: 0, snapshots: 0, revived: 0, ties: 0 };
  for (let seed = 1; seed <= 100; seed += 1) {
    const world = new World(seed, RULES).run();
    counts.snapshots += world.snapshots.filter(
      ({ by, taken }) => Object.keys(taken.heads).length > 1 && by.size > 3,
    ).length;
    world.heal();
    const records = world.peers[0]!.sorted();
    for (const { op, s, y } of records) {
      counts[op] += 1;
      if (s !== undefined) counts.links += 1;
      if (y !== undefined) counts.heads += 1;
    }
    counts.ties += records.filter(
      (record, i) => records[i + 1]?.c === record.c && records[i + 1]?.k === record.k,
    ).length;
    for (const cell of world.peers[0]!.cells.values())
      if (cell.add && cell.tomb && cell.add.c > cell.tomb.c) counts.revived += 1;
  }
  for (const [what, count] of Object.entries(counts)) expect(count, what).toBeGreaterThan(20);
});

for (const [name, rules] of Object.entries(MUTANTS))
  test(`a world finds the mutant: ${name}`, () => {
    let found: string | undefined;
    for (let seed = 1; seed <= 300 && found === undefined; seed += 1) found = storyOf(seed, rules);
    expect(found).toBeTypeOf("string");
  });

test("when writing stops, a thousand rounds exchange heads and no record", () => {
  for (const seed of [1, 2, 3]) {
    const world = new World(seed, RULES, { peers: 5 }).run(200);
    expect(world.heal()).toBe(true);
    const [before, sizes] = [world.sent, world.peers.map(({ size }) => size)];
    const asked = world.asked;
    for (let round = 0; round < 1_000; round += 1) expect(world.round()).toBe(0);
    expect(world.sent).toBe(before);
    expect(world.asked).toBeGreaterThan(asked);
    expect(world.peers.map(({ size }) => size)).toEqual(sizes);
    expect(sizes[0]).toBeGreaterThan(20);
  }
});
