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

test("the rule follows functions of the same file that a workflow calls, by their names", () => {
  const code = [
    `workflow("w", body);`,
    `workflow("v", { version: 2 }, other);`,
    `async function body(ctx, input) { await helper(ctx); return stamp(); }`,
    `const other = async (context) => { await input.map(each); context.sleep(5); };`,
    `function helper(c) { c.sleep(5); return deeper(c); }`,
    `const deeper = async (c) => { c.task(t); return Math.random(); };`,
    `const stamp = () => Date.now();`,
    `function each() { return new Date(); }`,
    `workflow("u", async (ctx) => { deeper(ctx); const inner = () => fetch("x"); return inner(); });`,
  ].join("\n");
  expect(lint(code).map(({ line, message }) => `${line} ${message.split(" ")[0]}`)).toEqual([
    "4 context.sleep()",
    "5 c.sleep()",
    "6 c.task()",
    "6 Math.random()",
    "7 Date.now()",
    "8 new",
    "9 deeper()",
    "9 fetch()",
  ]);
});

test("the rule leaves functions alone that only steps, tasks, an undo or other code use", () => {
  const code = [
    `const draw = () => Math.random();`,
    `async function load() { return fetch("x"); }`,
    `function release() { return Date.now(); }`,
    `const unused = () => Date.now();`,
    `export const outside = () => draw();`,
    `workflow("w", async (ctx) => {`,
    `  await ctx.run("draw", draw);`,
    `  await ctx.run("load", () => load());`,
    `  await ctx.task(t, 1, { undo: async () => release() });`,
    `  const step = () => Date.now();`,
    `  await ctx.run("step", step);`,
    `  const draw2 = (draw) => draw();`,
    `  draw2(() => 1);`,
    `  other.load(); other.deeper.release();`,
    `});`,
    `const t = task("t", load);`,
  ].join("\n");
  expect(lint(code)).toEqual([]);
});

test("functions that call each other are checked once", () => {
  const code = [
    `workflow("w", async (ctx) => odd(ctx, 3));`,
    `const odd = async (c, n) => (n === 0 ? Date.now() : even(c, n - 1));`,
    `async function even(c, n) { c.sleep(1); return n === 0 ? 0 : odd(c, n - 1); }`,
  ].join("\n");
  expect(lint(code).map(({ line }) => line)).toEqual([2, 3]);
  const inAnyOrder = [
    `const first = () => { second(); return Math.random(); };`,
    `const second = () => { first(); return Date.now(); };`,
    `workflow("w", async () => first());`,
  ].join("\n");
  expect(lint(inAnyOrder).map(({ line }) => line)).toEqual([1, 2]);
});
