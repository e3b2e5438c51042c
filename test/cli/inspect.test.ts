// list, show, journal, replay, verify and doctor on a store with runs of every kind.

import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEngine } from "reprise";
import {
  command as cli,
  DEFINITIONS,
  jsonLines,
  ROOT,
  startCli,
  TemporaryFolder,
  type Finished,
} from "./cli-process.ts";
import * as after from "./changed/input-after.ts";
import * as before from "./changed/input-before.ts";
import * as definitions from "./definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const CHANGED = join(ROOT, "test/cli/changed/definitions.ts");
const { charge, pay, refuse, review, many, incomplete } = definitions;
const folder = new TemporaryFolder();
const store = `sqlite:${folder.file("shop.db")}`;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;

beforeAll(async () => {
  await using engine = await createEngine({
    store,
    definitions: [pay, refuse, review, many, incomplete, charge],
    logger: { info: () => {}, warn: () => {}, error: () => {} },
  });
  await (await engine.start(pay, 4990, { id: "pay-1", tags: ["shop", "eu"] })).result();
  await (await engine.start(refuse, undefined, { id: "refuse-1" })).result().catch(() => {});
  await (await engine.start(many, 4_000, { id: "many-1" })).result();
  await (await engine.start(incomplete, undefined, { id: "incomplete-1" })).result().catch(() => {});
  const waiting = await engine.start(review, undefined, { id: "review-1" });
  while ((await waiting.info()).status !== "waiting") await new Promise((resolve) => setImmediate(resolve));
});
afterAll(() => folder[Symbol.dispose]());

const on = (...args: readonly string[]): Promise<Finished> => cli([...args, "--store", store]);

describe("list", () => {
  test("shows every run, newest first", async () => {
    const { code, stdout, stderr } = await on("list");
    expect([code, stderr]).toEqual([0, ""]);
    const ids = stdout
      .trim()
      .split("\n")
      .map((line) => line.split(/\s+/)[0]);
    expect(ids).toEqual(["RUN", "review-1", "incomplete-1", "many-1", "refuse-1", "pay-1"]);
    expect(stdout).not.toMatch(CONTROL);
  });

  test("prints one JSON value per run with stable fields", async () => {
    const { stdout } = await on("list", "--json", "--definition", "pay");
    const [run, ...rest] = jsonLines(stdout);
    expect(rest).toEqual([]);
    expect(run).toEqual({
      id: "pay-1",
      definition: "pay",
      kind: "workflow",
      version: 1,
      generation: 0,
      status: "completed",
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      endedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      tags: expect.arrayContaining(["eu", "shop"]),
      entries: 8,
      digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      errorCode: null,
    });
  });

  test("filters by time, several tags, error code, text of the id and parent", async () => {
    const ids = async (...args: readonly string[]): Promise<string[]> =>
      jsonLines((await on("list", "--json", ...args)).stdout).map(({ id }) => id as string);
    expect(await ids("--tag", "eu,shop")).toEqual(["pay-1"]);
    expect(await ids("--tag", "eu", "--tag", "nowhere")).toEqual([]);
    expect(await ids("--id-contains", "-1", "--status", "failed,waiting")).toEqual(["review-1", "refuse-1"]);
    expect(await ids("--id-contains", "ay-")).toEqual(["pay-1"]);
    const [failed] = jsonLines((await on("list", "--json", "--status", "failed")).stdout);
    const errorCode = failed?.["errorCode"] as string;
    expect(errorCode).toMatch(/^\w+$/);
    expect(await ids("--error-code", errorCode)).toEqual(["refuse-1"]);
    expect(await ids("--created-after", "1h", "--created-before", "2099-01-01T00:00")).toHaveLength(5);
    expect(await ids("--created-before", "1 hour")).toEqual([]);
    expect(await ids("--ended-after", "2020-01-01", "--definition", "pay")).toEqual(["pay-1"]);
    expect(await ids("--ended-before", "2020-01-01")).toEqual([]);
    expect(await ids("--parent", "pay-1")).toEqual([]);
    const noParent = await on("list", "--parent", "nobody");
    expect([noParent.code, noParent.stderr]).toEqual([2, expect.stringContaining("RUN_NOT_FOUND")]);
    const badTime = await on("list", "--created-after", "yesterday");
    expect([badTime.code, badTime.stderr]).toEqual([
      2,
      expect.stringContaining('--created-after: "yesterday" is not a time. Write a date such as 2026-11-17'),
    ]);
  });

  test("filters by status, tag and limit", async () => {
    const ids = async (...args: readonly string[]): Promise<string[]> =>
      jsonLines((await on("list", "--json", ...args)).stdout).map(({ id }) => id as string);
    expect(await ids("--status", "failed,blocked")).toEqual(["incomplete-1", "refuse-1"]);
    expect(await ids("--status", "failed", "--status", "waiting")).toEqual(["review-1", "refuse-1"]);
    expect(await ids("--tag", "eu")).toEqual(["pay-1"]);
    expect(await ids("--limit", "2")).toEqual(["review-1", "incomplete-1"]);
    const { stdout, stderr, code } = await on("list", "--tag", "nowhere");
    expect([code, stdout, stderr]).toEqual([0, "", "No matching runs.\n"]);
  });

  test("reports that more runs exist", async () => {
    expect((await on("list", "--limit", "2")).stderr).toContain("show them with a --limit above 2");
  });
});

describe("show", () => {
  test("prints the timeline of a completed run, failed attempts included, control characters escaped", async () => {
    const { code, stdout } = await on("show", "pay-1");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^pay-1 {2}pay v1 {2}completed in \d+ ms\n/);
    expect(stdout).toMatch(
      /● charge +took \d+ ms, attempt 2 → \{ paid: 4990 \}\n +└ attempt 1 on \S+, took \d+ ms: Error: no answer\\u001b\[31m\\nfrom/,
    );
    expect(stdout).toMatch(/○ sleep 20 ms +until \+\d+ ms\n.*● sleep 20 ms +ended after \d+ ms/);
    expect(stdout).toMatch(/· state paid +=.*4990n/);
    expect(stdout).toMatch(/● label +operation → 'L-4990\\x1B\[2J'/);
    expect(stdout).toMatch(/● completed +→ \{ at: 1970-01-01T00:00:00.000Z/);
    expect(stdout).not.toContain("\nnow\n");
    expect(stdout).not.toMatch(CONTROL);
  });

  test("prints what a waiting run waits for", async () => {
    const { stdout } = await on("show", "review-1");
    expect(stdout).toMatch(
      /now\n {2}It waits for a timer, which fires in (?:1 h|59 m).*Timer\(0\)\n {2}It has waited .* for promise approval, times out in \d+ [dh].*Promise\(0\)/,
    );
    expect(stdout).toContain(`\n    next: reprise resolve review-1 approval '<value as JSON>' --store ${store}\n`);
  });

  test("prints why a run failed and the next command", async () => {
    const { code, stdout } = await on("show", "refuse-1");
    expect(code).toBe(0);
    expect(stdout).toContain("failed FATAL: FatalError: not today\\u0007");
    expect(stdout).toContain("definitions.ts");
    expect(stdout).toMatch(/next: .+/);
    expect(stdout).not.toMatch(CONTROL);
  });

  test("prints the evidence of a blocked run", async () => {
    const { stdout } = await on("show", "incomplete-1");
    expect(stdout).toContain("blocked UNKNOWN_TASK: Workflow incomplete requests task `unexported`");
    expect(stdout).toContain("Add the task to `definitions`");
  });

  test("omits the middle of a long timeline", async () => {
    const { stdout } = await on("show", "many-1");
    expect(stdout).toContain("lines omitted");
    expect(stdout.split("\n").length).toBeLessThan(450);
  });

  test("prints one JSON value", async () => {
    const { stdout } = await on("show", "pay-1", "--json");
    const [shown, ...rest] = jsonLines(stdout);
    expect(rest).toEqual([]);
    expect(shown).toMatchObject({
      id: "pay-1",
      status: "completed",
      input: 4990,
      output: { at: { $: "date", v: 0 }, label: "L-4990\u001b[2J" },
      error: null,
      waitsFor: [],
    });
    expect(shown?.["steps"]).toMatchObject([
      { command: "Task(0)", kind: "task", name: "charge", attempts: 2, ending: "TaskCompleted" },
      { command: "Timer(0)", kind: "sleep", ending: "TimerFired" },
      { command: "Operation(0)", kind: "operation", name: "label", ending: "OperationCompleted", startedAt: null },
    ]);
    const failed = jsonLines((await on("show", "refuse-1", "--json")).stdout)[0];
    expect(failed?.["error"]).toMatchObject({
      code: "FATAL",
      message: "FatalError: not today\u0007",
      next: expect.any(String),
    });
  });
});

describe("journal", () => {
  test("prints every entry, or the entries after --after", async () => {
    const { code, stdout } = await on("journal", "pay-1");
    expect(code).toBe(0);
    expect(stdout.trim().split("\n")).toHaveLength(8);
    expect(stdout).toMatch(/ 3 +\+\d+ ms {2}TaskCompleted +Task\(0\) +\{ attempt: 1/);
    expect(stdout).not.toMatch(CONTROL);
    expect((await on("journal", "pay-1", "--after", "6")).stdout.trim().split("\n")).toHaveLength(2);
  });

  test("prints one JSON value per entry", async () => {
    const entries = jsonLines((await on("journal", "many-1", "--json")).stdout);
    expect(entries.map(({ seq }) => seq as number)).toEqual(Array.from({ length: 4_002 }, (_, index) => index + 1));
    expect(entries[1]).toEqual({
      seq: 2,
      type: "StateSet",
      command: "State(0)",
      at: expect.stringMatching(/Z$/),
      data: { index: 0, key: "key-0", value: "x".repeat(200) },
    });
  });

  test("ends without an error when its reader closes the pipe", async () => {
    for (const args of [
      ["journal", "many-1"],
      ["journal", "many-1", "--json"],
      ["show", "many-1", "--json"],
    ]) {
      const child = startCli([...args, "--store", store]);
      let output = "";
      child.stderr.on("data", (chunk) => (output += String(chunk)));
      child.stdout.once("data", () => child.stdout.destroy());
      const [code] = (await once(child, "exit")) as [number];
      expect([args[0], code, output]).toEqual([args[0], 0, ""]);
    }
  });
});

describe("replay and verify", () => {
  test("report that the code matches the journal", async () => {
    const replayed = await on("replay", "pay-1", DEFINITIONS);
    expect([replayed.code, replayed.stdout]).toEqual([
      0,
      expect.stringMatching(/^same {2}pay-1: .*\(8 entries\)\.\nsha256:[0-9a-f]{64}\n$/),
    ]);
    const verified = await on("verify", "pay-1", DEFINITIONS);
    expect([verified.code, verified.stdout]).toEqual([
      0,
      expect.stringMatching(/^verified {2}pay-1: journal intact, code matches the journal \(8 entries\)\.\nsha256:/),
    ]);
    expect(jsonLines((await on("verify", "pay-1", DEFINITIONS, "--json")).stdout)).toEqual([
      {
        exitCode: 0,
        runs: [
          {
            id: "pay-1",
            generation: 0,
            definition: "pay",
            entries: 8,
            levels: [0, 3],
            verdict: "verified",
            exitCode: 0,
            digest: expect.stringMatching(/^sha256:/),
            output: expect.stringMatching(/^[0-9a-f]{64}$/),
          },
        ],
      },
    ]);
  });

  test("name the place where changed code differs", async () => {
    const { code, stdout } = await on("replay", "pay-1", CHANGED);
    expect(code).toBe(4);
    expect(stdout).toContain(
      "mismatch  pay-1: the journal recorded task 'charge'; the code now calls task 'bill' (at Task(0))",
    );
    const json = await on("verify", "pay-1", CHANGED, "--json");
    expect(json.code).toBe(4);
    expect(jsonLines(json.stdout)[0]!["runs"][0]).toMatchObject({
      verdict: "code_differs",
      where: "Task(0)",
      expected: "bill",
      actual: "charge",
    });
  });

  test("refuse a file without the run's definition", async () => {
    const { code, stderr } = await on("replay", "review-1", CHANGED);
    expect(code).toBe(2);
    expect(stderr).toContain("error UNKNOWN_DEFINITION:");
  });
});

describe("doctor", () => {
  test("describes the store and reports that it is healthy", async () => {
    const { code, stdout, stderr } = await on("doctor");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^store +sqlite .*shop\.db \(.*B\)\nschema +\d+\ndurability +full/);
    expect(stdout).toContain("1 waiting, 1 blocked, 2 completed, 1 failed");
    expect(stdout).toContain("healthy");
  });

  test("prints one JSON value", async () => {
    const [report, ...rest] = jsonLines((await on("doctor", "--json")).stdout);
    expect(rest).toEqual([]);
    expect(report).toMatchObject({
      healthy: true,
      problems: [],
      store: {
        kind: "sqlite",
        durability: "full",
        schemaVersion: expect.any(Number),
        runs: { completed: 2, failed: 1 },
        workers: [],
      },
    });
  });

  test("lists the live workers", async () => {
    await using engine = await createEngine({ store, definitions: [review] });
    const [report] = jsonLines((await on("doctor", "--json")).stdout);
    expect(report?.["store"].workers).toEqual([
      { worker: expect.any(Number), name: expect.any(String), until: expect.any(String), alive: true },
    ]);
    expect((await on("doctor")).stdout).toMatch(/^workers +\S+ \(\w+\), live, lease expires in \d+/m);
    await engine.get(review, "review-1").info();
  });
});

test("colors are for terminals only, unless FORCE_COLOR is set", async () => {
  expect((await on("show", "pay-1")).stdout).not.toContain("\u001b");
  const forced = await cli(["show", "pay-1", "--store", store], { env: { FORCE_COLOR: "1" } });
  expect(forced.stdout).toContain("\u001b[32m●");
  const refused = await cli(["show", "pay-1", "--store", store], { env: { NO_COLOR: "1" } });
  expect(refused.stdout).not.toContain("\u001b");
});

test("REPRISE_STORE names the store", async () => {
  const { code, stdout } = await cli(["list", "--json", "--limit", "1"], { env: { REPRISE_STORE: store } });
  expect(code).toBe(0);
  expect(jsonLines(stdout)).toHaveLength(1);
});

test("show, journal and verify read each generation of a run that continued as new", async () => {
  using shop = await new StoreWithRuns([definitions.pages]).start({
    id: "pages-1",
    what: definitions.pages,
    input: 2,
    until: "waiting",
  });
  const shown = await shop.cli("show", "pages-1");
  expect(shown.stdout).toMatch(/^pages-1 {2}pages v1, generation 2 {2}waiting/);
  const first = await shop.cli("show", "pages-1", "--generation", "0");
  expect(first.stdout).toMatch(/^pages-1 {2}pages v1 {2}continued in .*[\s\S]*● continued +as the next generation/);
  const [entry] = jsonLines((await shop.cli("journal", "pages-1", "--generation", "1", "--json")).stdout);
  expect(entry).toMatchObject({ type: "RunStarted", data: { input: 1 } });
  const [same] = jsonLines((await shop.cli("verify", "pages-1", DEFINITIONS, "--generation", "0", "--json")).stdout);
  expect(same).toMatchObject({ exitCode: 0, runs: [{ verdict: "verified", generation: 0 }] });
  const none = await shop.cli("journal", "pages-1", "--generation", "9");
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("has no generation 9; its latest is 2")]);
});

test("show and verify name an input that a worker's replay changed; doctor accepts the journal", async () => {
  using shop = await new StoreWithRuns(Object.values(before)).start({
    id: "invoice-1",
    what: before.invoice,
    until: "waiting",
  });
  {
    const logger = { info: () => {}, warn: () => {}, error: () => {} };
    await using engine = await createEngine({ store: shop.url, definitions: Object.values(after), logger });
    const run = engine.get(after.invoice, "invoice-1");
    await run.resolve("go", "done");
    expect(await run.result()).toBe("done");
  }
  const [restored, changed] = ["before", "after"].map((name) => join(ROOT, `test/cli/changed/input-${name}.ts`));
  const line = "Task(0): a replay passed another task input than the journal recorded";
  const { stdout } = await shop.cli("show", "invoice-1");
  expect(stdout).toContain(line);
  expect(stdout).toMatch(/✖ input changed +at Task\(0\): a replay passed another task input/);
  const noted = { inputChanges: [{ where: "Task(0)", what: "task input" }] };
  expect(jsonLines((await shop.cli("show", "invoice-1", "--json")).stdout)[0]).toMatchObject(noted);
  const verified = await shop.cli("verify", "invoice-1", restored!);
  expect([verified.code, verified.stdout]).toEqual([0, expect.stringContaining(line)]);
  const [verdict] = jsonLines((await shop.cli("verify", "invoice-1", restored!, "--json")).stdout);
  expect(verdict).toMatchObject({ exitCode: 0, runs: [noted] });
  const refused = await shop.cli("verify", "invoice-1", changed!);
  expect(refused.stdout).toContain("the journal recorded another task input than the code now passes (at Task(0))");
  const lenient = await shop.cli("replay", "invoice-1", changed!, "--lenient");
  expect(lenient.stdout).toMatch(/^differs .*1 difference[\s\S]*at Task\(0\): the journal recorded another task input/);
  expect((await shop.cli("doctor")).code).toBe(0);
});
