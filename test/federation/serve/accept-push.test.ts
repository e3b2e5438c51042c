// Writing: uploads of another site over a real socket.

import { expect, test } from "vitest";
import { contentOf, encodeArtifact } from "../../../src/federation/log/content.ts";
import { artifactPath, encodeEntries, handoverPath, packPath, tilePath } from "../../../src/federation/log/tiles.ts";
import { packText } from "../../../src/federation/log/pack.ts";
import {
  HUB,
  keyOf,
  OTHER_TOKEN,
  refusalOf,
  SampleLog,
  startSite,
  take,
  uploadCheckpoint,
  uploadFiles,
} from "./serve-fixture.ts";

test("a push becomes visible with its checkpoint, and not before", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(300);
  site.home.admit(log.key.vkey);
  await uploadFiles(site, log);
  expect(await refusalOf(await site.send(`/${log.origin}/checkpoint`))).toEqual([404, "NOT_PUBLISHED"]);
  expect((await site.send(`/${log.origin}/${tilePath("entries", 0)}`)).status).toBe(404);
  expect(site.home.origin(log.origin)!.cursor).toBe(0);
  expect(site.home.hasContents(log.contents.map(({ key }) => key)).size).toBe(0);
  const put = await uploadCheckpoint(site, log);
  expect(put.status).toBe(200);
  const read = await site.send(`/${log.origin}/checkpoint`);
  expect(await read.text()).toBe(log.checkpoint().note);
  expect(put.headers.get("etag")).toBe(read.headers.get("etag"));
  expect(site.home.hasContents(log.contents.map(({ key }) => key)).size).toBe(300);
  expect(site.errors).toEqual([]);
});

test("a push of many batches, large contents and growing partial tiles arrives whole", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(4_500);
  site.home.admit(log.key.vkey);
  await uploadFiles(site, log);
  expect((await uploadCheckpoint(site, log)).status).toBe(200);
  const before = log.size;
  const large = contentOf("text/plain", "y".repeat(100_000));
  log.append({ op: "put", k: large.key });
  await uploadFiles(site, log, before);
  expect((await site.put(`/${log.origin}/${artifactPath(large.key)}`, encodeArtifact(large))).status).toBe(201);
  expect((await uploadCheckpoint(site, log)).status).toBe(200);
  expect(site.home.origin(log.origin)!.size).toBe(4_501);
  expect(site.home.content(large.key)?.bytes.length).toBe(100_000);
  expect(site.home.missing()).toEqual([]);
});

test("a checkpoint with a gap before it is refused, and taken when the gap is filled", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(600);
  site.home.admit(log.key.vkey);
  const bundle = (tile: number): Uint8Array => encodeEntries(log.records.slice(tile * 256, tile * 256 + 256));
  const put = (tile: number, width?: number): Promise<Response> =>
    site.put(`/${log.origin}/${tilePath("entries", tile, width)}`, bundle(tile));
  await put(0);
  await put(2, 88);
  expect(await refusalOf(await uploadCheckpoint(site, log))).toEqual([409, "OUTDATED_CURSOR"]);
  expect(site.home.origin(log.origin)!.cursor).toBe(0);
  await put(1);
  expect((await uploadCheckpoint(site, log)).status).toBe(200);
  expect(site.home.origin(log.origin)!.size).toBe(600);
});

test("a file that is there is refused with 412", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(256);
  site.home.admit(log.key.vkey);
  const path = `/${log.origin}/${tilePath("entries", 0)}`;
  const bytes = encodeEntries(log.records);
  expect((await site.put(path, bytes)).status).toBe(201);
  expect((await site.put(path, bytes)).status).toBe(412);
  expect((await uploadCheckpoint(site, log)).status).toBe(200);
  expect((await site.put(path, bytes)).status).toBe(412);
});

test("two peers that push one log at once: one is first, the other is refused and sends the rest", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(10);
  site.home.admit(log.key.vkey);
  const longer = new SampleLog().grow(12);
  await Promise.all([uploadFiles(site, log), uploadFiles(site, longer, 0, OTHER_TOKEN)]);
  const absent = { "if-none-match": "*" };
  const [first, second] = await Promise.all([
    site.put(`/${log.origin}/checkpoint`, log.checkpoint().note, absent),
    site.put(`/${log.origin}/checkpoint`, longer.checkpoint().note, absent, OTHER_TOKEN),
  ]);
  expect([first.status, second.status].toSorted()).toEqual([200, 412]);
  if (second.status === 412) expect((await uploadCheckpoint(site, longer, OTHER_TOKEN)).status).toBe(200);
  else expect(await refusalOf(await uploadCheckpoint(site, log))).toEqual([409, "OUTDATED_CURSOR"]);
  expect(site.home.origin(log.origin)!.size).toBe(12);
});

test("a push continues after the server was restarted in its middle", async () => {
  const first = await startSite();
  const log = new SampleLog().grow(700);
  first.home.admit(log.key.vkey);
  const bundle = (tile: number): Uint8Array => encodeEntries(log.records.slice(tile * 256, tile * 256 + 256));
  await first.put(`/${log.origin}/${tilePath("entries", 0)}`, bundle(0));
  await first.put(`/${log.origin}/${packPath(0)}`, packText(log.contents.slice(0, 256)));
  await first.close();
  const second = await startSite({ dir: first.dir });
  expect(second.home.origin(log.origin)!.cursor).toBe(0);
  await second.put(`/${log.origin}/${tilePath("entries", 1)}`, bundle(1));
  await second.put(`/${log.origin}/${tilePath("entries", 2, 188)}`, bundle(2));
  expect((await uploadCheckpoint(second, log)).status).toBe(200);
  expect(second.home.origin(log.origin)!.size).toBe(700);
  expect(second.home.hasContents(log.contents.map(({ key }) => key)).size).toBe(256);
});

test("contents that come after their records are taken, and contents that no record names are not", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(4);
  site.home.admit(log.key.vkey);
  await site.put(`/${log.origin}/${tilePath("entries", 0, 4)}`, encodeEntries(log.records));
  expect((await uploadCheckpoint(site, log)).status).toBe(200);
  expect(site.home.missing()).toHaveLength(4);
  const stranger = contentOf("text/plain", "in no log");
  const pack = packText([...log.contents.slice(0, 2), stranger]);
  expect((await site.put(`/${log.origin}/${packPath(0, 4)}`, pack)).status).toBe(201);
  const [, , third] = log.contents;
  expect((await site.put(`/${log.origin}/${artifactPath(third!.key)}`, encodeArtifact(third!))).status).toBe(201);
  expect((await site.put(`/${log.origin}/${artifactPath(third!.key)}`, encodeArtifact(third!))).status).toBe(412);
  expect(site.home.missing()).toHaveLength(1);
  expect(site.home.content(stranger.key)).toBeUndefined();
});

test("a log that is not admitted, and a peer that may not push, are refused before their bytes are read", async () => {
  const site = await startSite({ peers: () => [{ ...HUB, push: false }] });
  const log = new SampleLog().grow(1);
  const path = `/${log.origin}/${tilePath("entries", 0, 1)}`;
  const bytes = encodeEntries(log.records);
  expect(await refusalOf(await site.put(path, bytes, undefined, OTHER_TOKEN))).toEqual([403, "NOT_ADMITTED"]);
  const open = await startSite();
  expect(await refusalOf(await open.put(path, bytes))).toEqual([403, "NOT_ADMITTED"]);
  open.home.admit(log.key.vkey);
  expect(await refusalOf(await open.put(path, bytes, {}))).toEqual([428, "BAD_FORMAT"]);
});

test("a checkpoint of another key, of another log or of changed records is refused, and nothing of it is visible", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(20);
  site.home.admit(log.key.vkey);
  await uploadFiles(site, log);
  const path = `/${log.origin}/checkpoint`;
  const foreign = new SampleLog(keyOf("other", 9)).grow(20);
  expect(await refusalOf(await site.put(path, foreign.checkpoint().note))).toEqual([422, "CHECKPOINT_INVALID"]);
  expect(await refusalOf(await site.put(path, "not a note"))).toEqual([422, "CHECKPOINT_INVALID"]);
  // Signed by a key that has the same name and other digits.
  const { note } = log.checkpoint();
  const forged = `${note.slice(0, note.lastIndexOf(" ") + 1)}${Buffer.alloc(68).toString("base64")}\n`;
  const [status] = await refusalOf(await site.put(path, forged));
  expect(status).toBeGreaterThanOrEqual(400);
  expect(site.home.origin(log.origin)!.size).toBe(0);
  // The refusal has deleted what was staged.
  await uploadFiles(site, log);
  const other = new SampleLog().append({ op: "put", k: "a".repeat(64) }).grow(19);
  const [code] = (await refusalOf(await site.put(path, other.checkpoint().note))).toReversed();
  expect(["ROOT_MISMATCH", "RECORD_INVALID", "LOG_FILE_DAMAGED"]).toContain(code);
  expect(site.home.origin(log.origin)!.cursor).toBe(0);
  await uploadFiles(site, log);
  expect((await uploadCheckpoint(site, log)).status).toBe(200);
});

test("a damaged upload does not stand in the way of the next one", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(4);
  site.home.admit(log.key.vkey);
  const path = `/${log.origin}/${tilePath("entries", 0, 4)}`;
  const damaged = log.records.map((text) => text.replace('"c":2', '"c":3'));
  expect((await site.put(path, encodeEntries(damaged))).status).toBe(201);
  expect(await refusalOf(await uploadCheckpoint(site, log))).toEqual([422, "ROOT_MISMATCH"]);
  expect((await site.put(path, encodeEntries(log.records))).status).toBe(201);
  expect((await uploadCheckpoint(site, log)).status).toBe(200);
});

test("two signed heads of one size are a fork: the log is quarantined, and pushes of it are refused", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(20);
  take(site.home, log);
  const other = new SampleLog().grow(19).append({ op: "put", k: "b".repeat(64) });
  expect(await refusalOf(await uploadCheckpoint(site, other))).toEqual([409, "FORKED"]);
  expect(site.home.origin(log.origin)!.status).toBe("forked");
  log.grow(5);
  await uploadFiles(site, log, 20);
  expect(await refusalOf(await uploadCheckpoint(site, log))).toEqual([409, "FORKED"]);
});

test("an older checkpoint changes nothing", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(20);
  const old = log.checkpoint();
  take(site.home, log.grow(10));
  const there = await site.send(`/${log.origin}/checkpoint`);
  const put = await site.put(`/${log.origin}/checkpoint`, old.note, { "if-match": there.headers.get("etag")! });
  expect(await refusalOf(put)).toEqual([412, "OUTDATED_CURSOR"]);
  expect(site.home.origin(log.origin)!.size).toBe(30);
});

test("a push over a rotation of the key is taken under the note in which the old key hands over", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(5);
  site.home.admit(log.key.vkey);
  const next = keyOf("edge7", 40).forOrigin(log.origin);
  log.append({ op: "key", v: next.vkey });
  const handover = log.checkpoint();
  const later = log.grow(4).signedBy(next);
  const upload = async (): Promise<void> => {
    const bundle = encodeEntries(log.records);
    await site.put(`/${log.origin}/${tilePath("entries", 0, 10)}`, bundle);
  };
  const put = (): Promise<Response> => site.put(`/${log.origin}/checkpoint`, later.note);
  await upload();
  expect((await put()).status).toBeGreaterThanOrEqual(400);
  expect(site.home.origin(log.origin)!.size).toBe(0);
  await upload();
  const path = `/${log.origin}/${handoverPath(6)}`;
  expect(await refusalOf(await site.put(`/${log.origin}/${handoverPath(7)}`, handover.note))).toEqual([
    422,
    "CHECKPOINT_INVALID",
  ]);
  expect((await site.put(path, handover.note)).status).toBe(201);
  expect((await put()).status).toBe(200);
  expect(site.home.origin(log.origin)!.size).toBe(10);
  expect(await (await site.send(path)).text()).toBe(handover.note);
  expect((await site.put(path, handover.note)).status).toBe(412);
});
