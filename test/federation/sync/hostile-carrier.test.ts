// A carrier that anybody can write to: what is wrong with one log stops the pull of that log, and of no other.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { canonicalJson } from "../../../src/base/index.ts";
import { CLAIM_TYPE, STATEMENT_TYPE } from "../../../src/federation/home/facts.ts";
import { contentOf } from "../../../src/federation/log/content.ts";
import { signCheckpoint } from "../../../src/federation/log/checkpoint.ts";
import { decodeEntries, encodeEntries, tilePath } from "../../../src/federation/log/tiles.ts";
import { TestOrigin } from "../home/log-writer.ts";
import { double, folderCarrier, Site } from "./site.ts";

const RULES = [{ to: ["*"], payloads: "full" as const }];

for (const [what, text] of [
  ["no JSON", "{"],
  ["null", "null"],
  ["a number", "7"],
  ["a record whose key is a number", '{"c":1,"k":7,"n":1,"o":"a","op":"put"}'],
  ["a record whose key is an object", '{"c":1,"k":{"a":1},"n":1,"o":"a","op":"put"}'],
] as const)
  test(`a log with an entry that is ${what} is refused, and the others are pulled`, async () => {
    const [bad, good] = [new Site("a-bad", { rules: RULES }), new Site("good", { rules: RULES })];
    const carrier = await folderCarrier();
    for (const site of [bad, good]) {
      await site.run(double, { "d-1": 1 });
      await site.sync(carrier, "hub");
    }
    const file = join(carrier.folder, bad.origin, tilePath("entries", 0, 2));
    const [, second] = decodeEntries(readFileSync(file));
    writeFileSync(file, encodeEntries([text, second!]));
    const hub = new Site("hub").admit(bad, good);
    expect(await hub.pull(carrier, { journals: "all" })).toMatchObject([
      { origin: bad.origin, status: "refused", records: 0 },
      { origin: good.origin, status: "pulled", records: 2 },
    ]);
  });

test("a signed head of no records with another root than that of an empty log is a refusal", () => {
  const hub = new Site("hub");
  const eve = new TestOrigin("eve");
  eve.value(1);
  eve.value(2);
  hub.home.admit(eve.key.vkey);
  expect(hub.home.ingest(eve.batch(hub.home)).status).toBe("ingested");
  const checkpoint = signCheckpoint(eve.key, eve.origin, 0, Buffer.alloc(32, 1));
  const outcome = hub.home.ingest({ origin: eve.origin, records: [], checkpoint, contents: [], journals: [] });
  expect(["refused", "forked"]).toContain(outcome.status);
  expect(hub.home.origin(eve.origin)!.size).toBeGreaterThanOrEqual(0);
  expect(hub.home.check()).toEqual([]);
});

test("a head that nobody signed stops the push of its log, and of no other", async () => {
  const hub = new Site("hub");
  const logs = ["alice", "bob"].map((name) => new TestOrigin(name));
  for (const log of logs) {
    log.value(1);
    hub.home.admit(log.key.vkey);
    hub.home.ingest(log.batch(hub.home));
  }
  const carrier = await folderCarrier();
  const [alice, bob] = logs.map(({ origin }) => origin) as [string, string];
  await carrier.put!(`${alice}/checkpoint`, Buffer.from("garbage"), { absent: true });
  await expect(hub.push(carrier, "anyone")).rejects.toMatchObject({ code: "CHECKPOINT_INVALID" });
  expect(await carrier.get(`${bob}/checkpoint`)).toBeDefined();
});

test("a statement whose tags are no texts is published to nobody, and stops no push", async () => {
  const hub = new Site("hub", { rules: [{ to: ["*"], origins: ["*"], tags: ["a*"], payloads: "full" }] });
  const eve = new TestOrigin("eve");
  const claim = contentOf(CLAIM_TYPE, canonicalJson({ name: "x" }));
  const said = { chain: "", claim: claim.key, generation: 0, journal: { root: "0".repeat(64), size: 1 }, run: "r" };
  const predicate = { ...said, origin: eve.origin, tags: [7, null] };
  eve.put(claim);
  eve.put(contentOf(STATEMENT_TYPE, canonicalJson({ predicate })));
  hub.home.admit(eve.key.vkey);
  expect(hub.home.ingest(eve.batch(hub.home)).status).toBe("ingested");
  expect(await hub.push(await folderCarrier(), "anyone")).toMatchObject([{ status: "pushed", records: 2 }]);
});
