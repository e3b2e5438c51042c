import { expect, test } from "vitest";
import { openCarrier, type Carrier } from "../../../src/federation/index.ts";
import { CARRIER_CASES } from "../carrier-cases.ts";
import { PORTS } from "./real-ports.ts";
import { S3_KEYS, S3Server } from "./s3-server.ts";

const PATH = "edge7/56475aa75463474c/checkpoint";
const bytes = Buffer.from("text");

const open = (url: string, env: Readonly<Record<string, string>> = S3_KEYS): Promise<Carrier> =>
  openCarrier(url, { ...PORTS, env, limits: { pollMs: 5 } });

test.each(CARRIER_CASES)("s3: $name", async ({ run }) => {
  await using server = await S3Server.start({ pageSize: 2 });
  await run({ open: () => open(server.url), waitMs: 20_000 });
});

test("keys that are wrong, a region that is wrong and a bucket that does not exist are refused", async () => {
  await using server = await S3Server.start();
  const refused = (what: string) => ({ code: "CARRIER_REFUSED", message: expect.stringContaining(what) });
  const wrong = await open(server.url, { ...S3_KEYS, AWS_SECRET_ACCESS_KEY: "guessed" });
  await expect(wrong.get(PATH)).rejects.toMatchObject(refused("SignatureDoesNotMatch"));
  await expect(wrong.put!(PATH, bytes, { absent: true })).rejects.toMatchObject(refused("SignatureDoesNotMatch"));
  const unknown = await open(server.url, { ...S3_KEYS, AWS_ACCESS_KEY_ID: "other" });
  await expect(Array.fromAsync(unknown.list!(""))).rejects.toMatchObject(refused("Check AWS_ACCESS_KEY_ID"));
  const elsewhere = await open(server.url.replace("eu-test-1", "eu-test-2"));
  await expect(elsewhere.get(PATH)).rejects.toMatchObject(refused("AuthorizationHeaderMalformed"));
  const missing = await open(server.url.replace("s3://history", "s3://nothing"));
  for (const act of [
    () => missing.get(PATH),
    () => missing.remove!(PATH),
    () => missing.put!(PATH, bytes, { match: "x" }),
  ])
    await expect(act()).rejects.toMatchObject(refused("NoSuchBucket"));
});

test("a server that does not check conditions gets no files", async () => {
  await using server = await S3Server.start({ ignoresConditions: true });
  const carrier = await open(server.url);
  await expect(carrier.put!(PATH, bytes, { absent: true })).rejects.toMatchObject({
    code: "CARRIER_REFUSED",
    message: expect.stringContaining("If-None-Match"),
  });
  expect([...server.objects.keys()].filter((key) => key.includes("edge7"))).toEqual([]);
});

test("conditions are proved once for each carrier, and the proof is in no list", async () => {
  await using server = await S3Server.start();
  const carrier = await open(server.url);
  for (const name of ["a", "b", "c"]) await carrier.put!(name, bytes, { absent: true });
  const proofs = server.requests.filter((line) => line.endsWith("~carrier"));
  expect(proofs).toHaveLength(3);
  expect(await Array.fromAsync(carrier.list!(""))).toEqual(["a", "b", "c"]);
  expect(await Array.fromAsync(carrier.list!("", { shallow: true }))).toEqual(["a", "b", "c"]);
});

test("a write that ran beside another one, or failed inside of the server, is repeated", async () => {
  const failures: [number, string][] = [];
  await using server = await S3Server.start({ fails: () => failures.shift() });
  const carrier = await open(server.url);
  await carrier.put!("first", bytes, { absent: true });
  failures.push([409, "ConditionalRequestConflict"], [500, "InternalError"], [503, "SlowDown"]);
  expect(await carrier.put!(PATH, bytes, { match: null })).not.toBe("refused");
  expect(await carrier.get(PATH)).toMatchObject({ bytes: Uint8Array.from(bytes) });
});

test("a file below another prefix of the bucket is out of reach", async () => {
  await using server = await S3Server.start();
  const here = await open(server.url);
  const there = await open(server.url.replace("a%20b", "a"));
  await here.put!(PATH, bytes, { match: null });
  expect(await there.get(PATH)).toBeUndefined();
  expect(await Array.fromAsync(there.list!(""))).toEqual([]);
  expect([...server.objects.keys()].sort()).toEqual([`sites/a b/${PATH}`, "sites/a b/~carrier"].sort());
});

test("files of other programs are in no list, and a list of another prefix is refused", async () => {
  await using server = await S3Server.start();
  const carrier = await open(server.url);
  await carrier.put!(PATH, bytes, { match: null });
  for (const name of ["READ ME.txt", ".git/config", "edge7/56475aa75463474c/a b"])
    server.objects.set(`sites/a b/${name}`, { bytes, etag: '"1"' });
  expect(await Array.fromAsync(carrier.list!(""))).toEqual([PATH]);
  expect(await Array.fromAsync(carrier.list!("", { shallow: true }))).toEqual(["edge7/"]);
  await using hostile = await S3Server.start({ listsEverything: true });
  hostile.objects.set("other/site", { bytes, etag: '"1"' });
  const misled = await open(hostile.url);
  await expect(Array.fromAsync(misled.list!(""))).rejects.toMatchObject({ code: "CARRIER_REFUSED" });
});

test.each([
  ["s3://history", {}, "BAD_OPTIONS", "export-credentials"],
  ["s3://UP", S3_KEYS, "BAD_CARRIER_URL", "bucket"],
  ["s3://key:secret@history", S3_KEYS, "BAD_CARRIER_URL", "environment"],
  ["s3://history?zone=1", S3_KEYS, "BAD_CARRIER_URL", "zone"],
  ["s3://history?endpoint=ftp://x", S3_KEYS, "BAD_CARRIER_URL", "endpoint"],
])("%s is refused with its reason", async (url, env, code, reason) => {
  await expect(open(url, env)).rejects.toMatchObject({ code, message: expect.stringContaining(reason) });
  await expect(open(url, env)).rejects.toMatchObject({ message: expect.not.stringContaining("secret@") });
});
