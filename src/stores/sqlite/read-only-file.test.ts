import { execFileSync } from "node:child_process";
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemRandom, systemTimers } from "../../base/index.ts";
import { createEngine } from "../../engine/index.ts";
import type { Store } from "../../kernel/index.ts";
import { workflow } from "../../workflow/index.ts";
import { APPLICATION_ID, MIGRATIONS } from "./schema.ts";
import { openSqliteStore } from "./sqlite-store.ts";

const machine = { clock: systemClock, timers: systemTimers, random: systemRandom };
const hello = workflow("hello", async (ctx) => ctx.run("say", () => "hello"));
let folder: string;
let path: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "reprise-read-"));
  path = join(folder, "store.db");
  await run("run-1");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function run(id: string): Promise<void> {
  await using engine = await createEngine({ store: `sqlite:${path}`, definitions: [hello] });
  await (await engine.start(hello, undefined, { id })).result();
}

/** Names, sizes and times of everything in the folder. */
function contents(): readonly string[] {
  return readdirSync(folder).map((name) => {
    const { size, mtimeNs, ino } = statSync(join(folder, name), { bigint: true });
    return [name, size, mtimeNs, ino].join(" ");
  });
}

async function idsIn(store: Store): Promise<readonly string[]> {
  return (await store.listRuns({ limit: 10 })).map(({ id }) => id).toSorted();
}

test("a store that is opened to read writes nothing: no file appears or changes, also while it is read", async () => {
  const before = contents();
  const store = await openSqliteStore({ ...machine, path, readOnly: true });
  expect(await idsIn(store)).toEqual(["run-1"]);
  const found = await store.findRun("run-1");
  expect(await store.readJournal(found!.run, 0)).toHaveLength(3);
  expect(await store.info()).toMatchObject({ runs: { completed: 1 } });
  expect(await store.check()).toEqual([]);
  expect(store.pollChanges()).toBe(false);
  expect(contents()).toEqual(before);
  await store.close();
  expect(contents()).toEqual(before);
});

test("a store that is opened to read refuses every write with STORE_READ_ONLY", async () => {
  const store = await openSqliteStore({ ...machine, path, readOnly: true });
  const refused = {
    code: "STORE_READ_ONLY",
    message: expect.stringContaining("this process opened the store to read"),
  };
  await expect(store.write([{ write: "pause", id: "run-1" }])).rejects.toMatchObject(refused);
  await expect(store.registerWorker("w", 1_000)).rejects.toMatchObject(refused);
  await expect(store.prune(systemClock.now() + 1)).rejects.toMatchObject(refused);
  await store.close();
  // Also while another process writes, with a log next to the file.
  const writer = await openSqliteStore({ ...machine, path });
  const shared = await openSqliteStore({ ...machine, path, readOnly: true });
  await expect(shared.write([{ write: "pause", id: "run-1" }])).rejects.toMatchObject(refused);
  await shared.close();
  await writer.close();
});

test("a reader sees what a process writes that opened the store after it, and what it left", async () => {
  const reader = await openSqliteStore({ ...machine, path, readOnly: true });
  expect(await idsIn(reader)).toEqual(["run-1"]);
  {
    await using engine = await createEngine({ store: `sqlite:${path}`, definitions: [hello] });
    await (await engine.start(hello, undefined, { id: "run-2" })).result();
    expect(readdirSync(folder)).toContain("store.db-wal");
    expect(reader.pollChanges()).toBe(true);
    expect(await idsIn(reader)).toEqual(["run-1", "run-2"]);
    await (await engine.start(hello, undefined, { id: "run-3" })).result();
    expect(reader.pollChanges()).toBe(true);
    expect(await idsIn(reader)).toEqual(["run-1", "run-2", "run-3"]);
  }
  await reader.close();

  const again = await openSqliteStore({ ...machine, path, readOnly: true });
  expect(await idsIn(again)).toHaveLength(3);
  await run("run-4");
  expect(again.pollChanges()).toBe(true);
  expect(await idsIn(again)).toHaveLength(4);
  expect(await again.check()).toEqual([]);
  await again.close();
});

// Only root may mount a disk that can be filled.
test.skipIf(process.getuid?.() !== 0)("the log that a crash left is read on a full disk", async () => {
  await using engine = await createEngine({ store: `sqlite:${path}`, definitions: [hello] });
  await (await engine.start(hello, undefined, { id: "run-2" })).result();
  // The files as a killed process leaves them.
  const left = join(folder, "left");
  mkdirSync(left);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", left]);
  await using mounted = new AsyncDisposableStack();
  mounted.defer(() => void execFileSync("umount", ["-l", left]));
  for (const name of readdirSync(folder).filter((file) => file.startsWith("store.db")))
    copyFileSync(join(folder, name), join(left, name));
  expect(readdirSync(left).toSorted()).toEqual(["store.db", "store.db-shm", "store.db-wal"]);
  truncateSync(join(left, "store.db-shm"), 0);
  const ballast = openSync(join(left, "ballast"), "w");
  expect(() => writeSync(ballast, Buffer.alloc(1 << 23))).not.toThrow();
  expect(() => writeSync(ballast, Buffer.alloc(1 << 12))).toThrow("ENOSPC");
  closeSync(ballast);
  const reader = await openSqliteStore({ ...machine, path: join(left, "store.db"), readOnly: true });
  expect(await idsIn(reader)).toEqual(["run-1", "run-2"]);
  await reader.close();
});

test("a store that is opened to read is not migrated, and a missing or foreign file is refused", async () => {
  const old = join(folder, "old.db");
  const first = new DatabaseSync(old);
  first.exec(MIGRATIONS[0]!);
  first.exec(`pragma application_id = ${APPLICATION_ID}; pragma user_version = 1`);
  first.close();
  const before = contents();
  await expect(openSqliteStore({ ...machine, path: old, readOnly: true })).rejects.toMatchObject({
    code: "STORE_OLDER_SCHEMA",
  });
  const missing = join(folder, "missing.db");
  await expect(openSqliteStore({ ...machine, path: missing, readOnly: true })).rejects.toMatchObject({
    code: "STORE_IO",
  });
  const text = join(folder, "text.db");
  writeFileSync(text, "x".repeat(200));
  await expect(openSqliteStore({ ...machine, path: text, readOnly: true })).rejects.toMatchObject({
    code: "STORE_CORRUPT",
  });
  rmSync(text);
  expect(contents()).toEqual(before);
});
