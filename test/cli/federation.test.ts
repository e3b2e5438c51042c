// Federation on the command line: two sites that exchange files through a folder.

import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEngine } from "reprise";
import { cli, command, jsonLines, TemporaryFolder, type Finished } from "./cli-process.ts";
import { pay, charge } from "./definitions.ts";

const folder = new TemporaryFolder();
const store = `sqlite:${folder.file("shop.db")}`;
const shared = folder.file("shared");

const site =
  (name: string) =>
  (...args: readonly string[]): Promise<Finished> =>
    command([...args, "--home", folder.file(name), ...(name === "edge" ? ["--store", store] : [])], {
      cwd: folder.file(name),
    });
const edge = site("edge");
const office = site("office");

async function runPay(ids: Readonly<Record<string, number>>): Promise<void> {
  await using engine = await createEngine({ store, definitions: [pay, charge], logger: false });
  for (const [id, amount] of Object.entries(ids)) await (await engine.start(pay, amount, { id })).result();
}

const vkeyOf = async (name: string): Promise<string> =>
  jsonLines((await site(name)("key", "--name", name, "--json")).stdout)[0]!["vkey"] as string;

beforeAll(async () => {
  for (const name of ["edge", "office", "shared"]) mkdirSync(folder.file(name));
  await runPay({ "pay-1": 4990 });
});
afterAll(() => folder[Symbol.dispose]());

describe("peers", () => {
  test("are kept in a private file, and listed without their tokens", async () => {
    const added = await edge(
      "peer",
      "add",
      "office",
      shared,
      "--key",
      await vkeyOf("office"),
      "--push",
      "--new-token",
      "--json",
    );
    const [peer] = jsonLines(added.stdout);
    expect(peer).toMatchObject({ name: "office", origin: /^office\//, token: /^[0-9a-f]{64}$/ });
    expect(statSync(folder.file("edge/federation.json")).mode & 0o777).toBe(0o600);
    const { stdout } = await edge("peer", "list", "--json");
    expect(jsonLines(stdout)).toMatchObject([{ name: "office", push: true, hasToken: true }]);
    expect(stdout).not.toContain(peer!["token"]);
    expect((await edge("peer", "list")).stdout).toMatch(/office +office\/[0-9a-f]{16} +pull, push +yes/);
  });

  test("keep what is known of them when they are added again, and folders are found from anywhere", async () => {
    const key = await vkeyOf("office");
    expect(await edge("peer", "add", "office", "../shared", "--key", key, "--pull", "*")).toMatchObject({
      code: 0,
      stdout: /^changed office, office\//,
    });
    const { stdout } = await edge("peer", "list", "--json");
    expect(jsonLines(stdout)).toMatchObject([{ url: shared, push: true, pull: ["*"], hasToken: true }]);
  });

  test("are completed by the shell", async () => {
    expect((await command(["complete", "--", "--home", folder.file("edge"), "push", ""])).stdout).toContain(
      `office\t${shared}`,
    );
  });

  test("that do not exist, and vkeys that are none, are refused with what to do", async () => {
    expect(await edge("peer", "remove", "hub")).toMatchObject({
      code: 2,
      stderr: /There is no peer hub.*The peers are office/,
    });
    expect(await edge("push", "hub")).toMatchObject({ code: 2, stderr: /next: reprise peer list/ });
    expect(await edge("peer", "add", "hub", "--key", "edge7")).toMatchObject({
      code: 2,
      stderr: /peers\.hub\.vkey.*is not a vkey/,
    });
  });
});

test("A port that does not exist is refused as an option.", async () => {
  expect(await office("serve", "--port", "80000")).toMatchObject({
    code: 2,
    stderr: /expected 0 .* to 65535, got 80000/,
  });
});

describe("a run of the edge", () => {
  test("is recorded once federation is on, and pushed as its rules say", async () => {
    expect(await edge("fed", "on")).toMatchObject({
      code: 0,
      stdout: /^on {2}runs that end are recorded in the log of edge\//,
    });
    const file = folder.file("edge/federation.json");
    const settings = JSON.parse(readFileSync(file, "utf8")) as object;
    writeFileSync(file, JSON.stringify({ ...settings, publish: [{ to: ["office"], payloads: "full" }] }));
    await runPay({ "pay-2": 100 });
    expect((await edge("doctor")).stdout).toMatch(/federation +1 run ended without a record in the log yet/);
    expect(await edge("push")).toMatchObject({ code: 0, stdout: /^pushed office: 4 records, 8 contents\n/ });
    expect(await edge("push", "office")).toMatchObject({ code: 0, stdout: "pushed office: nothing new\n" });
    const [status] = jsonLines((await edge("fed", "status", "--json")).stdout);
    expect(status).toMatchObject({ peers: [{ name: "office", pushedAt: /^20/ }] });
    expect(status).toMatchObject({ isOn: true, waiting: 0, conflicts: 0, origins: [{ peer: "self", size: 4 }, {}] });
    expect((await edge("head")).stdout).toMatch(/^edge\/[0-9a-f]{16}\n4\n\S{44}\n\n— edge\//);
  });

  test("is not published to a carrier that no rule is for, and push says so", async () => {
    mkdirSync(folder.file("bare"));
    expect(await edge("push", folder.file("bare"))).toMatchObject({
      code: 0,
      stdout: /: 4 records, 0 contents\n$/,
      stderr: /gets the log and no contents: no rule in `publish` is for it/,
    });
  });

  test("reaches the office, which shows, replays and verifies it as at home", async () => {
    await office("peer", "add", "edge", shared, "--key", await vkeyOf("edge"));
    expect(await office("pull", "edge")).toMatchObject({ code: 0, stdout: /^pulled edge: 4 records, 8 contents/ });
    expect(await office("pull", "edge", "pay-2")).toMatchObject({
      code: 0,
      stdout: /pulled 1 run .* into the mirror edge/,
    });
    for (const args of [["show"], ["journal"], ["verify"], ["show", "--json"], ["journal", "--json"]]) {
      const [name, ...rest] = args;
      const home = await edge(name!, "pay-2", ...rest);
      const there = await office(name!, "edge/pay-2", ...rest);
      expect({ args, stdout: there.stdout.replaceAll("edge/pay-2", "pay-2") }).toEqual({ args, stdout: home.stdout });
    }
  });

  test("is a bundle at the office that its log vouches for, and that verify accepts", async () => {
    const out = folder.file("bundles");
    expect(await office("pull", "edge", "pay-2", "--out", out)).toMatchObject({ code: 0, stdout: /^wrote 1 bundle/ });
    const verified = await office("verify", `${out}/pay-2.jsonl`, "--json");
    expect(verified.code, verified.stdout + verified.stderr).toBe(0);
    expect(jsonLines(verified.stdout)[0]).toMatchObject({
      runs: [{ id: "pay-2", verdict: "verified", signer: /^edge\// }],
    });
  });

  test("is traced over what both sites have published", async () => {
    const { code, stdout } = await office("uses", "run:pay-2", "--sites", "--json");
    expect(code).toBe(0);
    expect(jsonLines(stdout).map(({ depth, type }) => `${depth} ${type}`)).toEqual(
      expect.arrayContaining(["1 claimed", "1 journaled", "2 generated"]),
    );
    expect(await office("why", "run:pay-2", "--snapshot", "3f")).toMatchObject({ code: 2, stderr: /is for --sites/ });
  });

  test("has equal snapshots and state hashes at both sites", async () => {
    const [here] = jsonLines((await edge("snapshot", "create", "--json")).stdout);
    const [there] = jsonLines((await office("snapshot", "create", "--json")).stdout);
    expect([there!["id"], there!["stateHash"]]).toEqual([here!["id"], here!["stateHash"]]);
    expect((await edge("snapshot", "list")).stdout).toContain(String(here!["id"]).slice(0, 16));
    expect(await edge("snapshot", "diff", String(here!["id"]).slice(0, 8))).toMatchObject({
      code: 0,
      stdout: "No difference.\n",
    });
    const rebuilt = await office("fed", "rebuild", "--json");
    expect(jsonLines(rebuilt.stdout)).toEqual([{ stateHash: here!["stateHash"] }]);
  });
});

describe("history", () => {
  test("is archived, pruned and brought back", async () => {
    const archive = folder.file("archive");
    mkdirSync(archive);
    const before = await edge("show", "pay-1");
    expect(await edge("archive", archive)).toMatchObject({ code: 0, stdout: /^archived 2 runs/ });
    expect(await edge("prune", "--archived", "--older-than", "0s", "--yes")).toMatchObject({
      code: 0,
      stdout: /^deleted 2 runs/,
    });
    expect(await edge("show", "pay-1")).toMatchObject({ code: 2 });
    expect(await edge("pull", archive, "pay-1")).toMatchObject({ code: 0 });
    expect((await edge("show", "edge/pay-1")).stdout.replaceAll("edge/pay-1", "pay-1")).toBe(before.stdout);
  });

  test("is compared with a snapshot: what is new is visible", async () => {
    const [before] = jsonLines((await edge("snapshot", "create", "--json")).stdout);
    await runPay({ "pay-3": 77 });
    await edge("push");
    const { code, stdout } = await edge("snapshot", "diff", String(before!["id"]).slice(0, 8));
    expect({ code, lines: stdout.trimEnd().split("\n") }).toEqual({
      code: 1,
      lines: Array.from({ length: 2 }, () => expect.stringMatching(/^\+ a:[0-9a-f]{16}… {2}absent → visible$/)),
    });
    expect(await edge("snapshot", "show", "none")).toMatchObject({ code: 2, stderr: /next: reprise snapshot list/ });
  });

  test("is erased at every site", async () => {
    await office("pull", "edge");
    expect(await edge("erase", "pay-3", "--reason", "request of the customer")).toMatchObject({
      code: 2,
      stderr: /Add --yes/,
    });
    expect(await edge("erase", "pay-3", "--reason", "request of the customer", "--yes")).toMatchObject({
      code: 0,
      stdout: /^erased 1 content/,
    });
    expect(await edge("show", "pay-3")).toMatchObject({ code: 2 });
    await edge("push");
    await office("pull", "edge");
    expect(await office("pull", "edge", "pay-3")).toMatchObject({ stderr: /its journal was erased for good/ });
  });

  test("of a rotated key continues under the same origin", async () => {
    const before = await vkeyOf("edge");
    const { stdout } = await edge("key", "rotate", "--json");
    expect(jsonLines(stdout)[0]).toMatchObject({ origin: before.split("+")[0] });
    const [key] = jsonLines((await edge("key", "--json")).stdout);
    expect(key).toMatchObject({ vkey: before, signsWith: jsonLines(stdout)[0]!["vkey"] });
    await edge("push");
    expect(await office("pull", "edge")).toMatchObject({ code: 0 });
    expect(
      await cli(["key", "rotate", "--home", folder.file("edge"), "--store", store], {
        env: { REPRISE_KEY: `x:${Buffer.alloc(32).toString("base64")}` },
      }),
    ).toMatchObject({ code: 2 });
  });
});
