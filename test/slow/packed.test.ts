// What is published: the packed package, unpacked into a project of its own, by its doors.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { nodeProblem } from "../../src/base/node-version.ts";
import { installPackage, linkPackage, packPackage, runCommand, TSC, type Ended } from "./packed-package.ts";

const folder = mkdtempSync(join(tmpdir(), "reprise-packed-"));
const project = join(folder, "project");
let tarball = "";

function node(...args: readonly string[]): Promise<Ended> {
  return runCommand(process.execPath, args, project);
}

beforeAll(async () => {
  const packed = await packPackage(folder);
  tarball = packed.tarball;
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module", private: true }));
  installPackage(project, packed.unpacked);
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the package contains code, types and documents; no sources, no tests, no source maps, no simulation", () => {
  const files = readdirSync(join(folder, "package"), { recursive: true, encoding: "utf8" });
  expect(readdirSync(join(folder, "package")).toSorted()).toEqual(
    [
      "CHANGELOG.md",
      "LICENSE",
      "README.md",
      "SKILL.md",
      "deploy",
      "dist",
      "docs",
      "llms.txt",
      "package.json",
    ].toSorted(),
  );
  expect(files.filter((name) => /\.test\.|(?<!\.d)\.ts$|\.map$|simulation\//.test(name))).toEqual([]);
  expect(files).toContain(join("docs", "guides", "graphs.md"));
});

test("the package is at most 2.4 MB packed and 8 MB unpacked: with its dependencies, 8.5 MB", () => {
  expect(statSync(tarball).size).toBeLessThanOrEqual(2_400_000);
  const files = readdirSync(join(folder, "package"), { recursive: true, withFileTypes: true });
  const bytes = files
    .filter((file) => file.isFile())
    .reduce((sum, file) => sum + statSync(join(file.parentPath, file.name)).size, 0);
  expect(bytes).toBeLessThanOrEqual(8_000_000);
});

const DOORS = ["", "/testing", "/sqlite", "/postgres", "/mysql", "/checkpoints", "/describe", "/server"];
const TOO_OLD = /^NODE_TOO_OLD: reprise needs Node 24\.15 or newer; this is \d+\.\d+\.\d+\.\n$/;
const openDoor = (door: string): string =>
  `import("reprise${door}").then(() => console.log("opened"), (error) => console.log(error.code + ": " + error.message));`;

test("on a process that says it is Node 22, every door answers with the version that is needed", async () => {
  const old = 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "22.11.0" } });';
  for (const door of DOORS)
    expect([door, (await node("--eval", `${old} ${openDoor(door)}`)).output]).toEqual([
      door,
      expect.stringMatching(TOO_OLD),
    ]);
  expect((await node("--eval", openDoor(""))).output).toBe("opened\n");
});

/** The `node` of the shell that started the tests may be older than the one that runs them (CONTRIBUTING.md). */
const oldNode = (process.env["PATH"] ?? "")
  .split(delimiter)
  .map((folder) => join(folder, "node"))
  .find((path) => {
    const version = spawnSync(path, ["--version"], { encoding: "utf8" }).stdout ?? "";
    return /^v\d/.test(version) && nodeProblem(version.trim().slice(1)) !== undefined;
  });

test.skipIf(oldNode === undefined)(
  "on an older Node of the PATH, every door and the command line answer with the version that is needed",
  async () => {
    for (const door of DOORS)
      expect([door, (await runCommand(oldNode!, ["--eval", openDoor(door)], project)).output]).toEqual([
        door,
        expect.stringMatching(TOO_OLD),
      ]);
    const { code, output } = await runCommand(oldNode!, ["node_modules/reprise/dist/cli/main.js", "list"], project);
    expect([code, output]).toEqual([2, expect.stringMatching(/^reprise needs Node 24\.15 or newer; this is /)]);
  },
);

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
const output: string = await run.result();
await using client = await createClient({ store: "sqlite:echo.db", definitions: [echo] });
const info = await client.find("echo-1");
export const text = checkpointToJson(await run.checkpoint(1));
if (info?.status !== RunStatus.completed || describeGraph(echo).nodes.length !== 1) throw new Error("wrong");
console.log(output, await (await tried.start(echo, {})).result(), typeof lint);
`;

test(
  "without LangGraph every other door opens, runs a graph and has its types; that one says what is missing",
  { timeout: 300_000 },
  async () => {
    writeFileSync(join(project, "program.ts"), PROGRAM);
    expect(await node("program.ts")).toEqual({ code: 0, output: "0 1 2 0 1 2 object\n" });
    const shown = await node("node_modules/reprise/dist/cli/main.js", "show", "echo-1", "--store", "sqlite:echo.db");
    expect(shown.output).toContain("completed");
    // No types but the package's own and Node's: nothing of it needs what is not installed.
    linkPackage(project, "@types/node");
    linkPackage(project, "undici-types");
    const options = {
      module: "nodenext",
      target: "esnext",
      strict: true,
      declaration: true,
      outDir: "built",
      types: ["node"],
    };
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["program.ts"] }));
    expect(await node(TSC, "-p", ".")).toEqual({ code: 0, output: "" });
    const { code, output } = await node("--input-type=module", "-e", `await import("reprise/langgraph")`);
    expect(code).toBe(1);
    expect(output).toMatch(
      /Cannot find package '@langchain\/langgraph-checkpoint' imported from \S*reprise\S*langgraph/,
    );
    const agent = await node("--input-type=module", "-e", `await import("reprise/a2a")`);
    expect(agent.output).toMatch(/Cannot find package '@a2a-js\/sdk' imported from \S*reprise\S*a2a/);
    const model = await node("--input-type=module", "-e", `await import("reprise/ai")`);
    expect(model.output).toMatch(/Cannot find package 'ai' imported from \S*reprise\S*ai/);
    const openai = await node("--input-type=module", "-e", `await import("reprise/ai/openai")`);
    expect(openai.output).toMatch(/Cannot find package '@openai\/agents' imported from \S*reprise\S*openai/);
  },
);

test("with LangGraph its door opens, for import and for require", { timeout: 300_000 }, async () => {
  for (const name of ["@langchain/langgraph-checkpoint", "@langchain/core"]) linkPackage(project, name);
  const imported = await node(
    "--input-type=module",
    "-e",
    `console.log(Object.keys(await import("reprise/langgraph")))`,
  );
  expect(imported).toEqual({ code: 0, output: "[ 'RepriseSaver' ]\n" });
  const required = await node("--input-type=commonjs", "-e", `console.log(Object.keys(require("reprise/langgraph")))`);
  expect(required).toEqual({ code: 0, output: "[ 'RepriseSaver' ]\n" });
});
