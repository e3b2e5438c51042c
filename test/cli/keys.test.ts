import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { admittedKeys, findKey } from "../../src/cli/keys.ts";
import { signingKeyOf } from "../../src/receipts/index.ts";
import { kid } from "../receipts/bundled.ts";
import { cli, command, jsonLines, TemporaryFolder, type Finished } from "./cli-process.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

const OTHER = signingKeyOf(Buffer.alloc(32, 3), "other");
const key = (folder: TemporaryFolder, ...args: readonly string[]): Promise<Finished> =>
  command(["key", ...args, "--home", folder.file("home"), "--json"], { cwd: folder.path });

test("key creates a private key once, in a folder that git ignores, and prints it from then on", async () => {
  using folder = new TemporaryFolder();
  const [created] = jsonLines((await key(folder, "--name", "billing")).stdout);
  expect(created).toMatchObject({ origin: /^billing\/[0-9a-f]{16}$/, created: true, from: folder.file("home/key") });
  const [again] = jsonLines((await key(folder)).stdout);
  expect(again).toEqual({ ...created, created: false });
  expect(statSync(folder.file("home/key")).mode & 0o777).toBe(0o600);
  expect(statSync(folder.file("home")).mode & 0o777).toBe(0o700);
  expect(readFileSync(folder.file("home/.gitignore"), "utf8")).toBe("*\n");
  expect(readFileSync(folder.file("home/key"), "utf8")).toMatch(/^billing:[A-Za-z0-9+/]{43}=\n$/);
  expect(await key(folder, "--name", "shipping")).toMatchObject({ code: 2, stderr: /has the name billing/ });
});

test("two processes that create the key at the same time use the same one", async () => {
  using folder = new TemporaryFolder();
  const made = await Promise.all([1, 2, 3].map(() => cli(["key", "--home", folder.file("home"), "--json"])));
  expect(new Set(made.flatMap(({ stdout }) => jsonLines(stdout).map(({ vkey }) => vkey as string))).size).toBe(1);
});

test("a key that other users can read, or that is damaged, is refused without printing it", async () => {
  using folder = new TemporaryFolder();
  await key(folder);
  chmodSync(folder.file("home/key"), 0o644);
  expect(await key(folder)).toMatchObject({ code: 2, stderr: /is not private.*chmod 600/ });
  chmodSync(folder.file("home/key"), 0o600);
  writeFileSync(folder.file("home/key"), "billing:c2VjcmV0\n");
  const { code, stderr } = await key(folder);
  expect({ code, isShown: stderr.includes("c2VjcmV0") }).toEqual({ code: 2, isShown: false });
  expect(stderr).toContain("does not contain a signing key");
});

test("REPRISE_KEY wins over the file", async () => {
  using folder = new TemporaryFolder();
  const env = { REPRISE_KEY: `other:${Buffer.alloc(32, 3).toString("base64")}` };
  const { stdout } = await cli(["key", "--home", folder.file("home"), "--json"], { env });
  expect(jsonLines(stdout)).toEqual([{ origin: OTHER.origin, vkey: OTHER.vkey, from: "REPRISE_KEY", created: false }]);
  expect(existsSync(folder.file("home"))).toBe(false);
});

test("where no key can be written, the error names --unsigned, and with it the bundle is written", async () => {
  using folder = new TemporaryFolder();
  using runs = await new StoreWithRuns([kid]).start({ id: "kid", what: kid, input: 1, until: "completed" });
  // A file in place of the folder: also root cannot write into it.
  writeFileSync(folder.file("home"), "");
  const bundle = ["bundle", "kid", "-o", folder.file("kid.jsonl"), "--store", runs.url, "--home", folder.file("home")];
  expect(await command(bundle)).toMatchObject({ code: 2, stderr: /The signing key cannot be created.*--unsigned/ });
  expect(existsSync(folder.file("kid.jsonl"))).toBe(false);
  expect(await command([...bundle, "--unsigned"])).toMatchObject({ code: 0, stdout: /signer {3}none \(--unsigned\)/ });
});

test("admitted are the own key, the trusted ones and those that are given", async () => {
  using folder = new TemporaryFolder();
  const home = folder.file("home");
  const given = signingKeyOf(Buffer.alloc(32, 4), "given");
  expect(admittedKeys({ home })).toEqual([]);
  await key(folder);
  const { stdout } = await command(["key", "trust", OTHER.vkey, "--home", home, "--json"]);
  expect(jsonLines(stdout)).toEqual([{ origin: OTHER.origin, added: true, file: join(home, "trusted") }]);
  expect(jsonLines((await command(["key", "trust", OTHER.vkey, "--home", home, "--json"])).stdout)[0]?.added).toBe(
    false,
  );
  writeFileSync(join(home, "trusted"), `# ours\n\n${readFileSync(join(home, "trusted"), "utf8")}`);
  const own = findKey({ home })?.key.vkey;
  expect(admittedKeys({ home, key: [given.vkey, OTHER.vkey] }).map(({ vkey }) => vkey)).toEqual([
    own,
    OTHER.vkey,
    given.vkey,
  ]);
  const listed = jsonLines((await command(["key", "list", "--home", home, "--json"])).stdout);
  expect(listed.map(({ trust, vkey }) => `${trust} ${vkey}`)).toEqual([`own ${own}`, `trusted ${OTHER.vkey}`]);
});

test("a vkey that is none is refused with its line, and a list that others can change is refused", async () => {
  using folder = new TemporaryFolder();
  expect(await key(folder, "trust", "edge7")).toMatchObject({ code: 2, stderr: /is not a vkey/ });
  mkdirSync(folder.file("home"), { recursive: true });
  writeFileSync(folder.file("home/trusted"), `${OTHER.vkey}\nnone\n`, { mode: 0o600 });
  expect(await key(folder, "list")).toMatchObject({ code: 2, stderr: /Line 2 of .*trusted/ });
  chmodSync(folder.file("home/trusted"), 0o666);
  expect(await key(folder, "list")).toMatchObject({ code: 2, stderr: /other users of this machine can add keys/ });
});
