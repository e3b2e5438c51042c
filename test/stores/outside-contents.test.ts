// Large payloads in a folder or a bucket: where the files are, what happens without them, and what removes them.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { aesGcm, createClient, createEngine, workflow, type PayloadCodec } from "reprise";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import { storeOf } from "../../src/stores/index.ts";
import { S3_KEYS, S3Server } from "../federation/carriers/s3-server.ts";
import { describeOn, freshDatabase } from "../servers/index.ts";

const PORTS = { clock: systemClock, timers: systemTimers, random: systemRandom };

function words(seed: string, length: number): string {
  let text = "";
  for (let at = 0; text.length < length; at += 1) text += `${seed} ${(at * 104_729) % 999_983} `;
  return text.slice(0, length);
}

const big = words("big", 200_000);
const double = workflow("double", async (ctx, text: string) => {
  const twice = await ctx.run("double", text, (_op, given) => given + words("more", 100_000));
  return twice;
});
const expected = big + words("more", 100_000);

let folder: string;
let place: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "reprise-outside-"));
  place = join(folder, "contents");
  mkdirSync(place);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const silent = { logger: false, durability: "relaxed" } as const;
const address = (): string => pathToFileURL(place).href;

/** Files by run. */
function filesIn(path = place): Readonly<Record<string, readonly string[]>> {
  const runs = readdirSync(path).filter((name) => /^\d+$/.test(name));
  const files = runs.map((run) => [run, readdirSync(join(path, run))] as const);
  return Object.fromEntries(files.filter(([, some]) => some.length > 0));
}

async function checkStore(store: string): Promise<readonly string[]> {
  const opened = await storeOf(store)["~open"]({ ...PORTS, durability: "relaxed" });
  try {
    return (await opened.check()).map(({ message }) => message);
  } finally {
    await opened.close();
  }
}

type Database = AsyncDisposable & { readonly url: string };

function outsideTests(create: () => Promise<Database>): void {
  test("large payloads are files, which other processes find without naming them, and which go with their run", async () => {
    await using database = await create();
    const store = database.url;
    const started = await createEngine({ store, definitions: [double], contents: address(), ...silent });
    const run = await started.start(double, big, { id: "double" });
    expect((await run.result()) === expected).toBe(true);
    await started.start(double, "small", { id: "other" }).then((other) => other.result());
    await started.close();
    expect(Object.values(filesIn()).flat().length).toBeGreaterThan(2);
    {
      await using engine = await createEngine({ store, definitions: [double], ...silent });
      expect((await engine.get(double, "double").result()) === expected).toBe(true);
      expect((await engine.get(double, "double").verify()).status).toBe("same");
    }
    expect(await checkStore(store)).toEqual([]);
    await using client = await createClient({ store, definitions: [double], contents: address(), ...silent });
    await client.get(double, "double").delete();
    expect(Object.keys(filesIn()).length).toBe(1);
    await client.get(double, "other").delete();
    expect(filesIn()).toEqual({});
    expect(await checkStore(store)).toEqual([]);
  });

  test("a file without a run is reported by doctor and removed by prune, unless its run may be about to start", async () => {
    await using database = await create();
    const store = database.url;
    await using engine = await createEngine({ store, definitions: [double], contents: address(), ...silent });
    await engine.start(double, big);
    const young = String(Number(Object.keys(filesIn())[0]) + 1);
    for (const run of ["7", young]) {
      mkdirSync(join(place, run), { recursive: true });
      writeFileSync(join(place, run, "A".repeat(32)), "left over");
    }
    const problems = await checkStore(store);
    expect(problems.length).toBe(1);
    expect(problems[0]).toContain("has contents of run number 7, which does not exist. `reprise prune` removes them.");
    await engine.prune({ olderThan: "1 day" });
    expect(existsSync(join(place, "7", "A".repeat(32)))).toBe(false);
    expect(existsSync(join(place, young, "A".repeat(32)))).toBe(true);
  });

  test("another place is refused, and the same place at another address is not", async () => {
    await using database = await create();
    const options = { store: database.url, definitions: [double], ...silent };
    await using first = await createEngine({ ...options, contents: address() });
    await (await first.start(double, big, { id: "double" })).result();
    const other = join(folder, "other");
    mkdirSync(other);
    const refused = createEngine({ ...options, contents: pathToFileURL(other).href });
    await expect(refused).rejects.toThrow(expect.objectContaining({ code: "BAD_OPTIONS" }));
    await expect(refused).rejects.toThrow(`the large payloads of this store are in ${address()}`);
    await using second = await create();
    const shared = createEngine({ ...options, store: second.url, contents: address() });
    await expect(shared).rejects.toThrow("has the large payloads of another store");
    await first.close();
    renameSync(place, join(other, "moved"));
    await using moved = await createEngine({ ...options, contents: pathToFileURL(join(other, "moved")).href });
    expect((await moved.get(double, "double").result()) === expected).toBe(true);
    await using later = await createClient(options);
    expect((await later.get(double, "double").result()) === expected).toBe(true);
  });

  test("a missing or damaged file is an error that names run, content and place, and doctor reports it", async () => {
    await using database = await create();
    const store = database.url;
    {
      await using engine = await createEngine({ store, definitions: [double], contents: address(), ...silent });
      for (const id of ["missing", "damaged", "whole"]) await (await engine.start(double, big, { id })).result();
    }
    const [missing, damaged] = Object.entries(filesIn()).toSorted(([a], [b]) => Number(a) - Number(b));
    for (const file of missing![1]) rmSync(join(place, missing![0], file));
    for (const file of damaged![1]) writeFileSync(join(place, damaged![0], file), "something else");
    await using client = await createClient({ store, definitions: [double], ...silent });
    const lost = client.get(double, "missing").result();
    await expect(lost).rejects.toThrow(expect.objectContaining({ code: "PAYLOAD_MISSING" }));
    await expect(lost).rejects.toThrow(`of run number ${missing![0]} is not in ${address()}`);
    await expect(client.get(double, "damaged").result()).rejects.toThrow(
      expect.objectContaining({ code: "PAYLOAD_DAMAGED" }),
    );
    expect((await client.get(double, "whole").result()) === expected).toBe(true);
    const problems = (await checkStore(store)).join("\n");
    const named = missing![1].filter((file) => problems.includes(`PAYLOAD_MISSING: The content ${file} of run number`));
    expect(named.length).toBeGreaterThan(0);
    expect(problems).toContain("PAYLOAD_DAMAGED: The content");
  });

  test("with a codec, files are encoded, and a rekey encodes them again", async () => {
    await using database = await create();
    const keys = { one: Buffer.alloc(32, 1), two: Buffer.alloc(32, 2) };
    const open = (codec: PayloadCodec) =>
      createEngine({ store: database.url, definitions: [double], contents: address(), codec, ...silent });
    {
      await using engine = await open(aesGcm({ keys, current: "one" }));
      await (await engine.start(double, big, { id: "double" })).result();
    }
    const read = (): readonly Buffer[] =>
      Object.entries(filesIn()).flatMap(([run, files]) => files.map((file) => readFileSync(join(place, run, file))));
    const before = read();
    for (const bytes of before) expect(bytes.includes("more 104729")).toBe(false);
    const codec = aesGcm({ keys, current: "two" });
    const store = await storeOf(database.url)["~open"]({ ...PORTS, durability: "relaxed", codec });
    expect(await store.rekey()).toMatchObject({ unreadable: 0 });
    await store.close();
    for (const [index, bytes] of read().entries()) expect(bytes.equals(before[index]!)).toBe(false);
    await using engine = await open(aesGcm({ keys: { two: keys.two }, current: "two" }));
    expect((await engine.get(double, "double").result()) === expected).toBe(true);
  });
}

async function sqliteFile(): Promise<Database> {
  const path = join(folder, `store-${systemRandom.token().slice(0, 8)}.db`);
  return { url: `sqlite:${path}`, [Symbol.asyncDispose]: async () => undefined };
}

describe("a folder beside SQLite", () => {
  outsideTests(sqliteFile);

  test("the file of a payload is written before the commit that refers to it, and nothing is committed without it", async () => {
    const { url: store } = await sqliteFile();
    const client = await createClient({ store, definitions: [double], contents: address(), ...silent });
    renameSync(place, `${place}-away`);
    await expect(client.start(double, big, { id: "double" })).rejects.toThrow(
      expect.objectContaining({ code: "STORE_UNREACHABLE" }),
    );
    renameSync(`${place}-away`, place);
    const db = new DatabaseSync(store.slice("sqlite:".length), { readOnly: true });
    expect(db.prepare("select count(*) as count from runs").get()).toEqual({ count: 0 });
    await client.start(double, big, { id: "double" });
    const rows = db.prepare("select run, content, data from run_contents").all();
    expect(rows.length).toBeGreaterThan(0);
    for (const { run, content, data } of rows) {
      expect(data).toBe(null);
      expect(existsSync(join(place, String(run), String(content)))).toBe(true);
    }
    db.close();
    await client.close();
  });

  test("a folder that does not exist, and an address of another kind, are refused before anything is stored", async () => {
    const { url: store } = await sqliteFile();
    const open = (contents: string) => createClient({ store, definitions: [double], contents, ...silent });
    await expect(open("https://host/x")).rejects.toThrow(expect.objectContaining({ code: "BAD_OPTIONS" }));
    await expect(open(`file:${place}/none`)).rejects.toThrow("does not exist. Reprise does not create it");
    await (await createClient({ store, definitions: [double], ...silent })).close();
    expect(filesIn()).toEqual({});
  });
});

describe("a bucket beside SQLite", () => {
  test("large payloads are objects, and go with their run", async () => {
    await using server = await S3Server.start();
    for (const [name, value] of Object.entries(S3_KEYS)) vi.stubEnv(name, value);
    const { url: store } = await sqliteFile();
    const contents = server.url;
    await using engine = await createEngine({ store, definitions: [double], contents, ...silent });
    const run = await engine.start(double, big, { id: "double" });
    expect((await run.result()) === expected).toBe(true);
    const objects = (): number => [...server.objects.keys()].filter((key) => /\/\d+\//.test(key)).length;
    expect(objects()).toBe(2);
    await using client = await createClient({ store, definitions: [double], ...silent });
    expect((await client.get(double, "double").result()) === expected).toBe(true);
    await run.delete();
    expect(objects()).toBe(0);
    vi.unstubAllEnvs();
  });
});

describeOn("postgres", "a folder beside PostgreSQL", () => outsideTests(() => freshDatabase("postgres")));
describeOn("mysql", "a folder beside MariaDB", () => outsideTests(() => freshDatabase("mysql")));
