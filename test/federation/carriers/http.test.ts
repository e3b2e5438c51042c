import { expect, test } from "vitest";
import { openCarrier } from "../../../src/federation/index.ts";
import { CARRIER_CASES } from "../carrier-cases.ts";
import { PORTS } from "./real-ports.ts";
import { StaticServer } from "./static-server.ts";

const PATH = "edge7/56475aa75463474c/checkpoint";
const bytesOf = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text));
const bytes = bytesOf("text");
const FAST = { pollMs: 5 };

test.each(CARRIER_CASES)("http: $name", async ({ run }) => {
  await using server = await StaticServer.start({ token: "secret" });
  await run({ open: () => openCarrier(server.url, { ...PORTS, token: "secret" }), waitMs: 20_000 });
});

test.each(CARRIER_CASES)("a server that does not wait: $name", async ({ run }) => {
  await using server = await StaticServer.start({ withoutWaiting: true });
  await run({ open: () => openCarrier(`${server.url}/`, { ...PORTS, limits: FAST }), waitMs: 20_000 });
});

test("a server without versions can be read, and a file that did not change is unchanged", async () => {
  await using server = await StaticServer.start({ withoutEtags: true });
  server.place.set(PATH, bytes);
  const carrier = await openCarrier(server.url, PORTS);
  const file = await carrier.get(PATH);
  expect(file).toMatchObject({ bytes });
  expect(await carrier.get(PATH, { after: (file as { etag: string }).etag })).toBe("unchanged");
});

test("a wait on a server that waits is one request", async () => {
  await using server = await StaticServer.start();
  const etag = `"${server.place.set(PATH, bytes)}"`;
  const carrier = await openCarrier(server.url, PORTS);
  expect(await carrier.get(PATH, { after: etag, waitMs: 20 })).toBe("unchanged");
  expect(server.requests[0]).toMatch(/^GET \/files\/edge7\/56475aa75463474c\/checkpoint\?wait=0\.0/);
  const waiting = carrier.get(PATH, { after: etag, waitMs: 20_000 });
  await expect.poll(() => server.requests.length).toBeGreaterThan(1);
  server.place.set(PATH, Buffer.from("next"));
  expect(await waiting).toMatchObject({ bytes: bytesOf("next") });
});

test("a request that the server could not take is repeated, and others are not", async () => {
  const answers = [503, 429, 502];
  await using server = await StaticServer.start({
    intercept: (_request, response) => {
      const status = answers.shift();
      if (status !== undefined) response.writeHead(status).end();
      return status !== undefined;
    },
  });
  server.place.set(PATH, bytes);
  const carrier = await openCarrier(server.url, PORTS);
  expect(await carrier.get(PATH)).toMatchObject({ bytes });
  expect(server.requests).toHaveLength(4);
  answers.push(500);
  await expect(carrier.get(PATH)).rejects.toMatchObject({ code: "CARRIER_REFUSED" });
  expect(server.requests).toHaveLength(5);
  answers.push(503, 503, 503, 503);
  await expect(carrier.get(PATH)).rejects.toMatchObject({ code: "CARRIER_UNREACHABLE" });
  expect(server.requests).toHaveLength(9);
});

test("a put whose answer was lost is ours, and one that another writer won is refused", async () => {
  let lost = 0;
  await using server = await StaticServer.start({
    loses: ({ method }) => method === "PUT" && (lost += 1) === 1,
  });
  const carrier = await openCarrier(server.url, PORTS);
  const etag = await carrier.put!(PATH, bytes, { match: null });
  expect(await carrier.get(PATH, { after: etag })).toBe("unchanged");
  expect(server.requests.filter((line) => line.startsWith("PUT"))).toHaveLength(2);
  expect(await carrier.put!(PATH, bytes, { match: null })).toBe("refused");
  // The next answer is lost, and another writer writes before the request is repeated.
  lost = 0;
  const place = server.place;
  const put = carrier.put!(PATH, Buffer.from("mine"), { match: etag });
  await expect.poll(() => lost).toBe(1);
  place.set(PATH, bytesOf("thei"));
  expect(await put).toBe("refused");
});

test("a token that is missing or wrong is an error of the server's code", async () => {
  await using server = await StaticServer.start({ token: "secret" });
  for (const token of [{}, { token: "other" }]) {
    const carrier = await openCarrier(server.url, { ...PORTS, ...token });
    await expect(carrier.get(PATH)).rejects.toMatchObject({
      code: "NOT_ADMITTED",
      message: expect.stringMatching(/who are you/),
    });
  }
});

test("a carrier names neither token nor query, and a URL with a password is refused", async () => {
  await expect(openCarrier("https://me:secret@host/x", PORTS)).rejects.toMatchObject({
    code: "BAD_CARRIER_URL",
    message: expect.not.stringContaining("secret"),
  });
  await expect(openCarrier("https://host/x?token=1", PORTS)).rejects.toMatchObject({ code: "BAD_CARRIER_URL" });
});

test("a closed carrier ends its requests", async () => {
  await using server = await StaticServer.start();
  const carrier = await openCarrier(server.url, PORTS);
  const waiting = carrier.get(PATH, { waitMs: 20_000 });
  await expect.poll(() => server.requests.length).toBe(1);
  await carrier.close();
  await expect(waiting).rejects.toMatchObject({ code: "USAGE" });
});
