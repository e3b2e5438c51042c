// T-14: what no rule publishes never leaves a site.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { aesGcm } from "reprise";
import { expect, test } from "vitest";
import { sha256Hex, valueKey } from "../../../src/base/index.ts";
import { payloadsFor, statementFacts, type PublicationRule } from "../../../src/federation/sync/publish.ts";
import { double, everythingIn, folderCarrier, secret, Site } from "./site.ts";

test("the first rule that fits a reader and a run decides", () => {
  const rules: readonly PublicationRule[] = [
    { to: ["*"], tags: ["private*"], payloads: "none" },
    { to: ["hub"], definitions: ["billing.*", "a*b*c"], payloads: "full" },
    { to: ["auditor"], payloads: "hash-only" },
    { to: ["auditor"], origins: ["edge/*"], payloads: "full" },
  ];
  const of = (reader: string, definition: string, tags: readonly string[] = [], origin?: string): string =>
    payloadsFor(rules, reader, { definition, tags, ...(origin !== undefined && { origin }) });
  expect(of("hub", "billing.charge")).toBe("full");
  expect(of("hub", "billing.charge", ["private-7"])).toBe("none");
  expect(of("hub", "billing")).toBe("none");
  expect(of("hub", "axbxc")).toBe("full");
  expect(of("hub", "abxcx")).toBe("none");
  expect(of("auditor", "billing.charge")).toBe("hash-only");
  expect(of("auditor", "billing.charge", [], "edge/0011223344556677")).toBe("full");
  expect(of("hub", "billing.charge", [], "edge/0011223344556677")).toBe("none");
  expect(of("stranger", "billing.charge")).toBe("none");
});

test("no byte that a peer got holds text that no rule publishes to it", async () => {
  const edge = new Site("edge", {
    rules: [
      { to: ["hub"], definitions: ["math.*"], payloads: "full" },
      { to: ["auditor"], payloads: "hash-only" },
    ],
  });
  await edge.run(double, { "sum-of-march": 4711471147 });
  await edge.run(secret, { "vault-of-anna": "pin 9876" });
  const [hub, auditor, stranger] = [await folderCarrier(), await folderCarrier(), await folderCarrier()];
  await edge.sync(hub, "hub");
  await edge.push(auditor, "auditor");
  await edge.push(stranger, "stranger");

  const [toHub, toAuditor, toStranger] = [hub, auditor, stranger].map(({ folder }) => everythingIn(folder)) as [
    string,
    string,
    string,
  ];
  expect(toHub).toContain("4711471147");
  expect(toHub).toContain("sum-of-march");
  for (const text of ["pin 9876", "vault-of-anna", "vault.open"]) expect(toHub).not.toContain(text);
  for (const text of ["sum-of-march", "vault-of-anna", "vault.open"]) expect(toAuditor).toContain(text);
  for (const text of ["4711471147", "9422942294", "pin 9876"]) expect(toAuditor).not.toContain(text);
  for (const text of ["4711471147", "9422942294", "pin 9876", "march", "anna", "vault", "math"])
    expect(toStranger).not.toContain(text);
  // The log is the same for all.
  const notes = [hub, auditor, stranger].map(({ folder }) =>
    readFileSync(join(folder, edge.origin, "checkpoint"), "utf8"),
  );
  expect(new Set(notes).size).toBe(1);
});

test("an input of four digits cannot be found in what an encrypted store publishes", async () => {
  const codec = aesGcm({ keys: { one: Buffer.alloc(32, 1) }, current: "one" });
  const edge = new Site("edge", { codec, rules: [{ to: ["*"], payloads: "full" }] });
  await edge.run(secret, { "vault-1": "pin 9876" });
  const carrier = await folderCarrier();
  await edge.sync(carrier, "hub");
  const text = everythingIn(carrier.folder);
  expect(text).toContain("vault-1");
  expect(text).toContain('\\"blind\\":true');
  expect(text).not.toContain("pin 9876");
  // Who guesses the input knows its text, and so everything that a plain digest would be made of.
  const digests = Array.from({ length: 10_000 }, (_, pin) =>
    JSON.stringify(`pin ${String(pin).padStart(4, "0")}`),
  ).flatMap((guess) =>
    [guess, `{"pin":${guess}}`, guess.replace('"pin', '"opened pin')].flatMap((value) => [
      valueKey(value),
      sha256Hex(value),
    ]),
  );
  expect(digests.filter((digest) => text.includes(digest))).toEqual([]);
});

test("a rule that is added later fills up what a reader has already passed", async () => {
  const edge = new Site("edge", { rules: [{ to: ["hub"], definitions: ["math.*"], payloads: "full" }] });
  const hub = new Site("hub").admit(edge);
  const carrier = await folderCarrier();
  await edge.run(double, { "d-1": 4 });
  await edge.run(secret, { "s-1": "pin 9876" });
  await edge.sync(carrier, "hub");
  await hub.pull(carrier, { journals: "all" });
  expect(hub.home.findRuns().map(({ run }) => run)).toEqual(["d-1"]);

  edge.rules = [{ to: ["hub"], payloads: "full" }];
  await edge.sync(carrier, "hub");
  await hub.pull(carrier, { journals: "all" });
  expect(hub.home.findRuns().map(({ run }) => run)).toEqual(["d-1", "s-1"]);
});

test("a reader that is named later gets the contents of records that it has", async () => {
  const edge = new Site("edge", { rules: [{ to: ["hub"], payloads: "full" }] });
  const auditor = new Site("auditor").admit(edge);
  const [up, down] = [await folderCarrier(), await folderCarrier()];
  await edge.run(double, { "d-1": 4 });
  await edge.sync(up, "hub");
  await edge.push(down, "auditor");
  await auditor.pull(down, { journals: "all" });
  expect(auditor.home.findRuns()).toEqual([]);

  edge.rules = [...edge.rules, { to: ["auditor"], payloads: "hash-only" }];
  await edge.sync(down, "auditor");
  const [filled] = await auditor.pull(down, { journals: "all", fill: true });
  expect(filled).toMatchObject({ status: "pulled", records: 0, contents: 3, journals: 1 });
  expect(auditor.home.findRuns().map(({ run }) => run)).toEqual(["d-1"]);
});

test("a reader without payloads gets them when a rule gives them later", async () => {
  const edge = new Site("edge", { rules: [{ to: ["hub"], payloads: "hash-only" }] });
  await edge.run(secret, { "v-1": "PIN-1234" });
  const carrier = await folderCarrier();
  await edge.sync(carrier, "hub");
  const hub = new Site("hub").admit(edge);
  await hub.pull(carrier, { journals: "all" });
  const { journal } = statementFacts(hub.home.content(hub.home.findRuns()[0]!.statement!)!)!;
  const text = (): string => Buffer.from(hub.home.journal(journal.root)!).toString();
  expect(text()).not.toContain("PIN-1234");

  edge.rules = [{ to: ["hub"], payloads: "full" }];
  await edge.sync(carrier, "hub");
  expect(await hub.pull(carrier, { journals: "all", fill: true })).toMatchObject([{ status: "pulled", journals: 1 }]);
  expect(text()).toContain("PIN-1234");
  expect(await hub.pull(carrier, { journals: "all", fill: true })).toMatchObject([{ status: "unchanged" }]);
});
