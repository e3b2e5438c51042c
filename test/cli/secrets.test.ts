// --codec, rekey and --show-secrets: encrypted stores and secrets.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createEngine, workflow } from "reprise";
import { cli, jsonLines, ROOT, TemporaryFolder } from "./cli-process.ts";
import { codec } from "./codec.ts";

const CODEC = ["--codec", join(ROOT, "test/cli/codec.ts")];
const login = workflow("login", async (ctx, user: { name: string; password: string; cardNumber: string }) => {
  await ctx.run("call", () => Promise.reject(new Error(`no sk-canary-51f0 for ${user.name}`))).catch(() => {});
  return { name: user.name, token: "t0ken-1" };
});

async function createStore(folder: TemporaryFolder, encrypted: boolean): Promise<string[]> {
  const store = `sqlite:${folder.file("shop.db")}`;
  await using engine = await createEngine({ store, definitions: [login], ...(encrypted && { codec }) });
  const input = { name: "ann", password: "p4ssw0rd", cardNumber: "4242-4242" };
  await (await engine.start(login, input, { id: "login-1" })).result();
  return ["--store", store];
}

test("without the codec an encrypted store can be listed and copied; other commands name the missing key", async () => {
  using folder = new TemporaryFolder();
  const store = await createStore(folder, true);
  const [list, show, journal, doctor] = await Promise.all([
    cli(["list", "--json", ...store]),
    cli(["show", "login-1", ...store]),
    cli(["journal", "login-1", "--json", ...store]),
    cli(["doctor", ...store]),
  ]);
  expect(jsonLines(list.stdout).map(({ id }) => id)).toEqual(["login-1"]);
  for (const refused of [show, journal, doctor]) {
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain("PAYLOAD_KEY_MISSING");
    expect(refused.stderr).toContain("--codec");
  }
  expect(doctor.stdout).toContain("aes-256-gcm one");
  const backup = await cli(["backup", folder.file("copy.db"), ...store]);
  expect(backup.code).toBe(0);
  for (const file of readdirSync(folder.path))
    expect(readFileSync(join(folder.path, file)).includes("p4ssw0rd")).toBe(false);
});

test("with the codec commands redact secrets, and --show-secrets prints them", async () => {
  using folder = new TemporaryFolder();
  const store = await createStore(folder, true);
  const [doctor, show, json, journal, all] = await Promise.all([
    cli(["doctor", ...store, ...CODEC]),
    cli(["show", "login-1", ...store, ...CODEC]),
    cli(["show", "login-1", "--json", ...store], { env: { REPRISE_CODEC: CODEC[1]! } }),
    cli(["journal", "login-1", ...store, ...CODEC]),
    cli(["journal", "login-1", "--show-secrets", ...store, ...CODEC]),
  ]);
  expect(doctor.stdout).toContain("healthy");
  for (const { stdout } of [show, json, journal]) {
    expect(stdout).toContain("ann");
    expect(stdout).toContain("[redacted]");
    expect(stdout).not.toMatch(/p4ssw0rd|4242|t0ken-1|sk-canary/);
  }
  expect(jsonLines(json.stdout)[0]!["input"]).toEqual({
    name: "ann",
    password: "[redacted]",
    cardNumber: "[redacted]",
  });
  expect(all.stdout).toMatch(/p4ssw0rd[\s\S]*sk-canary-51f0[\s\S]*t0ken-1/);
});

test("secrets under the usual names are redacted in an unencrypted store too", async () => {
  using folder = new TemporaryFolder();
  const store = await createStore(folder, false);
  const { stdout } = await cli(["journal", "login-1", ...store]);
  expect(stdout).toContain("4242");
  expect(stdout).not.toMatch(/p4ssw0rd|t0ken-1/);
});

test("rekey re-encrypts everything with the current key, and the old key is no longer needed", async () => {
  using folder = new TemporaryFolder();
  const store = await createStore(folder, true);
  const refused = await cli(["rekey", ...store]);
  expect([refused.code, refused.stderr.includes("--codec")]).toEqual([2, true]);
  const early = await cli(["show", "login-1", ...store, ...CODEC], { env: { CLI_TEST_KEYS: "two" } });
  expect([early.code, early.stderr.includes("'one'")]).toEqual([3, true]);
  const rekeyed = await cli(["rekey", "--json", ...store, ...CODEC], { env: { CLI_TEST_CURRENT: "two" } });
  expect(jsonLines(rekeyed.stdout)[0]).toEqual({ codec: "aes-256-gcm two", payloads: 3, unreadable: 0 });
  const late = await cli(["show", "login-1", ...store, ...CODEC], { env: { CLI_TEST_KEYS: "two" } });
  expect(late.code).toBe(0);
});

test("a --codec module without codec or redact is refused", async () => {
  using folder = new TemporaryFolder();
  const store = await createStore(folder, true);
  for (const [file, code, expected] of [
    ["nowhere.ts", 2, "there is no file"],
    [join(ROOT, "test/cli/definitions.ts"), 2, "exports neither `codec` nor `redact`"],
    [join(ROOT, "package.json"), 2, "cannot be loaded"],
  ] as const) {
    const refused = await cli(["list", ...store, "--codec", file]);
    expect([refused.code, refused.stderr.includes(expected)]).toEqual([code, true]);
  }
});
