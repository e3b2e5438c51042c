// `npm start`: what a newcomer sees first must be true every time.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cli, finished, jsonLines, ROOT, startNode, TemporaryFolder } from "../cli/cli-process.ts";

const MAIN = join(ROOT, "examples/first-run/main.ts");

test("the first run kills a worker, finishes with another, proves its claims and leaves nothing behind", async () => {
  using folder = new TemporaryFolder();
  const env = { TMPDIR: folder.path };
  const { code, stdout, stderr } = await finished(startNode([MAIN], { env }));
  expect(stderr).toBe("");
  expect(code).toBe(0);
  expect(stdout).not.toContain("\u001b");
  expect(stdout).not.toContain("✖");
  for (const claim of [
    "commits happen exactly once (6 commands, one terminal entry each)",
    "the journal has no gap (entries 1 to 13)",
    "calls to the outside happen at least once and carry a stable key (6 calls, 4 keys)",
    "the second worker continued where the first one died (8 of 8 entries replayed)",
    "replay: the same code on the same journal ends the same way (no calls were made: still 6 lines in the ledger)",
    "verify: the journal is unchanged, and so is the child's (sha256:",
  ])
    expect(stdout).toContain(`✔ ${claim}`);
  // The timeline shows the crash between the entries committed before and after it.
  const [charged, crash, takeover, label, end] = [
    "● charge",
    "━━ SIGKILL",
    "━━ worker 2 takes over",
    "● print label",
    "● completed",
  ].map((words) => stdout.indexOf(words)) as [number, number, number, number, number];
  expect(charged).toBeGreaterThan(0);
  expect([charged, crash, takeover, label, end].toSorted((a, b) => a - b)).toEqual([
    charged,
    crash,
    takeover,
    label,
    end,
  ]);
  expect(stdout).toMatch(/print label +2 calls +key [0-9a-f]{12}… +again after the crash/);
  expect(readdirSync(folder.path)).toEqual([]);
});

test("the kept database of the first run is healthy", async () => {
  using folder = new TemporaryFolder();
  const { code, stdout } = await finished(startNode([MAIN, "--keep"], { env: { TMPDIR: folder.path } }));
  expect(code).toBe(0);
  const store = /--store (sqlite:\S+)/.exec(stdout)?.[1];
  const [report] = jsonLines((await cli(["doctor", "--json", "--store", store ?? ""])).stdout);
  expect(report).toMatchObject({ healthy: true, store: { runs: { completed: 2 } } });
});

test("Ctrl-C ends the first run, its worker and its folder", async () => {
  using folder = new TemporaryFolder();
  const child = startNode([MAIN], { env: { TMPDIR: folder.path } });
  let said = "";
  for await (const chunk of child.stdout) {
    said += String(chunk);
    if (said.includes("Worker 1 starts")) break;
  }
  child.kill("SIGINT");
  const [code] = await new Promise<[number | null]>((resolve) => child.once("exit", (...end) => resolve([end[0]])));
  expect(code).toBe(130);
  expect(readdirSync(folder.path)).toEqual([]);
});
