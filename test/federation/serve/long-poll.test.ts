// Waiting: readers that wait for the next checkpoint.

import { expect, test } from "vitest";
import { openHome } from "../../../src/federation/home/home.ts";
import { refusalOf, SampleLog, startSite, take, uploadCheckpoint, uploadFiles } from "./serve-fixture.ts";

const WAIT = "?wait=60";

test("a push of another peer wakes fifty readers that wait", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(5);
  take(site.home, log);
  const path = `/${log.origin}/checkpoint`;
  const first = await site.send(path);
  const etag = first.headers.get("etag")!;
  await first.text();
  const waiting = Array.from({ length: 50 }, () => site.send(path + WAIT, { headers: { "if-none-match": etag } }));
  await uploadFiles(site, log.grow(3), 5);
  expect((await uploadCheckpoint(site, log)).status).toBe(200);
  for (const response of await Promise.all(waiting)) {
    expect(response.status).toBe(200);
    expect(await response.text()).toBe(log.checkpoint().note);
  }
});

test("a change by another process wakes a reader", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(5);
  take(site.home, log);
  const path = `/${log.origin}/checkpoint`;
  const etag = (await site.send(path)).headers.get("etag")!;
  const waiting = site.send(path + WAIT, { headers: { "if-none-match": etag } });
  using other = openHome(site.dir);
  take(other, log.grow(1));
  expect(await (await waiting).text()).toBe(log.checkpoint().note);
});

test("a change of another log leaves a reader waiting", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(5);
  take(site.home, log);
  const path = `/${log.origin}/checkpoint`;
  const etag = (await site.send(path)).headers.get("etag")!;
  let isAnswered = false;
  const waiting = site.send(path + WAIT, { headers: { "if-none-match": etag } }).then(async (response) => {
    isAnswered = true;
    return response.text();
  });
  for (let i = 0; i < 5; i += 1) {
    site.handler.changed();
    await (await site.send("/")).text();
  }
  expect(isAnswered).toBe(false);
  take(site.home, log.grow(1));
  site.handler.changed();
  expect(await waiting).toBe(log.checkpoint().note);
});

test("a reader that waits for a log without a checkpoint gets its first one", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(2);
  site.home.admit(log.key.vkey);
  const waiting = site.send(`/${log.origin}/checkpoint${WAIT}`);
  take(site.home, log);
  site.handler.changed();
  expect(await (await waiting).text()).toBe(log.checkpoint().note);
});

test("a reader whose time is over gets 304, and 404 where there is nothing", async () => {
  const site = await startSite({ limits: { waitMs: 1 } });
  const log = new SampleLog().grow(2);
  take(site.home, log);
  const path = `/${log.origin}/checkpoint`;
  const etag = (await site.send(path)).headers.get("etag")!;
  expect((await site.send(path + WAIT, { headers: { "if-none-match": etag } })).status).toBe(304);
  const missing = await site.send(`/nothing/0123456789abcdef/checkpoint${WAIT}`);
  expect(await refusalOf(missing)).toEqual([404, "NOT_PUBLISHED"]);
});

test("closing the server answers every reader that waits", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(2);
  take(site.home, log);
  const path = `/${log.origin}/checkpoint`;
  const etag = (await site.send(path)).headers.get("etag")!;
  const waiting = Array.from({ length: 20 }, () => site.send(path + WAIT, { headers: { "if-none-match": etag } }));
  // Answered after them, on the same server.
  await (await site.send("/")).text();
  await site.close();
  const answers = await Promise.allSettled(waiting);
  const statuses = answers.map((answer) => (answer.status === "fulfilled" ? answer.value.status : 0));
  expect(statuses.every((status) => status === 304 || status === 503 || status === 0)).toBe(true);
  expect(statuses).toContain(304);
});

test("a reader that disconnects gives its place back", async () => {
  const site = await startSite({ limits: { waits: 1 } });
  const log = new SampleLog().grow(2);
  take(site.home, log);
  const path = `/${log.origin}/checkpoint`;
  const etag = (await site.send(path)).headers.get("etag")!;
  const headers = { "if-none-match": etag };
  const gone = new AbortController();
  const wait = async (): Promise<unknown> => {
    for (;;) {
      const { status } = await site.send(path + WAIT, { headers, signal: gone.signal });
      // The short poll below had the place.
      if (status !== 429) return status;
    }
  };
  const first = wait().catch(() => "gone");
  const shortPoll = async (): Promise<number> => (await site.send(`${path}?wait=0.001`, { headers })).status;
  await expect.poll(shortPoll, { timeout: 20_000 }).toBe(429);
  gone.abort();
  expect(await first).toBe("gone");
  await expect.poll(shortPoll, { timeout: 20_000 }).toBe(304);
});

test("the carrier of a peer waits for a change with one request", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(2);
  take(site.home, log);
  const carrier = site.carrier();
  const first = await carrier.get(`${log.origin}/checkpoint`);
  if (first === undefined || first === "unchanged") throw new Error("no checkpoint");
  const before = site.requests();
  // A time with many digits, as what is left of a deadline has.
  const waiting = carrier.get(`${log.origin}/checkpoint`, { after: first.etag, waitMs: 29_123.456_789_012_3 });
  await expect.poll(() => site.handler.waiting, { timeout: 20_000 }).toBe(1);
  take(site.home, log.grow(1));
  site.handler.changed();
  const second = await waiting;
  if (second === undefined || second === "unchanged") throw new Error("no change");
  expect(Buffer.from(second.bytes).toString()).toBe(log.checkpoint().note);
  expect(site.requests() - before).toBe(1);
  await carrier.close();
});
