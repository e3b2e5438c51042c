// reprise verify: runs of a store and bundles at every level, verdicts and exit codes.

import { spawnSync } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createEngine } from "reprise";
import { expectReplay } from "reprise/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  cli,
  command,
  environment,
  finished,
  jsonLines,
  ROOT,
  startOnTerminal,
  TemporaryFolder,
  type Finished,
} from "./cli-process.ts";
import { greeting } from "./greeting-graph.ts";
import { hasOtherNode, OTHER_NODE } from "./other-node.ts";
import { StoreWithRuns } from "./store-with-runs.ts";
import * as definitions from "./verify-definitions.ts";

const CODE = join(ROOT, "test/cli/verify-definitions.ts");
const changed = (what: "name" | "input" | "value" | "pure" | "pure-throws"): string =>
  join(ROOT, `test/cli/changed/verify-${what}.ts`);

const CODE_OF_WHOLE = [definitions.whole, definitions.part, definitions.double];

let shop: StoreWithRuns;
let folder: TemporaryFolder;
let home: string;

beforeAll(async () => {
  shop = await new StoreWithRuns([
    ...Object.values(definitions).filter((one) => typeof one !== "function"),
    greeting,
  ]).start(
    { id: "whole-1", what: definitions.whole, input: 2, until: "completed" },
    { id: "runtime-1", what: definitions.runtime, until: "completed" },
    { id: "derived-1", what: definitions.derived, input: 4, until: "completed" },
    { id: "pure-1", what: definitions.pure, input: 3, until: "completed" },
    { id: "talk-1", what: greeting, input: {}, until: "completed" },
  );
  folder = shop.folder;
  home = folder.file("home");
  for (const [file, ...args] of [
    ["one.jsonl", "runtime-1"],
    ["alone.jsonl", "whole-1"],
    ["family.jsonl", "whole-1", "--family"],
    ["digests.jsonl", "whole-1", "--family", "--hash-only"],
    ["digests-alone.jsonl", "whole-1", "--hash-only"],
    ["unsigned.jsonl", "runtime-1", "--unsigned"],
    ["pure.jsonl", "pure-1"],
    ["kinds.jsonl", "derived-1", "talk-1"],
  ] as const)
    expect((await shop.cli("bundle", ...args, "-o", folder.file(file), "--home", home)).code).toBe(0);
});
afterAll(() => shop[Symbol.dispose]());

const verify = (...args: readonly string[]): Promise<Finished> => shop.cli("verify", ...args, "--home", home);

async function report(...args: readonly string[]): Promise<Record<string, any>> {
  const { code, stdout } = await verify(...args, "--json");
  const [one, ...more] = jsonLines(stdout);
  expect([one?.["exitCode"], more]).toEqual([code, []]);
  return one!;
}

/** A copy of a bundle with other lines. */
function edited(file: string, name: string, edit: (lines: string[]) => string[]): string {
  const lines = readFileSync(folder.file(file), "utf8").trimEnd().split("\n");
  writeFileSync(folder.file(name), `${edit(lines).join("\n")}\n`);
  return folder.file(name);
}

describe("verdicts", () => {
  test("a run of a store is intact, its code matches, and its output has the same key in a bundle of another machine", async () => {
    const { stdout } = await verify("runtime-1", "--code", CODE);
    expect(stdout).toMatch(/^verified {2}runtime-1: journal intact, code matches the journal \(3 entries\)\.\nsha256:/);
    const here = await report("runtime-1");
    const there = await report(folder.file("one.jsonl"));
    expect(here).toMatchObject({
      exitCode: 0,
      runs: [{ levels: [0], output: expect.stringMatching(/^[0-9a-f]{64}$/) }],
    });
    expect(there).toMatchObject({
      exitCode: 0,
      runs: [{ levels: [0, 1], output: here["runs"][0].output, signer: expect.stringMatching(/\/[0-9a-f]{16}$/) }],
    });
  });

  test.each(["whole-1", "family.jsonl"])("changed code exits with 4, for %s", async (target) => {
    const named = target.includes(".") ? folder.file(target) : target;
    const name = await report(named, "--code", changed("name"));
    const failed = name["runs"].find(({ verdict }: { verdict: string }) => verdict !== "verified");
    expect([name["exitCode"], failed]).toEqual([
      4,
      expect.objectContaining({ verdict: "code_differs", where: "Operation(0)", expected: "write", actual: "note" }),
    ]);
    const input = await report(named, "--code", changed("input"));
    const diverged = input["runs"].find(({ code }: { code?: string }) => code !== undefined);
    expect([input["exitCode"], diverged]).toEqual([
      4,
      expect.objectContaining({
        verdict: "code_differs",
        code: "input-diverged",
        where: "Operation(0)",
        differs: "input",
      }),
    ]);
    if (named === target) {
      const { stdout } = await verify(named, "--code", changed("input"));
      expect(stdout).toContain("compute it again as a new run: reprise fork whole-1 --at 'Operation(0)'");
    }
    expect((await report(named, "--code", changed("value")))["exitCode"]).toBe(4);
    expect((await report(named, "--code", CODE))["exitCode"]).toBe(0);
  });

  test("an entry that is missing exits with 7, one that was changed with 5, in a store and in a bundle", async () => {
    using copy = new TemporaryFolder();
    const change = async (sql: string): Promise<Finished> => {
      copyFileSync(folder.file("shop.db"), copy.file("shop.db"));
      const db = new DatabaseSync(copy.file("shop.db"));
      expect(db.prepare(sql).run().changes).toBeGreaterThan(0);
      db.close();
      return command(["verify", "runtime-1", "--store", `sqlite:${copy.file("shop.db")}`]);
    };
    const run = "run = (select run from runs where id = 'runtime-1')";
    expect(await change(`delete from journal where seq = 2 and ${run}`)).toMatchObject({
      code: 7,
      stdout: expect.stringMatching(/^incomplete {2}runtime-1: entry 2 is missing; found 3\./),
    });
    expect(await change(`delete from journal where seq = 3 and ${run}`)).toMatchObject({ code: 7 });
    const payload = "data = cast(replace(cast(data as text), 'noted', 'Noted') as blob)";
    expect(await change(`update journal set ${payload} where seq = 2 and ${run}`)).toMatchObject({
      code: 5,
      stdout: expect.stringMatching(/^damaged {2}runtime-1: entry 2 does not match its mark\./),
    });

    const lines = (edit: (lines: string[]) => string[]): Promise<Finished> =>
      verify(edited("one.jsonl", "changed.jsonl", edit));
    expect((await lines((all) => all.toSpliced(5, 1))).code).toBe(7);
    expect((await lines((all) => all.slice(0, -1))).code).toBe(7);
    expect((await lines((all) => all.with(5, all[5]!.replace("noted", "Noted")))).code).toBe(5);
    const at = await lines((all) =>
      all.with(
        5,
        all[5]!.replace(/,(\d{13}),/, (_, ms: string) => `,${Number(ms) + 1},`),
      ),
    );
    expect([at.code, at.stdout]).toEqual([5, expect.stringContaining("the root of the entries")]);
    expect((await lines((all) => all.with(0, "{}"))).code).toBe(5);
  });

  test("a value that differs is inconclusive on a runtime that the run never had, and a difference of the code on its own", async () => {
    using copy = new TemporaryFolder();
    copyFileSync(folder.file("shop.db"), copy.file("shop.db"));
    const url = `sqlite:${copy.file("shop.db")}`;
    const db = new DatabaseSync(copy.file("shop.db"));
    db.exec(`update runs set runtime = replace(runtime, '"v8":"', '"v8":"9.')`);
    db.close();
    const on = async (code: string): Promise<Record<string, any>> =>
      jsonLines((await command(["verify", "whole-1", "--code", code, "--json", "--store", url])).stdout)[0]!;
    expect(await on(changed("value"))).toMatchObject({
      exitCode: 8,
      runs: [
        { verdict: "inconclusive", runtime: { differs: ["v8"] }, message: expect.stringContaining("instead of 9.") },
      ],
    });
    expect(await on(changed("name"))).toMatchObject({ exitCode: 4 });
    expect(await on(changed("input"))).toMatchObject({ exitCode: 4, runs: [{ code: "input-diverged" }] });
    expect((await report("whole-1", "--code", changed("value")))["exitCode"]).toBe(4);
  });

  test("level 4 executes pure steps again: another result exits with 9, a step that cannot be executed with 8", async () => {
    const at = async (code: string, level = "4"): Promise<Record<string, any>> =>
      report("pure-1", "--code", code, "--level", level);
    expect(await at(CODE)).toMatchObject({ exitCode: 0, runs: [{ levels: [0, 2, 3, 4] }] });
    expect(await at(changed("pure"))).toMatchObject({
      exitCode: 9,
      runs: [{ verdict: "impure", where: "Task(0)", expected: "10", actual: "9" }],
    });
    expect(await at(changed("pure-throws"))).toMatchObject({
      exitCode: 8,
      runs: [{ verdict: "inconclusive", message: expect.stringContaining("no license on this machine") }],
    });
    expect((await at(changed("pure"), "3"))["exitCode"]).toBe(0);
    expect((await report(folder.file("pure.jsonl"), "--code", changed("pure"), "--level", "4"))["exitCode"]).toBe(9);
  });

  test.skipIf(!hasOtherNode)(
    "a run recorded here and verified on a Node with another V8 is inconclusive if its output is the version of V8",
    () => {
      const on = (...args: readonly string[]): Record<string, any> => {
        const main = join(ROOT, "src/cli/main.ts");
        const { stdout, status } = spawnSync(
          OTHER_NODE,
          ["--conditions=reprise-source", main, "verify", ...args, "--code", CODE, "--home", home, "--json"],
          { env: environment(), encoding: "utf8" },
        );
        const [one] = jsonLines(stdout);
        expect(one?.["exitCode"]).toBe(status);
        return one!;
      };
      const inconclusive = {
        exitCode: 8,
        runs: [{ verdict: "inconclusive", runtime: { recorded: { v8: process.versions.v8 } } }],
      };
      expect(on("runtime-1", "--store", shop.url)).toMatchObject(inconclusive);
      expect(on("derived-1", "--store", shop.url)).toMatchObject(inconclusive);
      expect(on(folder.file("one.jsonl"))).toMatchObject(inconclusive);
      expect(on(folder.file("family.jsonl"))["exitCode"]).toBe(0);
    },
  );
});

describe("bundles", () => {
  test("workflows, children, generations, graphs and flows replay from a bundle", async () => {
    const family = await report(folder.file("family.jsonl"), "--code", CODE, "--level", "2");
    expect(family).toMatchObject({ exitCode: 0 });
    expect(family["runs"].map(({ definition, generation }: any) => `${definition}#${generation}`).toSorted()).toEqual([
      "part#0",
      "part#0",
      "whole#0",
      "whole#1",
    ]);
    const kinds = await report(folder.file("kinds.jsonl"), "--code", CODE);
    // The graph is in another file, so the code does not have it.
    expect(kinds["runs"]).toMatchObject([
      { id: "derived-1", verdict: "verified", levels: [0, 1, 3] },
      { id: "talk-1", verdict: "code_differs", message: expect.stringContaining("does not export talk version 1") },
    ]);
    const graph = await verify(
      folder.file("kinds.jsonl"),
      "--code",
      join(ROOT, "test/cli/greeting-graph.ts"),
      "--json",
    );
    expect(jsonLines(graph.stdout)[0]!["runs"][1]).toMatchObject({
      id: "talk-1",
      verdict: "verified",
      calls: { recorded: 2, live: 0 },
    });
  });

  test("a fork of a workflow replays with the entries of its origin, from a store and from a bundle that has both", async () => {
    using store = await new StoreWithRuns(CODE_OF_WHOLE).start({
      id: "one",
      what: definitions.whole,
      input: 1,
      until: "completed",
    });
    {
      await using engine = await createEngine({
        store: store.url,
        definitions: CODE_OF_WHOLE,
      });
      const fork = await engine.get(definitions.whole, "one").fork({ answers: { "Operation(0)": "other" }, id: "two" });
      expect(await fork.result()).toBe(2);
    }
    const stored = await store.cli("verify", "two", CODE);
    expect([stored.code, stored.stdout]).toEqual([0, expect.stringContaining("code matches the journal")]);
    const [alone, both] = ["alone.jsonl", "both.jsonl"].map((name) => store.folder.file(name));
    for (const [file, ...more] of [[alone!], [both!, "one", "--family"]] as const)
      expect((await store.cli("bundle", "two", ...more, "-o", file, "--home", home)).code).toBe(0);
    expect(await report(alone!, "--code", CODE)).toMatchObject({ exitCode: 7, runs: [{ verdict: "incomplete" }] });
    expect((await report(both!, "--code", CODE, "--level", "2"))["exitCode"]).toBe(0);
    await expectReplay(both!, { definitions: CODE_OF_WHOLE });
  });

  test("level 2 finds children and generations that are not in the file, also without payloads", async () => {
    for (const file of ["alone.jsonl", "digests-alone.jsonl"])
      expect([file, await report(folder.file(file), "--level", "2")]).toEqual([
        file,
        expect.objectContaining({
          exitCode: 7,
          runs: [
            expect.objectContaining({ verdict: "incomplete", missing: [expect.objectContaining({ as: "child" })] }),
            expect.objectContaining({ verdict: "incomplete", missing: [expect.objectContaining({ as: "child" })] }),
          ],
        }),
      ]);
    expect((await report(folder.file("alone.jsonl")))["exitCode"]).toBe(0);
    for (const file of ["family.jsonl", "digests.jsonl"])
      expect([file, (await report(folder.file(file), "--level", "2"))["exitCode"]]).toEqual([file, 0]);
    const late = edited("alone.jsonl", "late.jsonl", (lines) =>
      lines.slice(lines.findIndex((line, index) => index > 0 && line.startsWith('{"form"'))),
    );
    expect((await report(late, "--level", "2"))["runs"][0].missing).toContainEqual(
      expect.objectContaining({ as: "earlier generation", generation: 0 }),
    );
    expect((await report("whole-1", "--level", "2"))["exitCode"]).toBe(0);
    expect(await report(folder.file("digests.jsonl"), "--code", CODE)).toMatchObject({
      exitCode: 7,
      runs: [
        {},
        {},
        {},
        { message: "a bundle of form hash-only has no payloads to replay. Get one that was made with --full." },
      ],
    });
  });

  test("a bundle without a signature, or of a key that is not admitted, exits with 6; --key admits it", async () => {
    expect((await verify(folder.file("unsigned.jsonl"))).code).toBe(6);
    expect((await verify(folder.file("unsigned.jsonl"), "--level", "0")).code).toBe(0);
    const file = folder.file("one.jsonl");
    const elsewhere = ["--home", folder.file("elsewhere")];
    const untrusted = await command(["verify", file, ...elsewhere]);
    expect([untrusted.code, untrusted.stdout]).toEqual([
      6,
      expect.stringMatching(/^untrusted {2}runtime-1: .*not admitted/),
    ]);
    const vkey = jsonLines((await command(["key", "--home", home, "--json"])).stdout)[0]!["vkey"] as string;
    expect((await command(["verify", file, "--key", vkey, ...elsewhere])).code).toBe(0);
    const forged = edited("one.jsonl", "forged.jsonl", (lines) =>
      lines.with(
        1,
        lines[1]!.replace(/"sig":"./, (text) => `${text.slice(0, -1)}${text.endsWith("A") ? "B" : "A"}`),
      ),
    );
    const broken = await verify(forged);
    expect([broken.code, broken.stdout]).toEqual([5, expect.stringContaining("does not fit its statement")]);
  });

  test("two signed histories of one run are a fork, and exit with 5", async () => {
    using other = await new StoreWithRuns([definitions.part, definitions.double]).start({
      id: "part-1",
      what: definitions.part,
      input: 1,
      until: "completed",
    });
    using another = await new StoreWithRuns([definitions.part, definitions.double]).start({
      id: "part-1",
      what: definitions.part,
      input: 2,
      until: "completed",
    });
    const files = [other, another].map((store) => store.folder.file("part.jsonl"));
    for (const [index, store] of [other, another].entries())
      await store.cli("bundle", "part-1", "-o", files[index]!, "--home", home);
    expect(await report(...files)).toMatchObject({ exitCode: 5, runs: [{ verdict: "forked" }, { verdict: "forked" }] });
    expect((await report(files[0]!))["exitCode"]).toBe(0);
  });
});

describe("expectReplay", () => {
  const all = Object.values(definitions).filter((one) => typeof one !== "function");

  test("takes a bundle by its path or as text, and replays every run in it", async () => {
    await expectReplay(folder.file("family.jsonl"), { definitions: all });
    await expectReplay(readFileSync(folder.file("kinds.jsonl"), "utf8"), { definitions: [...all, greeting] });
    const other = definitions.buildWhole({ step: "note", added: 1, factor: 1 });
    await expect(
      expectReplay(folder.file("family.jsonl"), { definitions: [other, definitions.part, definitions.double] }),
    ).rejects.toMatchObject({
      code: "DETERMINISM_VIOLATION",
      message: expect.stringContaining("at Operation(0) of run whole-1: the journal recorded another step input"),
      details: { run: "whole-1", differs: "input" },
    });
  });

  test("refuses a bundle that is damaged, or that has no payloads", async () => {
    const damaged = edited("one.jsonl", "bad.jsonl", (lines) => lines.with(5, lines[5]!.replace("noted", "Noted")));
    await expect(expectReplay(damaged, { definitions: all })).rejects.toMatchObject({ code: "BUNDLE_DAMAGED" });
    await expect(expectReplay(folder.file("digests.jsonl"), { definitions: all })).rejects.toMatchObject({
      code: "BAD_PAYLOAD",
      message: expect.stringContaining("has no payloads to replay"),
    });
  });
});

describe("many runs", () => {
  test("--all prints a table and a summary, and the first verdict of the order decides", async () => {
    const { code, stdout } = await verify("--all", "--code", changed("value"));
    expect(code).toBe(4);
    expect(stdout).toMatch(/^RUN +DEFINITION +ENTRIES +VERDICT +DETAIL\n/);
    expect(stdout).toMatch(/^whole-1#1 +whole +\d+ +differs +the journal recorded another end/m);
    expect(stdout).toMatch(/^8 runs: \d verified, \d differs\.$|^8 runs: \d differs, \d verified\.$/m);
    expect((await report("--all", "--definition", "part", "--code", CODE))["runs"]).toHaveLength(2);
    expect((await report("--all", "--last", "1"))["runs"]).toMatchObject([{ id: "talk-1" }]);
    expect(await verify("--all", "--definition", "nope")).toMatchObject({ code: 1, stdout: "" });
  });

  test("the table fits a terminal of 80 columns", async () => {
    const child = startOnTerminal(
      ["verify", "--all", "--code", changed("value"), "--store", shop.url, "--home", home],
      { columns: 80 },
    );
    const { stdout } = await finished(child);
    // eslint-disable-next-line no-control-regex
    const lines = stdout.replaceAll(/\u001b\[[\d;]*[mK]/g, "").split(/\r?\n/);
    expect(lines.some((line) => line.startsWith("whole-1"))).toBe(true);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
  });

  test("--junit writes a test case per run, whose failure names the first difference", async () => {
    const file = folder.file("verify.xml");
    await verify("--all", "--definition", "whole", "--code", changed("name"), "--junit", file);
    const xml = readFileSync(file, "utf8");
    expect(xml).toMatch(/<testsuite name="reprise verify" tests="2" failures="2" errors="0" skipped="0">/);
    expect(xml).toContain('<testcase name="whole-1#1" classname="whole">');
    expect(xml).toMatch(
      /<failure type="code_differs" message="the journal recorded step 'note'; the code now runs step 'write'[^<>]*">[^<>]*where: Operation\(0\)&#10;the code: 'write'&#10;the journal: 'note'<\/failure>/,
    );
    const refused = await verify("--all", "--junit", folder.file("no/folder.xml"));
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("--junit: ")]);
  });

  test("contradicting or impossible options are refused", async () => {
    for (const [args, message] of [
      [[], "name runs or files"],
      [["--all", "whole-1"], "--all selects every run"],
      [["whole-1", "--last", "2"], "narrow --all"],
      [["whole-1", "--level", "1"], "level 1 checks the signature of a bundle"],
      [["whole-1", "--level", "3"], "Add --code <file>"],
      [["whole-1", "--level", "5"], "expected 0 to 4"],
      [["whole-1", "runtime-1", CODE], "is code, not a run"],
      [["--all", "--generation", "1"], "--generation needs exactly one run"],
      [[folder.file("none.jsonl")], "There is no file"],
    ] as const)
      expect([args, await verify(...args)]).toEqual([
        args,
        expect.objectContaining({ code: 2, stderr: expect.stringContaining(message) }),
      ]);
  });

  test("a file of a bundle is verified without a store", async () => {
    const { code } = await cli(["verify", folder.file("one.jsonl"), "--home", home], { cwd: folder.path });
    expect(code).toBe(0);
  });
});
