// T-20: the same runs by a folder, HTTP, S3 and NATS: equal bytes, and every reading command prints what it prints at home.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createEngine } from "reprise";
import { createFederation } from "reprise/federation";
import { charge, pay, refuse } from "../cli/definitions.ts";
import { cli, command, ROOT, TemporaryFolder, type Finished } from "../cli/cli-process.ts";
import { double, shop, sub } from "../cli/flows.ts";
import { failing } from "../cli/graphs.ts";
import { describeOn, startNats } from "../servers/index.ts";
import { openCarrier } from "../../src/carriers/open-carrier.ts";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import { S3_KEYS, S3Server } from "./carriers/s3-server.ts";
import { checkInclusion, readTiledLog } from "./tlog-reader.ts";

const IDS = ["pay-1", "refuse-1", "failing-1", "shop-1"] as const;
const DEFINITIONS = [pay, charge, refuse, failing, shop, sub, double] as const;
const TOKEN = "0123456789abcdef0123456789abcdef";

const READING: readonly (readonly string[])[] = [
  ...IDS.flatMap((id) => [
    ["show", id],
    ["journal", id],
  ]),
  ["checkpoints", "failing-1"],
  ["replay", "pay-1", join(ROOT, "test/cli/definitions.ts")],
  ["graph", join(ROOT, "test/cli/flows.ts"), "shop", "--run", "shop-1"],
  ["why", "run:pay-1"],
  ["export", "shop-1", "--format", "prov", "--origin", "edge"],
];

async function runEverything(store: string): Promise<void> {
  await using engine = await createEngine({ store, definitions: DEFINITIONS, logger: false });
  await (await engine.start(pay, 4990, { id: "pay-1", tags: ["shop", "eu"] })).result();
  const refused = await engine.start(refuse, undefined, { id: "refuse-1" });
  await refused.result().catch(() => undefined);
  await refused.retry();
  await refused.result().catch(() => undefined);
  await (await engine.start(failing, {}, { id: "failing-1" })).result().catch(() => undefined);
  const bought = await engine.start(shop, { prices: [1, 200, -1], password: "hunter2" }, { id: "shop-1" });
  while ((await bought.info()).status !== "waiting") await new Promise((resolve) => setImmediate(resolve));
  await bought.terminate("enough");
}

/** Reads the log on a carrier with a reader that knows nothing but the specification of tiled logs. Returns its records. */
async function readTiles(url: string, vkey: string): Promise<readonly string[]> {
  const carrier = await openCarrier(url, { clock: systemClock, timers: systemTimers, random: systemRandom });
  try {
    const [origin] = vkey.split("+");
    const get = async (path: string): Promise<Uint8Array | undefined> => {
      const file = await carrier.get(`${origin}/${path}`);
      return typeof file === "object" ? file.bytes : undefined;
    };
    const log = await readTiledLog(get, vkey);
    for (const [index, entry] of log.entries.entries()) await checkInclusion(get, log, index, entry);
    return log.entries.map(String);
  } finally {
    await carrier.close();
  }
}

/** Without the words that are about the moment and the store. */
const shown = ({ code, stdout }: Finished): unknown => ({
  code,
  stdout: stdout
    .replaceAll(/(?:\d+ (?:d|h|m) )*[\d.]+ (?:ms|s|m|h|d)\b/g, "T")
    .replaceAll(/ --store sqlite:[\w./-]+/g, "")
    .replaceAll(/\bedge\/(?=\w+-1)/g, "")
    .replaceAll(/T +/g, "T "),
});

describeOn("nats", "runs of a site", () => {
  test("are the same bytes by every carrier, and read as at home", { timeout: 240_000 }, async () => {
    using folder = new TemporaryFolder();
    await using bucket = await S3Server.start();
    await using nats = await startNats();
    mkdirSync(folder.file("edge"));
    mkdirSync(folder.file("files"));
    const store = `sqlite:${folder.file("edge/shop.db")}`;
    const reader = await createFederation({ home: folder.file("reader"), name: "reader", sync: "manual" });
    const { vkey } = reader;
    await reader.close();
    Object.assign(process.env, S3_KEYS);
    const carriers = { files: folder.file("files"), bucket: bucket.url, nats: `${nats.url}/history` };
    const peers = Object.fromEntries(
      await Promise.all(
        Object.entries(carriers).map(async ([name, url]) => {
          await using site = await createFederation({ home: folder.file(`key-${name}`), name, sync: "manual" });
          return [name, { vkey: site.vkey, url, push: true }] as const;
        }),
      ),
    );
    await using edge = await createFederation({
      home: folder.file("edge/home"),
      name: "edge",
      store,
      sync: "manual",
      peers: { ...peers, reader: { vkey, token: TOKEN } },
      publish: [{ to: ["*"], payloads: "full" }],
    });
    await edge.setOn(true);
    await runEverything(store);
    const pushed = await edge.push();
    expect(pushed.map(({ peer, error }) => [peer, error?.message])).toEqual(
      Object.keys(carriers).map((name) => [name, undefined]),
    );
    const logs = await Promise.all(Object.values(carriers).map((url) => readTiles(url, edge.vkey!)));
    expect(logs[0]!.length).toBeGreaterThan(IDS.length);
    for (const log of logs) expect(log).toEqual(logs[0]);
    const { url: http } = await edge.serve({ port: 0 });

    const bundles: Record<string, string>[] = [];
    for (const [name, url] of Object.entries({ ...carriers, http })) {
      const cwd = folder.file(`at-${name}`);
      mkdirSync(join(cwd, ".reprise"), { recursive: true });
      const settings = { peers: { edge: { vkey: edge.vkey, url, ...(name === "http" && { token: TOKEN }) } } };
      writeFileSync(join(cwd, ".reprise/federation.json"), JSON.stringify(settings), { mode: 0o600 });
      const out = await cli(["pull", "edge", ...IDS, "--out", "bundles"], { cwd, env: S3_KEYS });
      expect({ name, code: out.code, stderr: out.code === 0 ? "" : out.stderr }).toEqual({ name, code: 0, stderr: "" });
      bundles.push(
        Object.fromEntries(
          readdirSync(join(cwd, "bundles")).map((file) => [file, readFileSync(join(cwd, "bundles", file), "utf8")]),
        ),
      );
      expect(await cli(["pull", "edge", ...IDS], { cwd, env: S3_KEYS })).toMatchObject({ code: 0 });
      for (const args of READING) {
        const home = await command([...args, "--store", store], { cwd: folder.path });
        const there = await command(
          args.map((arg) => arg.replace(/^(run:)?(\w+-1)$/, "$1edge/$2")),
          { cwd },
        );
        expect(shown(there), `${name}: ${args.join(" ")}`).toEqual(shown(home));
        expect(home.code, args.join(" ")).toBe(0);
      }
    }
    for (const other of bundles.slice(1)) expect(other).toEqual(bundles[0]);
    expect(Object.keys(bundles[0]!)).toEqual(IDS.map((id) => `${id}.jsonl`).toSorted());
  });
});
