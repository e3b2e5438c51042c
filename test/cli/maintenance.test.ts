// migrate, prune, delete and backup.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { MIGRATIONS, SCHEMA_VERSION, APPLICATION_ID } from "../../src/stores/sqlite/schema.ts";
import { emptyCheckpoint } from "@langchain/langgraph-checkpoint";
import { RepriseSaver } from "reprise/langgraph";
import { command as cli, jsonLines, TemporaryFolder } from "./cli-process.ts";
import { charge, pay, review } from "./definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const shop = (): Promise<StoreWithRuns> =>
  new StoreWithRuns([pay, charge, review]).start(
    { id: "pay-1", what: pay, input: 1, until: "completed" },
    { id: "review-1", what: review, until: "waiting" },
  );

/** A database of the first version. */
function makeFirst(path: string): void {
  const db = new DatabaseSync(path);
  db.exec(MIGRATIONS[0] ?? "");
  db.exec(`insert into meta values ('application', 'reprise'), ('schema', '1');
           pragma application_id = ${APPLICATION_ID}; pragma user_version = 1; pragma journal_mode = wal;`);
  db.close();
}

test("migrate upgrades an older store after a copy; other commands refuse the older store", async () => {
  using folder = new TemporaryFolder();
  const path = folder.file("shop.db");
  makeFirst(path);
  const store = ["--store", `sqlite:${path}`];
  const refused = await cli(["list", ...store]);
  expect(refused.code).toBe(3);
  expect(refused.stderr).toMatch(
    /^error STORE_OLDER_SCHEMA: .*has schema 1; this version of Reprise needs schema \d+\. Run `reprise migrate --store sqlite:\S+`/,
  );
  const before = readFileSync(path);
  const [planned] = jsonLines((await cli(["migrate", "--dry-run", "--json", ...store])).stdout);
  const copy = `${path}.schema-1.backup`;
  expect(planned).toEqual({ location: path, from: 1, to: SCHEMA_VERSION, migrated: false, dryRun: true, backup: copy });
  expect(existsSync(copy)).toBe(false);
  expect(readFileSync(path).equals(before)).toBe(true);

  const { code, stdout } = await cli(["migrate", ...store]);
  expect(code).toBe(0);
  expect(stdout).toContain(`shop.db: schema 1 → ${SCHEMA_VERSION}\ncopy of the old file: ${copy}`);
  expect(new DatabaseSync(copy, { readOnly: true }).prepare("pragma user_version").get()).toEqual({ user_version: 1 });
  expect((await cli(["doctor", ...store])).code).toBe(0);
  const again = await cli(["migrate", ...store]);
  expect([again.code, again.stdout]).toEqual([0, `up to date  ${path} has schema ${SCHEMA_VERSION}\n`]);
});

test("migrate does not overwrite an existing copy and then migrates nothing", async () => {
  using folder = new TemporaryFolder();
  const path = folder.file("shop.db");
  makeFirst(path);
  const args = ["migrate", "--backup", folder.file("copy.db"), "--store", `sqlite:${path}`];
  makeFirst(folder.file("copy.db"));
  const { code, stderr } = await cli(args);
  expect(code).toBe(2);
  expect(stderr).toMatch(/copy\.db exists\./);
  expect((await cli(["migrate", "--dry-run", "--json", "--store", `sqlite:${path}`])).stdout).toContain('"from":1');
  const [done] = jsonLines((await cli(["migrate", "--no-backup", "--json", "--store", `sqlite:${path}`])).stdout);
  expect(done).toMatchObject({ migrated: true, backup: null });
});

test("prune counts, asks and deletes old ended runs with their journals", async () => {
  using store = await shop();
  const [dry] = jsonLines((await store.cli("prune", "--older-than", "0s", "--dry-run", "--json")).stdout);
  expect(dry).toEqual({ runs: 1, endedBefore: expect.stringMatching(/Z$/), dryRun: true });
  const [young] = jsonLines((await store.cli("prune", "--older-than", "30d", "--yes", "--json")).stdout);
  expect(young).toMatchObject({ runs: 0, dryRun: false });
  const refused = await store.cli("prune", "--older-than", "0s");
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain(
    "Delete 1 run that ended more than 0 ms ago, and their journals? This is not a terminal",
  );
  expect(await store.statusOf("pay-1")).toBe("completed");
  const { code, stdout } = await store.cli("prune", "--older-than", "0s", "--yes");
  expect([code, stdout]).toEqual([0, "deleted 1 run that ended more than 0 ms ago\n"]);
  const ids = jsonLines((await store.cli("list", "--json")).stdout).map(({ id }) => id as string);
  expect(ids).toEqual(["review-1"]);
  const bad = await store.cli("prune", "--older-than", "soon");
  expect(bad.stderr).toMatch(/^error BAD_DURATION: --older-than/);
});

test("delete removes ended runs with their journals, and says why it skips a run", async () => {
  using store = await shop();
  const refused = await store.cli("delete", "pay-1");
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining("Delete run pay-1, with children and journals? This is not a terminal"),
  ]);
  expect(await store.statusOf("pay-1")).toBe("completed");
  const both = await store.cli("delete", "pay-1", "review-1", "--yes");
  expect([both.code, both.stdout]).toEqual([1, "deleted pay-1\n"]);
  expect(both.stderr).toContain("skipped review-1: Run review-1 cannot be deleted: it is waiting.");
  expect(both.stderr).toContain("reprise terminate review-1");
  expect(await store.statusOf("pay-1")).toBeUndefined();
  const gone = await store.cli("delete", "pay-1", "--yes");
  expect([gone.code, gone.stderr]).toEqual([2, expect.stringContaining("RUN_NOT_FOUND")]);
  expect((await store.cli("terminate", "review-1")).code).toBe(0);
  const [json] = jsonLines((await store.cli("delete", "review-1", "--yes", "--json")).stdout);
  expect(json).toEqual({ deleted: [{ id: "review-1", runs: 1 }], skipped: [] });
});

test("prune --threads deletes LangGraph threads and no runs", async () => {
  using store = await shop();
  await using saver = new RepriseSaver({ store: store.url });
  const config = { configurable: { thread_id: "ann", checkpoint_ns: "" } };
  await saver.put(config, emptyCheckpoint(), { source: "loop", step: 0, parents: {} }, {});
  const [dry] = jsonLines((await store.cli("prune", "--threads", "--older-than", "0s", "--dry-run", "--json")).stdout);
  expect(dry).toEqual({ threads: 1, storedBefore: expect.stringMatching(/Z$/), dryRun: true });
  const [young] = jsonLines((await store.cli("prune", "--threads", "--older-than", "1h", "--yes", "--json")).stdout);
  expect(young).toMatchObject({ threads: 0 });
  const refused = await store.cli("prune", "--threads", "--older-than", "0s");
  expect(refused.stderr).toContain("Delete 1 thread without a checkpoint for 0 ms? This is not a terminal");
  const { code, stdout } = await store.cli("prune", "--threads", "--older-than", "0s", "--yes");
  expect([code, stdout]).toEqual([0, "deleted 1 thread without a checkpoint for 0 ms\n"]);
  expect(await saver.getTuple(config)).toBeUndefined();
  expect(await store.statusOf("pay-1")).toBe("completed");
});

test("a backup is a store with the same runs, and backup overwrites no file", async () => {
  using store = await shop();
  const copy = store.folder.file("copy.db");
  const [made] = jsonLines((await store.cli("backup", copy, "--json")).stdout);
  expect(made).toEqual({ file: copy, bytes: expect.any(Number) });
  const of = async (url: string): Promise<string> => (await cli(["list", "--json", "--store", url])).stdout;
  expect(await of(`sqlite:${copy}`)).toBe(await of(store.url));
  const again = await store.cli("backup", copy);
  expect(again.code).toBe(2);
  expect(again.stderr).toContain("copy.db exists.");
});

test("maintenance commands do not create a missing store", async () => {
  using folder = new TemporaryFolder();
  for (const args of [
    ["migrate"],
    ["prune", "--older-than", "1d", "--yes"],
    ["backup", "copy.db"],
    ["cancel", "--all"],
  ])
    expect((await cli(args, { cwd: folder.path })).code).toBe(3);
  expect(readdirSync(folder.path)).toEqual([]);
});
