// The lint rule, loaded by the installed linter as users load it.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "reprise-lint-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const config = join(folder, "oxlintrc.json");
writeFileSync(
  config,
  JSON.stringify({
    jsPlugins: [join(ROOT, "src/lint.ts")],
    categories: { correctness: "off" },
    rules: { "reprise/no-nondeterminism": "error" },
  }),
);

/** The messages of the rule, with their lines. */
function lint(code: string): { readonly line: number; readonly message: string }[] {
  const file = join(folder, "code.ts");
  writeFileSync(file, code);
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [join(ROOT, "node_modules/oxlint/bin/oxlint"), "-c", config, "--format=json", file],
    { cwd: folder, encoding: "utf8" },
  );
  const report = JSON.parse(stdout || `{"failed":${JSON.stringify(stderr)}}`) as {
    failed?: string;
    diagnostics?: { message: string; code: string; labels: { span: { line: number } }[] }[];
  };
  if (report.diagnostics === undefined) throw new Error(report.failed ?? stdout);
  return report.diagnostics.map(({ message, labels }) => ({ line: labels[0]?.span.line ?? 0, message }));
}

const FOUND: readonly (readonly [code: string, says: string])[] = [
  [
    "const x = Date.now();",
    "Date.now() is not deterministic in workflow code: it returns a different value on replay. Use ctx.now().",
  ],
  ["const x = new Date();", "Use ctx.now()."],
  ["const x = performance.now();", "Use ctx.now()."],
  ["const x = Math.random();", "Use ctx.random()."],
  ["const x = crypto.randomUUID();", "Use ctx.uuid()."],
  ["setTimeout(() => {}, 5);", "Use ctx.sleep()."],
  ["const x = await fetch('x');", "Use ctx.run()"],
  ["const x = process.env['HOME'];", "process.env"],
  ["const x = process.env.HOME;", "process.env"],
  ["const x = await import('./x.js');", "import()"],
  ["ctx.sleep('1 day');", "ctx.sleep() is not awaited."],
  ["ctx.run('x', () => 1);", "ctx.run() is not awaited."],
  ["const inner = async () => { if (true) return [1].map(() => Date.now()); };", "Date.now()"],
];
const FINE: readonly string[] = [
  "const x = new Date(5); const y = ctx.now();",
  "await ctx.run('x', () => Date.now());",
  "await ctx.run('x', { a: 1 }, async (op, input) => { const r = await fetch('x'); return r.status; });",
  "await ctx.tx('x', db, () => Math.random());",
  "await ctx.sleep(5); void ctx.sleep(5); const p = ctx.task(t); ctx.child(other); ctx.log.info('x');",
  "const Clock = { now: () => 5 }; Clock.now(); other.sleep(1);",
];

const inWorkflow = (line: string): string => `workflow("w", async (ctx) => {\n  ${line}\n});\n`;

test("the rule reports calls that are not deterministic in workflow code, with the line and the replacement", () => {
  const code = FOUND.map(([line]) => inWorkflow(line)).join("");
  const problems = lint(code);
  expect(problems.map(({ line }) => line)).toEqual(FOUND.map((_, index) => index * 3 + 2));
  FOUND.forEach(([line, says], index) => expect(problems[index]?.message, line).toContain(says));
});

test("the rule ignores steps, tasks and code outside workflows", () => {
  const outside = FOUND.map(([line]) => line.replace(/^const x/, "var x"))
    .filter((line) => !line.includes("await"))
    .join("\n");
  const code = [
    ...FINE.map(inWorkflow),
    `const t = task("t", async (ctx) => { const now = Date.now(); ctx.sleep(1); return fetch("x"); });`,
    `function helper(ctx) { ${outside} }`,
    `workflow("w", { version: 2 }, async (ctx) => { await ctx.task(t, 1); });`,
  ].join("\n");
  expect(lint(code)).toEqual([]);
});

test("the rule also checks a workflow with options", () => {
  expect(lint(`workflow("w", { version: 2 }, async (ctx, input) => Date.now());`)).toHaveLength(1);
});
