import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectNats } from "../../../src/carriers/nats-connection.ts";
import { openCarrier, type CarrierFile } from "../../../src/federation/index.ts";
import { describeOn, startNats, type NatsServer } from "../../servers/index.ts";
import { freePort } from "../../servers/supervised-process.ts";
import { CARRIER_CASES, noise } from "../carrier-cases.ts";
import { PORTS } from "./real-ports.ts";

const PATH = "edge7/56475aa75463474c/checkpoint";
const TILE = "edge7/56475aa75463474c/tile/0/000";
const bytesOf = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text));

interface LosingProxy extends AsyncDisposable {
  readonly port: number;
  readonly lost: number;
  /** The next connection that sends this gets no answer any more, and breaks soon after. */
  loseAfter(text: string): void;
}

async function losingProxy(to: number): Promise<LosingProxy> {
  let wanted: string | undefined;
  let lost = 0;
  const sockets = new Set<Socket>();
  const proxy = createServer((client) => {
    const server = connect(to, "127.0.0.1");
    let isDeaf = false;
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => [client, server].forEach((each) => each.destroy()));
    }
    client.on("data", (data: Buffer) => {
      server.write(data);
      if (wanted === undefined || !data.toString("latin1").includes(wanted)) return;
      wanted = undefined;
      isDeaf = true;
    });
    server.on("data", (data: Buffer) => {
      if (!isDeaf) return void client.write(data);
      // The server has answered, so it has stored what was sent.
      lost += 1;
      client.destroy();
    });
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    port: (proxy.address() as AddressInfo).port,
    get lost() {
      return lost;
    },
    loseAfter: (text) => void (wanted = text),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      proxy.close();
      await once(proxy, "close");
    },
  };
}

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

  test("objects are those of every other client", async () => {
    const url = freshUrl();
    const carrier = await openCarrier(url, PORTS);
    const { connection, obj, bucket, manager } = await connectNats(url, undefined, 5_000);
    for (const size of [0, 1, 131_072, 131_073, 1_000_000]) {
      const path = `edge7/1/artifact/${size}`;
      await carrier.put!(path, noise(size), { absent: true });
      const objects = await obj.open(bucket);
      // The client compares the digest.
      expect(Buffer.compare((await objects.getBlob(path))!, noise(size))).toBe(0);
      await objects.putBlob({ name: path }, noise(size + 1));
      expect(Buffer.compare(((await carrier.get(path)) as CarrierFile).bytes, noise(size + 1))).toBe(0);
      await carrier.remove!(path);
    }
    // Replaced objects, removed ones and those of writers that lost leave nothing behind but one description of each name.
    const first = await carrier.put!(TILE, bytesOf("tile"), { absent: true });
    await carrier.put!(TILE, bytesOf("next"), { match: first });
    const names = ["a", "b", "c", "d"];
    await Promise.all(names.map((name) => carrier.put!("edge7/raced", bytesOf(name), { absent: true })));
    const { state } = await manager.streams.info(`OBJ_${bucket}`, { subjects_filter: ">" });
    const subjects = Object.entries(state.subjects ?? {});
    expect(subjects.filter(([subject]) => subject.includes(".C."))).toHaveLength(2);
    expect(subjects.filter(([subject, count]) => subject.includes(".M.") && count > 1)).toEqual([]);
    await Promise.all([connection.close(), carrier.close()]);
  });

  test("an object that lost its chunks is no file, and the next writer repairs it", async () => {
    const url = freshUrl();
    const carrier = await openCarrier(url, PORTS);
    const etag = await carrier.put!(TILE, bytesOf("tile"), { absent: true });
    const { connection, bucket, manager } = await connectNats(url, undefined, 5_000);
    await manager.streams.purge(`OBJ_${bucket}`, { filter: `$O.${bucket}.C.>` });
    await connection.close();
    expect(await carrier.get(TILE)).toBeUndefined();
    expect(await carrier.put!(TILE, bytesOf("other"), { match: `${etag}0` })).toBe("refused");
    expect(await carrier.put!(TILE, bytesOf("tile"), { absent: true })).not.toBe("refused");
    expect(await carrier.get(TILE)).toMatchObject({ bytes: bytesOf("tile") });
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

  test(
    "a put whose acknowledgement was lost is ours, and one that another writer won is refused",
    { timeout: 60_000 },
    async () => {
      await using server = await startNats();
      await using proxy = await losingProxy(server.port);
      const limits = { responseMs: 500, attempts: 20 };
      const carrier = await openCarrier(`nats://127.0.0.1:${proxy.port}/history`, { ...PORTS, limits });
      const other = await openCarrier(`${server.url}/history`, PORTS);
      const first = await carrier.put!(PATH, bytesOf("1"), { match: null });
      proxy.loseAfter("HPUB $KV.history.");
      const second = await carrier.put!(PATH, bytesOf("2"), { match: first });
      expect(proxy.lost).toBe(1);
      expect(await other.get(PATH)).toEqual({ bytes: bytesOf("2"), etag: second });
      proxy.loseAfter("HPUB $O.history.M.");
      const tile = await carrier.put!(TILE, bytesOf("tile"), { absent: true });
      expect(proxy.lost).toBe(2);
      expect(await other.get(TILE)).toEqual({ bytes: bytesOf("tile"), etag: tile });
      proxy.loseAfter("HPUB $KV.history.");
      const put = carrier.put!(PATH, bytesOf("3"), { match: second });
      await expect.poll(() => proxy.lost).toBe(3);
      const third = (await other.get(PATH, { after: second, waitMs: 20_000 })) as { etag: string };
      await other.put!(PATH, bytesOf("4"), { match: third.etag });
      expect(await put).toBe("refused");
      await Promise.all([carrier.close(), other.close()]);
    },
  );

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
