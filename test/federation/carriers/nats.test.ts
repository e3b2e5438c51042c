import { afterAll, beforeAll, expect, test } from "vitest";
import { connectNats } from "../../../src/federation/carriers/nats-connection.ts";
import { openCarrier } from "../../../src/federation/index.ts";
import { describeOn, startNats, type NatsServer } from "../../servers/index.ts";
import { freePort } from "../../servers/supervised-process.ts";
import { CARRIER_CASES, noise } from "../carrier-cases.ts";
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
    const { connection, manager, bucket } = await connectNats(url, undefined, 5_000);
    const streams = await Array.fromAsync(manager.streams.names());
    await connection.close();
    expect(streams.filter((name) => name.endsWith(`_${bucket}`))).toEqual([]);
  });

  test("files of other programs are in no list", async () => {
    const url = freshUrl();
    const carrier = await openCarrier(url, PORTS);
    await carrier.put!(PATH, bytesOf("1"), { match: null });
    const { connection, obj, kv, bucket } = await connectNats(url, undefined, 5_000);
    for (const name of ["READ ME.txt", "../x"]) await (await obj.open(bucket)).putBlob({ name }, bytesOf("x"));
    await (await kv.open(bucket)).put("a//b", bytesOf("x"));
    await connection.close();
    expect(await Array.fromAsync(carrier.list!(""))).toEqual([PATH]);
    await carrier.close();
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

  test(
    "a hub that mirrors both streams of a leaf is read like the leaf, and has its versions",
    { timeout: 120_000 },
    async () => {
      const leafPort = await freePort();
      await using hub = await startNats({
        config: [
          'jetstream { store_dir: "$FOLDER/data", domain: hub }',
          `leafnodes { listen: "127.0.0.1:${leafPort}" }`,
        ],
      });
      await using leaf = await startNats({
        config: [
          'jetstream { store_dir: "$FOLDER/data", domain: leaf }',
          `leafnodes { remotes: [ { url: "nats-leaf://127.0.0.1:${leafPort}" } ] }`,
        ],
      });
      const edge = await openCarrier(`${leaf.url}/history`, PORTS);
      const files = new Map(
        [...Array(20).keys()].map((n) => [`edge7/56475aa75463474c/tile/0/0${n + 10}`, noise(n * 20_000, n)]),
      );
      for (const [path, bytes] of files) await edge.put!(path, bytes, { absent: true });
      const first = await edge.put!(PATH, bytesOf("1"), { match: null });
      const { connection, manager } = await connectNats(`${hub.url}/history`, undefined, 5_000);
      for (const name of ["KV_history", "OBJ_history"])
        await manager.streams.add({
          name,
          allow_rollup_hdrs: true,
          mirror: { name, external: { api: "$JS.leaf.API", deliver: "" } },
        });
      await connection.close();
      const mirror = await openCarrier(`${hub.url}/history`, PORTS);
      const found = await mirror.get(PATH, { waitMs: 20_000 });
      expect(found).toEqual({ bytes: bytesOf("1"), etag: first });
      for (const [path, bytes] of files) expect(await mirror.get(path, { waitMs: 20_000 })).toMatchObject({ bytes });
      expect((await Array.fromAsync(mirror.list!(""))).sort()).toEqual([...files.keys(), PATH].sort());
      // A reader of the hub waits, and the leaf writes.
      const waiting = mirror.get(PATH, { after: first, waitMs: 25_000 });
      const second = await edge.put!(PATH, bytesOf("2"), { match: first });
      expect(await waiting).toEqual({ bytes: bytesOf("2"), etag: second });
      // The leaf is gone: the hub has what it had.
      await leaf.kill();
      expect(await mirror.get(PATH)).toEqual({ bytes: bytesOf("2"), etag: second });
      for (const [path, bytes] of files) expect(await mirror.get(path)).toMatchObject({ bytes });
      await Promise.all([edge.close(), mirror.close()]);
    },
  );
});
