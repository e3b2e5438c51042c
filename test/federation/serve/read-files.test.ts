// Reading: the files of a log over a real socket.

import { expect, test } from "vitest";
import { encodeTile, decodeEntries, TILE_WIDTH, tilesOf, tilePath } from "../../../src/federation/log/tiles.ts";
import { TileStack } from "../../../src/federation/log/tile-stack.ts";
import { decodeArtifact, contentOf } from "../../../src/federation/log/content.ts";
import { parsePackLines } from "../../../src/federation/log/pack.ts";
import { leafHash } from "../../../src/receipts/index.ts";
import { HUB, keyOf, OTHER_TOKEN, refusalOf, SampleLog, startSite, take } from "./serve-fixture.ts";

test("a reader gets the checkpoint with its version, and 304 while it is the same", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(3);
  take(site.home, log);
  const first = await site.send(`/${log.origin}/checkpoint`);
  expect(first.status).toBe(200);
  expect(await first.text()).toBe(log.checkpoint().note);
  const etag = first.headers.get("etag")!;
  const again = await site.send(`/${log.origin}/checkpoint`, { headers: { "if-none-match": etag } });
  expect(again.status).toBe(304);
  take(site.home, log.grow(1));
  const changed = await site.send(`/${log.origin}/checkpoint`, { headers: { "if-none-match": etag } });
  expect(changed.status).toBe(200);
  expect(changed.headers.get("etag")).not.toBe(etag);
});

test("every tile of every level is the one that an append makes, after restarts and growth", async () => {
  const log = new SampleLog();
  const stack = new TileStack();
  const full = new Map<string, Buffer>();
  const first = await startSite();
  const { dir } = first;
  let site = first;
  for (const size of [1, 255, 256, 257, 1_100]) {
    const before = log.size;
    log.grow(size - before);
    for (const record of log.records.slice(before))
      for (const tile of stack.push(leafHash(record))) full.set(tilePath(tile.level, tile.n), tile.bytes);
    take(site.home, log);
    const partial = new Map(stack.partials().map(({ level, n, width, bytes }) => [tilePath(level, n, width), bytes]));
    for (const { level, n, width } of tilesOf(log.size, Math.max(0, log.size - 600))) {
      const path = tilePath(level, n, width);
      const response = await site.send(`/${log.origin}/${path}`);
      expect(response.status, path).toBe(200);
      const expected = full.get(path) ?? partial.get(path);
      expect(Buffer.from(await response.arrayBuffer()).equals(expected!), path).toBe(true);
    }
    await site.close();
    site = await startSite({ dir });
  }
  expect([...full.keys()]).toContain("tile/0/003");
});

test("roots of tiles that another log left behind are made again", async () => {
  const first = await startSite();
  const log = new SampleLog().grow(600);
  take(first.home, log);
  const path = `/${log.origin}/${tilePath(1, 0, 2)}`;
  const before = Buffer.from(await (await first.send(path)).arrayBuffer());
  await first.close();
  // The home is replaced by one with another history of the same origin; `serve.db` stays.
  const { dir } = first;
  const { rmSync } = await import("node:fs");
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${dir}/federation.db${suffix}`, { force: true });
  rmSync(`${dir}/federation`, { recursive: true, force: true });
  const second = await startSite({ dir });
  const other = new SampleLog();
  other.append({ op: "put", k: "a".repeat(64) }).grow(700);
  take(second.home, other);
  const after = Buffer.from(await (await second.send(path)).arrayBuffer());
  expect(after.equals(before)).toBe(false);
  const stack = new TileStack();
  for (const record of other.records) stack.push(leafHash(record));
  expect(after.equals(stack.partials().find(({ level }) => level === 1)!.bytes)).toBe(true);
});

test("partial tiles exist in every width the log has had, and no wider", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(300);
  take(site.home, log);
  const get = (path: string): Promise<Response> => site.send(`/${log.origin}/${path}`);
  for (const width of [1, 43, 44]) {
    const response = await get(tilePath("entries", 1, width));
    expect(decodeEntries(new Uint8Array(await response.arrayBuffer()))).toEqual(log.records.slice(256, 256 + width));
    expect(response.headers.get("cache-control")).toContain("immutable");
  }
  expect((await get(tilePath("entries", 0, 17))).status).toBe(200);
  const hashes = log.records.slice(0, TILE_WIDTH).map(leafHash);
  expect(Buffer.from(await (await get(tilePath(0, 0))).arrayBuffer()).equals(encodeTile(hashes))).toBe(true);
  for (const path of [
    tilePath("entries", 1, 45),
    tilePath("entries", 1),
    tilePath("entries", 2, 1),
    tilePath(1, 0, 2),
    tilePath(63, 0, 1),
    "tile/entries/x000/000",
    "tile/entries/000.p/0",
    "tile/entries/000.p/256",
    "tile/entries/0",
    "tile/64/000",
    "pack/1",
  ])
    expect(await refusalOf(await get(path)), path).toEqual([404, "NOT_PUBLISHED"]);
});

test("a pack holds what the rules give its reader, and nothing else", async () => {
  const site = await startSite({
    rules: () => [{ to: ["hub"], payloads: "full", origins: ["*"] }],
  });
  const log = new SampleLog().grow(5);
  const large = contentOf("text/plain", "x".repeat(40_000));
  log.contents.push(large);
  log.append({ op: "put", k: large.key });
  take(site.home, log);
  const pack = await site.send(`/${log.origin}/pack/000.p/6`, { token: OTHER_TOKEN });
  const lines = parsePackLines(await pack.text());
  expect(lines.map((line) => ("bytes" in line ? line.key : line.k))).toEqual(log.contents.map(({ key }) => key));
  expect(lines.filter((line) => "bytes" in line)).toHaveLength(5);
  expect(pack.headers.get("cache-control")).toBe("private, no-cache");
  const path = `/${log.origin}/artifact/${large.key.slice(0, 2)}/${large.key}`;
  const artifact = await site.send(path, { token: OTHER_TOKEN });
  expect(decodeArtifact(new Uint8Array(await artifact.arrayBuffer()), large.key)).toMatchObject({ key: large.key });
  const empty = await site.send(`/${log.origin}/pack/000.p/6`);
  expect([empty.status, await empty.text()]).toEqual([200, ""]);
  expect(await refusalOf(await site.send(path))).toEqual([404, "NOT_PUBLISHED"]);
});

test("a content is given only under the log that names it", async () => {
  const site = await startSite({ rules: () => [{ to: ["edge"], payloads: "full", origins: ["other/*"] }] });
  const log = new SampleLog().grow(1);
  const other = new SampleLog(keyOf("other", 7)).grow(1);
  take(site.home, log);
  take(site.home, other);
  const { key } = log.contents[0]!;
  const path = (origin: string): string => `/${origin}/artifact/${key.slice(0, 2)}/${key}`;
  expect(await refusalOf(await site.send(path(log.origin)))).toEqual([404, "NOT_PUBLISHED"]);
  expect(await refusalOf(await site.send(path(other.origin)))).toEqual([404, "NOT_PUBLISHED"]);
  const own = other.contents[0]!.key;
  expect((await site.send(`/${other.origin}/artifact/${own.slice(0, 2)}/${own}`)).status).toBe(200);
});

test("a peer reads only the logs that its access names", async () => {
  const site = await startSite({ peers: () => [{ ...HUB, pull: ["edge7/*"] }] });
  const log = new SampleLog().grow(1);
  const other = new SampleLog(keyOf("other", 7)).grow(1);
  take(site.home, log);
  take(site.home, other);
  expect((await site.send(`/${log.origin}/checkpoint`, { token: OTHER_TOKEN })).status).toBe(200);
  const hidden = await site.send(`/${other.origin}/checkpoint`, { token: OTHER_TOKEN });
  expect(await refusalOf(hidden)).toEqual([404, "NOT_PUBLISHED"]);
  const about = (await (await site.send("/", { token: OTHER_TOKEN })).json()) as { origins: { origin: string }[] };
  expect(about.origins.map(({ origin }) => origin)).toEqual([log.origin]);
});

test("a site says what it is to anyone, and its logs and limits to peers", async () => {
  const site = await startSite({ labels: () => ["gpu"], limits: { waits: 7 } });
  const log = new SampleLog().grow(2);
  take(site.home, log);
  const health = (await (await site.send("/", { token: null })).json()) as Record<string, unknown>;
  expect(Object.keys(health).sort()).toEqual(["engine", "reprise"]);
  const about = await (await site.send("/")).json();
  expect(about).toMatchObject({
    reprise: "federation/1",
    origins: [{ origin: log.origin, vkey: log.key.vkey, size: 2 }],
    labels: ["gpu"],
    limits: { waits: 7, recordBytes: 65_535 },
  });
});

test("the list of folders leads to every log", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(2);
  take(site.home, log);
  const carrier = site.carrier();
  const list = async (prefix: string): Promise<string[]> => {
    const names: string[] = [];
    for await (const name of carrier.list(prefix, { shallow: true })) names.push(name);
    return names;
  };
  const [name] = log.origin.split("/");
  expect(await list("")).toEqual([`${name}/`]);
  expect(await list(`${name}/`)).toEqual([`${log.origin}/`]);
  expect(await list(`${log.origin}/`)).toContain(`${log.origin}/checkpoint`);
});

test("a HEAD request has the headers of the file and no body", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(2);
  take(site.home, log);
  const response = await site.send(`/${log.origin}/checkpoint`, { method: "HEAD" });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-length")).toBe(String(log.checkpoint().note.length + 2));
  expect(await response.text()).toBe("");
});
