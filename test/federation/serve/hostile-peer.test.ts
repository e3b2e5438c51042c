// T-11: a peer with a valid token that does what it can: bounded memory and disk, a stable code, nothing visible.

import { statSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { mediaType } from "../../../src/base/index.ts";
import { signCheckpoint } from "../../../src/federation/log/checkpoint.ts";
import { contentOf, encodeArtifact } from "../../../src/federation/log/content.ts";
import { LogTree } from "../../../src/federation/log/log-tree.ts";
import { artifactPath, encodeEntries, packPath, tilePath } from "../../../src/federation/log/tiles.ts";
import {
  keyOf,
  OTHER_TOKEN,
  refusalOf,
  SampleLog,
  startSite,
  take,
  TOKEN,
  uploadCheckpoint,
  uploadFiles,
  type Site,
} from "./serve-fixture.ts";

const MIB = 1_048_576;

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Bytes of heap and buffers that remain after `work`, compared with before. */
async function growthOf(work: () => Promise<void>): Promise<number> {
  const used = async (): Promise<number> => {
    // Buffers of closed requests are freed by callbacks that run between collections.
    for (let turn = 0; turn < 5; turn += 1) {
      collect();
      await new Promise((resolve) => setImmediate(resolve));
    }
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const before = await used();
  await work();
  return (await used()) - before;
}

function serveBytes({ dir }: Site): number {
  return ["serve.db", "serve.db-wal"].reduce((sum, file) => sum + statSync(join(dir, file)).size, 0);
}

/** A push of these record texts under a checkpoint that their own key signed. */
async function pushTexts(site: Site, log: SampleLog, texts: readonly string[]): Promise<[number, string]> {
  site.home.admit(log.key.vkey);
  await site.put(`/${log.origin}/${tilePath("entries", 0, texts.length)}`, encodeEntries(texts));
  const root = LogTree.ofTexts(texts).root();
  const { note } = signCheckpoint(log.key, log.origin, texts.length, root);
  const refusal = await refusalOf(await site.put(`/${log.origin}/checkpoint`, note));
  expect(site.home.origin(log.origin)).toMatchObject({ size: 0, cursor: 0 });
  expect(await refusalOf(await site.send(`/${log.origin}/checkpoint`))).toEqual([404, "NOT_PUBLISHED"]);
  return refusal;
}

test("a clock at the end of its range, and records with gaps, are refused though their key signed them", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(3);
  const [first, second, third] = log.records as [string, string, string];
  const clock = first.replace('"c":1,', `"c":${Number.MAX_SAFE_INTEGER},`);
  expect(await pushTexts(site, log, [clock])).toEqual([422, "RECORD_INVALID"]);
  expect(await pushTexts(site, log, [first, third])).toEqual([422, "RECORD_INVALID"]);
  expect((await pushTexts(site, log, [second, third]))[0]).toBeGreaterThanOrEqual(400);
  const [, code] = await pushTexts(site, log, ["[".repeat(60_000)]);
  expect(["OUTDATED_CURSOR", "RECORD_INVALID"]).toContain(code);
  await uploadFiles(site, log);
  expect((await uploadCheckpoint(site, log)).status).toBe(200);
});

/** A connection that sends what it likes. */
class RawConnection {
  readonly socket: Socket;
  readonly closed: Promise<string>;
  received = "";

  constructor(site: Site) {
    const { hostname, port } = new URL(site.url);
    this.socket = connect(Number(port), hostname);
    this.closed = new Promise((resolve) => {
      this.socket.on("data", (chunk) => (this.received += chunk.toString()));
      this.socket.on("error", () => undefined);
      this.socket.on("close", () => resolve(this.received));
    });
  }

  start(site: Site, path: string, headers: readonly string[]): void {
    const lines = [`PUT ${path} HTTP/1.1`, `Host: ${new URL(site.url).host}`, `Authorization: Bearer ${TOKEN}`];
    this.socket.write([...lines, "If-None-Match: *", ...headers, "", ""].join("\r\n"));
  }
}

test("thousands of logs that no operator admitted leave nothing behind", async () => {
  const site = await startSite();
  const wave = async (first: number, count: number): Promise<void> => {
    const raw = new RawConnection(site);
    for (let i = first; i < first + count; i += 1)
      raw.start(site, `/hostile/${i.toString(16).padStart(16, "0")}/checkpoint`, ["Content-Length: 0"]);
    await expect.poll(() => raw.received.match(/HTTP\/1\.1 403/g)?.length, { timeout: 20_000 }).toBe(count);
    raw.socket.destroy();
    await raw.closed;
  };
  await wave(0, 300);
  const size = serveBytes(site);
  const growth = await growthOf(async () => {
    for (let i = 1; i <= 6; i += 1) await wave(i * 300, 300);
  });
  expect(growth).toBeLessThan(8 * MIB);
  expect(serveBytes(site)).toBe(size);
  expect(site.home.origins()).toEqual([]);
});

test("a compressed body is refused without being inflated", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(1);
  site.home.admit(log.key.vkey);
  const bomb = gzipSync(Buffer.alloc(64 * MIB));
  const condition = { "if-none-match": "*", "content-encoding": "gzip" };
  const growth = await growthOf(async () => {
    const put = await site.put(`/${log.origin}/${packPath(0, 1)}`, bomb, condition);
    expect(await refusalOf(put)).toEqual([415, "BAD_FORMAT"]);
  });
  expect(growth).toBeLessThan(16 * MIB);
});

test("a body that pauses is cut off", async () => {
  const site = await startSite({ limits: { idleMs: 50 } });
  const log = new SampleLog().grow(1);
  site.home.admit(log.key.vkey);
  const raw = new RawConnection(site);
  raw.start(site, `/${log.origin}/${packPath(0, 1)}`, ["Content-Length: 1000"]);
  raw.socket.write("{");
  const answer = await raw.closed;
  expect(answer).toContain("408");
  expect(answer).toContain("LIMIT_EXCEEDED");
});

test("a body without an end is cut off at its limit", async () => {
  const site = await startSite({ limits: { packBytes: MIB } });
  const log = new SampleLog().grow(1);
  site.home.admit(log.key.vkey);
  const growth = await growthOf(async () => {
    const raw = new RawConnection(site);
    raw.start(site, `/${log.origin}/${packPath(0, 1)}`, ["Transfer-Encoding: chunked"]);
    const chunk = Buffer.concat([Buffer.from("10000\r\n"), Buffer.alloc(65_536, 120), Buffer.from("\r\n")]);
    let sent = 0;
    const send = (): void => {
      while (!raw.socket.destroyed && sent < 200 * MIB) {
        sent += chunk.length;
        if (!raw.socket.write(chunk)) return void raw.socket.once("drain", send);
      }
    };
    send();
    expect(await raw.closed).toContain("LIMIT_EXCEEDED");
    expect(sent).toBeLessThan(100 * MIB);
  });
  expect(growth).toBeLessThan(16 * MIB);
  const announced = await site.put(`/${log.origin}/${packPath(0, 1)}`, new Uint8Array(2 * MIB));
  expect(await refusalOf(announced)).toEqual([413, "LIMIT_EXCEEDED"]);
});

test("deep JSON is refused before it is parsed", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(1);
  site.home.admit(log.key.vkey);
  const growth = await growthOf(async () => {
    for (const text of ["[".repeat(4 * MIB), '{"a":'.repeat(MIB), `{"s":${"[".repeat(257)}${"]".repeat(257)}}\n`]) {
      const put = await site.put(`/${log.origin}/${packPath(0, 1)}`, text);
      expect(await refusalOf(put)).toEqual([413, "LIMIT_EXCEEDED"]);
    }
  });
  expect(growth).toBeLessThan(32 * MIB);
});

test("a link of 100,000 ends is refused though its key signed its record", async () => {
  const site = await startSite();
  const log = new SampleLog();
  site.home.admit(log.key.vkey);
  const ends = Array.from({ length: 100_000 }, (_, i) => `run:${i}`);
  const link = contentOf(mediaType("link"), JSON.stringify({ from: ends, to: [], type: "uses", v: 1 }));
  log.append({ op: "put", k: link.key, s: "c".repeat(64) });
  await site.put(`/${log.origin}/${artifactPath(link.key)}`, encodeArtifact(link));
  await site.put(`/${log.origin}/${tilePath("entries", 0, 1)}`, encodeEntries(log.records));
  expect(await refusalOf(await uploadCheckpoint(site, log))).toEqual([422, "LINK_INVALID"]);
  expect(site.home.origin(log.origin)).toMatchObject({ size: 0, cursor: 0 });
  expect(site.home.content(link.key)).toBeUndefined();
});

test("tiles without a checkpoint fill the space of their peer, and of no other", async () => {
  const site = await startSite({ limits: { stagedBytes: 2 * MIB, stagedFiles: 100 } });
  const log = new SampleLog(keyOf("hostile", 3));
  const honest = new SampleLog().grow(10);
  site.home.admit(log.key.vkey);
  site.home.admit(honest.key.vkey);
  const tile = encodeEntries(Array.from({ length: 256 }, (_, i) => `${i}${"x".repeat(400)}`));
  let [n, refused] = [0, 0];
  const fill = async (upTo: number): Promise<void> => {
    for (; n < upTo; n += 1) {
      const put = await site.put(`/${log.origin}/${tilePath("entries", n)}`, tile);
      if (put.status === 201) continue;
      expect(await refusalOf(put)).toEqual([413, "LIMIT_EXCEEDED"]);
      refused += 1;
    }
  };
  // The first ones make the buffers and pages that every request uses.
  await fill(60);
  const growth = await growthOf(() => fill(180));
  expect(refused).toBeGreaterThan(150);
  expect(growth).toBeLessThan(16 * MIB);
  expect(serveBytes(site)).toBeLessThan(16 * MIB);
  expect(site.home.origin(log.origin)).toMatchObject({ size: 0, cursor: 0 });
  await uploadFiles(site, honest, 0, OTHER_TOKEN);
  expect((await uploadCheckpoint(site, honest, OTHER_TOKEN)).status).toBe(200);
});

test("staged files that are older than their limit make room", async () => {
  let now = 1_000_000;
  const clock = { now: () => now, monotonic: () => performance.now() };
  const site = await startSite({ clock, limits: { stagedFiles: 2, stagedMs: 1_000 } });
  const log = new SampleLog().grow(3);
  site.home.admit(log.key.vkey);
  const put = (width: number): Promise<Response> =>
    site.put(`/${log.origin}/${tilePath("entries", 0, width)}`, encodeEntries(log.records.slice(0, width)));
  expect([(await put(1)).status, (await put(2)).status, (await put(3)).status]).toEqual([201, 201, 413]);
  now += 1_001;
  expect((await put(3)).status).toBe(201);
  expect((await uploadCheckpoint(site, log)).status).toBe(200);
});

test("requests beyond the share of a peer are refused, and other peers are answered", async () => {
  const gate = Promise.withResolvers<void>();
  const site = await startSite({
    limits: { requests: 3 },
    extraRoutes: [
      {
        method: "GET",
        path: /^\/slow$/,
        access: "peer",
        handle: async () => {
          await gate.promise;
          return new Response("done");
        },
      },
    ],
  });
  const slow = Array.from({ length: 3 }, () => site.send("/slow"));
  await expect.poll(async () => (await site.send("/")).status, { timeout: 20_000 }).toBe(429);
  expect((await site.send("/", { token: OTHER_TOKEN })).status).toBe(200);
  gate.resolve();
  for (const response of await Promise.all(slow)) expect(response.status).toBe(200);
  expect((await site.send("/")).status).toBe(200);
});

test("bodies share the memory of their peer one after the other", async () => {
  const site = await startSite({ limits: { bufferedBytes: MIB, artifactBytes: MIB } });
  const log = new SampleLog();
  const contents = Array.from({ length: 12 }, (_, i) => contentOf("text/plain", "abcdefghijkl"[i]!.repeat(900_000)));
  for (const { key } of contents) log.append({ op: "put", k: key });
  take(site.home, log);
  const puts = contents.map((content) =>
    site.put(`/${log.origin}/${artifactPath(content.key)}`, encodeArtifact(content)),
  );
  for (const response of await Promise.all(puts)) expect(response.status).toBe(201);
  expect(site.home.missing()).toEqual([]);
});

test("a path of any length is answered at once", async () => {
  const site = await startSite();
  const paths = [
    `/${"a/".repeat(3_000)}`,
    `/edge7/${"0".repeat(8_000)}`,
    `/e/${"x000/".repeat(1_500)}000`,
    "/%00%ff",
    "/run/%ff",
  ];
  for (const path of paths) expect((await site.send(path)).status).toBeGreaterThanOrEqual(400);
  expect(site.errors).toEqual([]);
});
