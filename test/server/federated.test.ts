// The API of a federated site: its peers, its conflicts, and what the token of a peer may do.

import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { createClient } from "reprise";
import { expect, test } from "vitest";
import {
  cli,
  command,
  DEFINITIONS,
  finished,
  jsonLines,
  matchOutput,
  startCli,
  TemporaryFolder,
} from "../cli/cli-process.ts";
import { double, freshFolder, TestSite, TOKEN } from "../federation/api/sites.ts";
import { openApi } from "./api.ts";

test("peers say how the exchange goes, and two histories of one site are a conflict", async () => {
  const [edge, office] = [new TestSite("edge"), new TestSite("office")];
  const vkeys = { edge: await edge.vkey(), office: await office.vkey() };
  const [first, second] = [freshFolder(), freshFolder()];
  const sending = (url: string) => ({
    store: edge.store,
    peers: { office: { vkey: vkeys.office, url, push: true } },
    publish: [{ to: ["office"], payloads: "full" as const }],
  });
  const origin = vkeys.edge.split("+")[0]!;
  await edge.run(double, { "d-1": 1 });
  const sender = await edge.open(sending(first));
  await sender.setOn(true);

  await office.run(double, { "o-1": 1 });
  const reader = await office.open({ store: office.store, peers: { edge: { vkey: vkeys.edge, url: first } } });
  await using client = await createClient({ store: office.store, definitions: [], logger: false });
  await using api = openApi(client, { federation: reader });
  const peer = async () => (await api.get("/v1/peers")).body.items[0];
  expect((await api.get("/v1/site")).body).toMatchObject({ federated: true });
  expect(await peer()).toMatchObject({ name: "edge", origin, state: "never_met", command: "reprise pull edge" });
  expect((await api.get("/v1/conflicts?all=true")).body).toEqual({ items: [] });

  await sender.push("office");
  await reader.pull("edge");
  expect(await peer()).toMatchObject({ name: "edge", state: "in_step", records: 2 });

  // A copy of the home writes another history with the same key.
  await sender.close();
  const copy = freshFolder();
  cpSync(edge.folder, copy, { recursive: true });
  await edge.run(double, { "d-2": 2 });
  await (await edge.open(sending(first))).push("office");
  await reader.pull("edge");
  const twin = new TestSite("edge", copy);
  await twin.run(double, { "d-3": 3 });
  const other = await twin.open({ ...sending(second), store: twin.store });
  await other.push("office");
  await reader.close();
  const again = await office.open({ store: office.store, peers: { edge: { vkey: vkeys.edge, url: second } } });
  await again.pull("edge").catch(() => undefined);
  await using later = openApi(client, { federation: again });
  const { body } = await later.get("/v1/conflicts");
  expect(body.items[0]).toMatchObject({
    kind: "fork",
    subject: `origin:${origin}`,
    state: "open",
    evidence: { origin },
    command: "reprise fed resolve 1 --as '<decision>'",
  });
  expect((await later.as({ role: "viewer" }).get("/v1/conflicts")).body.items[0].evidence).toBeUndefined();
  expect((await later.get("/v1/peers")).body.items[0]).toMatchObject({
    state: "forked",
    command: "reprise fed conflicts",
  });
});

test("the token of a peer opens the routes of its site, and gets 403 at the API of `reprise serve`", async () => {
  using folder = new TemporaryFolder();
  for (const name of ["edge", "office"]) mkdirSync(folder.file(name));
  const home = folder.file("edge");
  const site = ["--store", `sqlite:${folder.file("shop.db")}`, "--home", home];
  expect((await cli(["run", DEFINITIONS, "greet", '"Ada"', ...site])).code).toBe(0);
  expect((await command(["fed", "on", ...site])).code).toBe(0);
  const key = await command(["key", "--name", "office", "--json", "--home", folder.file("office")]);
  const vkey = jsonLines(key.stdout)[0]!["vkey"] as string;
  const peers = { office: { vkey, token: TOKEN } };
  writeFileSync(`${home}/federation.json`, JSON.stringify({ peers }), { mode: 0o600 });
  const child = startCli(["serve", "--port", "0", "--json", "--no-sync", ...site]);
  const ended = finished(child);
  const [line = ""] = await matchOutput(child, /^.*"url".*\n/);
  const { url, origin } = jsonLines(line)[0] as { url: string; origin: string };
  const headers = { authorization: `Bearer ${TOKEN}` };
  expect((await fetch(`${url}/${origin}/checkpoint`, { headers })).status).toBe(200);
  for (const path of ["/v1/runs", "/v1/peers", "/v1/site"]) {
    const response = await fetch(`${url}${path}`, { headers });
    expect([response.status, await response.json()], path).toMatchObject([
      403,
      { code: "ROLE_REQUIRED", hint: "reprise token create office --role <role>" },
    ]);
  }
  expect((await fetch(`${url}/v1/runs`, { headers: { authorization: `Bearer ${TOKEN}x` } })).status).toBe(401);
  child.kill("SIGTERM");
  expect((await ended).code).toBe(0);
});
