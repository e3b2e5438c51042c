// A home that was lost while its store stayed: what the log says is published comes back from the store.

import { cpSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { archiveTo } from "../../../src/federation/sync/archive.ts";
import { double, everythingIn, folderCarrier, freshFolder, Site } from "./site.ts";

const RULES = [{ to: ["*"], payloads: "full" as const }];

/** The site with its store, and with a new home. */
async function withoutHome(site: Site, archives = false): Promise<Site> {
  await site.close();
  const folder = freshFolder();
  cpSync(site.file, join(folder, "store.db"));
  return new Site(site.name, { rules: RULES, archives }, folder);
}

test("a site that lost its home publishes the same contents again, and logs nothing twice", async () => {
  const first = new Site("edge", { rules: RULES });
  await first.run(double, { "d-1": 1, "d-2": 2 });
  await first.take();
  const [hash, size] = [first.home.stateHash(), first.home.origin(first.origin)!.size];
  const second = await withoutHome(first);
  const carrier = await folderCarrier();
  await second.sync(carrier, "hub");
  expect([second.home.stateHash(), second.home.origin(second.origin)!.size]).toEqual([hash, size]);
  expect(second.home.missing()).toEqual([]);
  const hub = new Site("hub").admit(second);
  expect(await hub.pull(carrier, { journals: "all" })).toMatchObject([{ status: "pulled", journals: 2 }]);
  expect(hub.home.findRuns().map(({ run }) => run)).toEqual(["d-1", "d-2"]);
});

test("an archive of a site that lost its home has the journal of every run that it releases", async () => {
  const first = new Site("edge", { rules: RULES, archives: true });
  await first.run(double, { "d-1": 1 });
  await first.take();
  const second = await withoutHome(first, true);
  const carrier = await folderCarrier();
  await second.meet(carrier);
  await second.take();
  const store = await second.store();
  expect(await archiveTo(store, second.home, second.key, carrier, { state: second.state })).toMatchObject({ runs: 1 });
  expect(everythingIn(carrier.folder)).toContain("OperationCompleted");
});
