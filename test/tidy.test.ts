// The shape of the code, checked by a test. Each rule is a pure function over files, tried on made-up files first, so
// that a rule which can no longer fail is noticed.

import { posix } from "node:path";
import { expect, test } from "vitest";
import { codeOf, importsOf, isTest, only, readRepository, type Files } from "./tidy/files.ts";
import { findBadTags } from "./tidy/tags.ts";
import { findPrivateNames, findPrivateProse } from "./tidy/words.ts";

function targetOf(path: string, specifier: string): string {
  return posix.join(posix.dirname(path), specifier);
}

test("comments and strings are told from code", () => {
  const source =
    "const a = 'x // y'; // Date.now()\n/* b\n */ const c = `t ${Date.now()} u`; const d = /[\"']/; e('Math.random')";
  const code = codeOf(source);
  expect(code.split("\n")).toHaveLength(3);
  expect(code).not.toMatch(/Math\.random|x \/\//);
  expect(code.match(/Date\.now/g)).toHaveLength(1);
  expect(code).toContain("e('");
});

test("every form of import is seen, and none in comments", () => {
  const source = [
    'import { a,\n  b } from "./a.ts";',
    'import type { T } from "./t.ts";',
    'import "./side.ts";',
    'export { c } from "./c.ts";',
    'export * from "./d.ts";',
    'const e = await import("./e.ts");',
    'new Worker(new URL("./f.ts", import.meta.url));',
    '// import "./no.ts";',
    'const text = "import x from";',
    "const file = `\nimport './template.ts';\n`;",
  ].join("\n");
  expect(importsOf(source).sort()).toEqual(["./a.ts", "./c.ts", "./d.ts", "./e.ts", "./f.ts", "./side.ts", "./t.ts"]);
});

// ── rooms: imports go one way ──

// A room may use every room on a later line, and none on its own line.
const FLOORS: readonly (readonly string[])[] = [
  ["cli", "a2a"],
  ["server", "http-client", "testing", "langgraph", "ai", "opentelemetry"],
  ["federation"],
  ["engine"],
  ["worker"],
  ["process"],
  ["receipts", "picture"],
  ["workflow", "graph", "flow", "stores", "explain", "contract", "http"],
  ["kernel", "carriers"],
  ["base"],
];

/** Rooms of one floor that stand on a neighbour (docs/decisions/0033). */
const NEIGHBOURS: ReadonlyMap<string, readonly string[]> = new Map([
  ["graph", ["workflow"]],
  ["flow", ["workflow"]],
]);

/** `undefined` for files that lie directly in src: they are doors, and may open every room. */
function roomOf(path: string): string | undefined {
  const parts = path.split("/");
  return parts.length > 2 ? parts[1] : undefined;
}

function floorOf(room: string): number {
  return FLOORS.findIndex((floor) => floor.includes(room));
}

function findBadImports(files: Files): string[] {
  const problems: string[] = [];
  for (const [path, source] of files) {
    const room = roomOf(path);
    if (room !== undefined && floorOf(room) === -1) problems.push(`${path}: the room ${room} is not in the plan`);
    for (const specifier of importsOf(source)) {
      if (!specifier.startsWith(".")) {
        if (/^reprise(?:\/|$)/.test(specifier) && !isTest(path))
          problems.push(`${path}: imports itself as ${specifier}`);
        continue;
      }
      if (!/\.(?:ts|json)$/.test(specifier)) problems.push(`${path}: ${specifier} must be written with .ts`);
      const target = targetOf(path, specifier);
      const targetRoom = roomOf(target);
      if (!target.startsWith("src/")) {
        if (!isTest(path)) problems.push(`${path}: ${specifier} lies outside src`);
      } else if (targetRoom === undefined) {
        if (!isTest(path) && room !== undefined)
          problems.push(`${path}: ${specifier} is a door for users, not for rooms`);
      } else if (targetRoom !== room) {
        if (!isEntrance(target)) problems.push(`${path}: enter ${targetRoom} by its index.ts, not by ${specifier}`);
        // A test may stand on anything; a room may not.
        const isAllowed = room !== undefined && NEIGHBOURS.get(room)?.includes(targetRoom) === true;
        const goesDown = room === undefined || isTest(path) || isAllowed || floorOf(targetRoom) > floorOf(room);
        if (!goesDown) problems.push(`${path}: ${room} must not know ${targetRoom}`);
      }
    }
  }
  return problems;
}

function isEntrance(path: string): boolean {
  // The second entrance of base is what a browser can load (docs/decisions/0203).
  return /^src\/base\/portable\.ts$|^src\/\w[\w-]*\/index\.ts$|^src\/stores\/\w[\w-]*\/index\.ts$/.test(path);
}

test("imports that go up, sideways, past an entrance or out of the plan are found", () => {
  const bad = (path: string, specifier: string): string[] =>
    findBadImports(new Map([[path, `import { x } from "${specifier}";`]]));
  expect(bad("src/kernel/a.ts", "../base/index.ts")).toEqual([]);
  expect(bad("src/kernel/a.ts", "./b.ts")).toEqual([]);
  expect(bad("src/index.ts", "./engine/index.ts")).toEqual([]);
  expect(bad("src/engine/a.ts", "../stores/sqlite/index.ts")).toEqual([]);
  expect(bad("src/stores/sqlite/a.ts", "../sql/b.ts")).toEqual([]);
  expect(bad("src/stores/sqlite/a.test.ts", "../../testing/index.ts")).toEqual([]);
  expect(bad("src/kernel/a.ts", "../base/codec.ts")).toHaveLength(1);
  expect(bad("src/base/a.ts", "../kernel/index.ts")).toHaveLength(1);
  expect(bad("src/graph/a.ts", "../workflow/index.ts")).toEqual([]);
  expect(bad("src/graph/a.ts", "../workflow/execution.ts")).toHaveLength(1);
  expect(bad("src/workflow/a.ts", "../graph/index.ts")).toHaveLength(1);
  expect(bad("src/graph/a.ts", "../stores/index.ts")).toHaveLength(1);
  expect(bad("src/kernel/a.ts", "../index.ts")).toHaveLength(1);
  expect(bad("src/kernel/a.ts", "../base/index")).toHaveLength(2);
  expect(bad("src/kernel/a.ts", "../../test/x.ts")).toHaveLength(1);
  expect(bad("src/kernel/a.ts", "reprise")).toHaveLength(1);
  expect(bad("src/helpers/a.ts", "./b.ts")).toHaveLength(1);
});

// ── packages: only what package.json declares ──

interface Manifest {
  readonly dependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
}

function findUndeclared(files: Files, manifest: Manifest): string[] {
  const declared = new Set([
    ...Object.keys(manifest.dependencies ?? {}),
    ...Object.keys(manifest.peerDependencies ?? {}),
  ]);
  const problems: string[] = [];
  for (const [path, source] of files) {
    if (isTest(path)) continue;
    for (const specifier of importsOf(source)) {
      if (/^(?:\.|node:)/.test(specifier)) continue;
      const name = specifier
        .split("/")
        .slice(0, specifier.startsWith("@") ? 2 : 1)
        .join("/");
      if (!declared.has(name)) problems.push(`${path}: ${name} is not a dependency of the published package`);
    }
  }
  return problems;
}

test("a package that users would not get is found", () => {
  const files = new Map([
    ["src/cli/a.ts", 'import x from "@a/b/c"; \nimport y from "node:fs";\nimport z from "zod/v4";'],
  ]);
  expect(findUndeclared(files, { dependencies: { "@a/b": "1" } })).toHaveLength(1);
  expect(findUndeclared(files, { dependencies: { "@a/b": "1" }, peerDependencies: { zod: "4" } })).toEqual([]);
});

// ── the machine: only through the ports ──

const AMBIENT =
  /\bDate\.now\b|\bnew Date\(\s*\)|(?<!new )(?<![.\w])Date\(|\bMath\.random\b|(?<![.\w])set(?:Timeout|Interval|Immediate)\b|\btimers\/promises\b|\bperformance\.(?:now|timeOrigin)\b|\brandom(?:UUID|UUIDv7|Bytes|Int|Fill|FillSync)\b|\bgetRandomValues\b|\bprocess\.(?:hrtime|uptime)\b|\bAbortSignal\.timeout\b/g;

/** Files that touch the machine for a reason. Everything else is given ports. */
const MAY_TOUCH_THE_MACHINE: Readonly<Record<string, string>> = {
  "src/base/system.ts": "it is the port",
  "src/workflow/guard.ts": "it stands in front of the machine",
  "src/http-client/web-ports.ts": "it is the port of a browser",
  "src/lint.ts": "it names what others must not touch",
};

function findAmbient(files: Files, exempt: Readonly<Record<string, string>>): string[] {
  const problems: string[] = [];
  for (const [path, source] of files) {
    if (isTest(path) || Object.hasOwn(exempt, path)) continue;
    for (const [index, line] of codeOf(source).split("\n").entries()) {
      for (const match of line.matchAll(AMBIENT)) problems.push(`${path}:${index + 1}: ${match[0]} instead of a port`);
    }
    if (importsOf(source).some((specifier) => /^(?:node:)?timers/.test(specifier)))
      problems.push(`${path}: imports timers`);
  }
  return problems;
}

test("ambient time, timers and randomness are found, and look-alikes are not", () => {
  const found = (line: string): number => findAmbient(new Map([["src/kernel/a.ts", line]]), {}).length;
  const touching = [
    "const a = Date.now();",
    "const a = new Date();",
    "const a = Date();",
    "Math.random()",
    "setTimeout(f, 1)",
    "setImmediate(f)",
    "setInterval(f, 1)",
    "globalThis.performance.now()",
    "crypto.randomUUID()",
    "import { randomBytes } from 'node:crypto';",
    "process.hrtime.bigint()",
    "AbortSignal.timeout(5)",
    "const t = `${Date.now()}`;",
    'import { setTimeout as wait } from "node:timers/promises";',
  ];
  for (const line of touching) expect(found(line), line).toBeGreaterThan(0);
  for (const line of [
    "new Date(ms)",
    "// Date.now()",
    "'Date.now()'",
    "isDate(x)",
    "timers.setTimeoutMs",
    "types.isDate(x)",
  ]) {
    expect(found(line), line).toBe(0);
  }
  expect(findAmbient(new Map([["src/base/system.ts", "Date.now()"]]), MAY_TOUCH_THE_MACHINE)).toEqual([]);
});

// ── nothing unused ──

const DOORS =
  /^src\/[\w-]+\.ts$|^src\/(?:testing|langgraph|a2a|ai|ai\/openai|server|http-client|opentelemetry)\/index\.ts$|^src\/cli\/main\.ts$|^src\/stores\/[\w-]+\/index\.ts$/;

/** Where "reprise" and its subpaths lead inside this repository. */
const OWN_NAMES: Readonly<Record<string, string>> = {
  reprise: "src/index.ts",
  "reprise/testing": "src/testing/index.ts",
  "reprise/langgraph": "src/langgraph/index.ts",
  "reprise/ai": "src/ai/index.ts",
  "reprise/ai/openai": "src/ai/openai/index.ts",
  "reprise/a2a": "src/a2a/index.ts",
  "reprise/sqlite": "src/stores/sqlite/index.ts",
  "reprise/checkpoints": "src/checkpoints.ts",
  "reprise/describe": "src/describe.ts",
  "reprise/federation": "src/federation.ts",
  "reprise/lint": "src/lint.ts",
  "reprise/server": "src/server/index.ts",
  "reprise/client": "src/http-client/index.ts",
  "reprise/opentelemetry": "src/opentelemetry/index.ts",
};

function findUnreachable(files: Files): string[] {
  const reached = new Set<string>();
  const visit = (path: string): void => {
    const source = files.get(path);
    if (source === undefined || reached.has(path)) return;
    reached.add(path);
    for (const specifier of importsOf(source)) {
      visit(specifier.startsWith(".") ? targetOf(path, specifier) : (OWN_NAMES[specifier] ?? ""));
    }
  };
  for (const path of files.keys()) if (DOORS.test(path) || isTest(path)) visit(path);
  return [...files.keys()].filter((path) => path.startsWith("src/") && !reached.has(path));
}

test("a file that neither a door nor a test leads to is found", () => {
  const files = new Map([
    ["src/index.ts", 'export { a } from "./engine/index.ts";'],
    ["src/engine/index.ts", 'export { a } from "./a.ts";'],
    ["src/engine/a.ts", ""],
    ["src/engine/b.ts", ""],
    ["src/engine/c.ts", ""],
    ["src/engine/c.test.ts", 'import "./c.ts";'],
  ]);
  expect(findUnreachable(files)).toEqual(["src/engine/b.ts"]);
});

// ── leftovers ──

const MAX_LINES = 500;
// Spelled apart, so that this file does not find itself.
const MARKER = new RegExp(`\\b(?:${["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"].join("|")})\\b`);

function findLeftovers(files: Files): string[] {
  const problems: string[] = [];
  for (const [path, source] of files) {
    const inSource = path.startsWith("src/");
    const lines = source.split("\n");
    const code = codeOf(source).split("\n");
    if (inSource && lines.length > MAX_LINES) problems.push(`${path}: ${lines.length} lines, ${MAX_LINES} at most`);
    for (const [index, line] of lines.entries()) {
      const at = `${path}:${index + 1}`;
      const codeLine = code[index] ?? "";
      if (MARKER.test(line)) problems.push(`${at}: a note to oneself`);
      if (/\b(?:test|it|describe)\.only\(/.test(codeLine)) problems.push(`${at}: a test that runs alone`);
      // A skip says why, beside it or on the line above.
      const hasReason = /\/\/ skipped: \S/.test(`${lines[index - 1] ?? ""}\n${line}`);
      if (/\b(?:test|it|describe)\.skip\(/.test(codeLine) && !hasReason)
        problems.push(`${at}: a skip without "// skipped: reason"`);
      if (inSource && !path.startsWith("src/cli/") && /\bconsole\.\w+\(/.test(codeLine))
        problems.push(`${at}: prints to the console`);
    }
  }
  return problems;
}

test("leftovers are found", () => {
  const found = (path: string, source: string): number => findLeftovers(new Map([[path, source]])).length;
  expect(found("src/base/a.ts", `// ${"TO" + "DO"}: later`)).toBe(1);
  expect(found("test/a.test.ts", 'test.only("x", f);')).toBe(1);
  expect(found("test/a.test.ts", 'test.skip("x", f);')).toBe(1);
  expect(found("test/a.test.ts", '// skipped: needs a server\ntest.skip("x", f);')).toBe(0);
  expect(found("src/base/a.ts", "console.log(1);")).toBe(1);
  expect(found("src/cli/a.ts", "console.log(1);")).toBe(0);
  expect(found("examples/a.ts", "console.log(1);")).toBe(0);
  expect(found("src/base/a.ts", "\n".repeat(MAX_LINES))).toBe(1);
  expect(found("src/base/a.ts", "\n".repeat(MAX_LINES - 1))).toBe(0);
});

// ── nothing of the machine it was written on ──

// Spelled apart, as above.
const MACHINE_PATH = new RegExp(
  `(?:^|[\\s"'\`(=:<])/(?:${["wo" + "rk", "ro" + "ot", "ho" + "me/\\w+", "Us" + "ers/\\w+"].join("|")})/`,
);
const REGISTRY = new RegExp(
  `^\\s*"resol${"ved"}":|^\\s*regis${"try"}\\s*=|https?://[\\w.-]*(?:regis${"try"}|verda${"ccio"}|artifac${"tory"})[\\w.-]*`,
);

function findMachineTraces(files: Files): string[] {
  const problems: string[] = [];
  for (const [path, source] of files) {
    for (const [index, line] of source.split("\n").entries()) {
      if (MACHINE_PATH.test(line)) problems.push(`${path}:${index + 1}: a path of one machine`);
      if (REGISTRY.test(line)) problems.push(`${path}:${index + 1}: an address of a package registry`);
    }
  }
  return problems;
}

test("paths of a machine and addresses of registries are found", () => {
  const found = (line: string): number => findMachineTraces(new Map([["a.json", line]])).length;
  expect(found(`see /wo${"rk"}/main/x`)).toBe(1);
  expect(found(`"/ho${"me"}/me/x"`)).toBe(1);
  expect(found(`      "resol${"ved"}": "x",`)).toBe(1);
  expect(found(`regis${"try"}=http://localhost:4873`)).toBe(1);
  expect(found(`https://regis${"try"}.npmjs.org/x`)).toBe(1);
  expect(found("docs/work/x and ./root/y")).toBe(0);
});

// ── invariants: a tag is defined once, where its name says, and cited by that name ──

test("tags that are defined twice, elsewhere or nowhere are found", () => {
  const found = (files: Record<string, string>): string[] => findBadTags(new Map(Object.entries(files)));
  const pump = "// Pump: group commit.\n//\n// pump.P1. One batch at a time.\n// pump.P2. No timer.\nrun(); // pump.P1";
  expect(found({ "src/worker/pump.ts": pump })).toEqual([]);
  expect(found({ "src/worker/pump.ts": pump, "src/worker/a.ts": "// see pump.P3" })).toHaveLength(1);
  expect(found({ "src/worker/a.ts": pump })).toHaveLength(2);
  expect(found({ "src/worker/pump.ts": `${pump}\n// pump.P1. Once more.` })).toHaveLength(1);
  expect(found({ "src/graph/definition.ts": "// graph.D1. Names are unique." })).toEqual([]);
  expect(found({ "src/worker/a.ts": "run(); // P3" })).toHaveLength(1);
  expect(found({ "src/worker/a.ts": "// As P3 says, nothing waits." })).toHaveLength(1);
  expect(found({ "src/worker/a.ts": "// A4 paper, and UTF8 text in V8" })).toHaveLength(1);
  expect(found({ "docs/rules.md": "**rules.A5.** Time is the store's.", "src/a.ts": "// rules.A5" })).toEqual([]);
  expect(found({ "ARCHITECTURE.md": "as pump.P9 says" })).toHaveLength(1);
});

// ── the language: names and prose of the field ──

test("names that only this project uses are found, and words of the field are not", () => {
  const names = (path: string, source: string): string[] => findPrivateNames(new Map([[path, source]]));
  expect(names("src/worker/look-out.ts", "")).toHaveLength(1);
  expect(names("src/stores/remote/words-runs.ts", "")).toHaveLength(1);
  expect(names("src/a.ts", "class Solitude {}\nconst takeNews = 1;\ninterface Waiting {}")).toHaveLength(3);
  expect(names("src/a.ts", "const line = 1; const outlook = lookup(memory);")).toEqual([]);
});

test("sentences without an actor are found", () => {
  const prose = (source: string): string[] => findPrivateProse(new Map([["docs/a.md", source]]));
  expect(prose("Whoever asks is told.\nThe run goes on.\nThe timer starts anew.")).toHaveLength(4);
  expect(prose("The worker renews its lease.")).toEqual([]);
});

// ── the repository itself ──

const repository = readRepository();
const sources = only(repository, /^src\/.*\.ts$/);
const code = only(repository, /^(?:src|test|bench|examples|scripts)\/.*\.(?:ts|mjs)$/);

test("imports between rooms go one way and through their entrances", () => {
  expect(findBadImports(sources)).toEqual([]);
});

test("the published code imports only what the package declares", () => {
  expect(findUndeclared(sources, JSON.parse(repository.get("package.json")!) as Manifest)).toEqual([]);
});

test("time, timers and randomness are touched in one place only", () => {
  expect(findAmbient(sources, MAY_TOUCH_THE_MACHINE)).toEqual([]);
});

// skipped: only until src/index.ts, the main door, is written.
test("every file in src is reached from a door or a test", () => {
  expect(findUnreachable(code)).toEqual([]);
});

test("nothing is left over", () => {
  expect(findLeftovers(code)).toEqual([]);
});

test("nothing tells on which machine it was made", () => {
  expect(findMachineTraces(repository)).toEqual([]);
});

test("every invariant has one tag, defined in the file that its name says", () => {
  expect(findBadTags(only(repository, /^(?:src|test)\/.*\.ts$|^(?:ARCHITECTURE|docs\/rules)\.md$/))).toEqual([]);
});

const published = only(repository, /^src\/.*\.ts$|^(?:README|ARCHITECTURE|CONTRIBUTING)\.md$|^(?:docs|examples)\//);

test("names are words of the field", () => {
  expect(findPrivateNames(only(repository, /^(?:src|test|bench|examples)\/.*\.ts$/))).toEqual([]);
});

test("every sentence of the sources and of the public documents names its actor", () => {
  expect(findPrivateProse(published)).toEqual([]);
});
