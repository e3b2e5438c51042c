// Every example in the documents and in the sources compiles; those in the documents run and print what they say.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { blocksIn, documentsOf, examplesIn, filesUnder, publicNames, type CodeBlock } from "./code-blocks.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const documented = documentsOf(ROOT).flatMap((path) => blocksIn(ROOT, path));
const sources = filesUnder(ROOT, "src", ".ts").filter((path) => !path.endsWith(".test.ts"));
const names = publicNames(ROOT);
const examples = sources.flatMap((path) => examplesIn(ROOT, path)).filter(({ name }) => names.has(name));
const inSources = examples.flatMap(({ blocks }) => blocks);
const all = [...documented, ...inSources];

// Inside the repository, so that "reprise" means its sources; git and the other tests look past this folder.
const folder = join(ROOT, ".reprise", `examples-${process.pid}`);
const outside = mkdtempSync(join(tmpdir(), "reprise-docs-test-"));

function fileOf(block: CodeBlock): string {
  return `${block.place.replace(/[^\w]+/g, "-")}.ts`;
}

beforeAll(() => {
  mkdirSync(folder, { recursive: true });
  // Without an import or export a block would be a script, and its names everybody's.
  for (const block of all) writeFileSync(join(folder, fileOf(block)), `${block.code}\nexport {};\n`);
  const config = {
    extends: "../../tsconfig.json",
    compilerOptions: { noUnusedLocals: false, noUnusedParameters: false },
    include: ["*.ts"],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  rmSync(outside, { recursive: true, force: true });
});

async function node(
  args: readonly string[],
  cwd: string,
): Promise<{ code: number | null; said: string; stdout: string }> {
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...process.env, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = (await exited) as [number | null];
  return { code, said: stdout + stderr, stdout };
}

test("there are examples to check", () => {
  expect(documented.length).toBeGreaterThan(10);
  expect(inSources.length).toBeGreaterThan(5);
});

test("every example of a public name is fenced, so that it can be compiled", () => {
  const bare = examples.filter(({ blocks }) => blocks.length === 0);
  expect(bare.map(({ place }) => place)).toEqual([]);
});

test("every example compiles", async () => {
  const { bin } = JSON.parse(readFileSync(join(ROOT, "node_modules/typescript/package.json"), "utf8")) as {
    bin: { tsc: string };
  };
  const { said, code } = await node(
    [join(ROOT, "node_modules/typescript", bin.tsc), "-p", join(folder, "tsconfig.json")],
    ROOT,
  );
  const places = new Map(all.map((block) => [fileOf(block), block.place]));
  const problems = said.split("\n").filter((line) => line !== "");
  const named = problems.map((line) =>
    line.replace(/^\S*?([\w-]+\.ts)\(/, (whole, file: string) => `${places.get(file) ?? whole} (`),
  );
  expect(named).toEqual([]);
  expect(code).toBe(0);
});

describe("runs as pasted", () => {
  const programs = documented.filter(({ notRun }) => notRun === undefined);
  test.each(programs.map((block) => [block.place, block] as const))("%s", async (_place, block) => {
    const cwd = mkdtempSync(join(outside, "run-"));
    const { code, said, stdout } = await node(["--conditions=reprise-source", join(folder, fileOf(block))], cwd);
    expect(code, said).toBe(0);
    expect(stdout.split("\n").filter((line) => line !== "")).toEqual(block.prints);
  });
});
