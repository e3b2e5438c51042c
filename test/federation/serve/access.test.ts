// Access: tokens, roles, names of the server, routes of other rooms, TLS.

import { execFileSync } from "node:child_process";
import { request as requestTls } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemTimers } from "../../../src/base/index.ts";
import { listen } from "../../../src/http/index.ts";
import { matchesGlob } from "../../../src/federation/serve/peer-access.ts";
import { tokenDigest } from "../../../src/http/index.ts";
import { EDGE, freshFolder, HUB, OTHER_TOKEN, refusalOf, SampleLog, startSite, take, TOKEN } from "./serve-fixture.ts";

test("without a token nothing but the health of the site is answered", async () => {
  const site = await startSite();
  const log = new SampleLog().grow(2);
  take(site.home, log);
  for (const path of ["checkpoint", "tile/entries/000.p/2", "tile/0/000.p/2", "pack/000.p/2", "key/002"])
    expect(await refusalOf(await site.send(`/${log.origin}/${path}`, { token: null })), path).toEqual([
      401,
      "NOT_ADMITTED",
    ]);
  expect(await refusalOf(await site.send("/run/order-7", { token: null }))).toEqual([401, "NOT_ADMITTED"]);
  expect((await site.send("/", { token: null })).status).toBe(200);
});

test("a wrong token, a prefix of a token and another scheme are refused", async () => {
  const site = await startSite();
  for (const token of ["wrong", TOKEN.slice(0, -1), `${TOKEN}x`, tokenDigest(TOKEN), "x".repeat(5_000)])
    expect(await refusalOf(await site.send("/", { token })), token).toEqual([401, "NOT_ADMITTED"]);
  const basic = await fetch(`${site.url}/`, { headers: { authorization: `Basic ${btoa(`edge:${TOKEN}`)}` } });
  expect(await refusalOf(basic)).toEqual([401, "NOT_ADMITTED"]);
  expect(basic.headers.get("www-authenticate")).toContain("Bearer");
});

test("a peer that is removed is refused with the next request", async () => {
  const peers = [EDGE, HUB];
  const site = await startSite({ peers: () => peers });
  const log = new SampleLog().grow(2);
  take(site.home, log);
  expect((await site.send(`/${log.origin}/checkpoint`, { token: OTHER_TOKEN })).status).toBe(200);
  peers.pop();
  expect((await site.send(`/${log.origin}/checkpoint`, { token: OTHER_TOKEN })).status).toBe(401);
});

test("a public site gives logs to anyone, and contents by the rules for everyone", async () => {
  const site = await startSite({
    public: true,
    rules: () => [{ to: ["hub"], payloads: "full", origins: ["*"] }],
  });
  const log = new SampleLog().grow(2);
  take(site.home, log);
  const tile = await site.send(`/${log.origin}/tile/entries/000.p/2`, { token: null });
  expect(tile.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect(await (await site.send(`/${log.origin}/pack/000.p/2`, { token: null })).text()).toBe("");
  const put = await site.send(`/${log.origin}/checkpoint`, { token: null, method: "PUT", body: "x" });
  expect(await refusalOf(put)).toEqual([401, "NOT_ADMITTED"]);
});

test("routes of other rooms are behind the same access, limits and errors", async () => {
  const site = await startSite({
    limits: { depth: 3 },
    extraRoutes: [
      {
        method: "POST",
        path: /^\/offers\/(?<verb>claim|renew|end)$/,
        access: "grant:work:gpu",
        body: { name: "artifactBytes", bytes: 100 },
        handle: async ({ params, peer, json }) =>
          Response.json({ verb: params["verb"], peer: peer?.name, body: await json() }),
      },
    ],
  });
  const post = (body: string, token: string | null = TOKEN): Promise<Response> =>
    site.send("/offers/claim", { method: "POST", body, token });
  expect(await (await post('{"a":1}')).json()).toEqual({ verb: "claim", peer: "edge", body: { a: 1 } });
  expect(await refusalOf(await post("{}", null))).toEqual([401, "NOT_ADMITTED"]);
  expect(await refusalOf(await post("{}", OTHER_TOKEN))).toEqual([403, "NOT_ADMITTED"]);
  expect(await refusalOf(await post("[[[[]]]]"))).toEqual([413, "LIMIT_EXCEEDED"]);
  expect(await refusalOf(await post('{"a"'))).toEqual([400, "BAD_FORMAT"]);
  expect(await refusalOf(await post(`"${"x".repeat(200)}"`))).toEqual([413, "LIMIT_EXCEEDED"]);
  expect(await refusalOf(await site.send("/offers/claim"))).toEqual([405, "USAGE"]);
  expect(await refusalOf(await site.send("/offers/other"))).toEqual([404, "NOT_PUBLISHED"]);
});

test("an error that is no refusal is kept from the client", async () => {
  const site = await startSite({
    extraRoutes: [
      {
        method: "GET",
        path: /^\/broken$/,
        access: "anyone",
        handle: () => {
          throw new Error("secret text");
        },
      },
    ],
  });
  const response = await site.send("/broken");
  const text = await response.text();
  expect([response.status, text.includes("secret")]).toEqual([500, false]);
  expect(site.errors).toHaveLength(1);
});

/** Sends bytes over a socket, and returns what comes back until the server closes. */
function raw(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(text));
    let received = "";
    socket.on("data", (chunk) => (received += chunk.toString()));
    socket.on("end", () => resolve(received));
    socket.on("error", reject);
  });
}

test("another name in the Host header is refused on loopback", async () => {
  const site = await startSite();
  const { port } = new URL(site.url);
  const get = (host: string): Promise<string> =>
    raw(site.url, `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  expect(await get(`127.0.0.1:${port}`)).toContain("200 OK");
  expect(await get(`LOCALHOST:${port}`)).toContain("200 OK");
  for (const host of [
    `evil.example:${port}`,
    "127.0.0.1",
    `127.0.0.1:${Number(port) + 1}`,
    `127.0.0.1.:${port}`,
    "a b",
  ])
    expect(await get(host), host).toMatch(/ 4(?:21|00) /);
  const absolute = await raw(
    site.url,
    `GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`,
  );
  expect(absolute).toContain(" 421 ");
});

test("a server with a certificate answers over TLS only", async () => {
  const dir = freshFolder();
  const [key, cert] = [join(dir, "key.pem"), join(dir, "cert.pem")];
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ed25519",
      "-nodes",
      "-keyout",
      key,
      "-out",
      cert,
      "-days",
      "2",
      "-subj",
      "/CN=localhost",
    ],
    { stdio: "ignore" },
  );
  const site = await startSite();
  const secure = await listen(
    Object.assign((request: Request) => site.handler(request), { close: async () => undefined }),
    {
      timers: systemTimers,
      tls: { key, cert },
    },
  );
  onTestFinished(() => secure.close());
  expect(secure.url).toMatch(/^https:/);
  const status = await new Promise((resolve, reject) => {
    requestTls(`${secure.url}/`, { rejectUnauthorized: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on("error", reject)
      .end();
  });
  expect(status).toBe(200);
  await expect(fetch(secure.url.replace("https", "http"))).rejects.toThrow();
});

test("a signal closes the server", async () => {
  const site = await startSite();
  const stop = new AbortController();
  const second = await listen(
    Object.assign((request: Request) => site.handler(request), { close: async () => undefined }),
    {
      timers: systemTimers,
      signal: stop.signal,
    },
  );
  expect((await fetch(`${second.url}/`)).status).toBe(200);
  stop.abort();
  await second.close();
  await expect(fetch(`${second.url}/`)).rejects.toThrow();
});

test("globs of origins match as they say", () => {
  expect(matchesGlob("*", "edge7/0123")).toBe(true);
  expect(matchesGlob("edge*", "edge7/0123")).toBe(true);
  expect(matchesGlob("*/0123", "edge7/0123")).toBe(true);
  expect(matchesGlob("e*7/*3", "edge7/0123")).toBe(true);
  expect(matchesGlob("edge7", "edge7/0123")).toBe(false);
  expect(matchesGlob("ab*ba", "aba")).toBe(false);
  expect(matchesGlob("*a*a*a*a*a*b", "a".repeat(10_000))).toBe(false);
});
