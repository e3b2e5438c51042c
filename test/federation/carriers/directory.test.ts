import fs, { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openCarrier } from "../../../src/federation/index.ts";
import { CARRIER_CASES } from "../carrier-cases.ts";
import { PORTS } from "./real-ports.ts";

const PATH = "edge7/56475aa75463474c/checkpoint";
const bytes = Buffer.from("text");

function folder(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "carrier-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

test.each(CARRIER_CASES)("directory: $name", async ({ run }) => {
  using place = folder();
  const urls = [place.path, pathToFileURL(place.path).href];
  let opened = 0;
  await run({ open: () => openCarrier(urls[(opened += 1) % 2]!, PORTS), waitMs: 20_000 });
  // The lock is all that a carrier leaves beside its files.
  const own = join(place.path, ".carrier");
  expect(
    readdirSync(place.path).includes(".carrier") ? readdirSync(own).filter((name) => name !== "lock") : [],
  ).toEqual([]);
});

describe("on a machine that has no watches left", () => {
  const { watch } = fs;
  beforeAll(() => {
    fs.watch = () => {
      throw Object.assign(new Error("no space left on device, watch"), { code: "ENOSPC" });
    };
    syncBuiltinESMExports();
  });
  afterAll(() => {
    fs.watch = watch;
    syncBuiltinESMExports();
  });

  test.each(CARRIER_CASES)("directory: $name", async ({ run }) => {
    using place = folder();
    await run({ open: () => openCarrier(place.path, { ...PORTS, limits: { pollMs: 5 } }), waitMs: 20_000 });
  });
});

test("symbolic links and pipes are refused, wherever they are", async () => {
  using place = folder();
  using outside = folder();
  writeFileSync(join(outside.path, "checkpoint"), "secret");
  mkdirSync(join(place.path, "real"));
  symlinkSync(join(outside.path, "checkpoint"), join(place.path, "real/checkpoint"));
  symlinkSync(outside.path, join(place.path, "linked"));
  execFileSync("mkfifo", [join(place.path, "pipe")]);
  const carrier = await openCarrier(place.path, PORTS);
  const refused = { code: "CARRIER_REFUSED" };
  for (const path of ["real/checkpoint", "linked/checkpoint", "pipe"])
    await expect(carrier.get(path)).rejects.toMatchObject(refused);
  await expect(carrier.put!("linked/new", bytes, { absent: true })).rejects.toMatchObject(refused);
  await expect(carrier.put!("linked/a/b", bytes, { absent: true })).rejects.toMatchObject(refused);
  await expect(carrier.put!("real/checkpoint", bytes, { absent: true })).rejects.toMatchObject(refused);
  await expect(carrier.remove!("linked/checkpoint")).rejects.toMatchObject(refused);
  expect(await Array.fromAsync(carrier.list!(""))).toEqual([]);
  await expect(Array.fromAsync(carrier.list!("linked/"))).rejects.toMatchObject(refused);
  expect(readdirSync(outside.path)).toEqual(["checkpoint"]);
});

test("a folder that does not exist, or vanished, is unreachable and not empty", async () => {
  using place = folder();
  const gone = join(place.path, "stick");
  await expect(openCarrier(gone, PORTS)).rejects.toMatchObject({
    code: "CARRIER_UNREACHABLE",
    message: expect.stringMatching(/mkdir -p/),
  });
  mkdirSync(gone);
  const carrier = await openCarrier(gone, PORTS);
  expect(await carrier.get(PATH)).toBeUndefined();
  rmSync(gone, { recursive: true });
  await expect(carrier.get(PATH)).rejects.toMatchObject({ code: "CARRIER_UNREACHABLE" });
  await expect(Array.fromAsync(carrier.list!(""))).rejects.toMatchObject({ code: "CARRIER_UNREACHABLE" });
  await expect(carrier.put!(PATH, bytes, { absent: true })).rejects.toMatchObject({ code: "CARRIER_UNREACHABLE" });
  writeFileSync(gone, "a file");
  await expect(openCarrier(gone, PORTS)).rejects.toMatchObject({ code: "BAD_CARRIER_URL" });
});

test("a writer waits for the lock, and gives up with an error that names it", async () => {
  using place = folder();
  const carrier = await openCarrier(place.path, { ...PORTS, limits: { responseMs: 50 } });
  const etag = await carrier.put!(PATH, bytes, { match: null });
  await carrier.remove!(PATH);
  await carrier.put!(PATH, bytes, { match: null });
  const other = new DatabaseSync(join(place.path, ".carrier/lock"));
  other.exec("begin immediate");
  const stuck = { code: "CARRIER_UNREACHABLE", message: expect.stringMatching(/holds the lock .*lock/) };
  await expect(carrier.put!(PATH, Buffer.from("2"), { match: etag })).rejects.toMatchObject(stuck);
  const patient = await openCarrier(place.path, PORTS);
  const put = patient.put!(PATH, Buffer.from("2"), { match: etag });
  other.close();
  expect(await put).not.toBe("refused");
});

test("the next writer removes what crashed writers left a day ago, and nothing newer", async () => {
  using place = folder();
  const own = join(place.path, ".carrier");
  mkdirSync(own);
  const [old, recent] = ["a".repeat(32), "b".repeat(32)];
  for (const name of [old, recent]) writeFileSync(join(own, name), "half");
  utimesSync(join(own, old), 0, 0);
  const carrier = await openCarrier(place.path, PORTS);
  await carrier.put!(PATH, bytes, { absent: true });
  expect(readdirSync(own)).toEqual([recent]);
});

test("a folder that may not be written is refused", async () => {
  using place = folder();
  writeFileSync(join(place.path, "edge7"), "a file where a folder should be");
  const carrier = await openCarrier(place.path, PORTS);
  await expect(carrier.put!(PATH, bytes, { absent: true })).rejects.toMatchObject({ code: "CARRIER_REFUSED" });
});
