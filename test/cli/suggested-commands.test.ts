// The commands that the output suggests can be pasted: they name the store if it is not the default.

import { afterEach, expect, test } from "vitest";
import { DEFAULT_STORE, rememberStore } from "../../src/cli/global-options.ts";
import { withStoreOption } from "../../src/cli/next-command.ts";
import { cli, DEFINITIONS, TemporaryFolder } from "./cli-process.ts";

const { REPRISE_STORE: before } = process.env;
afterEach(async () => {
  if (before === undefined) delete process.env["REPRISE_STORE"];
  else process.env["REPRISE_STORE"] = before;
  await rememberStore(DEFAULT_STORE);
});

test("commands between backticks, or at the end of the text, get --store", async () => {
  await rememberStore("sqlite:shop.db");
  for (const [text, expected] of [
    ["reprise list", "reprise list --store sqlite:shop.db"],
    ["fix it, then: reprise retry a-1", "fix it, then: reprise retry a-1 --store sqlite:shop.db"],
    ["run `reprise doctor`; then `x()`", "run `reprise doctor --store sqlite:shop.db`; then `x()`"],
    ["`reprise show a` or `reprise explain X`", "`reprise show a --store sqlite:shop.db` or `reprise explain X`"],
  ] as const)
    expect(withStoreOption(text)).toBe(expected);
  for (const text of [
    "reprise run --help",
    "reprise list --store sqlite:other.db",
    "Make copies with `reprise backup`.",
    "This is not a terminal, so reprise cannot ask.",
  ])
    expect(withStoreOption(text)).toBe(text);
});

test("the default store is not named, a password is not printed, and special characters are quoted", async () => {
  await rememberStore(DEFAULT_STORE);
  expect(withStoreOption("reprise list")).toBe("reprise list");
  const url = "postgres://ann:secret@db/shop";
  await rememberStore(url);
  expect(withStoreOption("reprise list")).toBe("reprise list --store postgres://ann@db/shop");
  // REPRISE_STORE still has the password when the command is pasted.
  process.env["REPRISE_STORE"] = url;
  await rememberStore(url);
  expect(withStoreOption("reprise list")).toBe("reprise list");
  await rememberStore("sqlite:my shop.db");
  expect(withStoreOption("reprise list")).toBe("reprise list --store 'sqlite:my shop.db'");
});

test("errors name the store of --store and of REPRISE_STORE, but not the default", async () => {
  using folder = new TemporaryFolder();
  const cwd = folder.path;
  const nextOf = async (env: Record<string, string>, ...args: readonly string[]): Promise<string | undefined> =>
    /next: (.*)/.exec((await cli(["show", "nope", ...args], { cwd, env })).stderr)?.[1];
  for (const store of ["sqlite:reprise.db", "sqlite:shop.db"])
    expect((await cli(["run", DEFINITIONS, "greet", '"Ada"', "--store", store], { cwd })).code).toBe(0);
  expect(await nextOf({})).toBe("reprise list");
  expect(await nextOf({}, "--store", "sqlite:shop.db")).toBe("reprise list --store sqlite:shop.db");
  expect(await nextOf({ REPRISE_STORE: "sqlite:shop.db" })).toBe("reprise list --store sqlite:shop.db");
});
