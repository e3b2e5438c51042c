// completion: real shells source the scripts if they are installed; the candidates come from the store.

import { spawnSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cli, isInstalled, jsonLines, ROOT } from "./cli-process.ts";
import { charge, pay, review } from "./definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const store = new StoreWithRuns([pay, charge, review]);
beforeAll(async () => {
  await store.start(
    { id: "pay:1", what: pay, input: 1, tags: ["eu"], until: "completed" },
    { id: "review-1", what: review, until: "waiting" },
  );
  const reprise = `#!/bin/sh\nexec '${process.execPath}' --conditions=reprise-source '${join(ROOT, "src/cli/main.ts")}' "$@"\n`;
  writeFileSync(store.folder.file("reprise"), reprise);
  chmodSync(store.folder.file("reprise"), 0o755);
});
afterAll(() => store[Symbol.dispose]());

async function fits(...words: readonly string[]): Promise<string[]> {
  const { code, stdout, stderr } = await cli(["complete", "--", ...words], { env: { REPRISE_STORE: store.url } });
  expect([code, stderr]).toEqual([0, ""]);
  return stdout.split("\n").flatMap((line) => (line === "" ? [] : [line.split("\t")[0] ?? ""]));
}

describe("candidates", () => {
  test("are commands, options of the command and global options", async () => {
    expect(await fits("jou")).toEqual(["journal"]);
    expect(await fits("list", "--st")).toEqual(["--status", "--store"]);
    expect(await fits("completion", "")).toEqual(["bash", "zsh", "fish"]);
    expect(await fits("compl")).toEqual(["completion"]);
  });

  test("are the ids of runs that the command applies to", async () => {
    expect(await fits("show", "")).toEqual(["review-1", "pay:1"]);
    expect(await fits("show", "pay")).toEqual(["pay:1"]);
    expect(await fits("cancel", "review-1", "")).toEqual(["review-1"]);
    expect(await fits("resume", "")).toEqual([]);
    expect(await fits("delete", "")).toEqual(["pay:1"]);
    expect(await fits("list", "--parent", "r")).toEqual(["review-1"]);
  });

  test("are names and values from the store", async () => {
    expect(await fits("list", "--definition", "")).toEqual(["review", "pay"]);
    expect(await fits("list", "--tag", "")).toEqual(["eu"]);
    expect(await fits("list", "--tag", "x,e")).toEqual(["x,eu"]);
    expect(await fits("list", "--created-a")).toEqual(["--created-after"]);
    expect(await fits("list", "--status", "failed,bl")).toEqual(["failed,blocked"]);
    expect(await fits("resolve", "review-1", "")).toEqual(["approval"]);
    expect(await fits("run", "some.ts", "p")).toEqual(["pay"]);
    expect(await fits("explain", "STORE_B")).toEqual(["STORE_BUSY"]);
  });

  test("are empty, without an error, if there is no store or nothing to offer", async () => {
    expect(await fits("show", "--store", "sqlite:nowhere.db", "")).toEqual([]);
    expect(await fits("run", "")).toEqual([]);
    expect(await fits("no-such-command", "")).not.toContain("review-1");
  });
});

/** The candidates of bash for a line with the cursor at its end. */
function inBash(line: string): string[] {
  const script = `
    source <(reprise completion bash)
    COMP_LINE=${JSON.stringify(line)}; COMP_POINT=\${#COMP_LINE}
    _reprise
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const env = { ...process.env, REPRISE_STORE: store.url, PATH: `${store.folder.path}:${process.env["PATH"]}` };
  const { stdout, stderr } = spawnSync("bash", ["--norc", "-c", script], { encoding: "utf8", env });
  expect(stderr).toBe("");
  return stdout.split("\n").filter((word) => word !== "");
}

test.skipIf(!isInstalled("bash"))(
  "bash completes commands, options and ids, also after a colon",
  { timeout: 90_000 },
  () => {
    expect(inBash("reprise ver")).toEqual(["verify"]);
    expect(inBash("reprise list --de")).toEqual(["--definition"]);
    expect(inBash("reprise show rev")).toEqual(["review-1"]);
    expect(inBash("reprise show pay:")).toEqual(["1"]);
    expect(inBash("reprise show ")).toEqual(["review-1", "pay:1"]);
  },
);

// Skipped if the shell is not installed. These shells only check the syntax of the script.
test.each(["zsh", "fish"] as const)("%s accepts its script", async (shell) => {
  const { code, stdout } = await cli(["completion", shell]);
  expect(code).toBe(0);
  expect(stdout).toContain("complete -- ");
  if (!isInstalled(shell)) return;
  const { status, stderr } = spawnSync(shell, ["-n", "-c", stdout], { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
});

test("an unknown shell is refused, and the message lists the known ones", async () => {
  const { code, stderr } = await cli(["completion", "tcsh"]);
  expect(code).toBe(2);
  expect(stderr).toContain("Allowed choices are bash, zsh, fish");
  const [json] = jsonLines((await cli(["completion", "bash", "--json"])).stdout);
  expect(json).toMatchObject({ shell: "bash", script: expect.stringContaining("_reprise") });
});

describe("explain", () => {
  test("prints what a code means and the next step", async () => {
    const { code, stdout } = await cli(["explain", "store_busy"]);
    expect(code).toBe(0);
    expect(stdout).toContain("STORE_BUSY");
    const [json] = jsonLines((await cli(["explain", "STORE_BUSY", "--json"])).stdout);
    expect(json).toEqual({
      code: "STORE_BUSY",
      family: "store",
      summary: expect.any(String),
      next: expect.any(String),
    });
    expect(jsonLines((await cli(["explain", "--json"])).stdout).length).toBeGreaterThan(30);
  });

  test("refuses an unknown code and suggests similar ones", async () => {
    const { code, stderr } = await cli(["explain", "busy"]);
    expect(code).toBe(2);
    expect(stderr).toContain("Unknown error code busy. Did you mean STORE_BUSY?");
  });
});
