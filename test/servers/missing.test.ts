import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const REASON = "left out by REPRISE_SERVERS=none";

interface Report {
  readonly testResults: readonly { readonly assertionResults: readonly Result[] }[];
}

interface Result {
  readonly status: string;
  readonly ancestorTitles: readonly string[];
  readonly failureMessages: readonly string[];
}

/** Runs shared.test.ts as on a machine without servers. */
function runWithoutServers(ci: string): readonly Result[] {
  const folder = mkdtempSync(join(tmpdir(), "reprise-report-"));
  try {
    const path = join(folder, "report.json");
    const args = ["run", "test/servers/shared.test.ts", "--reporter=json", `--outputFile=${path}`];
    spawnSync(process.execPath, [join(ROOT, "node_modules/vitest/vitest.mjs"), ...args], {
      cwd: ROOT,
      env: { ...process.env, CI: ci, REPRISE_SERVERS: "none" },
    });
    const report = JSON.parse(readFileSync(path, "utf8")) as Report;
    return report.testResults.flatMap((file) => file.assertionResults);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("tests without a server are skipped with a reason", { timeout: 120_000 }, () => {
  const results = runWithoutServers("");
  expect(results.length).toBeGreaterThan(5);
  expect(results.filter((result) => result.status !== "skipped")).toEqual([]);
  for (const { ancestorTitles } of results) expect(ancestorTitles.join()).toContain(REASON);
});

test("in CI tests without a server fail with a reason", { timeout: 120_000 }, () => {
  const results = runWithoutServers("true");
  expect(results.length).toBeGreaterThan(5);
  expect(results.filter((result) => result.status !== "failed")).toEqual([]);
  for (const { failureMessages } of results) expect(failureMessages.join()).toContain(REASON);
});
