import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../base/index.ts";
import { BUSY_TIMEOUT_MS } from "./retry-busy.ts";
import { listWorkers, registerWorker } from "../rules/worker-leases.ts";
import { SqliteSession } from "./sqlite-session.ts";

let folder: string;
let path: string;
let session: SqliteSession;
let skippedMs: number;

const clock = { now: systemClock.now, monotonic: () => systemClock.monotonic() + skippedMs };
const open = (): Promise<SqliteSession> =>
  SqliteSession.open({ path, durability: "full", migrate: true, clock, timers: systemTimers, random: systemRandom });

beforeEach(async () => {
  skippedMs = 0;
  folder = mkdtempSync(join(tmpdir(), "reprise-session-"));
  path = join(folder, "store.db");
  session = await open();
});
afterEach(async () => {
  await session.close();
  rmSync(folder, { recursive: true, force: true });
});

let workers = 0;
const register = (name: string): Promise<unknown> =>
  session.transact("Registering", (tx) => registerWorker(tx, (workers += 1), name, 0));
const names = (): Promise<string[]> => session.read("Reading", (_, rows) => listWorkers(rows).map(({ name }) => name));

/** Makes the next COMMIT of this connection fail like a failing disk. */
function breakCommit(when: "before it happens" | "after it happened", errcode: number): void {
  const { commit } = session.connection.sql;
  const run = commit.run.bind(commit);
  commit.run = () => {
    commit.run = run;
    if (when === "after it happened") run();
    throw Object.assign(new Error("disk I/O error"), { errcode });
  };
}

const IOERR_FSYNC = 1034;
const FULL = 13;

test("a COMMIT that happened and then failed is not repeated", async () => {
  await register("first");
  breakCommit("after it happened", IOERR_FSYNC);
  await register("second");
  expect(await names()).toEqual(["first", "second"]);
});

test("a COMMIT that failed without happening is repeated once", async () => {
  await register("first");
  breakCommit("before it happens", IOERR_FSYNC);
  await register("second");
  await register("third");
  expect(await names()).toEqual(["first", "second", "third"]);
});

test("writes during an unknown COMMIT wait for its outcome and are not mistaken for it", async () => {
  await register("first");
  breakCommit("before it happens", IOERR_FSYNC);
  await Promise.all([register("second"), register("third"), register("fourth")]);
  expect((await names()).sort()).toEqual(["first", "fourth", "second", "third"]);
});

test("a full disk is reported as such, and the store stays readable", async () => {
  await register("first");
  breakCommit("before it happens", FULL);
  await expect(register("second")).rejects.toMatchObject({ code: "STORE_FULL" });
  expect(await names()).toEqual(["first"]);
  await register("third");
  expect(await names()).toEqual(["first", "third"]);
});

test("a batch whose body throws writes nothing", async () => {
  const failing = session.transact("Registering", (tx) => {
    registerWorker(tx, 1, "half", 0);
    throw new RangeError("our bug");
  });
  await expect(failing).rejects.toMatchObject({ code: "INVARIANT" });
  expect(await names()).toEqual([]);
});

test("a lock of another process is retried without blocking, then reported", async () => {
  const other = new DatabaseSync(path);
  other.exec("begin immediate");
  const waiting = register("late");
  await new Promise((resolve) => setTimeout(resolve, 60));
  other.exec("rollback");
  await waiting;
  expect(await names()).toEqual(["late"]);

  other.exec("begin immediate");
  const refused = register("never");
  skippedMs = BUSY_TIMEOUT_MS;
  await expect(refused).rejects.toMatchObject({ code: "STORE_BUSY", message: expect.stringContaining(path) });
  other.close();
  expect(await names()).toEqual(["late"]);
});

test("a store notices that its file was replaced or removed before it writes", async () => {
  await register("first");
  const copy = join(folder, "copy.db");
  copyFileSync(path, copy);
  renameSync(copy, path);
  await expect(register("second")).rejects.toMatchObject({ code: "STORE_REPLACED" });
  rmSync(path);
  await expect(register("third")).rejects.toMatchObject({ code: "STORE_REPLACED" });
});

const onPosix = test.skipIf(process.platform === "win32");

for (const part of ["-wal", "-shm"])
  for (const how of ["removed", "replaced"] as const)
    onPosix(`a ${part} file that was ${how} under an open store is noticed before anything is written`, async () => {
      await register("first");
      const before = readFileSync(path);
      const log = readFileSync(`${path}-wal`);
      if (how === "replaced") copyFileSync(path + part, join(folder, "copy"));
      rmSync(path + part);
      if (how === "replaced") renameSync(join(folder, "copy"), path + part);
      for (const name of ["second", "third"])
        await expect(register(name)).rejects.toMatchObject({
          code: "STORE_REPLACED",
          message: expect.stringMatching(`${part}, a part of the store .* was ${how} .* Stop every process`),
        });
      expect(readFileSync(path)).toEqual(before);
      if (part === "-shm" || how === "replaced") expect(readFileSync(`${path}-wal`)).toEqual(log);
      // Following the message loses nothing.
      await session.close();
      session = await open();
      expect(await names()).toEqual(["first"]);
    });

onPosix("a store notices that its log was removed before a COMMIT failed, and creates no other log", async () => {
  await register("first");
  const { commit } = session.connection.sql;
  const run = commit.run.bind(commit);
  commit.run = () => {
    commit.run = run;
    rmSync(`${path}-wal`);
    throw Object.assign(new Error("disk I/O error"), { errcode: IOERR_FSYNC });
  };
  const other = await open();
  await expect(register("second")).rejects.toMatchObject({ code: "STORE_IO" });
  await expect(register("third")).rejects.toMatchObject({ code: "STORE_REPLACED" });
  await expect(names()).rejects.toMatchObject({ code: "STORE_REPLACED" });
  expect(existsSync(`${path}-wal`)).toBe(false);
  await other.close();
});

test("WAL checkpoints and other connections do not replace the log and its index", async () => {
  await register("first");
  for (const mode of ["passive", "full", "restart", "truncate"]) {
    session.connection.db.exec(`pragma wal_checkpoint(${mode})`);
    await register(mode);
  }
  await (await open()).close();
  new DatabaseSync(path).close();
  const run = promisify(execFile);
  const program = `const { DatabaseSync } = require("node:sqlite"); const db = new DatabaseSync(process.argv[1]);
    db.exec("delete from workers where name = 'full'"); db.close();`;
  await run(process.execPath, ["-e", program, path]);
  await register("last");
  expect(await names()).toEqual(["first", "passive", "restart", "truncate", "last"]);
});

test("opening a file a second time in a process does not release the locks of the first connection", async () => {
  await register("first");
  const second = await open();
  const run = promisify(execFile);
  // Takes an exclusive lock, as another process would.
  const program = `const { DatabaseSync } = require("node:sqlite"); const db = new DatabaseSync(process.argv[1], { timeout: 0 });
    db.exec("pragma locking_mode = exclusive");
    try { db.prepare("select * from workers").all(); console.log("has it"); } catch (error) { console.log(error.errcode); }`;
  const { stdout } = await run(process.execPath, ["-e", program, path]);
  expect(stdout.trim()).toBe("5");
  await second.close();
});

test("time continues from the highest mark after a close, and closed writers leave no rows", async () => {
  await register("first");
  session.clock.raise(session.clock.now() + 3_600_000);
  await register("second");
  const last = session.clock.now();
  await session.close();
  session = await open();
  expect(session.clock.now()).toBeGreaterThanOrEqual(last);
  const writers = session.connection.db.prepare("select writer from writers").all();
  expect(writers.map((row) => row["writer"])).toEqual([""]);
});

test("a closed store refuses calls with USAGE", async () => {
  await session.close();
  await expect(names()).rejects.toMatchObject({ code: "USAGE" });
  await expect(register("late")).rejects.toMatchObject({ code: "USAGE" });
});

test("a missing writer row means that the store was rolled back, unless the row is old enough to be deleted", async () => {
  const breaks: string[] = [];
  session.onBreak(({ kind }) => breaks.push(kind));
  const removeRows = (): void => {
    const other = new DatabaseSync(path);
    other.exec("delete from writers");
    other.close();
  };
  await register("first");
  removeRows();
  skippedMs = 11 * 86_400_000;
  await register("second");
  expect(breaks).toEqual([]);
  removeRows();
  await session.checkHistory();
  expect(breaks).toEqual(["rolled_back"]);
  removeRows();
  await register("third");
  expect(breaks).toEqual(["rolled_back"]);
  removeRows();
  await register("fourth");
  expect(breaks).toEqual(["rolled_back", "rolled_back"]);
  expect(await names()).toEqual(["first", "second", "third", "fourth"]);
});
