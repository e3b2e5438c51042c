// T-12: rotated keys.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sha256Hex } from "../../../src/base/index.ts";
import { signCheckpoint } from "../../../src/federation/log/checkpoint.ts";
import { checkBundleWithLog } from "../../../src/federation/sync/log-proof.ts";
import { homeBundle } from "../../../src/federation/sync/home-bundle.ts";
import { appendOwn } from "../../../src/federation/sync/own-log.ts";
import { rotateKey } from "../../../src/federation/sync/rotate-key.ts";
import {
  bundleText,
  parseVkey,
  signingKeyOf,
  type BundleReport,
  type SigningKey,
} from "../../../src/receipts/index.ts";
import { command } from "../../cli/cli-process.ts";
import { double, folderCarrier, freshFolder, Site } from "./site.ts";

const RULES = [{ to: ["*"], payloads: "full" as const }];

function sha256Buffer(name: string): Buffer {
  return Buffer.from(sha256Hex(name), "hex");
}

function nextKey(site: Site, name: string): SigningKey {
  return signingKeyOf(sha256Buffer(name), site.origin);
}

async function rotate(site: Site, name: string): Promise<number> {
  const next = nextKey(site, name);
  const n = await rotateKey(await site.store(), site.home, site.key, next);
  site.key = next;
  return n;
}

async function reportOf(site: Site, run: string, vkeys: readonly string[], origin: string): Promise<BundleReport> {
  const [found] = site.home.findRuns({ run, origin });
  const text = [...homeBundle(site.home, found!)].map((line) => `${line}\n`).join("");
  const [report] = await Array.fromAsync(checkBundleWithLog(bundleText(text), vkeys.map(parseVkey)));
  return report!;
}

test("a reader that admitted the first key follows three rotations", async () => {
  const edge = new Site("edge", { rules: RULES });
  const genesis = edge.key;
  const [carrier, late] = [await folderCarrier(), await folderCarrier()];
  const hub = new Site("hub").admit(edge);
  await edge.run(double, { "d-0": 0 });
  await edge.sync(carrier, "hub");
  const numbers: number[] = [];
  for (let rotation = 1; rotation <= 3; rotation += 1) {
    numbers.push(await rotate(edge, `key ${rotation}`));
    await edge.run(double, { [`d-${rotation}`]: rotation });
    await edge.sync(carrier, "hub");
    await hub.pull(carrier, { journals: "all" });
  }
  expect(numbers).toEqual([3, 6, 9]);
  expect(hub.home.stateHash()).toBe(edge.home.stateHash());
  expect(hub.home.keys(edge.origin).terms.map(({ n }) => n)).toEqual([0, 3, 6, 9]);
  // Who comes later takes the whole log at once, from a relay.
  const auditor = new Site("auditor");
  auditor.home.admit(genesis.vkey);
  await hub.push(late, "auditor", { rules: [{ to: ["*"], origins: ["*"], payloads: "full" }] });
  expect(await auditor.pull(late, { journals: "all" })).toMatchObject([{ status: "pulled", records: 11, journals: 4 }]);
  expect(auditor.home.stateHash()).toBe(edge.home.stateHash());

  // A bundle of any age needs the first vkey alone.
  for (const run of ["d-0", "d-1", "d-2", "d-3"]) {
    const report = await reportOf(auditor, run, [genesis.vkey], edge.origin);
    expect([report.problem, report.signature]).toEqual([undefined, { status: "trusted", origin: edge.origin }]);
    expect((await reportOf(auditor, run, [], edge.origin)).signature.status).not.toBe("trusted");
  }
});

test("a checkpoint of a retired, a future or an unknown key is refused", async () => {
  const edge = new Site("edge", { rules: RULES });
  const genesis = edge.key;
  const hub = new Site("hub").admit(edge);
  await edge.run(double, { "d-0": 0 });
  await edge.take();
  const at = async (key: SigningKey): Promise<unknown> => {
    const { size, root } = edge.home.checkpoint(edge.origin)!;
    const forged = signCheckpoint(key, edge.origin, size, Buffer.from(root, "base64"));
    const carrier = await folderCarrier();
    await edge.push(carrier, "hub", { state: undefined });
    const path = `${edge.origin}/checkpoint`;
    const file = await carrier.get(path);
    await carrier.put!(path, Buffer.from(forged.note), { match: (file as { etag: string }).etag });
    const [outcome] = await hub.pull(carrier, { state: undefined });
    return outcome;
  };
  const future = nextKey(edge, "future");
  expect(await at(future.forOrigin(edge.origin))).toMatchObject({
    status: "refused",
    code: "NOT_ADMITTED",
    records: 0,
  });
  expect(await at(signingKeyOf(Buffer.alloc(32, 9), "edge").forOrigin(edge.origin))).toMatchObject({
    status: "refused",
  });
  await rotate(edge, "future");
  await edge.run(double, { "d-1": 1 });
  await edge.take();
  const outcome = await at(genesis);
  // What the old key handed over is taken; what it signs afterwards is not.
  expect(outcome).toMatchObject({ status: "refused" });
  expect(hub.home.origin(edge.origin)!.size).toBeLessThanOrEqual(3);
});

test("a rotation that stopped after its record was logged is finished by the next one", async () => {
  const edge = new Site("edge", { rules: RULES });
  await edge.run(double, { "d-0": 0 });
  await edge.take();
  const next = nextKey(edge, "next");
  const store = await edge.store();
  // A process that is killed here has logged the record, and has signed nothing.
  await appendOwn(store, edge.key, async () => ({ records: [{ body: { op: "key", v: next.vkey } }] }));
  expect(await rotateKey(store, edge.home, edge.key, next)).toBe(3);
  expect(await rotateKey(store, edge.home, edge.key, next)).toBe(3);
  edge.key = next;
  await edge.run(double, { "d-1": 1 });
  expect(await edge.take()).toMatchObject({ size: 5 });
});

test("a bundle that was made after a rotation verifies with the first vkey alone", async () => {
  const edge = new Site("edge", { rules: RULES });
  const genesis = edge.key;
  await edge.run(double, { "d-0": 0 });
  await edge.take();
  await rotate(edge, "second");
  await edge.run(double, { "d-1": 1 });
  await edge.take();
  const home = join(edge.folder, "home");
  writeFileSync(join(home, "key"), `${edge.origin}:${sha256Buffer("second").toString("base64")}\n`, { mode: 0o600 });
  const file = join(edge.folder, "d-1.jsonl");
  const bundled = await command(["bundle", "d-1", "-o", file, "--home", home, "--store", `sqlite:${edge.file}`]);
  expect(bundled.code, bundled.stderr).toBe(0);
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  expect(lines.filter((line) => line.startsWith('{"checkpoint":'))).toHaveLength(3);
  const verify = (path: string): Promise<{ readonly code: number | null }> =>
    command(["verify", path, "--key", genesis.vkey, "--home", join(freshFolder(), "none")]);
  expect((await verify(file)).code).toBe(0);
  // Without the key record the second key is unknown.
  const cut = join(edge.folder, "cut.jsonl");
  writeFileSync(
    cut,
    lines
      .slice(0, -3)
      .map((line) => `${line}\n`)
      .join(""),
  );
  expect((await verify(cut)).code).toBe(6);
});
