// createFederation: edge, hub and auditor in one process, over folders and over HTTP.

import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createEngine } from "reprise";
import { createFederation } from "reprise/federation";
import { DEFINITIONS, double, freshFolder, movie, render, secret, TestSite, TOKEN } from "./sites.ts";

/** Whether a file of the folder holds the text. */
function holds(folder: string, text: string): boolean {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8", withFileTypes: true });
  return files.some((file) => file.isFile() && readFileSync(join(file.parentPath, file.name)).includes(text));
}

describe("through a folder", () => {
  test("a site publishes what its rules say, and another one takes it", async () => {
    const [edge, office] = [new TestSite("edge"), new TestSite("office")];
    const shared = freshFolder();
    const edgeVkey = await edge.vkey();
    const officeVkey = await office.vkey();
    const sender = await edge.open({
      store: edge.store,
      peers: { office: { vkey: officeVkey, url: shared, push: true } },
      publish: [{ to: ["office"], definitions: ["math.*"], payloads: "full" }],
    });
    await sender.setOn(true);
    await edge.run(double, { "d-1": 4, "d-2": 5 });
    await edge.run(secret, { "s-1": "1234" });
    const steps: number[][] = [];
    const onProgress = (...step: number[]): unknown => steps.push(step);
    expect(await sender.push("office", { onProgress })).toMatchObject([{ peer: "office", pushed: 5, contents: 8 }]);
    expect(await sender.push()).toMatchObject([{ peer: "office", pushed: 0, contents: 0 }]);

    const reader = await office.open({ peers: { edge: { vkey: edgeVkey, url: shared } } });
    expect(await reader.pull("edge", { onProgress })).toEqual([{ peer: "edge", pulled: 5, pushed: 0, contents: 8 }]);
    expect(steps).toEqual([
      [5, 5],
      [5, 5],
    ]);
    expect(await reader.pull("edge")).toEqual([{ peer: "edge", pulled: 0, pushed: 0, contents: 0 }]);
    expect(await reader.snapshots.stateHash()).toBe(await sender.snapshots.stateHash());
    expect((await reader.status()).snapshot).toBe((await sender.status()).snapshot);
    expect((await sender.status()).waiting).toBe(0);
  });
});

test("a process that runs while another one rotates the key goes on with the new one", async () => {
  const edge = new TestSite("edge");
  const running = await edge.open({ store: edge.store });
  await running.setOn(true);
  await edge.run(double, { "d-1": 4 });
  await running.head();
  const other = await edge.open({ store: edge.store });
  await other.rotateKey();
  await edge.run(double, { "d-2": 5 });
  const head = await running.head();
  expect(head).toBe(await other.head());
  expect(head.split("\n")[1]).toBe("3");
});

test("a restored site whose carrier is away at first takes its records back when it returns", async () => {
  const [edge, office] = [new TestSite("edge"), new TestSite("office")];
  const shared = join(freshFolder(), "shared");
  mkdirSync(shared);
  const peers = { office: { vkey: await office.vkey(), url: shared, push: true } };
  const publish = [{ to: ["office"], payloads: "full" as const }];
  const first = await edge.open({ store: edge.store, peers, publish });
  await first.setOn(true);
  await edge.run(double, { "d-1": 4 });
  await first.push();
  await first.close();
  const backup = new TestSite("edge");
  cpSync(edge.folder, backup.folder, { recursive: true });
  const second = await edge.open({ store: edge.store, peers, publish });
  await edge.run(double, { "d-2": 5 });
  await second.push();
  const hash = await second.snapshots.stateHash();
  await second.close();

  renameSync(shared, `${shared}.away`);
  writeFileSync(shared, "");
  const restored = await backup.open({ store: backup.store, peers, publish });
  expect(await restored.push()).toMatchObject([{ pushed: 0, error: expect.anything() }]);
  rmSync(shared);
  renameSync(`${shared}.away`, shared);
  await restored.push();
  await restored.push();
  expect(await restored.snapshots.stateHash()).toBe(hash);
});

describe("over HTTP", () => {
  test("an edge pushes to a hub, and an auditor pulls from it what the hub relays", async () => {
    const [edge, hub, auditor] = [new TestSite("edge"), new TestSite("hub"), new TestSite("auditor")];
    const vkeys = { edge: await edge.vkey(), hub: await hub.vkey(), auditor: await auditor.vkey() };
    const center = await hub.open({
      peers: { edge: { vkey: vkeys.edge, token: TOKEN }, auditor: { vkey: vkeys.auditor, token: `${TOKEN}-auditor` } },
      publish: [{ to: ["auditor"], origins: ["edge/*"], payloads: "hash-only" }],
    });
    const { url } = await center.serve({ port: 0 });
    const sender = await edge.open({
      store: edge.store,
      peers: { hub: { vkey: vkeys.hub, url, token: TOKEN, push: true } },
      publish: [{ to: ["hub"], payloads: "full" }],
    });
    await sender.setOn(true);
    await edge.run(double, { "d-1": 4 });
    await edge.run(secret, { "s-1": "1234" });
    expect(await sender.push("hub")).toEqual([{ peer: "hub", pulled: 0, pushed: 4, contents: expect.any(Number) }]);

    const reader = await auditor.open({
      peers: {
        hub: { vkey: vkeys.hub, url, token: `${TOKEN}-auditor`, pull: ["*"] },
        edge: { vkey: vkeys.edge },
      },
    });
    expect(await reader.pull("hub")).toMatchObject([{ peer: "hub", pulled: 4, contents: 8 }]);
    expect(await reader.snapshots.stateHash()).toBe(await sender.snapshots.stateHash());
    expect([holds(hub.home, "opened 1234"), holds(auditor.home, "opened 1234")]).toEqual([true, false]);
    expect(holds(auditor.home, "vault.open")).toBe(true);
  });

  test("a request without a token gets nothing, and one beyond loopback needs TLS", async () => {
    const hub = new TestSite("hub");
    const center = await hub.open();
    await expect(center.serve({ host: "0.0.0.0", port: 0 })).rejects.toThrow(/other machines reach 0\.0\.0\.0/);
    const { url } = await center.serve({ port: 0 });
    expect(await (await fetch(url)).json()).not.toHaveProperty("origins");
  });

  test("in the background, a run reaches the other site without a call", async () => {
    const [edge, hub] = [new TestSite("edge"), new TestSite("hub")];
    const vkeys = { edge: await edge.vkey(), hub: await hub.vkey() };
    const center = await hub.open({ peers: { edge: { vkey: vkeys.edge, token: TOKEN } } });
    const { url } = await center.serve({ port: 0 });
    const sender = await edge.open({
      store: edge.store,
      sync: "continuous",
      peers: { hub: { vkey: vkeys.hub, url, token: TOKEN, push: true } },
      publish: [{ to: ["hub"], payloads: "full" }],
    });
    await sender.setOn(true);
    await edge.run(double, { "d-1": 4 });
    const sizeAtHub = async (): Promise<number | undefined> =>
      (await center.status()).origins.find(({ peer }) => peer === "edge")?.size;
    await expect.poll(sizeAtHub, { timeout: 20_000 }).toBe(2);
    expect(await center.snapshots.stateHash()).toBe(await sender.snapshots.stateHash());
  });

  test("a peer that cannot be reached is in the report and in the status; the others are served", async () => {
    const [edge, hub] = [new TestSite("edge"), new TestSite("hub")];
    const shared = freshFolder();
    const sender = await edge.open({
      store: edge.store,
      peers: {
        hub: { vkey: await hub.vkey(), url: "http://127.0.0.1:1", token: TOKEN, push: true },
        disk: { vkey: await new TestSite("disk").vkey(), url: shared, push: true },
      },
      publish: [{ to: ["*"], payloads: "full" }],
    });
    await sender.setOn(true);
    await edge.run(double, { "d-1": 4 });
    const [toHub, toDisk] = await sender.push();
    expect(toHub).toMatchObject({ peer: "hub", pushed: 0, error: { code: "CARRIER_UNREACHABLE" } });
    expect(toDisk).toMatchObject({ peer: "disk", pushed: 2 });
    const { peers } = await sender.status();
    expect(peers.map(({ name, error }) => [name, error?.code])).toEqual([
      ["hub", "CARRIER_UNREACHABLE"],
      ["disk", undefined],
    ]);
  });
});

describe("work", () => {
  test("a task with a label of a peer is executed there, and its run ends here", async () => {
    const [edge, studio] = [new TestSite("edge"), new TestSite("studio")];
    const vkeys = { edge: await edge.vkey(), studio: await studio.vkey() };
    const home = await edge.open({
      store: edge.store,
      definitions: DEFINITIONS,
      peers: { studio: { vkey: vkeys.studio, token: TOKEN } },
      work: { gpu: "studio" },
    });
    await home.setOn(true);
    const { url } = await home.serve({ port: 0 });
    await studio.open({
      sync: "continuous",
      definitions: DEFINITIONS,
      peers: { edge: { vkey: vkeys.edge, url, token: TOKEN } },
      execute: { for: ["edge"], labels: ["gpu"] },
    });
    await using engine = await createEngine({ store: edge.store, definitions: [movie, render], logger: false });
    const run = await engine.start(movie, "a lake", { id: "m-1" });
    expect(await run.result()).toBe("a lake in color");
  });

  test("a site that offers work needs the tasks, and a site that executes it needs the address", async () => {
    const [edge, studio] = [new TestSite("edge"), new TestSite("studio")];
    const peers = { studio: { vkey: await studio.vkey(), token: TOKEN } };
    const home = await edge.open({ store: edge.store, peers, work: { gpu: "studio" } });
    await expect(home.serve({ port: 0 })).rejects.toThrow(/work\.gpu: no task of `definitions` has the label gpu/);
    await expect(edge.open({ peers, execute: { for: ["studio"] } })).rejects.toThrow(
      /execute\.for: the peer studio has no https:\/\/ URL/,
    );
  });
});

describe("a site", () => {
  test("refuses options that it does not know before it writes anything", async () => {
    const folder = freshFolder();
    const home = join(folder, "home");
    await expect(createFederation({ home, pears: {} } as never)).rejects.toThrow(
      /createFederation: there is no option "pears"; expected archive/,
    );
    await expect(createFederation({ home, peers: { hub: { vkey: "none" } } })).rejects.toThrow(/peers\.hub\.vkey/);
    expect(statSync(home, { throwIfNoEntry: false })).toBeUndefined();
  });

  test("keeps its origin when its key rotates, and its peers follow", async () => {
    const [edge, office] = [new TestSite("edge"), new TestSite("office")];
    const shared = freshFolder();
    const first = await edge.vkey();
    const publish = [{ to: ["*"], payloads: "full" }] as const;
    const peers = { office: { vkey: await office.vkey(), url: shared, push: true } };
    const sender = await edge.open({ store: edge.store, peers, publish });
    await sender.setOn(true);
    await edge.run(double, { "d-1": 4 });
    await sender.push();
    const { origin } = sender;
    const { vkey } = await sender.rotateKey();
    expect(vkey).not.toBe(first);
    await edge.run(double, { "d-2": 5 });
    await sender.push();
    await sender.close();

    const again = await edge.open({ store: edge.store, peers, publish });
    expect([again.origin, again.vkey]).toEqual([origin, first]);
    await edge.run(double, { "d-3": 6 });
    expect(await again.push()).toMatchObject([{ pushed: 2 }]);
    const reader = await office.open({ peers: { edge: { vkey: first, url: shared } } });
    expect(await reader.pull("edge")).toMatchObject([{ pulled: 7 }]);
    expect(await reader.snapshots.stateHash()).toBe(await again.snapshots.stateHash());
  });

  test("takes snapshots that equal cuts share, and says what changed since", async () => {
    const edge = new TestSite("edge");
    const site = await edge.open({ store: edge.store, publish: [{ to: ["*"], payloads: "full" }] });
    await site.setOn(true);
    await edge.run(double, { "d-1": 4 });
    await site.sync();
    const before = await site.snapshots.create();
    expect(await site.snapshots.get(before.id.slice(0, 8))).toEqual(before);
    const hash = await site.snapshots.stateHash(before.id);
    await edge.run(double, { "d-2": 5 });
    await site.sync();
    expect(await site.snapshots.stateHash(before.id)).toBe(hash);
    expect(await site.snapshots.diff(before.id)).toHaveLength(2);
    expect(await site.snapshots.list()).toEqual([before]);
    expect((await site.rebuild()).stateHash).toBe(await site.snapshots.stateHash());
    await expect(site.snapshots.get("zz")).rejects.toThrow(/names no snapshot: no snapshot begins with it/);
  });

  test("closes what it opened, and twice is once", async () => {
    const edge = new TestSite("edge");
    const site = await edge.open({ store: edge.store, sync: "continuous" });
    const { url } = await site.serve({ port: 0 });
    await Promise.all([site.close(), site.close()]);
    await expect(fetch(url)).rejects.toThrow();
  });
});
