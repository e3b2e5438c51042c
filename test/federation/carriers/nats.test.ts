import { afterAll, beforeAll, expect, test } from "vitest";
import { openCarrier } from "../../../src/federation/index.ts";
import { describeOn, startNats, type NatsServer } from "../../servers/index.ts";
import { CARRIER_CASES } from "../carrier-cases.ts";
import { PORTS } from "./real-ports.ts";

const PATH = "edge7/56475aa75463474c/checkpoint";
const TILE = "edge7/56475aa75463474c/tile/0/000";
const bytesOf = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text));

describeOn("nats", "a NATS server", () => {
  let server: NatsServer;
  let buckets = 0;
  beforeAll(async () => {
    server = await startNats();
  }, 120_000);
  afterAll(() => server[Symbol.asyncDispose]());

  const freshUrl = (): string => `${server.url}/bucket-${(buckets += 1)}`;

  test.each(CARRIER_CASES)("nats: $name", { timeout: 60_000 }, async ({ run }) => {
    const url = freshUrl();
    await run({ open: () => openCarrier(url, PORTS), waitMs: 20_000 });
  });

  test("reading a bucket does not create it", async () => {
    const url = freshUrl();
    const carrier = await openCarrier(url, PORTS);
    expect([await carrier.get(PATH), await carrier.get(TILE)]).toEqual([undefined, undefined]);
    expect(await Array.fromAsync(carrier.list!(""))).toEqual([]);
    await carrier.remove!(PATH);
    await carrier.close();
    expect(server.log()).not.toContain(url.slice(url.lastIndexOf("/") + 1));
  });

  test("a carrier that was closed, or whose server is gone, is unreachable", async () => {
    const carrier = await openCarrier(freshUrl(), { ...PORTS, limits: { attempts: 1 } });
    await carrier.close();
    await expect(carrier.get(PATH)).rejects.toMatchObject({ code: "CARRIER_UNREACHABLE" });
    await expect(openCarrier("nats://127.0.0.1:1/bucket", PORTS)).rejects.toMatchObject({
      code: "CARRIER_UNREACHABLE",
    });
  });

  test.each([
    "nats://host",
    "nats://host/a/b",
    "nats://me:secret@host/bucket",
    "nats://host/bucket?x=1",
    "nats:///bucket",
  ])("%s is refused with an example", async (url) => {
    const problem = await openCarrier(url, PORTS).catch((error: unknown) => error);
    expect(problem).toMatchObject({
      code: "BAD_CARRIER_URL",
      message: expect.stringContaining("nats://host:4222/bucket"),
    });
    expect(String(problem)).not.toContain("secret");
  });
});

describeOn("nats", "NATS servers of a test", () => {
  test("a carrier survives that its server is killed and started again", { timeout: 120_000 }, async () => {
    await using server = await startNats();
    const carrier = await openCarrier(`${server.url}/history`, { ...PORTS, limits: { attempts: 50 } });
    await carrier.put!(TILE, bytesOf("tile"), { absent: true });
    const etag = await carrier.put!(PATH, bytesOf("1"), { match: null });
    const waiting = carrier.get(PATH, { after: etag, waitMs: 25_000 });
    await server.kill();
    const put = carrier.put!(PATH, bytesOf("2"), { match: etag });
    await server.start();
    expect(await put).not.toBe("refused");
    expect(await waiting).toMatchObject({ bytes: bytesOf("2") });
    expect(await carrier.get(TILE)).toMatchObject({ bytes: bytesOf("tile") });
    await carrier.close();
  });

  test("a server without JetStream, and credentials that are wrong, are refused", async () => {
    await using plain = await startNats({ withoutJetStream: true });
    await expect(openCarrier(`${plain.url}/history`, PORTS)).rejects.toMatchObject({
      code: "CARRIER_REFUSED",
      message: expect.stringContaining("nats-server -js"),
    });
    await using closed = await startNats({ config: ["authorization { user: me, password: right }"] });
    const url = `${closed.url}/history`;
    for (const token of [{}, { token: "me:wrong" }, { token: "secret" }])
      await expect(openCarrier(url, { ...PORTS, ...token })).rejects.toMatchObject({ code: "CARRIER_REFUSED" });
    const carrier = await openCarrier(url, { ...PORTS, token: "me:right" });
    await carrier.put!(TILE, bytesOf("tile"), { absent: true });
    await carrier.close();
  });
});
