// replay and verify of graphs: modes, differences and live nodes.

import { join } from "node:path";
import { expect, test } from "vitest";
import { expectReplay } from "reprise/testing";
import { jsonLines, ROOT, TemporaryFolder } from "./cli-process.ts";
import { StoreWithRuns } from "./store-with-runs.ts";
import { buildGreeting, greeting } from "./greeting-graph.ts";

const RECORDED = join(ROOT, "test/cli/greeting-graph.ts");
const CHANGED = join(ROOT, "test/cli/greeting-graph-changed.ts");

async function withGreeting(): Promise<StoreWithRuns> {
  const store = new StoreWithRuns([greeting]);
  await store.start({ id: "talk-1", what: greeting, input: {}, until: "completed" });
  return store;
}

test("replay of a graph reports the recorded calls and the end of the run, as text and as JSON", async () => {
  using store = await withGreeting();
  const { code, stdout } = await store.cli("replay", "talk-1", RECORDED);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^same {2}talk-1: Code matches the journal/);
  expect(stdout).toContain("2 answers from the journal, 0 live");
  const same = {
    calls: { recorded: 2, live: 0 },
    end: { status: "completed", output: { said: ["hello!", "fine"] } },
  };
  const [replayed] = jsonLines((await store.cli("replay", "talk-1", RECORDED, "--json")).stdout);
  expect(replayed).toMatchObject({ check: "replay", status: "same", ...same });
  const [verified] = jsonLines((await store.cli("verify", "talk-1", RECORDED, "--json")).stdout);
  expect(verified).toMatchObject({ exitCode: 0, runs: [{ verdict: "verified", ...same }] });
});

test("a mismatch names step, node and attempt; --lenient reports every difference and continues with the recorded results", async () => {
  using store = await withGreeting();
  const { code, stdout } = await store.cli("replay", "talk-1", CHANGED);
  expect(code).toBe(4);
  expect(stdout).toMatch(/^mismatch {2}talk-1: the journal recorded another step input than the code now passes/);
  expect(stdout).toContain("Node(1.0)#0/Operation(0) (step 1, node greet, attempt 1)");
  const [strict] = jsonLines((await store.cli("verify", "talk-1", CHANGED, "--json")).stdout);
  expect(strict!["runs"][0]).toMatchObject({
    verdict: "code_differs",
    code: "input-diverged",
    step: 1,
    node: "greet",
    attempt: 1,
    actual: '{"greeting":"hello"}',
  });
  const lenient = await store.cli("replay", "talk-1", CHANGED, "--lenient");
  expect(lenient.code).toBe(0);
  expect(lenient.stdout).toMatch(
    /^differs {2}talk-1: \d+ differences?; the replay continued with the recorded results\.$/m,
  );
  expect(lenient.stdout).not.toContain("same");
  expect(lenient.stdout).toContain("at Node(1.0)#0/Operation(0) (step 1, node greet, attempt 1)");
  expect(lenient.stdout).toMatch(/the code: +\S.*\n +the journal: '\{"greeting":"hello"\}'/);
  const [json] = jsonLines((await store.cli("replay", "talk-1", CHANGED, "--lenient", "--json")).stdout);
  expect(json).toMatchObject({
    status: "same",
    warnings: [{ node: "greet" }],
    end: { output: { said: ["hello!", "fine"] } },
  });
});

test("--live repeats the calls of a node, --mode resume continues from a checkpoint, and both write nothing", async () => {
  using store = await withGreeting();
  const live = await store.cli("replay", "talk-1", CHANGED, "--live", "answer", "--lenient", "--json");
  expect(jsonLines(live.stdout)[0]).toMatchObject({
    calls: { recorded: 1, live: 1 },
    warnings: [{ node: "greet" }, { step: 2, node: "answer", attempt: 2, expected: "not so well", actual: "fine" }],
  });
  const before = (await store.cli("journal", "talk-1", "--json")).stdout;
  const resumed = await store.cli("replay", "talk-1", RECORDED, "--mode", "resume", "--from", "1");
  expect(resumed.stdout).toContain("1 answer from the journal, 1 live");
  const [labeled] = jsonLines(
    (await store.cli("replay", "talk-1", RECORDED, "--mode", "resume", "--label", "answered", "--json")).stdout,
  );
  expect(labeled).toMatchObject({ calls: { recorded: 2, live: 0 }, end: { status: "completed" } });
  expect((await store.cli("journal", "talk-1", "--json")).stdout).toBe(before);
  for (const wrong of [
    ["--mode", "half"],
    ["--from", "1"],
    ["--mode", "resume", "--from", "1", "--label", "answered"],
    ["--live", "unknown"],
  ])
    expect((await store.cli("replay", "talk-1", RECORDED, ...wrong)).code).toBe(2);
});

test("journal --save writes a golden run for expectReplay and overwrites no file", async () => {
  using store = await withGreeting();
  using folder = new TemporaryFolder();
  const file = folder.file("talk-1.json");
  const { stdout } = await store.cli("journal", "talk-1", "--save", file);
  expect(stdout).toMatch(/^talk-1: \d+ entries in /);
  await expectReplay(file, { definitions: [greeting] });
  const changed = await expectReplay(file, { definitions: [buildGreeting("good day", "")] }).catch(
    (error: unknown) => error,
  );
  expect(changed).toMatchObject({ code: "REPLAY_MISMATCH", details: { node: "greet" } });
  const again = await store.cli("journal", "talk-1", "--save", file);
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("it already exists")]);
});
