import { execFile } from "node:child_process";
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../base/index.ts";
import { refuseNetwork } from "./store-file.ts";
import { readSchema } from "./migrate.ts";
import { connectSqlite, type Durability } from "./sqlite-connection.ts";
import { APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION } from "./schema.ts";
import { openSqliteStore } from "./sqlite-store.ts";
import { pragma } from "./version.ts";

/** Retries without delays. */
const hasty = {
  clock: systemClock,
  timers: { ...systemTimers, set: (_ms: number, wake: () => void) => systemTimers.set(0, wake) },
  random: systemRandom,
};
const machine = { clock: systemClock, timers: systemTimers, random: systemRandom };
let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "reprise-open-"));
  path = join(folder, "store.db");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test.each([
  ["full", 2],
  ["relaxed", 1],
] as const)("durability %s is what SQLite reports on every open", async (durability: Durability, synchronous) => {
  for (let opens = 0; opens < 2; opens++) {
    const { db } = await connectSqlite({ ...machine, path, durability, migrate: true });
    expect(pragma(db, "journal_mode")).toBe("wal");
    expect(pragma(db, "synchronous")).toBe(synchronous);
    expect(pragma(db, "foreign_keys")).toBe(1);
    expect(pragma(db, "application_id")).toBe(APPLICATION_ID);
    expect(pragma(db, "user_version")).toBe(SCHEMA_VERSION);
    db.close();
  }
});

test("a missing folder is refused and not created, and the message has the command that creates it", async () => {
  const deep = join(folder, "a", "b", "store.db");
  await expect(openSqliteStore({ ...machine, path: deep })).rejects.toMatchObject({
    code: "STORE_FOLDER_MISSING",
    message: `Cannot create ${deep}: there is no folder ${join(folder, "a", "b")}. Check the path. To create the folder, run \`mkdir -p ${join(folder, "a", "b")}\`, or add ?mkdir=1 to the store URL.`,
  });
  expect(readdirSync(folder)).toEqual([]);
});

test("a new file, and the folder that the caller asks for, are readable by their owner only", async () => {
  const deep = join(folder, "a", "b", "store.db");
  await (await openSqliteStore({ ...machine, path: deep, mkdir: true })).close();
  expect(statSync(deep).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, "a", "b")).mode & 0o777).toBe(0o700);
});

/** The source of a module that opens the store in another process. */
function opening(then: string): string {
  const url = (file: string): string => pathToFileURL(join(import.meta.dirname, file)).href;
  return `
    import { openSqliteStore } from ${JSON.stringify(url("sqlite-store.ts"))};
    import { systemClock, systemRandom, systemTimers } from ${JSON.stringify(url("../../base/index.ts"))};
    const store = await openSqliteStore({ path: ${JSON.stringify(path)}, clock: systemClock, timers: systemTimers, random: systemRandom });
    ${then};`;
}

async function refusal(): Promise<{ code: string | undefined; untouched: boolean }> {
  const before = readFileSync(path);
  const error = await openSqliteStore({ ...hasty, path }).then(
    (store) => store.close().then(() => undefined),
    (refused: unknown) => refused as { code: string },
  );
  return { code: error?.code, untouched: before.equals(readFileSync(path)) };
}

test("a database of another program is refused and not changed", async () => {
  const db = new DatabaseSync(path);
  db.exec("create table customers (id integer primary key)");
  db.close();
  expect(await refusal()).toEqual({ code: "STORE_NOT_REPRISE", untouched: true });
});

test("a database with another application id is refused and not changed", async () => {
  const db = new DatabaseSync(path);
  db.exec("pragma application_id = 7");
  db.close();
  expect(await refusal()).toEqual({ code: "STORE_NOT_REPRISE", untouched: true });
});

test("a newer schema is refused and not changed", async () => {
  await (await openSqliteStore({ ...machine, path })).close();
  const db = new DatabaseSync(path);
  db.exec(`pragma user_version = ${SCHEMA_VERSION + 1}; pragma journal_mode = delete`);
  db.close();
  expect(await refusal()).toEqual({ code: "STORE_NEWER_SCHEMA", untouched: true });
});

/** Creates a store as an older version of Reprise did. */
function createOld(version: number, rows: string): void {
  const db = new DatabaseSync(path);
  for (const migration of MIGRATIONS.slice(0, version)) db.exec(migration);
  db.exec(`insert into meta values ('application', 'reprise'), ('schema', '${version}'); ${rows};
    pragma application_id = ${APPLICATION_ID}; pragma user_version = ${version}; pragma journal_mode = wal`);
  db.close();
}

test.each([1, 2, 3])("a store of schema %i is migrated, and its workers continue", async (version) => {
  const until = machine.clock.now() + 60_000;
  createOld(version, `insert into workers (name, until, started_at) values ('old', ${until}, 5)`);
  const store = await openSqliteStore({ ...machine, path });
  expect((await store.info()).schemaVersion).toBe(SCHEMA_VERSION);
  expect(await store.listWorkers()).toMatchObject([
    { name: "old", startedAt: 5, profile: undefined, activity: undefined },
  ]);
  expect(await store.renewLease(1, 60_000, "{}")).toBe(true);
  expect(await store.listWorkers()).toMatchObject([{ name: "old", activity: "{}" }]);
  expect(await store.check()).toEqual([]);
  await store.close();
});

test("a queue that was paused before schema 4 has no time of its pause until it is paused again", async () => {
  const insert = "insert into queues (name, declared, limits, paused) values";
  createOld(3, `${insert} ('mail', '{}', '{}', 1)`);
  const store = await openSqliteStore({ ...machine, path });
  const pausedAt = (): unknown => {
    const db = new DatabaseSync(path);
    // A process of the version before may insert queues.
    db.exec(`${insert} ('old', '{}', '{}', 0) on conflict (name) do nothing`);
    const row = db.prepare("select paused_at from queues where name = 'mail' and paused = 1").get();
    db.close();
    return row?.["paused_at"];
  };
  expect(pausedAt()).toBeNull();
  await store.write([{ write: "change-queue", name: "mail", paused: true }]);
  expect(pausedAt()).toBeNull();
  await store.write([{ write: "change-queue", name: "mail", paused: false }]);
  await store.write([{ write: "change-queue", name: "mail", paused: true }]);
  const at = pausedAt();
  expect(at).toEqual(expect.any(Number));
  await store.write([{ write: "change-queue", name: "mail", paused: true }]);
  expect(pausedAt()).toBe(at);
  await store.close();
});

test("a store of the schema before keyed answers keeps its rows, and takes keys beside a process of the version before", async () => {
  const before = MIGRATIONS.findIndex((migration) => migration.includes("create table keyed_answers"));
  const insert = "insert into queues (name, declared, limits, paused) values";
  createOld(before, `${insert} ('mail', '{}', '{}', 1)`);
  const old = new DatabaseSync(path);
  const store = await openSqliteStore({ ...machine, path });
  const asked = { request: "r", body: "b" };
  expect(await store.reserveKey(asked, 60_000)).toEqual({ status: "reserved" });
  old.exec(`${insert} ('old', '{}', '{}', 0)`);
  old.close();
  await store.recordAnswer(asked, 201, '"done"');
  expect(await store.reserveKey(asked, 60_000)).toEqual({ status: "answered", code: 201, answer: '"done"' });
  expect((await store.listQueues()).map(({ name }) => name)).toEqual(["default", "mail", "old"]);
  expect((await store.info()).schemaVersion).toBe(SCHEMA_VERSION);
  expect(await store.check()).toEqual([]);
  await store.close();
});

test("a file that is not a database is refused and not changed", async () => {
  writeFileSync(path, "Dear diary, ".repeat(100));
  expect(await refusal()).toEqual({ code: "STORE_CORRUPT", untouched: true });
});

test("a file that was copied without its log is refused and not changed, and opens once the log is next to it", async () => {
  const store = await openSqliteStore({ ...machine, path: join(folder, "live.db") });
  await store.registerWorker("w", 60_000);
  copyFileSync(join(folder, "live.db"), path);
  expect(await refusal()).toEqual({ code: "STORE_LOG_MISSING", untouched: true });
  expect(readdirSync(folder).filter((name) => name.startsWith("store.db"))).toEqual(["store.db"]);
  for (const migrate of [true, false])
    await expect(openSqliteStore({ ...hasty, path, migrate })).rejects.toMatchObject({
      code: "STORE_LOG_MISSING",
      message: expect.stringMatching(/store\.db-wal, .*`reprise backup`.*`reprise restore`/),
    });
  await expect(readSchema(hasty, path)).rejects.toMatchObject({ code: "STORE_LOG_MISSING" });
  copyFileSync(join(folder, "live.db-wal"), `${path}-wal`);
  const copy = await openSqliteStore({ ...machine, path });
  expect(await copy.listWorkers()).toMatchObject([{ name: "w" }]);
  await copy.close();
  await store.close();
});

test("a truncated file is refused and not changed", async () => {
  const store = await openSqliteStore({ ...machine, path: join(folder, "whole.db") });
  await store.close();
  const whole = readFileSync(join(folder, "whole.db"));
  for (const bytes of [4_096, 40_000, whole.length - 1]) {
    writeFileSync(path, whole.subarray(0, bytes));
    expect(await refusal()).toEqual({ code: "STORE_CORRUPT", untouched: true });
  }
  await expect(openSqliteStore({ ...hasty, path })).rejects.toThrow(
    /is truncated: 1 bytes are missing.*`reprise backup`/,
  );
});

test.skipIf(process.platform === "win32")(
  "a first start that fails because the disk is full can be repeated",
  async () => {
    const program = `process.on("SIGXFSZ", () => {}); ${opening("store.close()")}`;
    const limited = ["-c", 'ulimit -f 40; exec "$0" "$@"', process.execPath, "--input-type=module", "-e", program];
    await expect(promisify(execFile)("bash", limited)).rejects.toMatchObject({
      stderr: expect.stringMatching(/STORE_(?:FULL|IO)/),
    });
    expect(statSync(path).size).toBeGreaterThan(0);
    const store = await openSqliteStore({ ...machine, path });
    expect(await store.check()).toEqual([]);
    await store.close();
  },
);

test("without migrate a missing or empty file is refused and not created", async () => {
  await expect(openSqliteStore({ ...machine, path, migrate: false })).rejects.toMatchObject({ code: "STORE_IO" });
  expect(statSync(path, { throwIfNoEntry: false })).toBeUndefined();
  writeFileSync(path, "");
  await expect(openSqliteStore({ ...machine, path, migrate: false })).rejects.toMatchObject({
    code: "STORE_OLDER_SCHEMA",
  });
});

test.runIf(process.platform === "linux")("a network file system is refused", () => {
  expect(() => refuseNetwork("/", "/store.db", 0x6969)).toThrow(expect.objectContaining({ code: "STORE_LOCATION" }));
  // Linux returns the magic of CIFS as a negative number.
  expect(() => refuseNetwork("/", "/store.db", 0xff534d42 | 0)).toThrow(/CIFS/);
  expect(() => refuseNetwork("/", "/store.db", 0xef53)).not.toThrow();
});

test("a store that is replaced while the process waits for its lock is opened again", async () => {
  const next = join(folder, "next.db");
  for (const [file, name] of [
    [path, "before"],
    [next, "after"],
  ] as const) {
    const store = await openSqliteStore({ ...machine, path: file });
    await store.registerWorker(name, 60_000);
    await store.close();
  }
  const lock = new DatabaseSync(path);
  lock.exec("pragma journal_mode = delete; begin exclusive");
  let tries = 0;
  const timers = {
    ...systemTimers,
    set(ms: number, wake: () => void) {
      if ((tries += 1) === 3) {
        renameSync(next, path);
        lock.close();
      }
      return systemTimers.set(ms, wake);
    },
  };
  const store = await openSqliteStore({ ...machine, timers, path });
  expect(await store.listWorkers()).toMatchObject([{ name: "after" }]);
  await store.registerWorker("more", 60_000);
  await store.close();
});

test("processes that open a new file at the same time all get the same complete store", async () => {
  const program = `while (Date.now() < ${Date.now() + 1_000});
    ${opening('process.stdout.write(String(await store.registerWorker("w", 60_000))); await store.close()')}`;
  const run = promisify(execFile);
  const starters = Array.from({ length: 4 }, () => run(process.execPath, ["--input-type=module", "-e", program]));
  const workers = (await Promise.all(starters)).map(({ stdout }) => Number(stdout));
  expect(new Set(workers).size).toBe(4);
  const store = await openSqliteStore({ ...machine, path });
  expect(await store.check()).toEqual([]);
  await store.close();
});
