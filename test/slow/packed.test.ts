// What is published: the packed package, unpacked into a project of its own, by its doors.

import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "reprise-packed-"));
const project = join(folder, "project");

async function run(
  command: string,
  args: readonly string[],
  cwd: string,
): Promise<{ code: number | null; said: string }> {
  const child = spawn(command, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  const exited = once(child, "exit");
  const said = (await Promise.all([text(child.stdout), text(child.stderr)])).join("");
  const [code] = (await exited) as [number | null];
  return { code, said };
}

async function succeed(command: string, args: readonly string[], cwd: string): Promise<string> {
  const { code, said } = await run(command, args, cwd);
  expect(code, `${command} ${args.join(" ")}: ${said}`).toBe(0);
  return said;
}

function node(...args: readonly string[]): Promise<{ code: number | null; said: string }> {
  return run(process.execPath, args, project);
}

const tsc = join(ROOT, "node_modules/typescript/bin/tsc");

/** Makes a package of the repository resolvable from the project, as an installer would. */
function install(name: string): void {
  const to = join(project, "node_modules", name);
  mkdirSync(dirname(to), { recursive: true });
  symlinkSync(join(ROOT, "node_modules", name), to, "dir");
}

beforeAll(async () => {
  // A copy is built and packed: the repository's own dist may be in use.
  const copy = join(folder, "copy");
  mkdirSync(copy);
  for (const name of readdirSync(ROOT))
    if (!/^(?:node_modules|dist|test|bench|examples|\..*)$/.test(name))
      cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"), "dir");
  await succeed(process.execPath, [tsc, "-p", "tsconfig.build.json"], copy);
  await succeed("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], copy);
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz"))!;
  await succeed("tar", ["xzf", tarball], folder);
  mkdirSync(join(project, "node_modules"), { recursive: true });
  cpSync(join(folder, "package"), join(project, "node_modules/reprise"), { recursive: true });
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module", private: true }));
  const manifest = readFileSync(join(folder, "package/package.json"), "utf8");
  for (const name of Object.keys((JSON.parse(manifest) as { dependencies: object }).dependencies)) install(name);
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the package contains code, types and documents; no sources, no tests, no source maps, no simulation", () => {
  const files = readdirSync(join(folder, "package"), { recursive: true, encoding: "utf8" });
  expect(readdirSync(join(folder, "package")).toSorted()).toEqual(
    ["CHANGELOG.md", "LICENSE", "README.md", "dist", "docs", "package.json"].toSorted(),
  );
  expect(files.filter((name) => /\.test\.|(?<!\.d)\.ts$|\.map$|simulation\//.test(name))).toEqual([]);
  expect(files).toContain(join("docs", "guides", "graphs.md"));
});

test("the package is at most 1.2 MB packed and 5 MB unpacked", () => {
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz"))!;
  expect(statSync(join(folder, tarball)).size).toBeLessThanOrEqual(1_200_000);
  const files = readdirSync(join(folder, "package"), { recursive: true, withFileTypes: true });
  const bytes = files
    .filter((file) => file.isFile())
    .reduce((sum, file) => sum + statSync(join(file.parentPath, file.name)).size, 0);
  expect(bytes).toBeLessThanOrEqual(5_000_000);
});

const PROGRAM = `
import { append, createClient, createEngine, END, graph, RunStatus, START } from "reprise";
import { createTestEngine } from "reprise/testing";
import { checkpointToJson } from "reprise/checkpoints";
import { describeGraph } from "reprise/describe";
import { sqlite } from "reprise/sqlite";
import * as lint from "reprise/lint";
export const echo = graph("echo", { state: { words: append<string>() }, output: (state): string => state.words.join(" ") })
  .node("say", async (_ctx, state) => ({ words: [String(state.words.length)] }))
  .edge(START, "say")
  .edge("say", END, (state) => state.words.length >= 3)
  .edge("say", "say");
await using engine = await createEngine({ store: sqlite("echo.db"), definitions: [echo] });
await using tried = await createTestEngine({ definitions: [echo] });
export const run = await engine.start(echo, {}, { id: "echo-1" });
// A library that publishes its own types can name all of these.
export const steps = () => run.checkpoints();
export const fork = () => run.fork({ step: 1 });
export const parts = () => Promise.all([run.diff(run), run.replay(), run.scheduler(), run.info(), run.stateAt(1)]);
export const start = (words: string[]) => engine.start(echo, { words });
const said: string = await run.result();
await using client = await createClient({ store: "sqlite:echo.db", definitions: [echo] });
const info = await client.find("echo-1");
export const text = checkpointToJson(await run.checkpoint(1));
if (info?.status !== RunStatus.completed || describeGraph(echo).nodes.length !== 1) throw new Error("wrong");
console.log(said, await (await tried.start(echo, {})).result(), typeof lint);
`;

test(
  "without LangGraph every other door opens, runs a graph and has its types; that one says what is missing",
  { timeout: 300_000 },
  async () => {
    writeFileSync(join(project, "program.ts"), PROGRAM);
    expect(await node("program.ts")).toEqual({ code: 0, said: "0 1 2 0 1 2 object\n" });
    const shown = await node("node_modules/reprise/dist/cli/main.js", "show", "echo-1", "--store", "sqlite:echo.db");
    expect(shown.said).toContain("completed");
    // No types but the package's own and Node's: nothing of it needs what is not installed.
    install("@types/node");
    install("undici-types");
    const options = {
      module: "nodenext",
      target: "esnext",
      strict: true,
      declaration: true,
      outDir: "built",
      types: ["node"],
    };
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["program.ts"] }));
    expect(await node(tsc, "-p", ".")).toEqual({ code: 0, said: "" });
    const { code, said } = await node("--input-type=module", "-e", `await import("reprise/langgraph")`);
    expect(code).toBe(1);
    expect(said).toMatch(/Cannot find package '@langchain\/langgraph-checkpoint' imported from \S*reprise\S*langgraph/);
  },
);

test("with LangGraph its door opens, for import and for require", { timeout: 300_000 }, async () => {
  for (const name of ["@langchain/langgraph-checkpoint", "@langchain/core"]) install(name);
  const imported = await node(
    "--input-type=module",
    "-e",
    `console.log(Object.keys(await import("reprise/langgraph")))`,
  );
  expect(imported).toEqual({ code: 0, said: "[ 'RepriseSaver' ]\n" });
  const required = await node("--input-type=commonjs", "-e", `console.log(Object.keys(require("reprise/langgraph")))`);
  expect(required).toEqual({ code: 0, said: "[ 'RepriseSaver' ]\n" });
});
