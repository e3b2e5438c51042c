// Acceptance 27, 28 and 29 of the product: order, delta and bound, conflicts. On real homes, with real signatures.

import { expect, test } from "vitest";
import {
  compareRecords,
  foldRecords,
  recordId,
  slotOf,
  stateHashOf,
  type LogRecord,
} from "../../src/federation/index.ts";
import type { Home } from "../../src/federation/home/home.ts";
import { freshHome, linkOf, sync, TestOrigin, valueOf } from "./home/origin.ts";
import { Chance } from "./models/seeded.ts";

const LINK = { type: "supersedes", from: ["run:b"], to: ["run:a"] };
const CELL = `s:${slotOf({ ...LINK })}`;

/** Three sites that write artifacts, links and tombstones at the same time, so that their clocks are equal. */
function threeSites(): TestOrigin[] {
  const sites = ["edge", "hub", "shop"].map((name) => new TestOrigin(name));
  for (let i = 0; i < 6; i += 1)
    for (const [at, site] of sites.entries()) {
      site.value({ i });
      site.put(linkOf({ ...LINK, data: { i, at } }));
      site.tomb(i % 2 === 0 ? `a:${valueOf({ i: i - 1 }).key}` : CELL);
    }
  return sites;
}

test("27: a shuffled log is applied in the order (clock, id, origin), with one state hash on any layout of shards", () => {
  const sites = threeSites();
  const records = sites.flatMap((site) => site.records);
  const sorted = [...records].sort(compareRecords);
  const placeOf = ({ c, ...record }: LogRecord): string =>
    [String(c).padStart(9, "0"), recordId({ c, ...record }), record.o].join(" ");
  expect(sorted.map(placeOf)).toEqual(records.map(placeOf).sort());
  expect(new Set(records.map(({ c }) => c)).size).toBe(18);
  const hash = stateHashOf(foldRecords(sorted));

  const chance = new Chance(27);
  for (let round = 0; round < 1_000; round += 1) {
    const shuffled = chance.shuffled(records);
    expect(stateHashOf(foldRecords(shuffled))).toBe(hash);
    expect(shuffled.sort(compareRecords)).toEqual(sorted);
  }

  for (const [shards, order] of [
    [1, sites],
    [7, [...sites].reverse()],
  ] as const) {
    const home = freshHome({ shards });
    for (const site of sites) site.admitTo(home);
    // Batches of the sites arrive in turns, in another order on each home.
    for (const size of [5, 11, 18])
      for (const site of order) expect(home.ingest(site.batch(home, size)).status).toBe("ingested");
    expect(home.stateHash()).toBe(hash);
    expect([...home.snapshots.provenance()].map(({ origin, n }) => [origin, n])).toEqual(
      sorted.map(({ o, n }) => [o, n]),
    );
  }
});

test("28: only the records behind the cursor are needed, what lies behind the bound is not visible, and a later sync equals a direct one", () => {
  const site = new TestOrigin("edge");
  for (let i = 0; i < 60; i += 1) site.value({ i });
  const [home, direct] = [freshHome(), freshHome()];
  for (const each of [home, direct]) site.admitTo(each);
  expect(home.ingest(site.batch(home, 40))).toMatchObject({ status: "ingested", records: 40 });

  // With 40 here, a batch begins at 41. The signed bound is 50: records behind it are not taken under it.
  const delta = site.batch(home, 50);
  expect(delta.records).toEqual(site.texts.slice(40, 50));
  expect(home.ingest({ ...delta, records: site.texts.slice(40) })).toMatchObject({ status: "refused" });
  expect(home.ingest(delta)).toMatchObject({ status: "ingested", records: 10 });
  const visible = (at: Home): number[] => at.readLog(site.origin, 0, 100).map(({ n }) => n);
  expect(visible(home).at(-1)).toBe(50);
  expect(home.cell(`a:${valueOf({ i: 50 }).key}`)).toBeUndefined();
  const bounded = home.snapshots.create();
  const hash = home.stateHash();
  expect(hash).toBe(stateHashOf(foldRecords(site.records.slice(0, 50))));

  sync(home, site);
  sync(direct, site);
  expect(visible(home)).toEqual(visible(direct));
  expect(home.stateHash()).toBe(direct.stateHash());
  expect(home.stateHash()).not.toBe(hash);
  // The bound stays what it was, here and on the home that never stopped there.
  expect(home.stateHash(bounded.id)).toBe(hash);
  expect(direct.stateHash(bounded.heads)).toBe(hash);
});

test("29: the same bytes are a duplicate, other bytes are a conflict and are not applied", () => {
  const home = freshHome();
  const site = new TestOrigin("edge").admitTo(home);
  site.value({ a: 1 });
  sync(home, site);
  site.value({ a: 1 });
  expect(home.ingest(site.batch(home))).toMatchObject({ status: "ingested", records: 1, duplicates: 1 });
  expect(home.counters()).toEqual({ duplicates: 1 });

  site.value({ a: 2 });
  const { key, type } = valueOf({ a: 2 });
  const forged = { key, type, bytes: Buffer.from('{"a":3}') };
  expect(home.ingest(site.batch(home, 3, { contents: [forged] }))).toMatchObject({ status: "refused" });
  expect(home.content(key)).toBeUndefined();
  expect(home.origin(site.origin)).toMatchObject({ size: 2, cursor: 2 });
  expect(home.conflicts().map(({ kind }) => kind)).toEqual(["content"]);
  // The bytes that fit are taken when they come.
  sync(home, site);
  expect(Buffer.from(home.content(key)!.bytes).toString()).toBe('{"a":2}');
});

test("29: of two links of one slot the later one is visible, and a tombstone hides from its place on", () => {
  const home = freshHome();
  const site = new TestOrigin("edge").admitTo(home);
  const links = [linkOf({ ...LINK, data: 5 }), linkOf({ ...LINK, data: 9 })] as const;
  for (let i = 1; i <= 9; i += 1) {
    if (i === 5) site.put(links[0]);
    else if (i === 8) site.tomb(CELL);
    else if (i === 9) site.put(links[1]);
    else site.value({ i });
  }
  sync(home, site);
  const at = (n: number): unknown => {
    const checkpoint = Buffer.from(site.checkpoint(n).root, "base64").toString("hex");
    const cell = home.cell(CELL, { [site.origin]: [n, checkpoint] });
    return cell && [cell.state, cell.add?.id];
  };
  expect(at(4)).toBeUndefined();
  expect(at(5)).toEqual(["visible", links[0].key]);
  expect(at(7)).toEqual(["visible", links[0].key]);
  expect(at(8)).toEqual(["hidden", links[0].key]);
  expect(at(9)).toEqual(["visible", links[1].key]);
});
