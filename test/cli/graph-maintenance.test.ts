// doctor, prune, backup, verify and rekey include the checkpoints of graphs.

import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { join } from "node:path";
import { expect, test } from "vitest";
import { aesGcm, createEngine } from "reprise";
import { chainAfter, CHAIN_START, markOf, type EntryType } from "../../src/kernel/index.ts";
import { command as cli, jsonLines, ROOT, TemporaryFolder } from "./cli-process.ts";
import { charge, pay } from "./definitions.ts";
import { agent, failing, loop } from "./graphs.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const GRAPHS = join(ROOT, "test/cli/graphs.ts");
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };
const ALL = [agent, failing, loop, pay, charge];

class Shop extends StoreWithRuns {
  constructor() {
    super(ALL);
  }

  get path(): string {
    return this.url.slice("sqlite:".length);
  }

  sql(text: string, ...values: readonly SQLInputValue[]): Record<string, any>[] {
    const db = new DatabaseSync(this.path);
    try {
      return db.prepare(text).all(...values);
    } finally {
      db.close();
    }
  }

  /** Changes entries and recomputes the hash chain, like a bug of the engine would. */
  rewrite(id: string, change: (entries: Record<string, any>[]) => Record<string, any>[]): void {
    const [run] = this.sql("select run from runs where id = ?", id);
    const number = run!["run"] as number;
    const entries = this.sql(
      "select seq, type, command, cast(data as text) as data, at from journal where run = ? order by seq",
      number,
    );
    this.sql("delete from journal where run = ?", number);
    let chain: string = CHAIN_START;
    for (const [index, { type, command, data, at }] of change(entries).entries()) {
      chain = chainAfter(chain, type as EntryType, command as string, data as string);
      this.sql(
        "insert into journal (run, seq, type, command, data, at, mark) values (?, ?, ?, ?, cast(? as blob), ?, ?)",
        ...[number, index + 1, type, command, data, at, markOf(chain)],
      );
      this.sql("update runs set head = ?, chain = ? where run = ?", index + 1, chain, number);
    }
  }

  async problems(): Promise<{ run: string; seq: number | null; invariant: string; message: string }[]> {
    const { code, stdout } = await this.cli("doctor", "--json");
    const [report] = jsonLines(stdout);
    expect(code).toBe(report!["healthy"] === true ? 0 : 1);
    return report!["problems"] as never;
  }
}

async function withShort(): Promise<Shop> {
  const shop = new Shop();
  await shop.start(
    { id: "loop-1", what: loop, input: { n: 995 }, until: "completed" },
    { id: "pay-1", what: pay, input: 1, until: "completed" },
  );
  return shop;
}

test("doctor names the run and the step of a checkpoint that does not match its journal", async () => {
  using shop = await withShort();
  expect(await shop.problems()).toEqual([]);
  shop.sql("update checkpoints set label = 'other' where step = 1");
  shop.sql("update checkpoints set chain = 'beef' where step = 2");
  shop.sql("delete from checkpoints where step = 3");
  shop.sql("insert into checkpoints select run, 70, seq, chain, 'k', label, state from checkpoints where step = 4");
  shop.sql(
    "insert into checkpoints select (select run from runs where id = 'pay-1'), 0, 1, chain, 'l', label, state from checkpoints where step = 4",
  );
  const problems = await shop.problems();
  expect(problems.map(({ run, message }) => [run, message])).toEqual([
    ["loop-1", "The checkpoint of step 1 has another label than the journal."],
    ["loop-1", "The checkpoint of step 2 has another chain than the journal."],
    ["loop-1", "Step 3 is in the journal but has no checkpoint row."],
    ["loop-1", "The checkpoint of step 70 has no entry in the journal."],
    ["pay-1", "The run is a workflow and has 1 checkpoints; only a graph has checkpoints."],
  ]);
  const { stdout, stderr } = await shop.cli("doctor");
  expect(stdout).toContain("✖ I12 committed rows never change  run loop-1, entry 4\n");
  expect(stderr).toContain("checkpoints are derived from the journal");
});

test("doctor finds steps out of order, and nodes that belong to no step", async () => {
  using shop = await withShort();
  shop.rewrite("loop-1", (entries) =>
    entries.map((entry) =>
      entry["command"] === "Node(3.0)" ? { ...entry, data: entry["data"].replace('"count"', '"other"') } : entry,
    ),
  );
  const about = async (): Promise<string[]> =>
    (await shop.problems())
      .filter(({ invariant }) => invariant === "I13 a step commits once")
      .map(({ message }) => message);
  expect(await about()).toEqual([
    "Node(3.0) (other) is recorded after step 2, but that frontier has no such item.",
    "Step 3 is committed without a result of node count (Node(3.0)).",
  ]);
  shop.rewrite("loop-1", (entries) => entries.filter(({ data }) => !(data as string).includes('"step":2}')));
  expect(await about()).toContain("Step 3 follows step 1; expected step 2.");
  shop.rewrite("loop-1", (entries) => [...entries.slice(0, 4), entries.at(-1)!]);
  expect(await about()).toEqual(["The run completed after step 1 with work left: count."]);
});

test("prune deletes the checkpoints of the runs it deletes, and no others", async () => {
  using shop = await withShort();
  await shop.start({ id: "agent-1", what: agent, input: {}, until: "waiting" });
  const countOf = (id: string): number =>
    shop.sql("select count(*) as count from checkpoints join runs using (run) where id = ?", id)[0]!["count"] as number;
  expect([countOf("loop-1"), countOf("agent-1")]).toEqual([6, 5]);
  const { stdout } = await shop.cli("prune", "--older-than", "0 ms", "--yes", "--json");
  expect(jsonLines(stdout)[0]).toMatchObject({ runs: 2 });
  expect((await shop.cli("show", "loop-1")).code).toBe(2);
  expect(countOf("agent-1")).toBe(5);
  // The next worker deletes what an ended run left behind.
  await shop.cli("resolve", "agent-1", "approval", '{"ok":true}');
  expect(await shop.finish("agent-1")).toMatchObject({ status: "completed" });
  expect(shop.sql("select distinct runs.id from checkpoints left join runs using (run)")).toEqual([{ id: "agent-1" }]);
  expect(await shop.problems()).toEqual([]);
});

test("a backup contains the checkpoints, and a run continues from it as from the original", async () => {
  using shop = new Shop();
  using folder = new TemporaryFolder();
  await shop.start({ id: "agent-1", what: agent, input: {}, until: "waiting" });
  const copy = folder.file("copy.db");
  expect((await shop.cli("backup", copy)).code).toBe(0);
  const store = ["--store", `sqlite:${copy}`];
  expect((await cli(["doctor", ...store])).code).toBe(0);
  // The suggested command names the store.
  const tableOf = ({ stdout }: { stdout: string }): string =>
    stdout
      .slice(stdout.indexOf("STEP"))
      .replace(/has waited \S+ m?s/, "has waited")
      .replace(/ --store sqlite:\S+$/m, " --store …");
  expect(tableOf(await cli(["show", "agent-1", ...store]))).toBe(tableOf(await shop.cli("show", "agent-1")));
  await using engine = await createEngine({ store: `sqlite:${copy}`, definitions: ALL, logger: SILENT });
  await engine.get(agent, "agent-1").resolve("approval", { ok: true });
  expect(await engine.get(agent, "agent-1").result()).toMatchObject({ ok: true });
});

test("verify checks a graph's run against its code, and refuses a damaged journal", async () => {
  using shop = await withShort();
  expect((await shop.cli("verify", "loop-1", GRAPHS)).stdout).toMatch(
    /^verified {2}loop-1: journal intact, code matches the journal/,
  );
  shop.sql(
    "update journal set data = cast(replace(cast(data as text), 'at 997', 'at 99x') as blob) where type = 'StepCommitted'",
  );
  const { code, stdout } = await shop.cli("verify", "loop-1", GRAPHS);
  expect([code, stdout]).toEqual([5, expect.stringMatching(/^damaged {2}loop-1: entry \d+ does not match its mark/)]);
});

test("rekey also re-encrypts checkpoints: the old key is no longer needed", async () => {
  using folder = new TemporaryFolder();
  const url = `sqlite:${folder.file("sealed.db")}`;
  const one = aesGcm({ keys: { one: Buffer.alloc(32, 1), two: Buffer.alloc(32, 2) }, current: "one" });
  {
    await using engine = await createEngine({ store: url, definitions: ALL, codec: one, logger: SILENT });
    const run = await engine.start(agent, { questions: ["secret question"] }, { id: "agent-1" });
    while ((await run.info()).status !== "waiting") await new Promise((resolve) => setImmediate(resolve));
  }
  const codec = ["--codec", join(ROOT, "test/cli/codec.ts"), "--store", url];
  const rekeyed = await cli(["rekey", "--json", ...codec], { env: { CLI_TEST_CURRENT: "two" } });
  expect(jsonLines(rekeyed.stdout)[0]).toMatchObject({ codec: "aes-256-gcm two", unreadable: 0 });
  const env = { CLI_TEST_KEYS: "two" };
  expect((await cli(["doctor", ...codec], { env })).code).toBe(0);
  const { stdout } = await cli(["show", "agent-1", ...codec], { env });
  expect(stdout).toMatch(/Node review 5\.0 has waited .* for promise approval, showing\s+\{ draft: '5 things' \}/);
  const two = aesGcm({ keys: { two: Buffer.alloc(32, 2) }, current: "two" });
  await using engine = await createEngine({ store: url, definitions: ALL, codec: two, logger: SILENT });
  await engine.get(agent, "agent-1").resolve("approval", { ok: true });
  expect(await engine.get(agent, "agent-1").result()).toMatchObject({ ok: true });
});
