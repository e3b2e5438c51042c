// Runs of flows: list, show, journal and graph --run on one store with runs of every kind.

import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { command as cli, jsonLines, ROOT, type Finished } from "./cli-process.ts";
import { charge, pay } from "./definitions.ts";
import { broken, double, failing, odd, shop, sub, wide } from "./flows.ts";
import { readMermaid } from "./diagram-grammar.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const FLOWS = join(ROOT, "test/cli/flows.ts");
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;
const PRICES = Array.from({ length: 40 }, (_, index) => (index % 3 === 1 ? -1 : 10));

const store = new StoreWithRuns([double, sub, shop, odd, failing, broken, wide, pay, charge]);
beforeAll(() =>
  store.start(
    { id: "pay-1", what: pay, input: 1, until: "completed" },
    { id: "shop-1", what: shop, input: { prices: PRICES, password: "tulip" }, tags: ["eu"], until: "waiting" },
    { id: "failing-1", what: failing, input: 5, until: "failed" },
    { id: "broken-1", what: broken, input: 5, until: "failed" },
    { id: "wide-1", what: wide, input: 2_000, until: "completed" },
  ),
);
afterAll(() => store[Symbol.dispose]());
const on = (...args: readonly string[]): Promise<Finished> => store.cli(...args);

/** The columns of the table without times. */
function rowsIn(stdout: string): string[][] {
  const [, table = ""] = stdout.split(/^NODE.*\n/m);
  const [rows = ""] = table.split("\n\n");
  return rows
    .trimEnd()
    .split("\n")
    .map((line) =>
      line
        .replace(/ +\d+(?:\.\d+)? m?s(?= |$)/, "")
        .trim()
        .split(/ {2,}/),
    );
}

test("list shows flows, and only flows with --kind flow", async () => {
  const { stdout } = await on("list", "--kind", "flow", "--json");
  expect(jsonLines(stdout).map(({ id }) => id as string)).toEqual(["wide-1", "broken-1", "failing-1", "shop-1"]);
});

describe("show", () => {
  test("prints a row per node with state, attempts and value; a spread is one row, and failures are listed below", async () => {
    const { code, stdout, stderr } = await on("show", "shop-1");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).not.toMatch(CONTROL);
    expect(stdout).toMatch(/^NODE +KIND +STATE +ATTEMPTS +TOOK +VALUE$/m);
    const rows = rowsIn(stdout);
    const find = (name: string): string[] | undefined => rows.find(([node]) => node === name);
    expect(find("rate")).toEqual(["rate", "completed", "2", "{ password: '[redacted]', percent: 19 }"]);
    expect(find("prices")).toEqual(["prices", "inline", "completed", expect.stringMatching(/^\[ 10, -1, .*…$/)]);
    expect(find("taxed")).toEqual(["taxed", "spread", "completed, 40 items, 13 failed"]);
    expect(find("approved")).toEqual(["approved", "completed, caught", "'default approval'"]);
    expect(find("waved")).toEqual(["waved", "skipped"]);
    expect(find("calm")).toEqual(["calm", "skipped"]);
    expect(find("both")).toEqual(["both", "completed", "{ log: 'written', mail: 'sent' }"]);
    expect(find("asked")).toEqual(["asked", "call", "waiting for child shop-1/asked"]);
    expect(find("late")).toEqual(["late", "waiting, 1 of 2 inputs"]);
    expect(find("[output]")).toEqual(["[output]", "output", "waiting, 1 of 2 inputs"]);
    expect(stdout).toContain("\nfailed\n  taxed[1], attempt 1: FatalError: price 1 is negative\\u0007\n");
    expect(stdout).toContain("  taxed[28], attempt 1: ");
    expect(stdout).not.toContain("taxed[31]");
    expect(stdout).toContain("  … and 3 more of taxed; list them with reprise journal\n");
    expect(stdout).toContain("approved, attempt 1: FatalError: no approver (caught)\n");
  });

  test("names the node and the attempt that failed, and the command that retries the run", async () => {
    const { stdout } = await on("show", "failing-1");
    expect(rowsIn(stdout)).toEqual([
      ["first", "completed", "5"],
      ["each", "spread", "3 of 5, 1 failed", "2"],
    ]);
    expect(stdout).toContain("  where: node each[2], attempt 2\n");
    expect(stdout).toContain(`next: fix the cause, then: reprise retry failing-1 --store ${store.url}\n`);
    expect(stdout).not.toMatch(CONTROL);
    const broke = await on("show", "broken-1");
    expect(rowsIn(broke.stdout)).toEqual([
      ["a", "completed", "5"],
      ["c", "failed", "Error: c cannot take 5"],
    ]);
    expect(broke.stdout).toContain("  where: node c\n");
  });

  test("--limit prints the last nodes and their number; --steps applies to graphs, --limit to flows", async () => {
    const { stdout } = await on("show", "shop-1", "--limit", "3");
    expect(stdout).toMatch(/\n… 12 nodes earlier; show with --limit 15\nNODE/);
    expect(rowsIn(stdout).map(([node]) => node)).toEqual(["asked", "[output]", "late"]);
    expect(await on("show", "shop-1", "--steps", "1")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--steps applies to graphs; run shop-1 is a run of the flow shop."),
    });
    expect(await on("show", "pay-1", "--limit", "1")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--limit applies to flows; run pay-1 is a run of the workflow pay."),
    });
  });

  test("--timeline prints every entry; for a long run the first and the last ones", async () => {
    const { stdout } = await on("show", "shop-1", "--timeline");
    expect(stdout).toMatch(
      /● rate +node, attempt 2 → \{ password: '\[redacted\]', percent: 19 \}\n +└ attempt 1 on \S+, took .*: Error: no rate/,
    );
    expect(stdout).toMatch(/· taxed\[\] +spread, 40 items\n.*· taxed\[\] +items 0 to 39\n/);
    expect(stdout).toMatch(/· waved +skipped\n/);
    expect(stdout).toMatch(/○ sub +child run shop-1\/asked\n/);
    const wideOne = await on("show", "wide-1", "--timeline");
    expect(wideOne.stdout).toContain("… 1606 entries omitted; print them with reprise journal …");
    expect(wideOne.stdout).toMatch(/● completed +→ 2000\n/);
    expect(wideOne.stdout.split("\n").length).toBeLessThan(430);
  });

  test("--json has the nodes with their values, and a spread with its counts", async () => {
    const [run] = jsonLines((await on("show", "shop-1", "--json")).stdout);
    expect(run).toMatchObject({
      kind: "flow",
      status: "waiting",
      graph: null,
      steps: [],
      input: { password: "[redacted]" },
    });
    const { count, nodes } = run!["flow"] as { count: number; nodes: Record<string, unknown>[] };
    expect(count).toBe(15);
    const find = (name: string): Record<string, unknown> | undefined => nodes.find(({ node }) => node === name);
    expect(find("rate")).toMatchObject({
      state: "completed",
      attempts: 2,
      value: { percent: 19, password: "[redacted]" },
    });
    expect(find("taxed")).toMatchObject({
      kind: "spread",
      items: { total: 40, completed: 27, failed: 13, running: 0, queued: 0 },
    });
    expect((find("taxed")!["items"] as { failures: object[] }).failures).toHaveLength(10);
    expect(find("asked")).toMatchObject({ kind: "call", state: "awaiting_child", child: "shop-1/asked" });
    expect(find("late")).toMatchObject({ state: "waiting", inputs: { completed: 1, required: 2 }, seq: null });
  });
});

test("journal names nodes, items and skipped nodes", async () => {
  const { stdout } = await on("journal", "shop-1");
  expect(stdout).toMatch(/ NodeCompleted +taxed\[\] +\{ result: 40 \}\n/);
  expect(stdout).toMatch(/ ItemsSpread +taxed\[\] +\{ from: 0, items: \[/);
  expect(stdout).toMatch(/ NodeSkipped +waved +\{\}\n/);
  expect(stdout).not.toMatch(CONTROL);
});

test("graph --run marks completed, skipped, waiting and failed nodes, also nodes without an entry", async () => {
  const namesOf = (text: string): Map<string, string[]> => {
    const { boxes, marks } = readMermaid(text);
    return new Map([...marks].map(([mark, ids]) => [mark, ids.map((id) => boxes.get(id)!.lines[0]!)]));
  };
  const { stdout } = await on("graph", FLOWS, "--run", "shop-1");
  const marks = namesOf(stdout);
  expect(marks.get("done")).toEqual(
    "INPUT rate prices taxed total large? approved loud both.mail both.log both doubled".split(" "),
  );
  expect(marks.get("skipped")).toEqual(["waved", "calm"]);
  expect(marks.get("now")).toEqual(["asked"]);
  expect(marks.get("waiting")).toEqual(["late"]);
  const boxes = [...readMermaid(stdout).boxes.values()];
  expect(boxes.find(({ lines }) => lines[0] === "taxed")!.lines.at(-1)).toBe("completed, 40 items, 13 failed");
  expect(boxes.find(({ lines }) => lines[0] === "asked")!.lines.at(-1)).toBe("waiting for child shop-1/asked");
  const broke = namesOf((await on("graph", FLOWS, "--run", "broken-1")).stdout);
  expect([broke.get("done"), broke.get("failed")]).toEqual([["INPUT", "a", "b"], ["c"]]);
  const [json] = jsonLines((await on("graph", FLOWS, "--run", "wide-1", "--json")).stdout);
  expect(json!["run"]).toMatchObject({
    id: "wide-1",
    status: "completed",
    nodes: [{ id: "items", state: "completed", progress: { done: 1_980, failed: 20, total: 2_000, running: 0 } }],
  });
  expect((await on("graph", FLOWS, "wide", "--run", "shop-1")).stderr).toContain(
    "is a run of the flow shop, not of wide",
  );
});

test("completion offers flows and their runs", async () => {
  const fits = async (...words: readonly string[]): Promise<string[]> =>
    (await cli(["complete", "--", "--store", store.url, ...words])).stdout
      .split("\n")
      .flatMap((line) => line.split("\t")[0] || []);
  expect(await fits("graph", FLOWS, "")).toEqual(["wide", "broken", "failing", "shop"]);
  expect(await fits("graph", FLOWS, "--run", "sh")).toEqual(["shop-1"]);
  expect(await fits("list", "--kind", "f")).toEqual(["flow"]);
});
