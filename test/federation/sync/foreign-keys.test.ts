// Keys of one log in another: the log is open to every reader, so a hostile site knows the keys of what it may not have.

import { expect, test } from "vitest";
import { canonicalJson } from "../../../src/base/index.ts";
import { workflow } from "reprise";
import { STATEMENT_TYPE } from "../../../src/federation/home/facts.ts";
import { contentOf } from "../../../src/federation/log/content.ts";
import { statementFacts, type PublicationRule } from "../../../src/federation/sync/publish.ts";
import { linkOf, TestOrigin } from "../home/log-writer.ts";
import { everythingIn, folderCarrier, secret, Site } from "./site.ts";

const RELAYED: PublicationRule = { to: ["*"], origins: ["eve/*"], payloads: "full" };

const pure = workflow("vault.pure", async (ctx, pin: string) =>
  ctx.run("open", { pin }, () => `opened ${pin}`, { pure: "1" }),
);

/** A hub with a run that an auditor may have, and a log of eve that puts every key of the hub's log. */
async function hubWithEve(
  rules: readonly PublicationRule[],
): Promise<{ readonly hub: Site; readonly eve: TestOrigin }> {
  const hub = new Site("hub", { rules: [...rules, RELAYED], definitions: [secret, pure] });
  await hub.run(secret, { "v-1": "PIN-1234" });
  await hub.run(pure, { "v-2": "PIN-5678" });
  await hub.take();
  const eve = new TestOrigin("eve");
  for (const { rec } of hub.home.readLog(hub.origin, 0, 100))
    eve.append({ op: "put", k: (JSON.parse(rec) as { readonly k: string }).k });
  hub.home.admit(eve.key.vkey);
  return { hub, eve };
}

test("a site that puts the keys of another one into its own log gets none of their contents by that", async () => {
  const { hub, eve } = await hubWithEve([{ to: ["auditor"], payloads: "full" }]);
  expect(hub.home.ingest(eve.batch(hub.home)).status).toBe("ingested");
  const carrier = await folderCarrier();
  await hub.push(carrier, "eve");
  expect(everythingIn(carrier.folder)).toContain(eve.origin);
  for (const text of ["PIN-1234", "PIN-5678", "vault."]) expect(everythingIn(carrier.folder)).not.toContain(text);
  // Who may have them still has them.
  const auditors = await folderCarrier();
  await hub.push(auditors, "auditor");
  for (const text of ["PIN-1234", "PIN-5678"]) expect(everythingIn(auditors.folder)).toContain(text);
});

test("a reader without payloads does not get them by a statement of its own about the same journal", async () => {
  const { hub, eve } = await hubWithEve([{ to: ["*"], payloads: "hash-only" }]);
  const { statement: key } = hub.home.findRuns({ run: "v-1" })[0]!;
  const statement = hub.home.content(key!)!;
  const { predicate, ...rest } = JSON.parse(Buffer.from(statement.bytes).toString()) as {
    readonly predicate: Readonly<Record<string, unknown>>;
  };
  const forged = contentOf(STATEMENT_TYPE, canonicalJson({ ...rest, predicate: { ...predicate, origin: eve.origin } }));
  expect(statementFacts(forged)).toMatchObject({ origin: eve.origin, run: "v-1" });
  eve.put(forged);
  expect(hub.home.ingest(eve.batch(hub.home)).status).toBe("ingested");
  const carrier = await folderCarrier();
  await hub.push(carrier, "eve");
  expect(everythingIn(carrier.folder)).toContain(statementFacts(forged)!.journal.root);
  expect(everythingIn(carrier.folder)).not.toContain("PIN-1234");
});

test("a link that two sites have put goes to readers that may have it of both", async () => {
  const hub = new Site("hub", { rules: [{ to: ["*"], origins: ["eve/*"], payloads: "full" }] });
  const [alice, eve] = [new TestOrigin("alice"), new TestOrigin("eve")];
  const link = linkOf({ type: "note", from: ["run:a-1"], to: [], data: "SECRET" });
  alice.put(link);
  eve.append({ op: "put", k: link.key, s: alice.records[0]!.s! });
  for (const one of [alice, eve]) {
    hub.home.admit(one.key.vkey);
    expect(hub.home.ingest(one.batch(hub.home)).status).toBe("ingested");
  }
  const carrier = await folderCarrier();
  await hub.push(carrier, "eve");
  expect(everythingIn(carrier.folder)).not.toContain("SECRET");
  hub.rules = [...hub.rules, { to: ["*"], origins: ["alice/*"], payloads: "full" }];
  await hub.push(carrier, "eve", { fill: true });
  expect(everythingIn(carrier.folder)).toContain("SECRET");
});
