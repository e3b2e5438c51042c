// Usage errors: one line on standard error, the next command, the exit code of the family, and no file created.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { createEngine } from "reprise";
import { cli, command, DEFINITIONS, jsonLines, TemporaryFolder } from "./cli-process.ts";
import { charge, pay } from "./definitions.ts";

const BAD_USAGE: readonly (readonly [args: readonly string[], code: string, expected: RegExp])[] = [
  [["frobnicate"], "USAGE", /unknown command 'frobnicate'/],
  [["shw"], "USAGE", /unknown command 'shw' \(Did you mean show\?\)/],
  [["list", "--color"], "USAGE", /unknown option '--color'/],
  [["list", "prod/", "extra"], "USAGE", /too many arguments/],
  [["list", "prod/"], "BAD_OPTIONS", /There is no mirror "prod" in /],
  [["import"], "USAGE", /missing required argument 'file'/],
  [["pull", "prod", "order-7", "--last", "3"], "USAGE", /select runs by id, or with --last/],
  [["pull", "sqlite:a.db", "--as", "../prod"], "BAD_OPTIONS", /"\.\.\/prod" is not a name for a mirror/],
  [["list", "--limit", "many"], "USAGE", /Expected a whole number/],
  [["list", "--limit", "-1"], "USAGE", /--limit/],
  [["show"], "USAGE", /missing required argument 'id'/],
  [["journal", "x", "--after", "1.5"], "USAGE", /Expected a whole number/],
  [["replay", "x"], "USAGE", /missing required argument 'file'/],
  [["run", DEFINITIONS], "USAGE", /missing required argument 'workflow'/],
  [["run", "no-such-file.ts", "pay"], "USAGE", /There is no file .*no-such-file\.ts/],
  [["run", DEFINITIONS, "pay", "{"], "BAD_INPUT", /Expected JSON in the argument/],
  [
    ["run", DEFINITIONS, "greet", "ada@example.org"],
    "BAD_INPUT",
    /A JSON string needs quotes inside quotes: '"ada@example.org"'/,
  ],
  [["run", DEFINITIONS, "pay", "1", "--input-file", "x.json"], "USAGE", /not both/],
  [["run", DEFINITIONS, "pay", "--input-file", "no-such-file.json"], "USAGE", /cannot be read/],
];

test.each(BAD_USAGE)("refuses %j with %s", async (args, code, expected) => {
  using folder = new TemporaryFolder();
  const options = { cwd: folder.path };
  const human = await cli(args, options);
  expect(human.code).toBe(2);
  expect(human.stdout).toBe("");
  expect(human.stderr).toMatch(expected);
  expect(human.stderr).toMatch(
    new RegExp(`^error ${code}: [^\\n]+\\n  next: [^\\n]+\\n {2}more: reprise explain ${code}\\n$`),
  );
  const json = await command([...args, "--json"], options);
  expect(json.code).toBe(2);
  expect(jsonLines(json.stderr)).toEqual([
    {
      error: {
        code,
        message: expect.stringMatching(expected),
        next: expect.any(String),
        page: `docs/errors/${code}.md`,
        details: expect.any(Object),
      },
    },
  ]);
  expect(readdirSync(folder.path)).toEqual([]);
});

test("an unknown status is refused, and the message lists the known ones", async () => {
  using folder = new TemporaryFolder();
  const { code, stderr } = await cli(["list", "--status", "sad"], { cwd: folder.path });
  expect(code).toBe(2);
  expect(stderr).toMatch(/error BAD_OPTIONS: --status: "sad" is not a status\. Use one of expected, queued, /);
});

test("commands that read do not create a missing store", async () => {
  using folder = new TemporaryFolder();
  const commands = [
    ["list"],
    ["show", "x"],
    ["journal", "x"],
    ["replay", "x", DEFINITIONS],
    ["verify", "x", DEFINITIONS],
    ["doctor"],
  ];
  const results = await Promise.all(commands.map((args) => cli(args, { cwd: folder.path })));
  for (const { code, stdout, stderr } of results) {
    expect([code, stdout]).toEqual([3, ""]);
    expect(stderr).toMatch(/^error BAD_STORE_URL: There is no database at .*reprise\.db\..*\n {2}next: /);
  }
  expect(readdirSync(folder.path)).toEqual([]);
});

test("files that are not stores are refused and not changed", async () => {
  using folder = new TemporaryFolder();
  writeFileSync(folder.file("notes.txt"), "not a database, ".repeat(20));
  writeFileSync(folder.file("empty.db"), "");
  new DatabaseSync(folder.file("other.db")).exec("create table other (x)");
  const before = readdirSync(folder.path).map((name) => [name, readFileSync(folder.file(name), "latin1")]);
  for (const [url, errorCode] of [
    [`sqlite:${folder.file("notes.txt")}`, "STORE_CORRUPT"],
    [`sqlite:${folder.file("empty.db")}`, "STORE_NOT_REPRISE"],
    [`sqlite:${folder.file("other.db")}`, "STORE_NOT_REPRISE"],
    [`sqlite:${folder.path}`, "BAD_STORE_URL"],
    ["sqlite::memory:", "BAD_STORE_URL"],
    ["sqlite:", "BAD_STORE_URL"],
    ["sqlite://%zz", "BAD_STORE_URL"],
    ["redis:somewhere", "BAD_STORE_URL"],
  ] as const) {
    const { code, stderr } = await command(["doctor", "--store", url]);
    expect([url, code]).toEqual([url, 3]);
    expect(stderr).toMatch(new RegExp(`^error ${errorCode}: `));
  }
  expect(readdirSync(folder.path).map((name) => [name, readFileSync(folder.file(name), "latin1")])).toEqual(before);
});

test("a path without a scheme is refused, and the message suggests the URL", async () => {
  const { code, stderr } = await cli(["list", "--store", "data/shop.db"]);
  expect(code).toBe(3);
  expect(stderr).toContain('"data/shop.db" is not a store URL. Did you mean "sqlite:data/shop.db"?');
});

test("doctor and verify name the run and the entry of a damaged journal", async () => {
  using folder = new TemporaryFolder();
  const store = `sqlite:${folder.file("shop.db")}`;
  {
    await using engine = await createEngine({ store, definitions: [pay, charge] });
    for (const id of ["pay-1", "pay-2"]) await (await engine.start(pay, 1, { id })).result();
  }
  const db = new DatabaseSync(folder.file("shop.db"));
  db.exec(
    "update journal set data = cast(replace(cast(data as text), 'L-1', 'L-2') as blob) where seq = 7 and run = (select run from runs where id = 'pay-2')",
  );
  db.close();

  const doctor = await cli(["doctor", "--store", store]);
  expect(doctor.code).toBe(1);
  expect(doctor.stdout).toMatch(/1 problem\n.*I8 journal hash chain {2}run pay-2, entry 7\n/);
  const [report] = jsonLines((await command(["doctor", "--json", "--store", store])).stdout);
  expect(report).toMatchObject({
    healthy: false,
    problems: [{ run: "pay-2", seq: 7, invariant: "I8 journal hash chain" }],
  });

  const verify = await cli(["verify", "pay-2", DEFINITIONS, "--store", store]);
  expect([verify.code, verify.stdout]).toEqual([5, expect.stringMatching(/^damaged {2}pay-2: entry 7 does not match/)]);
  expect((await cli(["verify", "pay-1", DEFINITIONS, "--store", store])).code).toBe(0);
});

test("every command refuses an unknown run", async () => {
  using folder = new TemporaryFolder();
  const store = `sqlite:${folder.file("shop.db")}`;
  {
    await using engine = await createEngine({ store, definitions: [pay, charge] });
    await (await engine.start(pay, 1, { id: "pay-2026-11-16" })).result();
  }
  const part = await cli(["show", "11-16", "--store", store]);
  expect(part.stderr).toContain("There is no run 11-16 in this store. Did you mean pay-2026-11-16?");
  for (const args of [
    ["show", "nope"],
    ["journal", "nope"],
    ["replay", "nope", DEFINITIONS],
    ["verify", "nope", DEFINITIONS],
  ]) {
    const { code, stderr } = await command([...args, "--store", store]);
    expect([args[0], code]).toEqual([args[0], 2]);
    expect(stderr).toMatch(/^error RUN_NOT_FOUND: There is no run nope/);
  }
});

test("--help prints examples and exit codes and exits with 0", async () => {
  const [bare, help, sub, version] = await Promise.all([
    cli([]),
    cli(["--help"]),
    cli(["run", "--help"]),
    cli(["--version"]),
  ]);
  expect([bare.code, help.code, sub.code, version.code]).toEqual([2, 0, 0, 0]);
  expect(help.stdout).toMatch(/Examples:\n {2}\$ reprise run [\s\S]*Exit codes:\n {4}0 /);
  expect(sub.stdout).toMatch(/--input-file[\s\S]*--store[\s\S]*Examples:/);
  expect(bare.stdout).toBe(help.stdout);
  expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});
