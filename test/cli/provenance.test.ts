// reprise why, uses and export.

import { expect, test } from "vitest";
import { valueKey } from "../../src/base/index.ts";
import { jsonLines } from "./cli-process.ts";
import { pay, charge } from "./definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const shop = (): Promise<StoreWithRuns> =>
  new StoreWithRuns([pay, charge]).start({ id: "pay-1", what: pay, input: 4990, until: "completed" });

test("why traces the result of a task to its input, and uses traces the input to the end of the run", async () => {
  using store = await shop();
  const [paid, input] = [valueKey('{"paid":4990}'), valueKey("4990")];
  const why = jsonLines((await store.cli("why", paid, "--run", "pay-1", "--json")).stdout);
  expect(why.map(({ depth, command, part, relation, key }) => [depth, command ?? part, relation, key])).toEqual([
    [1, "Task(0)", "generated", paid],
    [2, "start", "informed", null],
  ]);
  expect(why[0]).toMatchObject({
    run: "pay-1",
    generation: 0,
    kind: "task",
    name: "charge",
    used: [input],
    generated: [paid],
  });
  const uses = jsonLines((await store.cli("uses", input, "--run", "pay-1", "--json")).stdout);
  expect(uses.slice(0, 2).map(({ depth, command, part, relation }) => [depth, command ?? part, relation])).toEqual([
    [1, "start", "used"],
    [1, "Task(0)", "used"],
  ]);
  expect(uses.at(-1)).toMatchObject({ depth: 2, part: "end" });
});

test("a table names depth, run, command and key, and says what limits leave out", async () => {
  using store = await shop();
  const { code, stdout, stderr } = await store.cli("why", "run:pay-1", "--limit", "2");
  expect([code, stderr]).toEqual([0, "2 are shown; --limit and --depth show more.\n"]);
  expect(stdout).toBe(
    [
      "DEPTH  RUN    COMMAND  WHAT     BY",
      "    1  pay-1  (end)    run pay  generated run:pay-1",
      "    2  pay-1  (start)  run pay  informed",
      "",
    ].join("\n"),
  );
  const near = await store.cli("why", "run:pay-1", "--depth", "1", "--json");
  expect(jsonLines(near.stdout)).toHaveLength(1);
  expect(near.stderr).toContain("1 are shown");
});

test("a key that is none, a key without a run and a key that the family does not have are told apart", async () => {
  using store = await shop();
  const [bad, alone, unknown, missing] = [
    await store.cli("why", "order-7"),
    await store.cli("uses", "0".repeat(64)),
    await store.cli("why", "0".repeat(64), "--run", "pay-1"),
    await store.cli("why", "run:pay-2"),
  ];
  expect(bad).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/got order-7[^]*next: reprise why run:order-7 --json/),
  });
  expect(alone).toMatchObject({ code: 2, stderr: expect.stringContaining("--run <id> is missing") });
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining("used or generated 0000") });
  expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining("RUN_NOT_FOUND") });
});

test("export prints one document of PROV, and a line per statement or event of the others", async () => {
  using store = await shop();
  const exported = async (format: string) =>
    jsonLines((await store.cli("export", "pay-1", "--format", format, "--origin", "edge7")).stdout);
  const [document, ...more] = await exported("prov");
  expect(more).toEqual([]);
  expect(Object.keys(document!["agent"])).toEqual(["reprise:origin/edge7"]);
  expect(Object.keys(document!["activity"])).toContain("reprise:step/pay-1/0/Task(0)");
  const [run, step] = await exported("slsa");
  expect(run).toMatchObject({ predicate: { runDetails: { metadata: { invocationId: "pay-1#0" } } } });
  expect(step).toMatchObject({ predicate: { runDetails: { metadata: { invocationId: "pay-1#0/Task(0)" } } } });
  const events = await exported("openlineage");
  expect(events[0]).toMatchObject({ eventType: "START", job: { namespace: "reprise/edge7", name: "pay" } });
  expect(events.at(-1)).toMatchObject({ eventType: "COMPLETE", run: events[0]!["run"] });
  expect(await store.cli("export", "pay-1", "--format", "xml")).toMatchObject({ code: 2 });
});
