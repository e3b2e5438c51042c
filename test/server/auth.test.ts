// Callers: tokens, sessions, browser tokens, the loopback mode, and what every refusal says.

import { mkdtempSync, rmSync, statSync, writeFileSync, chmodSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Engine } from "reprise";
import { createServer, type Server } from "reprise/server";
import { systemRandom } from "../../src/base/index.ts";
import { createToken } from "../../src/server/auth/api-token.ts";
import { changeTokenFile } from "../../src/server/auth/token-file.ts";
import {
  approval,
  ask,
  codeOf,
  openEngine,
  ORIGIN,
  other,
  ROLE_TOKENS,
  SECRET,
  serverWithTokens,
  settings,
  tokenFor,
} from "./auth-fixture.ts";

let engine: Engine<typeof approval | typeof other>;
let server: Server;
const folder = mkdtempSync(join(tmpdir(), "reprise-auth-"));

beforeAll(async () => {
  engine = await openEngine();
  await engine.start(approval, SECRET, { id: "run-1" });
  await engine.start(other, SECRET, { id: "run-2" });
  const past = new Date(0).toISOString();
  server = serverWithTokens(engine, {
    auth: {
      tokens: [
        ...ROLE_TOKENS,
        settings("expired", "admin", { expiresAt: past }),
        settings("scoped", "admin", { definitions: ["approval"] }),
      ],
    },
  });
});

afterAll(async () => {
  await server.close();
  await engine.close();
  rmSync(folder, { recursive: true });
});

/** An operation that readers may use, and that says who asked. */
const mint = (body: object = {}): { path: string; body: object } => ({
  path: "/v1/tokens",
  body: { run: "run-1", role: "reader", ...body },
});

async function mintWith(options: Parameters<typeof ask>[2], body: object = {}, on = server): Promise<string> {
  const response = await ask(on, "/v1/tokens", { body: mint(body).body, ...options });
  return response.status === 201 ? "201" : codeOf(response);
}

test("a request without a token, or with one that is not known, is refused with 401 and how to send one", async () => {
  const none = await ask(server, "/v1/tokens", mint());
  expect([none.status, none.headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="reprise"']);
  expect(await codeOf(none)).toBe("401 TOKEN_REQUIRED");
  for (const token of [
    "",
    "x",
    tokenFor("reader").slice(0, -1),
    `${tokenFor("reader")}x`,
    tokenFor("expired"),
    ROLE_TOKENS[1]!.hash,
    "rpb_",
    "rpb_e30.x",
    "rpb_eyJydW4iOiJydW4tMSJ9.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "a".repeat(5_000),
  ])
    expect(await mintWith({ token }), token.slice(0, 50)).toBe("401 TOKEN_REQUIRED");
});

test("a token below the role of the operation is refused with 403, which names both roles", async () => {
  const response = await ask(server, "/v1/tokens", { ...mint(), token: tokenFor("viewer") });
  expect(response.status).toBe(403);
  const { code, detail } = (await response.json()) as { code: string; detail: string };
  expect(code).toBe("ROLE_REQUIRED");
  expect(detail).toContain("createBrowserToken needs the role reader; the token viewer has the role viewer");
  expect(await mintWith({ token: tokenFor("reader") })).toBe("201");
});

test("two Authorization headers, another scheme, and a token in the address are refused", async () => {
  const good = tokenFor("admin");
  for (const authorization of [
    `Bearer ${good}, Bearer ${good}`,
    `Bearer  ${good}`,
    `Basic ${good}`,
    good,
    `Bearer ${good} x`,
  ])
    expect(await mintWith({ headers: { authorization } }), authorization.slice(0, 12)).toBe("401 TOKEN_REQUIRED");
  for (const query of [`?token=${good}`, `?access_token=x`, `?anything=${good}`]) {
    const response = await ask(server, `/v1/tokens${query}`, { ...mint(), token: good });
    expect(await codeOf(response), query).toBe("401 TOKEN_REQUIRED");
  }
});

test("a header that changes the method of a request does nothing", async () => {
  const headers = { "x-http-method-override": "DELETE", "x-method-override": "DELETE", "x-http-method": "DELETE" };
  expect(await mintWith({ token: tokenFor("reader"), headers })).toBe("201");
});

test("a browser token mints no other, and none with a role above the caller's or for a run outside of its scope", async () => {
  const { token } = (await (await ask(server, "/v1/tokens", { ...mint(), token: tokenFor("admin") })).json()) as {
    token: string;
  };
  expect(await mintWith({ token })).toBe("403 ROLE_REQUIRED");
  expect(await mintWith({ token: tokenFor("reader") }, { role: "approver" })).toBe("403 ROLE_REQUIRED");
  expect(await mintWith({ token: tokenFor("approver") }, { role: "approver" })).toBe("201");
  expect(await mintWith({ token: tokenFor("scoped") })).toBe("201");
  expect(await mintWith({ token: tokenFor("scoped") }, { run: "run-2" })).toBe("404 RUN_NOT_FOUND");
  expect(await mintWith({ token: tokenFor("scoped") }, { run: "absent" })).toBe("404 RUN_NOT_FOUND");
  expect(await mintWith({ token: tokenFor("admin") }, { ttl: "61 minutes" })).toBe("400 BAD_OPTIONS");
});

test("every answer has the headers that keep a browser from using it otherwise, refusals too", async () => {
  for (const response of [
    await ask(server, "/openapi.json"),
    await ask(server, "/v1/tokens", mint()),
    await ask(server, "/v1/tokens", { ...mint(), token: tokenFor("admin") }),
    await ask(server, "/nothing"),
    await ask(server, "/v1/tokens", { method: "PUT" }),
  ]) {
    const { headers } = response;
    expect(headers.get("content-security-policy")).toMatch(/^default-src 'none'/);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
    expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
    expect(headers.get("access-control-allow-origin")).toBeNull();
    expect(headers.get("cache-control")).toMatch(/no-store|no-cache/);
  }
});

test("without tokens every program of this machine is an admin, and no page of another name or origin is", async () => {
  await using open = createServer(engine);
  const headers = { "x-reprise": "1" };
  expect(await mintWith({ headers }, {}, open)).toBe("201");
  expect(await mintWith({}, {}, open)).toBe("403 WRONG_ORIGIN");
  expect(await mintWith({ headers, origin: "http://rebound.example:7420" }, {}, open)).toBe("421 WRONG_HOST");
  expect(await mintWith({ headers: { ...headers, origin: "https://evil.example" } }, {}, open)).toBe(
    "403 WRONG_ORIGIN",
  );
  expect(await mintWith({ headers: { ...headers, origin: "null" } }, {}, open)).toBe("403 WRONG_ORIGIN");
  expect(await mintWith({ headers: { ...headers, origin: ORIGIN } }, {}, open)).toBe("201");
  // A bearer token that no operator made is an error, not a reason to fall back to the open mode.
  expect(await mintWith({ headers, token: tokenFor("reader") }, {}, open)).toBe("401 TOKEN_REQUIRED");
});

test("other machines are reached with tokens and expose only", async () => {
  await using open = createServer(engine);
  await expect(open.listen({ host: "0.0.0.0", port: 0, expose: true })).rejects.toThrow(/has no tokens/);
  await expect(server.listen({ host: "0.0.0.0", port: 0 })).rejects.toThrow(/--expose/);
});

test("a session needs a one-time code, which works once, or a token, and ends when the person signs out", async () => {
  await using dev = createServer(engine, { auth: { local: "session" } });
  const headers = { "x-reprise": "1" };
  expect(await mintWith({ headers }, {}, dev)).toBe("401 TOKEN_REQUIRED");
  const address = dev.signInAddress();
  const code = new URL(address).hash.slice(1);
  expect(new URL(address).pathname).toBe("/login");
  const signIn = async (body: object, more: Record<string, string> = headers): Promise<Response> =>
    ask(dev, "/v1/session", { body, headers: more });
  // A form of another page cannot sign the browser in as another person.
  expect(await codeOf(signIn({ code }, {}))).toBe("403 WRONG_ORIGIN");
  const signedIn = await signIn({ code });
  expect(signedIn.status).toBe(204);
  const cookie = signedIn.headers.get("set-cookie")!;
  expect(cookie).toMatch(/; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
  expect(await codeOf(signIn({ code }))).toBe("401 TOKEN_REQUIRED");
  expect(await codeOf(signIn({ token: tokenFor("admin") }))).toBe("401 TOKEN_REQUIRED");
  const [pair] = cookie.split(";");
  const withCookie = { ...headers, cookie: pair! };
  expect(await mintWith({ headers: withCookie }, {}, dev)).toBe("201");
  expect(await mintWith({ headers: { cookie: pair! } }, {}, dev)).toBe("403 WRONG_ORIGIN");
  expect(await mintWith({ headers: { ...withCookie, origin: "http://localhost:3000" } }, {}, dev)).toBe(
    "403 WRONG_ORIGIN",
  );
  expect(await mintWith({ headers: { ...withCookie, "sec-fetch-site": "same-site" } }, {}, dev)).toBe(
    "403 WRONG_ORIGIN",
  );
  // An invalid bearer token beside a valid cookie is refused; the cookie is not asked.
  expect(await mintWith({ headers: withCookie, token: "x" }, {}, dev)).toBe("401 TOKEN_REQUIRED");
  expect(await mintWith({ headers: { ...headers, cookie: `${pair}; ${pair}` } }, {}, dev)).toBe("401 TOKEN_REQUIRED");
  expect(await mintWith({ headers: { ...headers, cookie: `${pair}x` } }, {}, dev)).toBe("401 TOKEN_REQUIRED");
  const out = await ask(dev, "/v1/session", { method: "DELETE", headers: withCookie });
  expect(out.headers.get("set-cookie")).toContain("Max-Age=0");
  expect(await mintWith({ headers: withCookie }, {}, dev)).toBe("401 TOKEN_REQUIRED");
});

test("a session with a token has its role and ends with it; over TLS the cookie is for TLS only", async () => {
  const file = join(folder, "sessions.json");
  const { token, hash } = createToken(systemRandom);
  changeTokenFile(file, systemRandom, () => [{ name: "ann", hash, role: "viewer" }]);
  await using secure = createServer(engine, { auth: { tokenFile: file }, origin: "https://runs.example.org" });
  const origin = "https://runs.example.org";
  const headers = { "x-reprise": "1" };
  const signedIn = await ask(secure, "/v1/session", { body: { token }, headers, origin });
  const cookie = signedIn.headers.get("set-cookie")!;
  expect(cookie).toMatch(/^__Host-reprise-[0-9a-f]{8}=.*; Secure$/);
  expect(signedIn.headers.get("strict-transport-security")).not.toBeNull();
  const withCookie = { headers: { ...headers, cookie: cookie.split(";")[0]! }, origin };
  expect(await mintWith(withCookie, {}, secure)).toBe("403 ROLE_REQUIRED");
  changeTokenFile(file, systemRandom, () => [{ name: "ann", hash, role: "reader" }]);
  expect(await mintWith(withCookie, {}, secure)).toBe("201");
  changeTokenFile(file, systemRandom, () => []);
  expect(await mintWith(withCookie, {}, secure)).toBe("401 TOKEN_REQUIRED");
});

test("a file of tokens is read again when it changes, and accepts no token when it is missing, damaged or readable by others", async () => {
  const file = join(folder, "tokens.json");
  const errors: string[] = [];
  const logger = { info: () => {}, warn: () => {}, error: (message: string) => void errors.push(message) };
  await using running = createServer(engine, { auth: { tokenFile: file }, logger });
  const { token, hash } = createToken(systemRandom);
  expect(token).toMatch(/^rp_[0-9a-f]{8}_[\w-]{43}$/);
  const tried = (): Promise<string> => mintWith({ token }, {}, running);
  // No file: no caller gets in, and the server does not become open.
  expect(await tried()).toBe("401 TOKEN_REQUIRED");
  expect(await mintWith({ headers: { "x-reprise": "1" } }, {}, running)).toBe("401 TOKEN_REQUIRED");
  changeTokenFile(file, systemRandom, () => [{ name: "ci", hash, role: "operator" }]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(await tried()).toBe("201");
  writeFileSync(file, `{"tokens": [{"name":"ci","hash":"${hash}","role":"owner"}]}`, { mode: 0o600 });
  expect(await tried()).toBe("401 TOKEN_REQUIRED");
  writeFileSync(file, JSON.stringify({ tokens: [{ name: "ci", hash, role: "reader" }] }), { mode: 0o600 });
  expect(await tried()).toBe("201");
  chmodSync(file, 0o644);
  expect(await tried()).toBe("401 TOKEN_REQUIRED");
  rmSync(file);
  expect(await tried()).toBe("401 TOKEN_REQUIRED");
  expect(errors).toHaveLength(2);
});

test("settings of tokens that allow more or less than they say are refused", () => {
  const bad =
    (tokens: unknown): (() => unknown) =>
    () =>
      createServer(engine, { auth: { tokens: tokens as [] } });
  expect(bad([{ ...settings("a", "admin"), role: "root" }])).toThrow(/auth.tokens\[0\].role: expected one of viewer/);
  expect(bad([{ ...settings("a", "admin"), hash: tokenFor("a") }])).toThrow(/hash of the token/);
  expect(bad([{ ...settings("a", "admin"), definitions: [] }])).toThrow(/at least one name/);
  expect(bad([{ ...settings("a", "admin"), expiresAt: "soon" }])).toThrow(/ISO 8601/);
  expect(bad([{ ...settings("a", "admin"), defs: ["x"] }])).toThrow(/no option "defs"/);
  expect(bad([settings("a", "admin"), settings("a", "viewer")])).toThrow(/another token has the name a/);
});

test("own code may know callers, whose requests are checked like those with a cookie", async () => {
  await using own = createServer(engine, {
    auth: {
      authenticate: (request) => {
        const name = request.headers.get("x-forwarded-user");
        return name === null ? undefined : { name, role: "reader" };
      },
    },
  });
  const user = { "x-forwarded-user": "ann" };
  expect(await mintWith({ headers: { "x-reprise": "1" } }, {}, own)).toBe("401 TOKEN_REQUIRED");
  expect(await mintWith({ headers: { ...user, "x-reprise": "1" } }, {}, own)).toBe("201");
  expect(await mintWith({ headers: user }, {}, own)).toBe("403 WRONG_ORIGIN");
  expect(await mintWith({ headers: { ...user, "x-reprise": "1" } }, { role: "approver" }, own)).toBe(
    "403 ROLE_REQUIRED",
  );
});

test("an answer with a token is not kept for a repeated key", async () => {
  const headers = { "idempotency-key": "once" };
  const tokens = [1, 2].map(async () => {
    const response = await ask(server, "/v1/tokens", { ...mint(), token: tokenFor("reader"), headers });
    expect([response.status, response.headers.get("idempotent-replayed")]).toEqual([201, null]);
    return ((await response.json()) as { token: string }).token;
  });
  for (const token of await Promise.all(tokens)) expect(token).toMatch(/^rpb_/);
});

test("the token of a federation peer is known, and has no role", async () => {
  await using site = serverWithTokens(engine, {
    peerOf: (request) => (request.headers.get("authorization") === "Bearer peer-token-of-hub" ? "hub" : undefined),
  });
  const response = await ask(site, "/v1/tokens", { ...mint(), token: "peer-token-of-hub" });
  expect(response.status).toBe(403);
  expect(await response.text()).toContain("federation peer hub, which has no role");
  expect(await mintWith({ token: "peer-token-of-hud" }, {}, site)).toBe("401 TOKEN_REQUIRED");
});

test("pages of a named origin may use the API with a token, but not with a cookie", async () => {
  const app = "https://app.example.org";
  await using shared = serverWithTokens(engine, { cors: [app] });
  const good = await ask(shared, "/v1/tokens", { ...mint(), token: tokenFor("reader"), headers: { origin: app } });
  expect([good.status, good.headers.get("access-control-allow-origin")]).toEqual([201, app]);
  expect(good.headers.get("access-control-allow-credentials")).toBeNull();
  expect(good.headers.get("cross-origin-resource-policy")).toBe("cross-origin");
  const refused = await ask(shared, "/v1/tokens", { ...mint(), headers: { origin: app } });
  expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([401, app]);
  const preflight = await shared.fetch(
    new Request(`${ORIGIN}/v1/tokens`, {
      method: "OPTIONS",
      headers: { origin: app, "access-control-request-method": "POST" },
    }),
  );
  expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([204, app]);
});

test("a secret that can be guessed is refused, and one in a file is created once, private", async () => {
  expect(() => createServer(engine, { secret: "short" })).toThrow(/at least 32 random characters/);
  const secretFile = join(folder, "home", "secret");
  const headers = { "x-reprise": "1" };
  let cookie = "";
  {
    await using first = createServer(engine, { auth: { local: "session" }, secretFile });
    const code = new URL(first.signInAddress()).hash.slice(1);
    const signedIn = await ask(first, "/v1/session", { body: { code }, headers });
    [cookie] = signedIn.headers.get("set-cookie")!.split(";") as [string];
  }
  expect(statSync(secretFile).mode & 0o777).toBe(0o600);
  // A session survives a restart of the server.
  await using second = createServer(engine, { auth: { local: "session" }, secretFile });
  expect(await mintWith({ headers: { ...headers, cookie } }, {}, second)).toBe("201");
});
