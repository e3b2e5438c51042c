// reprise eval: recorded runs with changed code, from bundles and from a store; scores, limits and exit codes.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createEngine, type Run } from "reprise";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cli, jsonLines, ROOT, type Finished } from "./cli-process.ts";
import * as definitions from "./eval-definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const { support, search, agent, quote } = definitions;
const CODE = join(ROOT, "test/cli/eval-definitions.ts");
const COUNT = 200;

let shop: StoreWithRuns;
let bundle: string;
let home: string;

beforeAll(async () => {
  const code = [support, search, agent, quote];
  shop = new StoreWithRuns(code);
  {
    await using engine = await createEngine({
      store: shop.url,
      definitions: code,
      durability: "relaxed",
      logger: false,
    });
    const runs = Array.from({ length: COUNT }, (_, n) =>
      engine.start(support, `q${n}`, { id: `run-${n}`, tags: n < 20 ? ["prod"] : [] }),
    );
    const others = [engine.start(agent, {}, { id: "agent-1" }), engine.start(quote, 5, { id: "quote-1" })];
    for (const run of await Promise.all<Run<unknown>>([...runs, ...others])) await run.result();
  }
  bundle = shop.folder.file("runs.jsonl");
  home = shop.folder.file("home");
  const ids = Array.from({ length: COUNT }, (_, n) => `run-${n}`);
  const made = await shop.cli("bundle", ...ids, "agent-1", "quote-1", "-o", bundle, "--home", home);
  expect([made.code, made.stderr]).toEqual([0, expect.any(String)]);
});
afterAll(() => shop[Symbol.dispose]());

/** Without a store: there is none at this address. */
function offline(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Finished> {
  const none = `sqlite:${shop.folder.file("none.db")}`;
  return cli(["eval", CODE, ...args, "--home", home, "--store", none], { env });
}

interface Report {
  readonly exitCode: number;
  readonly failures: readonly string[];
  readonly evaluations: readonly {
    readonly id: string;
    readonly counts: object;
    readonly scores: Readonly<Record<string, { readonly mean: number }>>;
    readonly runs: readonly { readonly run: string; readonly firstDifference?: string; readonly is?: object }[];
  }[];
}
function reportOf({ stdout }: Finished): Report {
  return jsonLines(stdout)[0] as unknown as Report;
}

test("200 runs of a bundle are evaluated without a store and without a key, and changed code is found", async () => {
  const same = await offline([bundle, "--fail-under", "text=1,same=1,output=1", "--only", "texts", "--json"]);
  expect([same.code, reportOf(same).failures]).toEqual([1, [expect.stringContaining("there is no score output")]]);
  expect(reportOf(same).evaluations[0]).toMatchObject({
    id: "texts",
    counts: { total: COUNT, same: COUNT, changed: 0, stopped: 0, skipped: 0 },
    scores: { text: { mean: 1 } },
  });
  const junit = shop.folder.file("eval.xml");
  const args = [bundle, "--only", "texts", "--fail-under", "text=0.95", "--junit", junit];
  const stopped = await offline(args, { EDIT: "tool" });
  expect(stopped.code).toBe(1);
  expect(stopped.stdout).toContain("failed texts: text is 0.90, below 0.95");
  expect(stopped.stdout).toMatch(/^run-107 +completed +blocked +0\.00 +1\.00 +Task\(0\): EFFECT_NOT_RECORDED$/m);
  expect(Math.max(...stopped.stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(readFileSync(junit, "utf8").match(/<failure type="blocked"/g)).toHaveLength(20);
});

test("graphs and flows of a bundle are evaluated with the code as it is now", async () => {
  const changed = reportOf(await offline([bundle, "--only", "outputs,prices", "--json"], { EDIT: "output" }));
  expect(changed.evaluations).toMatchObject([
    {
      counts: { changed: 1 },
      scores: { output: { mean: 0 }, ended: { mean: 1 } },
      runs: [{ firstDifference: "step 2" }],
    },
    { counts: { changed: 1 }, runs: [{ run: "quote-1", is: { output: 52 } }] },
  ]);
});

test("runs of the store are evaluated in a copy; --save keeps the report in the store", async () => {
  const before = (await shop.cli("list", "--limit", "1000", "--json")).stdout;
  const args = ["eval", CODE, "--only", "texts", "--home", home];
  // The evaluation itself selects 5 runs with the tag; the options of the command line come first.
  const own = await shop.cli(...args);
  expect([own.code, own.stdout]).toEqual([0, expect.stringContaining("texts: support, 5 runs\n5 same · 0 changed")]);
  const many = await shop.cli(...args, "--limit", "12", "--model", "fast=strong", "--json");
  expect(reportOf(many)).toMatchObject({ exitCode: 0, evaluations: [{ counts: { total: 12, changed: 12 } }] });
  expect((await shop.cli("list", "--limit", "1000", "--json")).stdout).toBe(before);
  expect((await shop.cli(...args, "run-3", "--save", "--id", "kept")).code).toBe(0);
  const kept = await shop.cli("show", "kept", "--json");
  expect(jsonLines(kept.stdout)[0]).toMatchObject({
    definition: "reprise.evaluation",
    status: "completed",
    output: { definition: "support", runs: [{ run: "run-3", same: true }] },
  });
  const none = await shop.cli(...args, "--tag", "nobody");
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining("No run matches")]);
});

test("a killed evaluation with an id continues: no fork that has ended calls its model again", async () => {
  const ledger = shop.folder.file("ledger");
  const ids = ["run-0", "run-1", "run-2", "run-3", "run-4", "run-5"];
  const args = [
    ...["eval", CODE, ...ids, "--only", "texts", "--model", "fast=strong", "--concurrency", "1"],
    ...["--id", "nightly", "--home", home, "--store", shop.url, "--json"],
  ];
  const killed = await cli(args, { env: { LEDGER: ledger, KILL_AT: "4" } });
  expect([killed.code, killed.stdout]).toEqual([null, ""]);
  const again = await cli(args, { env: { LEDGER: ledger } });
  expect(reportOf(again)).toMatchObject({ evaluations: [{ id: "nightly", counts: { total: 6, changed: 6 } }] });
  // The call under way is made again: its answer was lost.
  const calls = readFileSync(ledger, "utf8").trimEnd().split("\n");
  expect(calls).toHaveLength(7);
  expect(new Set(calls).size).toBe(6);
  expect(existsSync(join(home, "evals", "nightly.db"))).toBe(true);
});

test("a scorer that throws fails the command, and the report says for which runs", async () => {
  const failed = await offline([bundle, "--only", "texts", "--json"], { EDIT: "scorer" });
  expect(failed.code).toBe(1);
  expect(reportOf(failed).failures).toEqual([`texts: the scorer broken failed for ${COUNT} runs`]);
});

test("options that cannot be meant are refused, and nothing is left behind", async () => {
  const refused: readonly (readonly [readonly string[], string])[] = [
    [["--fail-under", "text"], "such as same=0.9"],
    [["--model", "fast"], "such as fast=strong"],
    [["--at", "think"], "node=think"],
    [["--budget", "usd"], "such as usd=5"],
    [["--only", "nothing"], "exports no evaluation named nothing"],
    [["--definition", "nothing"], "to evaluate"],
    [["nobody-1"], "nobody-1"],
  ];
  for (const [args, text] of refused) {
    const { code, stderr } = await shop.cli("eval", CODE, "--home", home, ...args);
    expect([code, stderr], args.join(" ")).toEqual([expect.toBeOneOf([2, 3]), expect.stringContaining(text)]);
  }
  expect(readdirSync(join(home, "evals")).filter((file) => file.endsWith(".tmp"))).toEqual([]);
});
