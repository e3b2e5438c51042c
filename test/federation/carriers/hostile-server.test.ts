// A server that means harm, or is broken: whatever it sends, the client ends with a stable code and bounded memory.

import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import type { Timers } from "../../../src/base/index.ts";
import { openCarrier, type Carrier, type CarrierOptions } from "../../../src/federation/index.ts";
import { PORTS } from "./real-ports.ts";

const PATH = "edge7/56475aa75463474c/checkpoint";
const MB = 1024 * 1024;
const OK = 'HTTP/1.1 200 OK\r\netag: "1"\r\n';

interface Hostile extends AsyncDisposable {
  readonly url: string;
  readonly sockets: readonly Socket[];
  readonly requests: number;
}

/** Answers each request, whatever it is, by writing to the socket. */
async function hostile(answer: (socket: Socket, request: number) => void): Promise<Hostile> {
  const sockets: Socket[] = [];
  let requests = 0;
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.on("data", (data) => {
      if (!/^(?:GET|PUT|DELETE) /.test(data.toString("latin1"))) return;
      requests += 1;
      answer(socket, requests);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/x`,
    sockets,
    get requests() {
      return requests;
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Timers that expire when a test says so. */
class ManualTimers implements Timers {
  count = 0;
  readonly #pending = new Set<() => void>();

  set(_ms: number, fn: () => void): () => void {
    this.count += 1;
    this.#pending.add(fn);
    return () => this.#pending.delete(fn);
  }

  soon(fn: () => void): void {
    setImmediate(fn);
  }

  fire(): void {
    for (const fn of this.#pending) {
      this.#pending.delete(fn);
      fn();
    }
  }
}

const open = (url: string, more: Partial<CarrierOptions> = {}): Promise<Carrier> =>
  openCarrier(url, { ...PORTS, ...more, limits: { attempts: 2, ...more.limits } });

/** Writes until the client hangs up. */
function flood(socket: Socket, block: Buffer): void {
  const more = (): void => {
    while (!socket.destroyed && socket.write(block));
    if (!socket.destroyed) socket.once("drain", more);
  };
  more();
}

test("an endless body is cut off at the limit", async () => {
  const block = Buffer.alloc(64 * 1024, 97);
  await using server = await hostile((socket) => {
    socket.write(`${OK}connection: close\r\n\r\n`);
    flood(socket, block);
  });
  const carrier = await open(server.url);
  await expect(carrier.get(PATH, { maxBytes: MB })).rejects.toMatchObject({ code: "LIMIT_EXCEEDED" });
  await expect.poll(() => server.sockets[0]!.destroyed).toBe(true);
  // What the sockets of both sides hold comes on top.
  expect(server.sockets[0]!.bytesWritten).toBeLessThan(16 * MB);
  expect(server.requests).toBe(1);
});

test("an endless body of an error is cut off too", async () => {
  await using server = await hostile((socket) => {
    socket.write("HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n");
    flood(socket, Buffer.alloc(64 * 1024, 97));
  });
  const carrier = await open(server.url);
  await expect(carrier.get(PATH)).rejects.toMatchObject({ code: "CARRIER_REFUSED" });
  await expect.poll(() => server.sockets[0]!.destroyed).toBe(true);
});

test("a length above the limit is refused before the body is read", async () => {
  await using server = await hostile((socket) => socket.write(`${OK}content-length: 99999999999\r\n\r\n`));
  const carrier = await open(server.url);
  await expect(carrier.get(PATH)).rejects.toMatchObject({ code: "LIMIT_EXCEEDED" });
  await expect.poll(() => server.sockets[0]!.destroyed).toBe(true);
});

test("a body that ends before its length is no file", async () => {
  await using server = await hostile((socket) => socket.end(`${OK}content-length: 100\r\n\r\nhalf`));
  const carrier = await open(server.url);
  await expect(carrier.get(PATH)).rejects.toMatchObject({ code: "CARRIER_UNREACHABLE" });
  expect(server.requests).toBe(2);
});

test("bytes behind the length are not part of the file", async () => {
  await using server = await hostile((socket) => socket.end(`${OK}content-length: 4\r\n\r\nfilemore and more`));
  const carrier = await open(server.url);
  const outcome = await carrier.get(PATH).catch((error: unknown) => (error as { code: string }).code);
  expect([{ bytes: Uint8Array.from(Buffer.from("file")), etag: '"1"' }, "CARRIER_UNREACHABLE"]).toContainEqual(outcome);
});

test("a body that grows when it is unpacked is counted unpacked", async () => {
  const bomb = gzipSync(Buffer.alloc(64 * MB));
  await using server = await hostile((socket) => {
    socket.write(`${OK}content-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`);
    socket.end(bomb);
  });
  const carrier = await open(server.url);
  await expect(carrier.get(PATH, { maxBytes: MB })).rejects.toMatchObject({ code: "LIMIT_EXCEEDED" });
});

test("a body that comes too slowly is cut off", async () => {
  const timers = new ManualTimers();
  await using server = await hostile((socket) => socket.write(`${OK}content-length: 1000\r\n\r\nx`));
  const carrier = await open(server.url, { timers });
  const got = carrier.get(PATH);
  got.catch(() => undefined);
  // The first timer is for the answer, the second for the body.
  await expect.poll(() => timers.count).toBe(2);
  timers.fire();
  await expect(got).rejects.toMatchObject({
    code: "CARRIER_UNREACHABLE",
    message: expect.stringMatching(/sent \d bytes in 30000 ms/),
  });
  expect(server.requests).toBe(1);
  await expect.poll(() => server.sockets[0]!.destroyed).toBe(true);
});

test("a server that never answers is unreachable after the last try", async () => {
  const timers = new ManualTimers();
  await using server = await hostile(() => undefined);
  const carrier = await open(server.url, { timers });
  const got = carrier.get(PATH);
  got.catch(() => undefined);
  for (const requests of [1, 2]) {
    await expect.poll(() => server.requests).toBe(requests);
    // The answer's timer, then that of the pause before the next try.
    const before = timers.count;
    timers.fire();
    if (requests === 1) await expect.poll(() => timers.count).toBe(before + 1);
    timers.fire();
  }
  await expect(got).rejects.toMatchObject({
    code: "CARRIER_UNREACHABLE",
    message: expect.stringMatching(/did not answer within 30000 ms/),
  });
});

test.each([301, 302, 303, 307, 308])("a redirect (%i) is not followed", async (status) => {
  await using other = await hostile((socket) => socket.end(`${OK}content-length: 4\r\n\r\nfile`));
  await using server = await hostile((socket) =>
    socket.end(`HTTP/1.1 ${status} Moved\r\nlocation: ${other.url}\r\ncontent-length: 0\r\n\r\n`),
  );
  const carrier = await open(server.url, { token: "secret" });
  const refused = { code: "CARRIER_REFUSED", message: expect.stringMatching(/redirect/) };
  await expect(carrier.get(PATH)).rejects.toMatchObject(refused);
  await expect(carrier.put!(PATH, Buffer.from("x"), { absent: true })).rejects.toMatchObject(refused);
  await expect(carrier.remove!(PATH)).rejects.toMatchObject(refused);
  expect(other.requests).toBe(0);
});

test.each([
  ["a file that nothing was asked about", "HTTP/1.1 304 Not Modified\r\n\r\n", "CARRIER_REFUSED"],
  ["a partial file", "HTTP/1.1 206 Partial\r\ncontent-length: 1\r\n\r\nx", "CARRIER_REFUSED"],
  ["no body at all", "HTTP/1.1 204 No Content\r\n\r\n", "CARRIER_REFUSED"],
  ["what is no HTTP", "220 mail.example ESMTP\r\n", "CARRIER_UNREACHABLE"],
  ["endless headers", `HTTP/1.1 200 OK\r\nx: ${"a".repeat(MB)}\r\n\r\n`, "CARRIER_UNREACHABLE"],
  ["a code of another family", error(403, '{"code":"INVARIANT","message":"x"}'), "CARRIER_REFUSED"],
  ["an error that is no JSON", error(400, "<html>"), "CARRIER_REFUSED"],
  ["an error that is no object", error(400, "null"), "CARRIER_REFUSED"],
])("%s is an error", async (_what, text, code) => {
  await using server = await hostile((socket) => socket.end(text));
  const carrier = await open(server.url);
  await expect(carrier.get(PATH)).rejects.toMatchObject({ code });
});

function error(status: number, body: string): string {
  return `HTTP/1.1 ${status} No\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

test("a message of the server is cut, and its control characters do not reach the terminal", async () => {
  const body = JSON.stringify({ code: "LIMIT_EXCEEDED", message: `\u001b[2J${"a".repeat(5_000)}` });
  await using server = await hostile((socket) => socket.end(error(400, body)));
  const carrier = await open(server.url);
  const problem = (await carrier.get(PATH).catch((thrown: unknown) => thrown)) as Error;
  expect(problem).toMatchObject({ code: "LIMIT_EXCEEDED" });
  expect(problem.message.length).toBeLessThan(1_000);
  expect(problem.message).not.toContain("\u001b");
});

test.each(["../../etc/passwd", "other/file", "edge7/a b", "edge7/.git/config", "edge7/\\x"])(
  "a list with %j is refused",
  async (line) => {
    await using server = await hostile((socket) =>
      socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${line.length}\r\n\r\n${line}`),
    );
    const carrier = await open(server.url);
    await expect(Array.fromAsync(carrier.list!("edge7/"))).rejects.toMatchObject({ code: "CARRIER_REFUSED" });
  },
);

test("a server that stores without a version is not trusted with conditions", async () => {
  await using server = await hostile((socket) => socket.end("HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n"));
  const carrier = await open(server.url);
  await expect(carrier.put!(PATH, Buffer.from("x"), { absent: true })).rejects.toMatchObject({
    code: "CARRIER_REFUSED",
  });
});
