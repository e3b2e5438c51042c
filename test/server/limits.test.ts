// Limits of callers, and the end of a server.

import { createEngine, promise, workflow, type Engine } from "reprise";
import { createServer, type ServerOptions } from "reprise/server";
import { afterAll, beforeAll, expect, test } from "vitest";

const waits = workflow("waits", { ports: { go: promise<string>() } }, async (ctx) => ctx.promise("go"));
const ORIGIN = "http://127.0.0.1:7420";
let engine: Engine<typeof waits>;

beforeAll(async () => {
  engine = await createEngine({ store: "sqlite::memory:", definitions: [waits], logger: false });
  await engine.start(waits, undefined, { id: "waits-1" });
});
afterAll(() => engine.close());

function open(limits: NonNullable<ServerOptions["limits"]>) {
  const server = createServer(engine, { limits });
  return Object.assign(server, { get: (path: string) => server.fetch(new Request(`${ORIGIN}${path}`)) });
}

test("a caller that makes more requests than the limit gets 429 with Retry-After", async () => {
  await using server = open({ requestsPerSecond: 3 });
  const all = await Promise.all(Array.from({ length: 8 }, () => server.get("/v1/site")));
  const refused = all.filter(({ status }) => status === 429);
  expect(refused.length).toBeGreaterThan(3);
  expect(refused[0]!.headers.get("retry-after")).toBe("1");
  expect(await refused[0]!.json()).toMatchObject({
    code: "LIMIT_EXCEEDED",
    detail: expect.stringContaining("requestsPerSecond") as string,
  });
});

test("a stream counts until it ends, and one above the limit is refused with 503", async () => {
  await using server = open({ waitsInAll: 2 });
  const [first, second] = [await server.get("/v1/events"), await server.get("/v1/events")];
  expect([first.status, second.status]).toEqual([200, 200]);
  const third = await server.get("/v1/events");
  expect([third.status, third.headers.get("retry-after")]).toEqual([503, "1"]);
  await first.body!.cancel();
  expect((await server.get("/v1/events")).status).toBe(200);
});

test("a stream of an aborted request does not count, also if its body is neither read nor canceled", async () => {
  await using server = open({ waitsInAll: 1 });
  for (let count = 0; count < 3; count += 1) {
    const left = new AbortController();
    const request = new Request(`${ORIGIN}/v1/events`, { signal: left.signal });
    expect((await server.fetch(request)).status).toBe(200);
    left.abort();
  }
});

test("webhooks whose bodies never end use up neither the requests of links nor those of probes", async () => {
  await using server = open({ requests: 2 });
  const left = new AbortController();
  const post = (): Promise<Response> =>
    server.fetch(
      new Request(`${ORIGIN}/v1/hooks/any`, {
        method: "POST",
        body: new ReadableStream({
          start: (body) => left.signal.addEventListener("abort", () => body.close(), { once: true }),
        }),
        duplex: "half",
      } as RequestInit),
    );
  const slow = [post(), post()];
  expect((await post()).status).toBe(429);
  expect((await server.get("/health")).status).toBe(200);
  expect((await server.get("/a/unknown")).status).toBe(404);
  left.abort();
  expect((await Promise.all(slow)).map(({ status }) => status)).toEqual([404, 404]);
});

test("a limit that does not exist is refused", () => {
  expect(() => createServer(engine, { limits: { bodyByte: 1 } as never })).toThrow(/no limit "bodyByte"/);
  expect(() => createServer(engine, { limits: { requests: 0 } })).toThrow(/above 0/);
});

test("close ends streams and waits, lets requests finish, and refuses later ones", async () => {
  const server = open({});
  const stream = await server.get("/v1/events");
  const waiting = server.get("/v1/runs/waits-1/result?wait=60");
  const reading = server.get("/v1/runs/waits-1");
  await server.close();
  expect((await reading).status).toBe(200);
  expect((await waiting).status).toBeLessThan(504);
  await stream.text();
  const late = await server.get("/v1/site");
  expect([late.status, late.headers.get("retry-after")]).toEqual([503, "1"]);
  expect((await engine.find("waits-1"))?.status).toBe("waiting");
});

test("a server is mounted below a path, and its files and addresses with it", async () => {
  await using server = createServer(engine, { basePath: "/runs" });
  const get = (path: string, accept = "*/*") => server.fetch(new Request(`${ORIGIN}${path}`, { headers: { accept } }));
  expect((await get("/runs/v1/site")).status).toBe(200);
  expect((await get("/v1/site")).status).toBe(404);
  const page = await get("/runs/anything", "text/html");
  expect(page.headers.get("content-security-policy")).toContain("script-src 'self'");
  const asset = /src="(\/runs\/assets\/[^"]+)"/.exec(await page.text())?.[1];
  if (asset !== undefined) expect((await get(asset)).headers.get("cache-control")).toContain("immutable");
  expect((await get("/runs/../package.json")).status).toBe(404);
  expect((await get("/runs/v1/site", "text/html")).status).toBe(406);
});
