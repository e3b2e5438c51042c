// pull and import, and every reading command on a run of a mirror.

import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEngine, type AnyTask, type Definition } from "reprise";
import { valueKey } from "../../src/base/index.ts";
import { describeOn, freshDatabase } from "../servers/index.ts";
import { cli, command, finished, jsonLines, ROOT, startCli, TemporaryFolder, type Finished } from "./cli-process.ts";
import * as workflows from "./definitions.ts";
import * as flows from "./flows.ts";
import * as graphs from "./graphs.ts";

const { pay, charge, refuse, review, incomplete, pages, cart, many } = workflows;
const { agent, failing } = graphs;
const { shop, sub, double } = flows;
const DEFINITIONS: readonly (Definition | AnyTask)[] = [
  pay,
  charge,
  refuse,
  review,
  incomplete,
  pages,
  cart,
  many,
  agent,
  failing,
  shop,
  sub,
  double,
];

const folder = new TemporaryFolder();
const store = `sqlite:${folder.file("shop.db")}`;
const bundlePath = folder.file("all.jsonl");

async function withEngine(work: (engine: Awaited<ReturnType<typeof createEngine>>) => Promise<void>): Promise<void> {
  await using engine = await createEngine({
    store,
    definitions: DEFINITIONS,
    logger: { info: () => {}, warn: () => {}, error: () => {} },
  });
  await work(engine);
}

/** Live, stopped with evidence, failed, retried, forked, with children and generations; of all three kinds. */
const IDS = [
  "pay-1",
  "refuse-1",
  "incomplete-1",
  "review-1",
  "pages-1",
  "cart-1",
  "agent-1",
  "agent-2",
  "failing-1",
  "shop-1",
] as const;

beforeAll(async () => {
  await withEngine(async (engine) => {
    const until = async (run: { info(): Promise<{ status: string }> }, status: string): Promise<void> => {
      while ((await run.info()).status !== status) await new Promise((resolve) => setImmediate(resolve));
    };
    await (await engine.start(pay, 4990, { id: "pay-1", tags: ["shop", "eu"] })).result();
    const refused = await engine.start(refuse, undefined, { id: "refuse-1" });
    await refused.result().catch(() => {});
    await refused.retry();
    await refused.result().catch(() => {});
    await (await engine.start(incomplete, undefined, { id: "incomplete-1" })).result().catch(() => {});
    await until(await engine.start(review, undefined, { id: "review-1" }), "waiting");
    await until(await engine.start(pages, 2, { id: "pages-1" }), "waiting");
    const bought = await engine.start(cart, undefined, { id: "cart-1" });
    await bought.signal("add", { sku: "pen" });
    await bought.signal("checkout");
    await bought.result();
    const asked = await engine.start(agent, {}, { id: "agent-1" });
    await until(asked, "waiting");
    await until(await asked.fork({ step: 2, id: "agent-2", patch: { draft: "shorter" } }), "waiting");
    await (await engine.start(failing, {}, { id: "failing-1" })).result().catch(() => {});
    await until(await engine.start(shop, { prices: [1, 200, -1], password: "hunter2" }, { id: "shop-1" }), "waiting");
  });
  const made = await cli(["bundle", ...IDS, "--family", "-o", bundlePath, "--store", store], {
    cwd: folder.path,
    env: { REPRISE_HOME: folder.file("signer"), REPRISE_KEY: `prod:${Buffer.alloc(32, 7).toString("base64")}` },
  });
  expect(made).toMatchObject({ code: 0 });
}, 120_000);
afterAll(() => folder[Symbol.dispose]());

/** A new, empty folder to work in. */
function away(name: string): string {
  const path = folder.file(name);
  mkdirSync(path);
  return path;
}

/** Ages and times left depend on when the command ran; `--store` is not part of the answer. */
const timeless = (text: string): string =>
  text
    .replaceAll(/(?<="now":")[^"]+/g, "T")
    .replaceAll(/(?:\d+ (?:d|h|m) )*[\d.]+ (?:ms|s|m|h|d)\b/g, "T")
    .replaceAll(` --store ${store}`, "")
    .replaceAll(/(?<=T(?: ago)?) +/g, " ");

const READING: readonly (readonly string[])[] = [
  ...IDS.flatMap((id) => [
    ["show", id],
    ["journal", id],
    ["journal", id, "--show-secrets"],
  ]),
  ["show", "pages-1", "--generation", "1"],
  ["show", "agent-1", "--timeline"],
  ["checkpoints", "agent-1"],
  ["checkpoints", "agent-2", "--step", "3"],
  ["stream", "cart-1", "said"],
  ["query", "cart-1", "count", "--file", join(ROOT, "test/cli/definitions.ts")],
  ["replay", "pay-1", join(ROOT, "test/cli/definitions.ts")],
  ["verify", "agent-1", join(ROOT, "test/cli/graphs.ts")],
  ["replay", "shop-1", join(ROOT, "test/cli/flows.ts")],
  ["graph", join(ROOT, "test/cli/graphs.ts"), "agent", "--run", "agent-1"],
  ["graph", join(ROOT, "test/cli/flows.ts"), "shop", "--run", "shop-1"],
  ["diff", "agent-1", "agent-2"],
  ["why", "run:pay-1"],
  ["uses", "run:shop-1", "--depth", "1"],
  ["why", valueKey('{"paid":4990}'), "--run", "pay-1"],
  ["export", "agent-1", "--format", "prov"],
];

/** The command line with its runs named as those of the mirror. */
const inMirror = (args: readonly string[]): readonly string[] =>
  args.map((arg) =>
    arg.replace(/^(?:run:)?(?=(?<id>.+)$)/, (before, id: string) => `${before}${isRun(id) ? "prod/" : ""}`),
  );
const isRun = (id: string): boolean => (IDS as readonly string[]).includes(id);

async function compare(cwd: string, lines: readonly (readonly string[])[]): Promise<void> {
  for (const args of lines)
    for (const json of [[], ["--json"]]) {
      const home = await command([...args, ...json, "--store", store], { cwd: folder.path });
      const there = await command([...inMirror(args), ...json], { cwd });
      const shown = ({ code, stdout, stderr }: Finished): unknown => ({
        code,
        stdout: timeless(stdout),
        stderr: timeless(stderr),
      });
      expect(shown(there), args.join(" ")).toEqual(shown(home));
      expect(home.code, args.join(" ")).toBe(args[0] === "diff" ? 1 : 0);
    }
}

describe("pull", () => {
  test("brings runs home: every reading command prints what it prints there", { timeout: 240_000 }, async () => {
    const cwd = away("pulled");
    const { code, stdout } = await command(["pull", store, ...IDS, "--as", "prod", "--family"], { cwd });
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/^pulled 11 runs \(/) });
    await compare(cwd, READING);
    expect((await command(["doctor", "--store", "sqlite:.reprise/runs/prod.db"], { cwd })).code).toBe(0);
    const [home, there] = await Promise.all([
      command(["list", "--store", store], { cwd }),
      command(["list", "prod/"], { cwd }),
    ]);
    expect(timeless(there.stdout)).toBe(timeless(home.stdout));
    expect(readdirSync(join(cwd, ".reprise/runs"))).toEqual(["prod.db"]);
    expect(readFileSync(join(cwd, ".reprise/.gitignore"), "utf8")).toBe("*\n");
  });

  test("refuses another store for a mirror, and takes one that has moved", async () => {
    const cwd = away("moved");
    copyFileSync(folder.file("shop.db"), join(cwd, "copy.db"));
    expect(await command(["pull", store, "pay-1", "--as", "prod"], { cwd })).toMatchObject({ code: 0 });
    const copy = ["pull", "sqlite:copy.db", "pay-1", "review-1", "--as", "prod"];
    const refused = await command(copy, { cwd });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(`The mirror prod has runs of ${store}; this is sqlite:${join(cwd, "copy.db")}.`);
    expect((await command(["list", "prod/"], { cwd })).stdout).not.toContain("review-1");
    const moved = await command([...copy, "--moved"], { cwd });
    expect(moved.stdout).toContain("1 run new or updated) into the mirror prod");
  });

  test("takes the newest runs, or those of a definition, with the runs that a replay needs", async () => {
    const cwd = away("newest");
    const pulled = await command(["pull", store, "--last", "1", "--json"], { cwd });
    expect(jsonLines(pulled.stdout)).toMatchObject([{ mirror: "shop", id: "shop-1/asked", status: "added" }]);
    const forked = await command(["pull", store, "agent-2", "--json"], { cwd });
    expect(jsonLines(forked.stdout).map(({ id }) => id)).toEqual(["agent-1", "agent-2"]);
    const paged = await command(["pull", store, "--definition", "pages", "--json"], { cwd });
    expect(jsonLines(paged.stdout).map(({ generation }) => generation)).toEqual([0, 1, 2]);
    const again = await command(["pull", "shop", "pay-1", "--json"], { cwd });
    expect(jsonLines(again.stdout)).toMatchObject([{ mirror: "shop", id: "pay-1", status: "added" }]);
    const same = await command(["pull", "shop", "pay-1", "--json"], { cwd });
    expect(jsonLines(same.stdout)).toMatchObject([{ status: "unchanged" }]);
  });

  test("writes a bundle per run with --out, which can be imported", async () => {
    const cwd = away("bundles");
    const args = ["pull", store, "pay-1", "shop-1/asked", "--out", "runs", "--json"];
    const written = await command(args, { cwd });
    expect(jsonLines(written.stdout).map(({ entries }) => entries)).toEqual([8, 2]);
    expect(readdirSync(join(cwd, "runs")).toSorted()).toEqual(["pay-1.jsonl", "shop-1%2Fasked.jsonl"]);
    expect((await command(["import", "runs/shop-1%2Fasked.jsonl", "--as", "prod"], { cwd })).code).toBe(0);
    expect((await command(["show", "prod/shop-1/asked"], { cwd })).stdout).toMatch(/^shop-1\/asked {2}sub/);
    expect(await command(args, { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/--out: .*already exists/),
    });
  });

  test("takes the URL of a known store from its environment variable, and refuses an unknown one", async () => {
    const cwd = away("known");
    const unknown = await cli(["pull", "prod", "pay-1"], { cwd });
    expect(unknown).toMatchObject({ code: 3, stderr: expect.stringContaining("set REPRISE_STORE_PROD to the URL") });
    expect(existsSync(join(cwd, ".reprise"))).toBe(false);
    const pulled = await cli(["pull", "prod", "pay-1"], { cwd, env: { REPRISE_STORE_PROD: store } });
    expect(pulled).toMatchObject({ code: 0, stdout: expect.stringContaining("into the mirror prod") });
    const missing = await command(["pull", store, "nobody", "--as", "other"], { cwd });
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining("There is no run nobody") });
    expect(readdirSync(join(cwd, ".reprise/runs"))).toEqual(["prod.db"]);
  });
});

for (const kind of ["postgres", "mysql"] as const)
  describeOn(kind, `pull from ${kind}`, () => {
    test("copies runs of all kinds, and remembers the URL without its password", { timeout: 120_000 }, async () => {
      await using database = await freshDatabase(kind);
      const secret = new URL(database.url);
      // The server trusts every password.
      if (kind === "postgres") secret.password = "sesame-7";
      await using engine = await createEngine({
        store: database.url,
        definitions: DEFINITIONS,
        logger: { info: () => {}, warn: () => {}, error: () => {} },
      });
      await (await engine.start(pay, 4990, { id: "pay-1", tags: ["shop", "eu"] })).result();
      await (await engine.start(failing, {}, { id: "failing-1" })).result().catch(() => {});
      const waiting = [
        await engine.start(pages, 2, { id: "pages-1" }),
        await engine.start(agent, {}, { id: "agent-1" }),
        await engine.start(shop, { prices: [1, 200, -1] }, { id: "shop-1" }),
      ];
      for (const run of waiting) await expect.poll(async () => (await run.info()).status).toBe("waiting");
      await engine.close();
      const cwd = away(`from-${kind}`);
      const pulled = await command(["pull", secret.href, "--as", "prod", "--json"], { cwd });
      expect(jsonLines(pulled.stdout).length, pulled.stderr).toBe(8);
      const outputs = async (args: readonly string[]): Promise<readonly unknown[]> => {
        const home = await command([...args, "--store", database.url], { cwd });
        const there = await command(inMirror(args), { cwd });
        return [home, there].map(({ code, stdout }) => ({
          code,
          stdout: timeless(stdout).replaceAll(/ --store \S+?(?=["\s`])/g, ""),
        }));
      };
      for (const id of ["pay-1", "failing-1", "pages-1", "agent-1", "shop-1"])
        for (const args of [
          ["show", id],
          ["show", id, "--json"],
          ["journal", id, "--json"],
        ]) {
          const [home, there] = await outputs(args);
          expect(there, args.join(" ")).toEqual(home);
        }
      const again = await command(["pull", "prod", "pay-1"], { cwd });
      if (kind === "mysql") return expect(again.stdout).toContain("nothing new");
      expect(again).toMatchObject({
        code: 3,
        stderr: expect.stringMatching(/The mirror prod keeps no password\. Set REPRISE_STORE_PROD/),
      });
      expect(readFileSync(join(cwd, ".reprise/runs/prod.db")).includes(secret.password)).toBe(false);
      const known = await cli(["pull", "prod", "pay-1"], { cwd, env: { REPRISE_STORE_PROD: secret.href } });
      expect(known.stdout).toContain("nothing new");
    });
  });

describe("import", () => {
  test(
    "brings the runs of a bundle home: every reading command prints what it prints there",
    { timeout: 240_000 },
    async () => {
      const cwd = away("imported");
      const { code, stdout, stderr } = await command(["import", bundlePath], { cwd });
      expect({ code, stdout, stderr }).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/^imported 11 runs \(.*into the mirror prod\n$/),
        stderr: expect.stringContaining("which you do not trust yet"),
      });
      // Chunks of streams are in no bundle.
      await compare(
        cwd,
        READING.filter(([name]) => name !== "stream"),
      );
      expect((await command(["import", bundlePath], { cwd })).stdout).toContain("nothing new");
    },
  );

  test(
    "refuses a bundle that is cut after any line or within it, and leaves nothing",
    { timeout: 240_000 },
    async () => {
      const cwd = away("cut");
      const one = join(cwd, "one.jsonl");
      await cli(["bundle", "refuse-1", "-o", one, "--store", store], {
        cwd,
        env: { REPRISE_HOME: folder.file("signer"), REPRISE_KEY: `prod:${Buffer.alloc(32, 7).toString("base64")}` },
      });
      const lines = readFileSync(one, "utf8").split("\n").slice(0, -1);
      const cuts = lines.flatMap((line, index) => {
        const before = lines.slice(0, index).map((text) => `${text}\n`);
        return [before.join(""), `${before.join("")}${line.slice(0, line.length / 2)}`, `${before.join("")}${line}`];
      });
      for (const [index, text] of [...cuts.entries()]) {
        const file = join(cwd, "cut.jsonl");
        writeFileSync(file, text);
        const refused = await command(["import", file, "--as", "prod"], { cwd });
        expect({ index, ...refused }).toMatchObject({ code: 5, stderr: expect.stringContaining("BUNDLE_DAMAGED") });
        expect(existsSync(join(cwd, ".reprise/runs/prod.db"))).toBe(false);
      }
      expect((await command(["import", one], { cwd })).code).toBe(0);
    },
  );

  test("refuses bundles without payloads, of other origins, and those that contradict the mirror", async () => {
    const cwd = away("refused");
    const env = { REPRISE_HOME: folder.file("signer"), REPRISE_KEY: `prod:${Buffer.alloc(32, 7).toString("base64")}` };
    const make = (name: string, more: readonly string[] = [], key = env.REPRISE_KEY): Promise<Finished> =>
      cli(["bundle", "pay-1", "-o", name, "--store", store, ...more], { cwd, env: { ...env, REPRISE_KEY: key } });
    await make("hashes.jsonl", ["--hash-only"]);
    expect(await command(["import", "hashes.jsonl"], { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/hash-only bundle: .* no payloads .*reprise verify/),
    });
    await make("unsigned.jsonl", ["--unsigned"]);
    expect(await command(["import", "unsigned.jsonl"], { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Name the mirror for its runs with --as"),
    });
    await make("pay.jsonl");
    expect((await command(["import", "pay.jsonl"], { cwd })).code).toBe(0);
    await make("other.jsonl", [], `prod:${Buffer.alloc(32, 8).toString("base64")}`);
    expect(await command(["import", "other.jsonl"], { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Import it under another name"),
    });
    const other = `sqlite:${join(cwd, "other.db")}`;
    await using engine = await createEngine({ store: other, definitions: [pay, charge], logger: false as never });
    await (await engine.start(pay, 1, { id: "pay-1" })).result();
    expect(await command(["pull", other, "pay-1", "--as", "prod"], { cwd })).toMatchObject({
      code: 5,
      stderr: expect.stringContaining("Run pay-1 (generation 0) is damaged or forked"),
    });
  });
});

describe("a run of a mirror", () => {
  test("is found by its id alone, unless two mirrors or the store have it", async () => {
    const cwd = away("names");
    await command(["pull", store, "pay-1", "review-1", "--as", "prod"], { cwd });
    const bare = await command(["show", "pay-1"], { cwd });
    expect(bare).toMatchObject({ code: 0, stderr: "pay-1 is read from the mirror prod\n" });
    await command(["pull", store, "pay-1", "--as", "edge"], { cwd });
    expect(await command(["show", "pay-1"], { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("is in the mirrors edge and prod. Name one of them: edge/pay-1"),
    });
    copyFileSync(folder.file("shop.db"), join(cwd, "reprise.db"));
    expect(await command(["show", "pay-1"], { cwd })).toMatchObject({ code: 0, stderr: "" });
    expect(await command(["show", "prod/nobody"], { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("The mirror prod has no run nobody"),
    });
    rmSync(join(cwd, "reprise.db"));
    expect(await command(["show", "prdo/pay-1"], { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Run prdo/pay-1 is in no mirror (edge, prod), and there is no store at"),
    });
    for (const name of ["verify", "debug"])
      expect((await cli(["complete", "--", name, "prod/pa"], { cwd })).stdout).toContain("prod/pay-1\t");
    const candidates = await cli(["complete", "--", "show", "prod/"], { cwd });
    const values = candidates.stdout.split("\n").map((line) => line.split("\t")[0]);
    expect(values).toEqual(["prod/review-1", "prod/pay-1", ""]);
    const names = await cli(["complete", "--", "show", ""], { cwd });
    expect(names.stdout).toBe("edge/\tmirror\nprod/\tmirror\n");
  });

  test("is refused by every command that changes runs, with the store to use instead", async () => {
    const cwd = away("writes");
    await command(["pull", store, "review-1", "failing-1", "agent-1", "--as", "prod"], { cwd });
    for (const args of [
      ["cancel", "prod/review-1"],
      ["pause", "review-1"],
      ["resume", "prod/review-1"],
      ["terminate", "prod/review-1"],
      ["retry", "prod/failing-1"],
      ["delete", "prod/failing-1"],
      ["resolve", "prod/review-1", "approval", "{}"],
      ["signal", "prod/review-1", "x"],
      ["bundle", "prod/review-1", "-o", "x.jsonl"],
    ])
      expect({ args, ...(await command(args, { cwd })) }).toMatchObject({
        code: 3,
        stderr: expect.stringMatching(
          new RegExp(`STORE_IS_MIRROR: Run [\\w-]+ is a copy in the mirror prod.*--store ${store}`),
        ),
      });
    expect(await command(["show", "prod/review-1", "--watch"], { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("which does not move"),
    });
    expect((await command(["diff", "prod/agent-1", "agent-1", "--store", store], { cwd })).stdout).toMatch(/^same/);
  });

  test("is not left half by Ctrl-C, and neither is its file", { timeout: 60_000 }, async () => {
    const cwd = away("interrupted");
    await withEngine(async (engine) => void (await (await engine.start(many, 20_000, { id: "many-1" })).result()));
    const child = startCli(["pull", store, "many-1", "--as", "prod"], { cwd });
    await expect.poll(() => existsSync(join(cwd, ".reprise/runs/prod.db")), { interval: 1 }).toBe(true);
    child.kill("SIGINT");
    const { code } = await finished(child);
    const left = existsSync(join(cwd, ".reprise/runs/prod.db"));
    // The signal may come after the last page; then the run is complete.
    if (code === 0)
      expect((await command(["verify", "prod/many-1", join(ROOT, "test/cli/definitions.ts")], { cwd })).code).toBe(0);
    else expect([code, left]).toEqual([130, false]);
  });
});
