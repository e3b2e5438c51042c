// What reaches the server as bytes: requests that no library would send, and streams whose token is revoked.

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Engine } from "reprise";
import { addToken, createServer, revokeToken, type Server } from "reprise/server";
import type { Listener } from "../../src/http/index.ts";
import { approval, openEngine, SECRET, type other } from "./auth-fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "reprise-wire-"));
const tokenFile = join(folder, "tokens.json");
const token = addToken(tokenFile, { name: "ci", role: "operator" }).token;
let engine: Engine<typeof approval | typeof other>;
let server: Server;
let listener: Listener;
let port: number;

beforeAll(async () => {
  engine = await openEngine();
  await engine.start(approval, SECRET, { id: "run-1" });
  server = createServer(engine, { auth: { tokenFile } });
  listener = await server.listen({ port: 0 });
  port = Number(new URL(listener.url).port);
});

afterAll(async () => {
  await listener.close();
  await engine.close();
  rmSync(folder, { recursive: true });
});

/** Sends bytes and returns the status line and body of the answer. */
async function raw(text: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.end(Buffer.from(text, "latin1"));
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => void chunks.push(chunk));
  // A connection that the server cuts has answered, or has nothing to say.
  socket.on("error", () => undefined);
  await once(socket, "close");
  return Buffer.concat(chunks).toString("latin1");
}

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);

function request(headers: readonly string[], path = "/v1/runs", method = "GET"): string {
  return [`${method} ${path} HTTP/1.1`, ...headers, "connection: close", "", ""].join("\r\n");
}

const own = (): string => `host: 127.0.0.1:${port}`;
const bearer = `authorization: Bearer ${token}`;

test("a request with one token and the right name is answered", async () => {
  const answer = await raw(request([own(), bearer]));
  expect(statusOf(answer)).toBe(200);
  expect(answer).toContain("run-1");
});

test("another name, no name, two names and a name with tricks are refused before anything is read", async () => {
  for (const host of [
    "evil.example",
    `evil.example:${port}`,
    "127.0.0.1",
    `127.0.0.1:${port + 1}`,
    `127.0.0.1:${port}@evil.example`,
    `localhost.:${port}`,
    `[::1%25lo]:${port}`,
    `l\u00f6calhost:${port}`,
    `127.0.0.1:${port}, evil.example`,
    "",
  ]) {
    const answer = await raw(request([`host: ${host}`, bearer]));
    expect([400, 421], host).toContain(statusOf(answer));
    expect(answer).not.toContain("run-1");
  }
  const answer = await raw(request(["host: evil.example", bearer]));
  expect(answer).toContain("application/problem+json");
  expect(answer).toContain('"code":"WRONG_HOST"');
  expect(answer).toContain("--origin");
  expect([400, 421]).toContain(statusOf(await raw(request([bearer]))));
  expect([400, 421]).toContain(statusOf(await raw(request([own(), "host: evil.example", bearer]))));
  // An absolute target wins over the Host header in HTTP.
  expect([400, 421]).toContain(statusOf(await raw(request([own(), bearer], `http://evil.example/v1/runs`))));
});

test("two Authorization headers, folded and broken headers, and huge headers are refused", async () => {
  expect(statusOf(await raw(request([own(), bearer, bearer])))).toBe(401);
  expect(statusOf(await raw(request([own(), bearer, "authorization: Basic eDp5"])))).toBe(401);
  expect([400, 401]).toContain(statusOf(await raw(request([own(), `authorization: Bearer\r\n ${token}`]))));
  expect(statusOf(await raw(request([own(), `authorization: Bearer ${token}\r\nx\u0000y: 1`])))).toBe(400);
  expect(statusOf(await raw(request([own(), bearer, `x-fill: ${"a".repeat(20_000)}`])))).toBe(431);
  expect(
    statusOf(await raw(request([own(), ...Array.from({ length: 3_000 }, (_one, at) => `x${at}: 1`)]))),
  ).toBeGreaterThanOrEqual(400);
});

test("a value that tries to add a header to the answer adds none", async () => {
  for (const value of ["a%0d%0aset-cookie:%20x=1", "a%0aset-cookie:x=1"]) {
    const answer = await raw(request([own(), bearer, `origin: http://x%0d%0aset-cookie`], `/v1/runs/${value}`));
    expect(answer.toLowerCase()).not.toContain("\nset-cookie");
    expect(statusOf(answer)).toBeGreaterThanOrEqual(400);
  }
});

test("a body whose length is given twice, or in two ways, is not read as two requests", async () => {
  const smuggled = "GET /v1/runs HTTP/1.1\r\nhost: x\r\n\r\n";
  for (const lengths of [
    [`content-length: ${smuggled.length}`, "transfer-encoding: chunked"],
    ["content-length: 0", `content-length: ${smuggled.length}`],
    ["transfer-encoding: chunked, identity"],
  ]) {
    const answer = await raw(
      [`POST /v1/tokens HTTP/1.1`, own(), bearer, "content-type: application/json", ...lengths, "", smuggled].join(
        "\r\n",
      ),
    );
    expect(answer.match(/HTTP\/1\.1 \d/g)?.length ?? 0).toBeLessThanOrEqual(1);
    expect(statusOf(answer)).not.toBe(200);
  }
});

test("methods that the table does not have are refused", async () => {
  for (const method of ["TRACE", "CONNECT", "OPTIONS", "PATCH", "PROPFIND", "get"]) {
    const answer = await raw(request([own(), bearer], "/v1/runs", method));
    expect(answer, method).not.toContain("run-1");
    expect(statusOf(answer) === 0 || statusOf(answer) >= 400, `${method} ${statusOf(answer)}`).toBe(true);
  }
});

test.each([
  ["changes", "/v1/events"],
  ["a stream of a run", "/v1/runs/run-1/streams/words"],
])(
  "%s end soon after the token is revoked, and only for that token",
  async (_what, path) => {
    const revoked = addToken(tokenFile, { name: "revoked", role: "reader" }).token;
    const open = async (with_: string): Promise<ReadableStreamDefaultReader<Uint8Array>> => {
      const response = await fetch(`${listener.url}${path}`, {
        headers: { authorization: `Bearer ${with_}`, accept: "text/event-stream" },
      });
      expect(response.status).toBe(200);
      return response.body!.getReader();
    };
    const [ended, kept] = [await open(revoked), await open(token)];
    expect((await ended.read()).done).toBe(false);
    expect(revokeToken(tokenFile, "revoked")).toBe(true);
    // Ends by itself: the test fails by its time limit otherwise.
    while (!(await ended.read()).done);
    const first = await kept.read();
    expect(first.done).toBe(false);
    await kept.cancel();
  },
  30_000,
);

test("a browser token ends with the token that made it", async () => {
  const minting = addToken(tokenFile, { name: "backend", role: "reader" }).token;
  const response = await fetch(`${listener.url}/v1/tokens`, {
    method: "POST",
    headers: { authorization: `Bearer ${minting}`, "content-type": "application/json" },
    body: JSON.stringify({ run: "run-1", role: "reader" }),
  });
  const { token: page } = (await response.json()) as { token: string };
  const read = async (): Promise<number> =>
    (await fetch(`${listener.url}/v1/runs/run-1`, { headers: { authorization: `Bearer ${page}` } })).status;
  expect(await read()).toBe(200);
  revokeToken(tokenFile, "backend");
  expect(await read()).toBe(401);
});
