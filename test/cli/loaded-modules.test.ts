// Loaded modules: a start loads only what the command needs, because every module costs startup time.

import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { cli, DEFINITIONS, finished, ROOT, startNode, TemporaryFolder } from "./cli-process.ts";

const HOOK = pathToFileURL(join(ROOT, "test/cli/print-loaded-modules.ts")).href;
const MAIN = join(ROOT, "src/cli/main.ts");

interface Loaded {
  /** Files of this repository, such as `src/cli/main.ts`. */
  readonly own: readonly string[];
  /** Names of packages. */
  readonly packages: readonly string[];
}

async function loadedBy(args: readonly string[], exitCode = 0): Promise<Loaded> {
  const { code, stderr } = await finished(startNode(["--import", HOOK, ...args]));
  const [urls = "", ...lines] = stderr.trimEnd().split("\n").reverse();
  expect(code, lines.reverse().join("\n")).toBe(exitCode);
  const paths = (JSON.parse(urls) as string[])
    .filter((url) => url.startsWith("file:"))
    .map((url) => fileURLToPath(url));
  const packages = paths.flatMap((path) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []);
  return {
    own: paths.map((path) => relative(ROOT, path)).filter((path) => path.startsWith("src/")),
    packages: [...new Set(packages)].sort(),
  };
}

const importing = (name: string): Promise<Loaded> =>
  loadedBy(["--input-type=module", "-e", `await import(${JSON.stringify(name)})`]);

/** Without the modules that parse a URL, as an invalid URL is refused immediately, and without the table of SQLite's codes. */
const inStores = ({ own }: Loaded): readonly string[] =>
  own.filter((path) => path.startsWith("src/stores/") && !ADDRESSES.test(path));

const ADDRESSES =
  /\/(?:index|source|store-source|store-url|address|place-address|thread-store|sqlite\/errors|remote\/(?:hosts|tls|url-options|backend))\.ts$/;

describe("a program", () => {
  test("that imports the package loads no store, no driver and no command", async () => {
    const loaded = await importing("reprise");
    expect(loaded.own).toContain("src/engine/create-engine.ts");
    expect(inStores(loaded)).toEqual([]);
    expect(loaded.own.filter((path) => path.startsWith("src/cli/"))).toEqual([]);
    expect(loaded.packages).toEqual(["croner"]);
  });

  test.each(["reprise/postgres", "reprise/mysql"])("that names a database with %s opens nothing yet", async (door) => {
    const loaded = await importing(door);
    expect(inStores(loaded)).toEqual([]);
    expect(loaded.packages).toEqual([]);
  });
});

describe("the command line", () => {
  const START =
    /^src\/cli\/(?:commands\/[\w-]+|command|completion-scripts|exit-codes|global-options|main|program|signals|version)\.ts$/;
  const beyondStart = ({ own }: Loaded): readonly string[] => own.filter((path) => !START.test(path));

  test.each(["--version", "--help"])("%s loads no code of a command", async (option) => {
    const loaded = await loadedBy([MAIN, option]);
    expect(loaded.own).toContain("src/cli/commands/maintenance.ts");
    expect(beyondStart(loaded)).toEqual([]);
    expect(loaded.packages).toEqual(["commander"]);
  });

  test.each([
    ["an explanation", ["explain", "STORE_BUSY"], 0],
    ["a misspelt command", ["lsit"], 2],
  ])("%s loads no engine", async (_, args, code) => {
    const rooms = beyondStart(await loadedBy([MAIN, ...args], code)).map((path) => path.split("/")[1]);
    expect([...new Set(rooms)].sort()).toEqual(["base", "cli"]);
  });

  test("a command on a file loads no code of servers or of other commands", async () => {
    using folder = new TemporaryFolder();
    const store = ["--store", `sqlite:${folder.file("a.db")}`];
    await cli(["run", DEFINITIONS, "pay", "7", ...store]);
    const loaded = await loadedBy([MAIN, "list", ...store]);
    const stores = inStores(loaded).map((path) => path.split("/")[2]);
    expect([...new Set(stores)].sort()).toEqual([
      "contents",
      "payload-cipher.ts",
      "rows",
      "rules",
      "sqlite",
      "thread-payload.ts",
    ]);
    expect(loaded.own).toContain("src/cli/list.ts");
    const others = [
      "show",
      "top",
      "doctor",
      "maintenance",
      "run",
      "worker",
      "graph",
      "control",
      "messages",
      "schedule",
      "queue",
    ];
    expect(others.filter((name) => loaded.own.includes(`src/cli/${name}.ts`))).toEqual([]);
    // A command that reads loads no engine.
    const rooms = loaded.own.map((path) => path.split("/")[1]);
    expect([...new Set(rooms)].sort()).toEqual(["base", "cli", "kernel", "stores"]);
    expect(loaded.packages).toEqual(["commander"]);
  });
});
