// The same files through every carrier: equal bytes, whichever carriers they took (T-20).

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sha256Hex } from "../../../src/base/index.ts";
import { openCarrier, type Carrier } from "../../../src/federation/index.ts";
import { describeOn, startNats } from "../../servers/index.ts";
import { noise } from "../carrier-cases.ts";
import { PORTS } from "./real-ports.ts";
import { S3_KEYS, S3Server } from "./s3-server.ts";
import { StaticServer } from "./static-server.ts";

const ORIGINS = ["edge7/56475aa75463474c", "edge7/56475aa75463474c/2", "hub~1/0123456789abcdef"];

/** What a push writes: checkpoints, tiles full and partial, packs, contents and journals. */
function filesOfLogs(): ReadonlyMap<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  for (const [seed, origin] of ORIGINS.entries()) {
    const put = (path: string, length: number): void =>
      void files.set(`${origin}/${path}`, noise(length, seed + length));
    put("tile/0/000", 8_192);
    put("tile/0/001.p/17", 544);
    put("tile/1/000.p/1", 32);
    put("tile/entries/000", 41_000);
    put("tile/entries/x001/x234/067.p/255", 39_999);
    put("pack/000", 1_200_000);
    put("pack/001.p/17", 0);
    put(`artifact/ab/ab${"0".repeat(62)}`, 2_500_000);
    put(`journal/cd/cd${"f".repeat(62)}`, 131_073);
    files.set(
      `${origin}/checkpoint`,
      Buffer.from(`${origin}\n273\nLsS7Jn4S8FsyUkOnoO/FgM9AJWM3EpcGETN5TARcxus=\n\n— x\n`),
    );
  }
  return files;
}

async function putAll(carrier: Carrier, files: ReadonlyMap<string, Uint8Array>): Promise<void> {
  for (const [path, bytes] of files)
    expect(await carrier.put!(path, bytes, path.endsWith("/checkpoint") ? { match: null } : { absent: true })).not.toBe(
      "refused",
    );
}

async function readAll(carrier: Carrier): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  for (const path of (await Array.fromAsync(carrier.list!(""))).sort()) {
    const file = await carrier.get(path);
    if (file !== undefined && file !== "unchanged") files.set(path, file.bytes);
  }
  return files;
}

const digestsOf = (files: ReadonlyMap<string, Uint8Array>): [string, string][] =>
  [...files].map(([path, bytes]): [string, string] => [path, sha256Hex(bytes)]).sort();

describeOn("nats", "files of logs", () => {
  test(
    "pass through a directory, HTTP, S3 and NATS, one after the other, and are equal on each",
    { timeout: 120_000 },
    async () => {
      const folders = ["first", "last"].map((name) => mkdtempSync(join(tmpdir(), `carrier-${name}-`)));
      await using web = await StaticServer.start();
      await using bucket = await S3Server.start({ pageSize: 7 });
      await using nats = await startNats();
      try {
        const urls = [folders[0]!, web.url, bucket.url, `${nats.url}/history`, folders[1]!];
        let files = filesOfLogs();
        const digests = digestsOf(files);
        for (const url of urls) {
          const carrier = await openCarrier(url, { ...PORTS, env: S3_KEYS });
          await putAll(carrier, files);
          files = await readAll(carrier);
          expect(digestsOf(files), url).toEqual(digests);
          await carrier.close();
        }
      } finally {
        for (const folder of folders) rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});
