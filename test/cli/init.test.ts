// reprise init: the project passes its tests and runs.

import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cli, finished, jsonLines, ROOT, waitForOutput, startCli, startNode, TemporaryFolder } from "./cli-process.ts";

const FILES = [
  "package.json",
  "tsconfig.json",
  ".oxlintrc.json",
  "workflows.ts",
  "workflows.test.ts",
  "README.md",
  ".gitignore",
];

/** Does what `npm install` does. */
function install(folder: string): void {
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(ROOT, join(folder, "node_modules/reprise"));
  symlinkSync(join(ROOT, "node_modules/@types"), join(folder, "node_modules/@types"));
}

test(
  "the project that init creates passes its tests, compiles, and the commands of its README work",
  { timeout: 120_000 },
  async () => {
    using folder = new TemporaryFolder();
    const { code, stdout, stderr } = await cli(["init", "my-app"], { cwd: folder.path });
    expect(code).toBe(0);
    expect(stdout).toBe(FILES.map((name) => `created my-app/${name}\n`).join(""));
    expect(stderr).toContain("next: cd my-app && npm install && npm test && npm run dev");
    const app = folder.file("my-app");
    install(app);

    const tests = await finished(startNode(["--test"], { cwd: app }));
    expect([tests.code, tests.stdout]).toEqual([0, expect.stringMatching(/pass 3\n/)]);
    const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
    const types = spawnSync(process.execPath, [tsc, "--customConditions", "reprise-source", "-p", app], {
      encoding: "utf8",
    });
    expect([types.status, types.stdout]).toEqual([0, ""]);

    const options = { cwd: app };
    const worker = startCli(["dev", "workflows.ts"], options);
    const ended = finished(worker);
    await waitForOutput(worker, "ready: send-mail, welcome");
    const asked = waitForOutput(worker, "○ confirmed");
    const started = await cli(
      ["run", "workflows.ts", "welcome", '"ada@example.org"', "--id", "ada", "--detach"],
      options,
    );
    expect(started.stdout).toBe("ada\n");
    await asked;
    const sleeps = waitForOutput(worker, "○ sleep 5 s");
    expect((await cli(["resolve", "ada", "confirmed", "true"], options)).code).toBe(0);
    await sleeps;
    worker.kill("SIGTERM");
    expect((await ended).code).toBe(143);
    expect((await cli(["verify", "ada", "workflows.ts"], options)).stdout).toMatch(/^verified /);
  },
);

test("the linter of a new project finds a call that is not deterministic, and a missing await", async () => {
  using folder = new TemporaryFolder();
  await cli(["init"], { cwd: folder.path });
  // What the published package has. A linter does not know the condition that selects the sources.
  const installed = folder.file("node_modules/reprise");
  mkdirSync(join(installed, "dist"), { recursive: true });
  copyFileSync(join(ROOT, "package.json"), join(installed, "package.json"));
  const source = readFileSync(join(ROOT, "src/lint.ts"), "utf8");
  writeFileSync(join(installed, "dist/lint.js"), stripTypeScriptTypes(source));
  const lint = (): { status: number | null; stdout: string } =>
    spawnSync(process.execPath, [join(ROOT, "node_modules/oxlint/bin/oxlint")], {
      cwd: folder.path,
      encoding: "utf8",
    });
  const clean = lint();
  expect([clean.status, clean.stdout]).toEqual([0, expect.stringContaining("0 warnings and 0 errors")]);
  writeFileSync(
    folder.file("mistakes.ts"),
    `import { workflow, type WorkflowContext } from "reprise";
export const late = workflow("late", body);
async function body(ctx: WorkflowContext): Promise<number> {
  ctx.sleep("1 day");
  return Date.now();
}
`,
  );
  const found = lint();
  expect(found.status).toBe(1);
  expect(found.stdout).toContain("ctx.sleep() is not awaited.");
  expect(found.stdout).toContain("Date.now() is not deterministic in workflow code");
});

test("init writes nothing if one of its files exists", async () => {
  using folder = new TemporaryFolder();
  writeFileSync(folder.file("README.md"), "mine");
  const { code, stderr } = await cli(["init"], { cwd: folder.path });
  expect(code).toBe(2);
  expect(stderr).toMatch(/^error USAGE: .* already contains README\.md, so nothing was written/);
  expect(readdirSync(folder.path)).toEqual(["README.md"]);
  const file = await cli(["init", "README.md"], { cwd: folder.path });
  expect(file.stderr).toContain("README.md is not a folder");
});

test("init works in the current folder, and lists the created files as JSON", async () => {
  using folder = new TemporaryFolder();
  const [made] = jsonLines((await cli(["init", "--json"], { cwd: folder.path })).stdout);
  expect(made).toEqual({ folder: expect.any(String), files: FILES, next: ["npm install", "npm test", "npm run dev"] });
  const manifest = JSON.parse(readFileSync(folder.file("package.json"), "utf8")) as { name: string };
  expect(manifest.name).toMatch(/^reprise-cli-test-[a-z0-9]+$/);
});
