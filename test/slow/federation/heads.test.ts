// T-09: rounds in which nothing happens.

import { expect, test } from "vitest";
import { interrupted } from "../../federation/sync/interrupted-carrier.ts";
import { double, filesIn, folderCarrier, Site } from "../../federation/sync/site.ts";

const RULES = [{ to: ["*"], payloads: "full" as const }];

test("when writing stops, five peers exchange nothing but heads in 1,000 rounds", async () => {
  const hub = await folderCarrier();
  const sites = Array.from({ length: 5 }, (_, index) => new Site(`site-${index}`, { rules: RULES }));
  for (const site of sites) site.admit(...sites.filter((other) => other !== site));
  for (const [index, site] of sites.slice(0, 3).entries()) await site.run(double, { [`d-${index}`]: index });
  for (let round = 0; round < 2; round += 1)
    for (const site of sites) {
      await site.pull(hub, { journals: "all" });
      await site.sync(hub, "hub");
    }
  const hashes = (): string[] => sites.map(({ home }) => home.stateHash());
  expect(new Set(hashes()).size).toBe(1);
  const sizes = sites.map(({ home }) => home.origins().map(({ size }) => size));
  const before = filesIn(hub.folder);

  const counted = interrupted(hub);
  for (let round = 0; round < 1_000; round += 1) {
    const site = sites[round % sites.length]!;
    await site.pull(counted);
    await site.sync(counted, "hub");
  }
  expect(counted.operations.filter((operation) => !/^get site-\d\/[0-9a-f]{16}\/checkpoint$/.test(operation))).toEqual(
    [],
  );
  expect(sites.map(({ home }) => home.origins().map(({ size }) => size))).toEqual(sizes);
  expect(filesIn(hub.folder)).toEqual(before);
});
