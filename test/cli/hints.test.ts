// Every command that the output suggests works: it is run as printed, by a shell, on a copy of the store it was printed for.

import { execFileSync } from "node:child_process";
import { copyFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createEngine } from "reprise";
import { command, finished, ROOT, startCli, TemporaryFolder, waitForOutput, type Finished } from "./cli-process.ts";
import * as definitions from "./hint-definitions.ts";
import { StoreWithRuns } from "./store-with-runs.ts";

// Hundreds of commands, on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const FILE = join(ROOT, "test/cli/hint-definitions.ts");
const CHANGED = join(ROOT, "test/cli/changed/hint-definitions.ts");
const { mail: _queue, ...all } = definitions;
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

let store: StoreWithRuns;
let folder: TemporaryFolder;

beforeAll(async () => {
  folder = new TemporaryFolder();
  store = await new StoreWithRuns(Object.values(all)).start(
    { id: "completed", what: definitions.completes, until: "completed" },
    { id: "failed", what: definitions.refuses, until: "failed" },
    { id: "it's failed; really", what: definitions.refuses, until: "failed" },
    { id: "undone", what: definitions.undoes, until: "failed" },
    { id: "asks", what: definitions.asks, until: "waiting" },
    { id: "asks & waits", what: definitions.asks, until: "waiting" },
    { id: "listens", what: definitions.listens, until: "waiting" },
    { id: "sleeps", what: definitions.sleeps, until: "waiting" },
    { id: "parent", what: definitions.parent, until: "waiting" },
    { id: "guesses", what: definitions.guesses, until: "blocked" },
    { id: "guesses again (2)", what: definitions.guesses, until: "blocked" },
    { id: "incomplete", what: definitions.incomplete, until: "blocked" },
    { id: "graph", what: definitions.asksInNode, input: {}, until: "waiting" },
    { id: "failed graph", what: definitions.failsInNode, input: {}, until: "failed" },
    { id: "failed flow", what: definitions.failsInItem, input: 3, until: "failed" },
    { id: "broken-flow", what: definitions.breaks, input: 3, until: "failed" },
  );
  // Runs that need a paused queue, a label, a delay or a command.
  await using engine = await createEngine({
    store: store.url,
    definitions: Object.values(all),
    worker: { labels: [] },
    logger: SILENT,
  });
  await engine.getQueue("mail").pause();
  await engine.start(definitions.sends, undefined, { id: "queue is paused" });
  await engine.start(definitions.renders, undefined, { id: "label" });
  await engine.start(definitions.completes, undefined, { id: "delayed", delay: "1 day" });
  const continued = await engine.start(definitions.continues, 1, { id: "continued" });
  const paused = await engine.start(definitions.asks, undefined, { id: "paused" });
  const cancelled = await engine.start(definitions.asks, undefined, { id: "cancelled" });
  for (const run of [continued, paused, cancelled])
    while ((await run.info()).status !== "waiting") await new Promise((resolve) => setImmediate(resolve));
  await paused.pause();
  await cancelled.terminate("no longer needed");
});
afterAll(() => {
  store[Symbol.dispose]();
  folder[Symbol.dispose]();
});

/** The commands between backticks, after `next:` and at the end of a line; not the mere name of a command. */
function suggestedIn(output: string): readonly string[] {
  return stripVTControlCharacters(output)
    .split("\n")
    .flatMap((line) => {
      const inBackticks = [...line.matchAll(/`(reprise [^`]+)`/g)].map(([, found]) => found!);
      if (inBackticks.length > 0) return inBackticks;
      const [, atEnd] = /: (reprise [a-z].+)$/.exec(line) ?? [];
      return atEnd === undefined ? [] : [atEnd];
    })
    .filter(
      (found) =>
        !/…|^reprise (?:restore|backup|worker|resolve|signal|update|query|stream)(?: --store \S+)?$/.test(found),
    );
}

/** What a person fills in. */
const FILLED: readonly (readonly [placeholder: RegExp, value: string])[] = [
  [/<file>/g, FILE],
  [/'<(?:value|input) as JSON>'/g, "1"],
  [/<workflow>/g, "completes"],
];

/** Runs the command as a shell would, on its own copy of the store. */
async function runSuggested(suggested: string): Promise<Finished> {
  const copy = new TemporaryFolder();
  for (const name of readdirSync(store.folder.path)) copyFileSync(store.folder.file(name), copy.file(name));
  let line = suggested.replaceAll(store.folder.path, copy.path);
  for (const [placeholder, value] of FILLED) line = line.replaceAll(placeholder, value);
  const words = execFileSync("sh", ["-c", `reprise() { printf '%s\\0' "$@"; }; ${line}`], { encoding: "utf8" })
    .split("\0")
    .slice(0, -1);
  try {
    if (words[0] === "update") {
      // A worker answers updates.
      const url = `sqlite:${copy.file("shop.db")}`;
      await using _worker = await createEngine({ store: url, definitions: Object.values(all), logger: SILENT });
      return await command(words);
    }
    if (words[0] !== "worker") return await command(words);
    const child = startCli(words);
    const ended = finished(child);
    await waitForOutput(child, "started worker");
    child.kill("SIGTERM");
    return await ended;
  } finally {
    copy[Symbol.dispose]();
  }
}

/** Suggestions that failed, with what they printed. */
async function failuresOf(printed: readonly (readonly [by: string, output: string])[]): Promise<readonly string[]> {
  const seen = new Map<string, string>();
  for (const [by, output] of printed) for (const found of suggestedIn(output)) seen.set(found, by);
  const failures: string[] = [];
  for (const [suggested, by] of seen) {
    const { code, stderr } = await runSuggested(suggested);
    // doctor finds the problems of this store, and a new run fails as the first: its cause was not fixed.
    const isFine =
      code === 0 ||
      (code === 1 &&
        (suggested.startsWith("reprise doctor") ||
          (suggested.startsWith("reprise run") && stderr.includes("RUN_FAILED"))));
    if (!isFine) failures.push(`${by} suggests ${suggested}, which exits with ${code}: ${stderr}`);
  }
  expect(seen.size).toBeGreaterThan(0);
  return failures;
}

async function printedBy(...lines: readonly (readonly string[])[]): Promise<readonly (readonly [string, string])[]> {
  const printed: (readonly [string, string])[] = [];
  for (const words of lines) {
    const { stdout, stderr } = await store.cli(...words);
    printed.push([words.join(" "), `${stdout}\n${stderr}`]);
  }
  return printed;
}

test("show, of runs in every state, suggests commands that work", async () => {
  const listed = (await store.cli("list", "--limit", "100", "--json")).stdout;
  const ids = listed
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { id: string }).id);
  expect(ids.length).toBeGreaterThan(20);
  const printed = await printedBy(
    ...ids.map((id) => ["show", id]),
    ["show", "continued", "--generation", "0"],
    ["show", "graph", "--timeline"],
    ["show", "failed flow", "--timeline"],
    ...["failed", "undone", "guesses", "failed graph", "failed flow", "completed"].map((id) => ["show", id, "--watch"]),
  );
  expect(await failuresOf(printed)).toEqual([]);
});

test("doctor, top and lists suggest commands that work", async () => {
  const printed = await printedBy(["doctor"], ["top", "--once"], ["queue", "list"], ["schedule", "list"], ["list"]);
  expect(await failuresOf(printed)).toEqual([]);
});

test("errors about a run, a name or a step suggest commands that work", async () => {
  const printed = await printedBy(
    ["show", "nope"],
    ["show", "asks", "--generation", "7"],
    ["schedule", "show", "nope"],
    ["queue", "pause", "nope"],
    ["resolve", "asks", "aproval", "1"],
    ["resolve", "listens", "add", "1"],
    ["signal", "asks", "it's ok", "1"],
    ["signal", "listens", "drop", "1", "--file", FILE],
    ["resolve", "completed", "approval", "1"],
    ["checkpoints", "graph", "--step", "99"],
    ["checkpoints", "graph", "--label", "none"],
    ["fork", "graph"],
    ["fork", "asks"],
    ["fork", "graph", "--step", "99"],
    ["graph", FILE, "--run", "asks"],
    ["graph", FILE, "--run", "it's failed; really"],
    ["explain", "NO_SUCH_CODE"],
    ["retry", "undone"],
    ["resume", "asks"],
    ["cancel", "completed"],
  );
  expect(await failuresOf(printed)).toEqual([]);
});

test("a run that fails or stops, and code that does not match a journal, suggest commands that work", async () => {
  const printed = await printedBy(
    ["run", FILE, "refuses", "--id", "it's failed; really"],
    ["run", FILE, "guesses", "--id", "guesses again (2)"],
    ["run", FILE, "incomplete", "--id", "incomplete"],
    ["run", FILE, "nothing"],
    ["replay", "completed", CHANGED],
    ["verify", "completed", CHANGED],
    ["replay", "graph", CHANGED],
    ["verify", "failed graph", FILE],
  );
  expect(await failuresOf(printed)).toEqual([]);
});

test("a store that does not exist, in a folder that exists or not, suggests commands that work", async () => {
  const missing = [`sqlite:${folder.file("new.db")}`, `sqlite:${folder.file("no/folder/new.db")}`];
  for (const url of missing) {
    const { code, stderr } = await command(["list", "--store", url]);
    expect(code).toBe(3);
    expect(await failuresOf([[`list --store ${url}`, stderr]])).toEqual([]);
  }
});
