// Budgets on the command line: budget, raise, decline, show, promises and doctor.

import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { agent, crawl } from "./budget-agent.ts";
import { cli, jsonLines, TemporaryFolder } from "./cli-process.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const waiting = (): Promise<StoreWithRuns> =>
  new StoreWithRuns([agent]).start({ id: "agent-1", what: agent, until: "waiting" });

test("budget shows what was spent and what waits, within 80 columns, and raise continues the run", async () => {
  using store = await waiting();
  const shown = await store.cli("budget", "agent-1");
  const lines = shown.stdout.trimEnd().split("\n");
  expect(lines.slice(0, 2)).toEqual([
    "budget $2 of agent-1, asks when it is reached",
    "  $0.25 spent, $0 reserved, $0 lost",
  ]);
  expect(lines[2]).toMatch(/^ {2}waiting Operation\(1\) would reserve \$5, for /);
  expect(lines[3]).toContain("  next: reprise raise agent-1 --usd <amount>");
  for (const line of lines.slice(0, 3)) expect(line.length).toBeLessThan(80);
  const [json] = jsonLines((await store.cli("budget", "agent-1", "--json")).stdout);
  expect(json).toMatchObject({
    id: "agent-1",
    budget: { owner: "agent-1", cap: { usd: 2 }, spent: { usd: 0.25 }, waiting: [{ command: "Operation(1)" }] },
  });
  const raised = await store.cli("raise", "agent-1", "--usd", "3.25", "--by", "ann", "--reason", "worth it");
  expect([raised.code, raised.stdout]).toEqual([0, "raised the budget of agent-1\n"]);
  expect(await store.finish("agent-1")).toMatchObject({ status: "completed" });
  expect((await store.cli("show", "agent-1")).stdout).toContain("budget raised  $3.25 by ann: worth it");
  expect((await store.cli("doctor")).code).toBe(0);
});

test("show says why the run does not move, and names the raise that helps", async () => {
  using store = await waiting();
  const stdout = (await store.cli("show", "agent-1")).stdout.replaceAll(/\s+/g, " ");
  expect(stdout).toContain("budget $2 of agent-1, asks when it is reached");
  expect(stdout).toContain("it would reserve $5, and the budget has $0.25 spent, $0 reserved, $0 lost.");
  expect(stdout).toContain("next: reprise raise agent-1 --usd 3.25");
  const listed = await store.cli("promises");
  expect(listed.stdout).toContain("next: reprise raise agent-1 --usd <amount>");
  expect((await store.cli("doctor")).code).toBe(0);
});

test("the raise that is named is one of a dimension that the budget caps", async () => {
  using store = await new StoreWithRuns([crawl]).start({ id: "crawl-1", what: crawl, until: "waiting" });
  for (const args of [["budget", "crawl-1"], ["promises"]])
    expect((await store.cli(...args)).stdout).toContain("next: reprise raise crawl-1 --calls <amount>");
});

test("decline fails the call, and a raise without an amount is refused", async () => {
  using store = await waiting();
  const refused = await store.cli("raise", "agent-1");
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("--usd, --tokens or --calls")]);
  expect((await store.cli("decline", "agent-1", "--by", "ann", "--json")).stdout).toBe(
    '{"id":"agent-1","done":true}\n',
  );
  expect(await store.finish("agent-1")).toMatchObject({ status: "failed" });
  expect((await store.cli("decline", "agent-1")).stderr).toContain("No call waits for the budget of run agent-1");
});

test("doctor finds a budget that differs from its reservations, and a request that is not listed", async () => {
  using store = await waiting();
  const db = new DatabaseSync(store.folder.file("shop.db"));
  db.exec("update run_budgets set reserved_usd = 7000000");
  db.exec("delete from run_promises");
  db.close();
  const { code, stdout } = await store.cli("doctor");
  expect(code).toBe(1);
  expect(stdout).toContain("The budget of run agent-1 has $7 reserved, but its reservations are $0.");
  expect(stdout).toContain("Operation(1) waits for the budget, which `reprise promises` does not show.");
});

test("run --budget replaces the budget of the definition, and wrong amounts are refused before anything is started", async () => {
  using folder = new TemporaryFolder();
  const store = ["--store", `sqlite:${folder.file("shop.db")}`];
  const file = fileURLToPath(new URL("budget-agent.ts", import.meta.url));
  const run = (budget: string) => cli(["run", file, "agent", "--id", "agent-1", "--budget", budget, ...store]);
  for (const wrong of ["two", "usd=2;calls=1", "calls=0.5"]) {
    const { code, stderr } = await run(wrong);
    expect([code, stderr]).toEqual([2, expect.stringContaining("error ")]);
  }
  expect((await cli(["show", "agent-1", ...store])).stderr).toContain("error ");
  const done = await run("usd=10,tokens=100");
  expect([done.code, done.stdout]).toEqual([0, "an answer\n"]);
  const [shown] = jsonLines((await cli(["budget", "agent-1", "--json", ...store])).stdout);
  expect(shown).toMatchObject({ budget: { cap: { usd: 10, tokens: 100 }, spent: { usd: 0.5, tokens: 0 } } });
});
