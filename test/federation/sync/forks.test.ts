// T-03: a site that signs two logs is found out by whoever meets both, and everybody else learns it from the evidence.

import { cpSync } from "node:fs";
import { expect, test } from "vitest";
import type { Carrier } from "../../../src/carriers/carrier.ts";
import { verifyEvidence } from "../../../src/federation/home/fork-evidence.ts";
import { KeyHistory } from "../../../src/federation/log/key-history.ts";
import { canonicalJson } from "../../../src/base/index.ts";
import { double, folderCarrier, freshFolder, Site } from "./site.ts";

const RULES = [{ to: ["*"], payloads: "full" as const }];
const RELAY = [...RULES, { to: ["*"], origins: ["*"], payloads: "full" as const }];

/** A site that writes two logs with one key: `common` runs in both, then others. */
async function twoFaced(common: number, left: number, right: number): Promise<[Site, Site]> {
  const first = new Site("evil", { rules: RULES });
  const runs = (from: number, count: number): Record<string, number> =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`e-${from + index}`, from + index]));
  await first.run(double, runs(0, common));
  await first.take();
  await first.closeStore();
  const folder = freshFolder();
  cpSync(first.folder, folder, { recursive: true });
  const second = new Site("evil", { rules: RULES }, folder);
  await first.run(double, runs(100, left));
  await first.take();
  await second.run(double, runs(200, right));
  await second.take();
  return [first, second];
}

for (const [left, right] of [
  [1, 1],
  [1, 3],
  [3, 1],
] as const)
  test(`two peers that got other logs of ${left} and ${right} runs keep what is common, and other logs go on`, async () => {
    const [evil, twin] = await twoFaced(2, left, right);
    const [toA, toB, shared] = [await folderCarrier(), await folderCarrier(), await folderCarrier()];
    await evil.push(toA, "a");
    await twin.push(toB, "b");
    const [a, b, c] = ["a", "b", "c"].map((name) => new Site(name, { rules: RELAY })) as [Site, Site, Site];
    a.admit(evil, b, c);
    b.admit(evil, a, c);
    c.admit(evil, a, b);
    await a.pull(toA, { journals: "all" });
    await b.pull(toB, { journals: "all" });
    expect(a.home.origin(evil.origin)).toMatchObject({ status: "active", size: 4 + 2 * left });

    // Both use one carrier; who comes second meets the other log.
    await a.run(double, { "a-1": 1 });
    await a.sync(shared, "all");
    expect(await b.pull(shared)).toContainEqual(expect.objectContaining({ origin: evil.origin, status: "forked" }));
    expect(b.home.origin(evil.origin)).toMatchObject({ status: "forked", size: 4 });
    expect(b.home.findRuns({ origin: a.origin }).map(({ run }) => run)).toEqual(["a-1"]);
    const conflict = b.home.conflicts({ kind: "fork" }).find(({ evidence }) => Object(evidence).branches !== undefined);
    const evidence = verifyEvidence(canonicalJson(conflict!.evidence), KeyHistory.genesis(evil.key.vkey));
    expect(evidence).toMatchObject({ origin: evil.origin, at: 4 });

    // The evidence travels in the log of b: a and c quarantine as well, c without having met the other log.
    await c.pull(shared, { journals: "all" });
    expect(c.home.origin(evil.origin)).toMatchObject({ status: "active" });
    await b.sync(shared, "all");
    await a.pull(shared);
    await c.pull(shared);
    for (const site of [a, c])
      expect(site.home.origin(evil.origin), site.name).toMatchObject({ status: "forked", size: 4 });
    const states = [a, b, c].map(({ home }) => home.findRuns({ origin: evil.origin }).map(({ run }) => run));
    expect(states).toEqual([
      ["e-0", "e-1"],
      ["e-0", "e-1"],
      ["e-0", "e-1"],
    ]);

    // Others go on.
    await a.run(double, { "a-2": 2 });
    await a.sync(shared, "all");
    await b.pull(shared);
    await c.pull(shared);
    for (const site of [b, c])
      expect(site.home.findRuns({ origin: a.origin }).map(({ run }) => run)).toEqual(["a-1", "a-2"]);
  });

test("a carrier whose files were changed is refused, and proves no fork", async () => {
  const edge = new Site("edge", { rules: RULES });
  const hub = new Site("hub").admit(edge);
  const carrier: Carrier = await folderCarrier();
  await edge.run(double, { "d-1": 1 });
  await edge.sync(carrier, "hub");
  const path = `${edge.origin}/tile/entries/000.p/2`;
  const file = (await carrier.get(path)) as { bytes: Uint8Array; etag: string };
  const text = Buffer.from(file.bytes)
    .toString("latin1")
    .replace(/"k":"./, (match) => `"k":"${match.at(-1) === "0" ? "1" : "0"}`);
  await carrier.put!(path, Buffer.from(text, "latin1"), { match: file.etag });
  expect(await hub.pull(carrier)).toMatchObject([{ status: "refused", code: "ROOT_MISMATCH", records: 0 }]);
  expect(hub.home.origin(edge.origin)).toMatchObject({ status: "active", size: 0 });
  expect(hub.home.conflicts()).toEqual([]);
});
