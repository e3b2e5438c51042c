// restore: replaces a store's file with a backup.

import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { createClient, createEngine } from "reprise";
import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import type { Store } from "../../src/kernel/index.ts";
import { MIGRATIONS, SCHEMA_VERSION, APPLICATION_ID } from "../../src/stores/sqlite/schema.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import {
  claimItems,
  claimTurns,
  registerWorker,
  startHeld,
  startRun,
  startWithTasks,
} from "../../src/testing/store-cases/store-actions.ts";
import {
  cli,
  command,
  DEFINITIONS,
  finished,
  jsonLines,
  waitForOutput,
  startOnTerminal,
  TemporaryFolder,
} from "./cli-process.ts";
import { charge, pay, review } from "./definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const machine = { clock: systemClock, timers: systemTimers, random: systemRandom };
const open = (path: string): Promise<Store> => openSqliteStore({ ...machine, path });

const shop = (): Promise<StoreWithRuns> =>
  new StoreWithRuns([pay, charge, review]).start(
    { id: "pay-1", what: pay, input: 1, until: "completed" },
    { id: "review-1", what: review, until: "waiting" },
  );

const idsOf = async (url: string): Promise<string[]> =>
  jsonLines((await command(["list", "--json", "--store", url])).stdout)
    .map(({ id }) => id as string)
    .toSorted();

/** Every file with its content. */
const contents = (folder: string): Record<string, string> =>
  Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(`${folder}/${name}`).toString("base64")]));

test("restore replaces the store, keeps the replaced file, and runs continue", async () => {
  using store = await shop();
  const backup = store.folder.file("monday.db");
  await store.cli("backup", backup);
  const before = readFileSync(backup);
  await store.start({ id: "pay-2", what: pay, input: 2, until: "completed" });
  const { mode } = statSync(store.folder.file("shop.db"));

  const refused = await store.cli("restore", backup);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toMatch(
    /Replace .*shop\.db with .*monday\.db \(2 runs\)\? Commits after 20.*Z will be lost\. This is not a terminal, so reprise cannot ask\. Add --yes/,
  );
  expect(await idsOf(store.url)).toEqual(["pay-1", "pay-2", "review-1"]);

  const { code, stdout, stderr } = await store.cli("restore", backup, "--yes");
  expect([code, stderr]).toEqual([0, "start the workers again\n"]);
  expect(stdout).toMatch(
    /^restored {2}.*shop\.db: 2 runs, last commit 20.*\nfrom .*monday\.db, integrity checked\nreplaced file kept as: .*shop\.db\.before-restore-20.*\n$/,
  );
  const kept = readdirSync(store.folder.path).filter((name) => name.includes("before-restore"));
  expect(readdirSync(store.folder.path).toSorted()).toEqual(["monday.db", "shop.db", ...kept].toSorted());
  expect(statSync(store.folder.file("shop.db")).mode).toBe(mode);
  expect(readFileSync(backup).equals(before)).toBe(true);
  expect(await idsOf(store.url)).toEqual(["pay-1", "review-1"]);
  expect(await idsOf(`sqlite:${store.folder.file(kept[0]!)}`)).toEqual(["pay-1", "pay-2", "review-1"]);
  expect((await store.cli("doctor")).code).toBe(0);
  await store.cli("signal", "review-1", "approved", "true");
  await store.start({ id: "pay-2", what: pay, input: 2, until: "completed" });
});

test("restore through a symbolic link replaces the target and keeps the link", async () => {
  using store = await shop();
  const backup = store.folder.file("monday.db");
  await store.cli("backup", backup);
  await store.start({ id: "pay-2", what: pay, input: 2, until: "completed" });
  const link = store.folder.file("link.db");
  symlinkSync(store.folder.file("shop.db"), link);
  expect((await command(["restore", backup, "--yes", "--store", `sqlite:${link}`])).code).toBe(0);
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(await idsOf(store.url)).toEqual(["pay-1", "review-1"]);
});

test("restore without an existing store asks nothing, and --no-keep deletes the replaced file", async () => {
  using store = await shop();
  const backup = store.folder.file("monday.db");
  await store.cli("backup", backup);
  const url = `sqlite:${store.folder.file("new.db")}`;
  const [made] = jsonLines((await command(["restore", backup, "--json", "--store", url])).stdout);
  expect(made).toEqual({
    file: store.folder.file("new.db"),
    backup,
    restored: true,
    dryRun: false,
    runs: 2,
    lastCommitAt: expect.stringMatching(/Z$/),
    schema: { from: SCHEMA_VERSION, to: SCHEMA_VERSION },
    released: { workers: 0, turns: 0, items: 0 },
    kept: null,
  });
  expect(await idsOf(url)).toEqual(["pay-1", "review-1"]);
  const [again] = jsonLines(
    (await command(["restore", backup, "--yes", "--no-keep", "--json", "--store", url])).stdout,
  );
  expect(again).toMatchObject({ restored: true, kept: null });
  expect(readdirSync(store.folder.path).toSorted()).toEqual(["monday.db", "new.db", "shop.db"]);
});

test("a dry run checks everything and changes nothing", async () => {
  using store = await shop();
  const backup = store.folder.file("monday.db");
  await store.cli("backup", backup);
  const before = contents(store.folder.path);
  const { code, stdout } = await store.cli("restore", backup, "--dry-run");
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^would restore {2}.*shop\.db: 2 runs/)]);
  expect(contents(store.folder.path)).toEqual(before);
});

test("restore releases the leases in the backup and records itself in the store's history", async () => {
  using folder = new TemporaryFolder();
  const [path, backup] = [folder.file("shop.db"), folder.file("monday.db")];
  const live = await open(path);
  const worker = await registerWorker(live);
  const held = await startHeld(live, worker, "held");
  await startWithTasks(live, worker, "tasks", 2);
  await claimItems(live, worker, undefined, 1);
  await live.backup(backup);
  await live.releaseWorker(worker);
  await startRun(live, "later");
  await live.close();

  const restored = async (): Promise<Record<string, unknown>> =>
    jsonLines((await command(["restore", backup, "--yes", "--json", "--store", `sqlite:${path}`])).stdout)[0]!;
  expect(await restored()).toMatchObject({ runs: 2, released: { workers: 1, turns: 1, items: 1 } });
  const incarnation = (): unknown => {
    const db = new DatabaseSync(path, { readOnly: true });
    const row = db.prepare("select value from meta where key = 'incarnation'").get();
    db.close();
    return row?.["value"];
  };
  const first = incarnation();
  expect(first).toMatch(/^\d{16} [0-9a-f]{32}$/);

  const store = await open(path);
  expect(await store.listWorkers()).toEqual([]);
  expect(await store.readHolders([held.run])).toMatchObject([{ worker: undefined }]);
  expect(await store.readHistory()).toEqual([
    { at: expect.any(Number), kind: "restored", detail: expect.stringContaining(`from ${backup}, whose last commit`) },
  ]);
  const next = await registerWorker(store);
  expect((await claimTurns(store, next)).length).toBe(1);
  expect((await claimItems(store, next)).length).toBe(2);
  expect(await store.check()).toEqual([]);
  await store.releaseWorker(next);
  await store.close();
  await restored();
  expect(incarnation()).not.toBe(first);
});

test("restore refuses while a worker is live, names it, and changes nothing", async () => {
  using store = await shop();
  const backup = store.folder.file("monday.db");
  await store.cli("backup", backup);
  await using _engine = await createEngine({ store: store.url, definitions: [pay, charge, review] });
  const { code, stderr } = await store.cli("restore", backup, "--yes");
  expect(code).toBe(3);
  expect(stderr).toMatch(
    /^error STORE_BUSY: .*shop\.db is in use: a worker has a lease on it: \S+ \(\w+\) for [\d.]+ s\. Nothing was changed\. Stop the workers, then run the command again\. If they were killed, the last lease expires at 20.*Z\./,
  );
  expect(readdirSync(store.folder.path).filter((name) => /restor/.test(name))).toEqual([]);
});

test("restore refuses while another process has the file open, and does not wait for a killed process", async () => {
  using store = await shop();
  const backup = store.folder.file("monday.db");
  await store.cli("backup", backup);
  {
    await using _client = await createClient({ store: store.url, definitions: [] });
    const { code, stderr } = await store.cli("restore", backup, "--yes");
    expect(code).toBe(3);
    const who = process.platform === "linux" ? `process ${process.pid} has` : "another process has";
    expect(stderr).toContain(`shop.db is in use: ${who} it open. Nothing was changed.`);
  }
  // The lease and the log of a worker that was killed long ago.
  const db = new DatabaseSync(store.folder.file("shop.db"));
  db.exec("insert into workers (name, until, started_at) values ('killed', 1, 1)");
  copyFileSync(store.folder.file("shop.db-wal"), store.folder.file("wal"));
  db.close();
  copyFileSync(store.folder.file("wal"), store.folder.file("shop.db-wal"));
  writeFileSync(store.folder.file("shop.db-shm"), "");
  expect((await store.cli("restore", backup, "--yes")).code).toBe(0);
  for (const suffix of ["-wal", "-shm", "-journal"])
    expect(existsSync(store.folder.file(`shop.db${suffix}`))).toBe(false);
  expect(await idsOf(store.url)).toEqual(["pay-1", "review-1"]);
});

test("an unusable backup is refused with the reason, and nothing is changed", async () => {
  using store = await shop();
  const file = (name: string): string => store.folder.file(name);
  await store.cli("backup", file("good.db"));
  const sql = (name: string, text: string): void => {
    const db = new DatabaseSync(file(name));
    db.exec(text);
    db.close();
  };
  const variant = (name: string, text: string): void => {
    copyFileSync(file("good.db"), file(name));
    sql(name, `${text}; pragma journal_mode = delete`);
  };
  variant("newer.db", `pragma user_version = ${SCHEMA_VERSION + 1}`);
  variant("journal.db", "delete from journal where seq = 1");
  sql("other.db", "create table customers (id integer)");
  writeFileSync(file("empty.db"), "");
  writeFileSync(file("text.db"), "Dear diary, ".repeat(100));
  writeFileSync(file("half.db"), readFileSync(file("good.db")).subarray(0, 50_000));
  mkdirSync(file("folder.db"));
  const before = readdirSync(store.folder.path).toSorted();
  for (const [backup, code, exit] of [
    ["newer.db", "STORE_NEWER_SCHEMA", 3],
    ["journal.db", "STORE_CORRUPT: .*journal.db is damaged and was not restored: I\\d+ .*`reprise doctor --store", 3],
    ["other.db", "STORE_NOT_REPRISE", 3],
    ["empty.db", "STORE_NOT_REPRISE", 3],
    ["text.db", "STORE_CORRUPT", 3],
    ["half.db", "STORE_CORRUPT: .*half.db is truncated: \\d+ bytes are missing", 3],
    ["none.db", "BAD_OPTIONS: .*none.db is not a file", 2],
    ["folder.db", "BAD_OPTIONS", 2],
    ["shop.db", "BAD_OPTIONS: .*is the store itself", 2],
  ] as const) {
    const refused = await store.cli("restore", file(backup), "--yes");
    expect([backup, refused.code, refused.stderr]).toEqual([
      backup,
      exit,
      expect.stringMatching(new RegExp(`^error ${code}`)),
    ]);
    expect(readdirSync(store.folder.path).toSorted()).toEqual(before);
  }
  expect(await idsOf(store.url)).toEqual(["pay-1", "review-1"]);
});

test("restore does not replace a file of another program", async () => {
  using store = await shop();
  await store.cli("backup", store.folder.file("good.db"));
  const other = store.folder.file("other.db");
  const db = new DatabaseSync(other);
  db.exec("create table customers (id integer)");
  db.close();
  const { code, stderr } = await command([
    "restore",
    store.folder.file("good.db"),
    "--yes",
    "--store",
    `sqlite:${other}`,
  ]);
  expect([code, stderr]).toEqual([3, expect.stringMatching(/^error STORE_NOT_REPRISE/)]);
});

test("a backup of an older version is migrated in the copy only", async () => {
  using folder = new TemporaryFolder();
  const db = new DatabaseSync(folder.file("old.db"));
  db.exec(MIGRATIONS[0] ?? "");
  db.exec(`insert into meta values ('application', 'reprise'), ('schema', '1');
           pragma application_id = ${APPLICATION_ID}; pragma user_version = 1; pragma journal_mode = wal;`);
  db.close();
  const before = readFileSync(folder.file("old.db"));
  const url = `sqlite:${folder.file("shop.db")}`;
  const { code, stdout } = await command(["restore", folder.file("old.db"), "--store", url]);
  expect([code, stdout]).toEqual([0, expect.stringContaining(`migrated: schema 1 → ${SCHEMA_VERSION}`)]);
  expect(readFileSync(folder.file("old.db")).equals(before)).toBe(true);
  expect((await command(["doctor", "--store", url])).code).toBe(0);
});

test("restore replaces a damaged store, and asks to move away one that cannot be locked", async () => {
  using store = await shop();
  const [path, backup] = [store.folder.file("shop.db"), store.folder.file("good.db")];
  await store.cli("backup", backup);
  const bytes = readFileSync(path);
  // Damages the tables of runs, journals and workers, but not the schema.
  const roots = new DatabaseSync(path);
  const pages = roots.prepare(
    "select rootpage as page from sqlite_schema where tbl_name in ('runs', 'journal', 'workers')",
  );
  const damaged = pages.all().map(({ page }) => Number(page));
  roots.close();
  const broken = Buffer.from(bytes);
  for (const page of damaged) broken.fill(7, (page - 1) * 4_096, page * 4_096);
  writeFileSync(path, broken);
  expect((await store.cli("doctor")).code).not.toBe(0);
  expect((await store.cli("restore", backup, "--yes", "--no-keep")).code).toBe(0);
  expect(await idsOf(store.url)).toEqual(["pay-1", "review-1"]);
  writeFileSync(path, bytes.subarray(0, 10_000));
  const { code, stderr } = await store.cli("restore", backup, "--yes");
  expect([code, stderr]).toEqual([
    3,
    expect.stringMatching(/^error STORE_CORRUPT: .*move it away .*`reprise restore` again/),
  ]);
});

test.each([
  [
    "postgres://app:secret@db.example:5433/shop",
    /1\. Stop every worker.* pg_restore --clean --if-exists --single-transaction --dbname 'postgres:\/\/app@db\.example:5433\/shop' shop\.dump/,
  ],
  [
    "mysql://app:secret@db.example/shop",
    /1\. Stop every worker.* mariadb --host=db\.example --user=app --password shop < shop\.sql/,
  ],
])("restore of %s names the commands of the server's own tools", async (url, expected) => {
  const { code, stderr } = await command(["restore", "monday.db", "--store", url]);
  expect(code).toBe(2);
  expect(stderr).toMatch(expected);
  expect(stderr).not.toContain("secret");
});

test.runIf(process.platform === "linux")("Ctrl-C leaves the store unchanged", async () => {
  using store = await shop();
  const backup = store.folder.file("monday.db");
  await store.cli("backup", backup);
  const before = contents(store.folder.path);
  const child = startOnTerminal(["restore", backup, "--store", store.url]);
  await waitForOutput(child, "[y/N]");
  child.stdin.write("\u0003");
  const { code } = await finished(child);
  child.stdin.end();
  expect(code).toBe(130);
  expect(contents(store.folder.path)).toEqual(before);
});

test.runIf(process.platform === "linux")("restore asks once and continues after yes", async () => {
  using store = await shop();
  const backup = store.folder.file("monday.db");
  await store.cli("backup", backup);
  const child = startOnTerminal(["restore", backup, "--store", store.url]);
  await waitForOutput(child, "[y/N]");
  child.stdin.write("y\n");
  const { code, stdout } = await finished(child);
  child.stdin.end();
  expect([code, stdout]).toEqual([0, expect.stringContaining("restored")]);
});

test("an encrypted backup is checked with its key, and refused without it", async () => {
  using folder = new TemporaryFolder();
  const codec = join(import.meta.dirname, "codec.ts");
  const url = `sqlite:${folder.file("shop.db")}`;
  const with_ = ["--codec", codec, "--store", url];
  expect((await cli(["run", DEFINITIONS, "pay", "1", "--id", "pay-1", ...with_])).code).toBe(0);
  expect((await cli(["backup", folder.file("monday.db"), ...with_])).code).toBe(0);
  const refused = await cli(["restore", folder.file("monday.db"), "--yes", "--store", url]);
  expect([refused.code, refused.stderr]).toEqual([3, expect.stringMatching(/^error PAYLOAD_KEY_MISSING/)]);
  expect((await cli(["restore", folder.file("monday.db"), "--yes", ...with_])).code).toBe(0);
  expect((await cli(["show", "pay-1", ...with_])).code).toBe(0);
});
