// Real runs: sites that push to and pull from a server, a reader of tiled logs that knows nothing of Reprise, bundles of runs.

import { expect, onTestFinished, test } from "vitest";
import { createEngine, workflow } from "reprise";
import { systemClock, systemRandom, systemTimers } from "../../../src/base/index.ts";
import { HttpCarrier } from "../../../src/carriers/http.ts";
import {
  createFederationHandler,
  type FederationHandlerOptions,
} from "../../../src/federation/serve/federation-handler.ts";
import { listen, type Listener } from "../../../src/http/index.ts";
import type { PeerAccess } from "../../../src/federation/serve/peer-access.ts";
import { tokenDigest } from "../../../src/http/index.ts";
import { checkBundle } from "../../../src/receipts/index.ts";
import { inputOf } from "../../receipts/bundled.ts";
import { statementFacts } from "../../../src/federation/sync/publish.ts";
import { double, secret, Site } from "../sync/site.ts";
import { checkInclusion, readTiledLog } from "../tlog-reader.ts";
import { refusalOf, SampleLog, startSite, take } from "./serve-fixture.ts";

function accessOf(name: string): PeerAccess {
  return { name, tokenSha256: tokenDigest(`token-of-${name}-0000`), pull: ["*"], push: true, grants: [] };
}

/** Serves the home of a site; every name in `peers` has a token. */
async function serve(
  site: Site,
  peers: readonly string[],
  more: Partial<FederationHandlerOptions> = {},
): Promise<Listener & { carrierOf(name: string): HttpCarrier; get(path: string, name: string): Promise<Response> }> {
  const handler = createFederationHandler(site.home, {
    peers: () => peers.map(accessOf),
    rules: () => site.rules,
    own: site.origin,
    key: site.key,
    store: await site.store(),
    ...more,
  });
  const listener = await listen(handler, { timers: systemTimers });
  onTestFinished(() => listener.close());
  const ports = { clock: systemClock, timers: systemTimers, random: systemRandom };
  const get = (path: string, name: string): Promise<Response> =>
    fetch(`${listener.url}${path}`, { headers: { authorization: `Bearer token-of-${name}-0000` } });
  return {
    ...listener,
    get,
    carrierOf: (name) => new HttpCarrier(listener.url, { ...ports, token: `token-of-${name}-0000` }),
  };
}

test("an edge pushes to a hub, an auditor pulls from the hub, and all three have the same state", async () => {
  const edge = new Site("edge", { rules: [{ to: ["hub"], definitions: ["math.*"], payloads: "full" }] });
  const hub = new Site("hub", { rules: [{ to: ["auditor"], origins: ["edge/*"], payloads: "full" }] }).admit(edge);
  const auditor = new Site("auditor").admit(edge, hub);
  const server = await serve(hub, ["edge", "auditor"]);
  await edge.run(double, { "d-1": 4, "d-2": 5 });
  await edge.run(secret, { "s-1": "1234" });
  await edge.take();
  const [pushed] = await edge.push(server.carrierOf("edge"), "hub");
  expect(pushed).toMatchObject({ origin: edge.origin, status: "pushed" });
  const pulled = await auditor.pull(server.carrierOf("auditor"), { journals: "all" });
  expect(pulled.find(({ origin }) => origin === edge.origin)).toMatchObject({ status: "pulled", journals: 2 });
  expect(hub.home.stateHash()).toBe(edge.home.stateHash());
  expect(auditor.home.stateHash()).toBe(edge.home.stateHash());
  expect(auditor.home.findRuns({ origin: edge.origin }).map(({ run }) => run)).toEqual(["d-1", "d-2"]);
  // Again: nothing moves.
  expect(await edge.push(server.carrierOf("edge"), "hub")).toMatchObject([{ status: "unchanged", files: 0 }]);
  const again = await auditor.pull(server.carrierOf("auditor"), { journals: "all" });
  expect(again.map(({ records, contents }) => records + contents)).toEqual([0, 0]);
  // A longer log is pushed from where the hub is.
  await edge.run(double, { "d-3": 6 });
  await edge.take();
  expect(await edge.push(server.carrierOf("edge"), "hub")).toMatchObject([{ status: "pushed" }]);
  await auditor.pull(server.carrierOf("auditor"), { journals: "all" });
  expect(auditor.home.stateHash()).toBe(edge.home.stateHash());
});

test("a peer gets the journals that rules give it, without payloads where they say so", async () => {
  const edge = new Site("edge", {
    rules: [
      { to: ["hub"], payloads: "full" },
      { to: ["auditor"], payloads: "hash-only" },
      { to: ["stranger"], origins: ["edge7/*"], payloads: "full" },
    ],
  });
  const relayed = new SampleLog().grow(1);
  take(edge.home, relayed);
  const server = await serve(edge, ["hub", "auditor", "stranger"]);
  await edge.run(secret, { "s-1": "pin-1234" });
  await edge.take();
  const bytesFor = async (name: string): Promise<string> => {
    const reader = new Site(`${name}-home`).admit(edge);
    const carrier = server.carrierOf(name);
    await reader.pull(carrier, { journals: "all" });
    const { size } = edge.home.checkpoint(edge.origin)!;
    const pack = await server.get(`/${edge.origin}/pack/000.p/${size}`, name);
    const root = edge.home.findRuns({ origin: edge.origin })[0]!;
    const journals = reader.home.findRuns({ origin: edge.origin }).length;
    return `${journals} ${await pack.text()} ${root.run}`;
  };
  expect((await bytesFor("stranger")).startsWith("0  ")).toBe(true);
  expect(await bytesFor("auditor")).not.toContain("pin-1234");
  const [found] = edge.home.findRuns({ origin: edge.origin });
  const statement = edge.home.content(found!.statement!)!;
  const { journal } = (
    JSON.parse(Buffer.from(statement.bytes).toString()) as { predicate: { journal: { root: string } } }
  ).predicate;
  const path = `/${edge.origin}/journal/${journal.root.slice(0, 2)}/${journal.root}`;
  expect(await (await server.get(path, "hub")).text()).toContain("pin-1234");
  const leaves = await server.get(path, "auditor");
  expect(leaves.status).toBe(200);
  expect(await leaves.text()).not.toContain("pin-1234");
  expect(await refusalOf(await server.get(path, "stranger"))).toEqual([404, "NOT_PUBLISHED"]);
  // A rule for one log does not open the journals of another.
  const elsewhere = path.replace(edge.origin, relayed.origin);
  expect(await refusalOf(await server.get(elsewhere, "stranger"))).toEqual([404, "NOT_PUBLISHED"]);
  const other = path.replace(journal.root, `${journal.root.slice(0, 2)}${"0".repeat(62)}`);
  expect(await refusalOf(await server.get(other, "hub"))).toEqual([404, "NOT_PUBLISHED"]);
});

test("a reader of tiled logs that was written from the specification reads a log of this server", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(1_000);
  take(site.home, log);
  const files = new Map<string, Promise<Uint8Array | undefined>>();
  const fetchFile = async (path: string): Promise<Uint8Array | undefined> => {
    const response = await site.send(`/${log.origin}/${path}`);
    return response.status === 200 ? new Uint8Array(await response.arrayBuffer()) : undefined;
  };
  const get = (path: string): Promise<Uint8Array | undefined> => {
    const file = files.get(path) ?? fetchFile(path);
    files.set(path, file);
    return file;
  };
  const read = await readTiledLog(get, log.key.vkey);
  expect(read.size).toBe(1_000);
  expect(read.entries.map(String)).toEqual(log.records);
  for (const index of [0, 255, 256, 767, 999]) await checkInclusion(get, read, index, Buffer.from(log.records[index]!));
});

test("a bundle of a run verifies, also while the run waits, and is given by rules alone", async () => {
  const edge = new Site("edge", { rules: [{ to: ["hub"], definitions: ["math.*", "waits"], payloads: "full" }] });
  const waits = workflow("waits", async (ctx) => ctx.sleep("1 day"));
  const server = await serve(edge, ["hub"]);
  await edge.run(double, { "d/1": 4 });
  await edge.run(secret, { "s-1": "1234" });
  await using engine = await createEngine({ store: `sqlite:${edge.file}`, definitions: [waits], logger: SILENT });
  await engine.start(waits, undefined, { id: "w-1" });
  const store = await edge.store();
  await expect.poll(async () => (await store.findRun("w-1"))?.head, { timeout: 20_000 }).toBeGreaterThan(1);
  for (const id of ["d/1", "w-1"]) {
    const response = await server.get(`/run/${encodeURIComponent(id)}`, "hub");
    expect(response.status).toBe(200);
    const bytes = Buffer.from(await response.arrayBuffer());
    const reports = await Array.fromAsync(checkBundle(inputOf(bytes), [edge.key]));
    expect(reports.map(({ run, problem, signature }) => [run.id, problem, signature.status])).toEqual([
      [id, undefined, "trusted"],
    ]);
  }
  expect(await refusalOf(await server.get("/run/s-1", "hub"))).toEqual([404, "NOT_PUBLISHED"]);
  expect(await refusalOf(await server.get("/run/no-run", "hub"))).toEqual([404, "NOT_PUBLISHED"]);
});

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

test("a relay that changes the row of a journal is refused, and the journal as it was is taken", async () => {
  const rules = [{ to: ["*"], payloads: "full" as const }];
  const edge = new Site("edge", { rules });
  const hub = new Site("hub").admit(edge);
  const server = await serve(hub, ["edge"]);
  await edge.run(double, { "d-1": 4 });
  await edge.take();
  const carrier = server.carrierOf("edge");
  const hostile = Object.assign(server.carrierOf("edge"), {
    put: (path: string, bytes: Uint8Array, options: Parameters<typeof carrier.put>[2]) =>
      carrier.put(path, path.includes("/journal/") ? changed(bytes) : bytes, options),
  });
  await expect(edge.push(hostile, "hub")).rejects.toMatchObject({ code: "CONTENT_DAMAGED" });
  expect(hub.home.origin(edge.origin)!.size).toBe(0);
  expect(await edge.push(carrier, "hub")).toMatchObject([{ status: "pushed" }]);
  const [run] = hub.home.findRuns({ run: "d-1" });
  const { journal } = statementFacts(hub.home.content(run!.statement!)!)!;
  expect(hub.home.journal(journal.root)).toEqual(edge.home.journal(journal.root));
  // Later, too.
  const path = `${edge.origin}/journal/${journal.root.slice(0, 2)}/${journal.root}`;
  await expect(carrier.put(path, changed(edge.home.journal(journal.root)!), { absent: true })).rejects.toMatchObject({
    code: "CONTENT_DAMAGED",
  });
});

/** A journal file with another row: its root is the same. */
function changed(file: Uint8Array): Uint8Array {
  const text = Buffer.from(file).toString();
  return Buffer.from(text.replace('"status":"completed"', '"status":"failed"'));
}
