// Hostile bundles: their maker signs what no run has. They end with a verdict or an error of this package, and no command hangs.

import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CHAIN_START, chainAfter } from "../../src/kernel/index.ts";
import { writeBundle, type BundleForm } from "../../src/receipts/index.ts";
import type { BundleSource } from "../../src/receipts/write-bundle.ts";
import { command, TemporaryFolder, type Finished } from "../cli/cli-process.ts";
import { FORMS, KEY, reportsOf, verdictOf } from "./bundled.ts";

const AT = 1_763_280_000_000;
const STARTED = { definition: "kid", flags: [1], input: 4, version: 1 };

/** A bundle of a completed run; `forked` is in its first entry. */
function sourceOf({
  forked,
  hasEnd = true,
  ...more
}: { forked?: object; hasEnd?: boolean } & Partial<BundleSource> = {}): BundleSource {
  const started = { definition: "kid", flags: [1], ...(forked && { forked }), input: 4, version: 1 };
  const entries = [
    { seq: 1, type: "RunStarted" as const, command: "", data: JSON.stringify(forked ? started : STARTED), at: AT },
    { seq: 2, type: "RunCompleted" as const, command: "", data: '{"output":8}', at: AT + 6 },
  ].slice(0, hasEnd ? 2 : 1);
  return {
    run: {
      ...{ id: "kid-1", generation: 0, definition: "kid", kind: "workflow", version: 1, status: "completed" },
      ...{ priority: 0, tags: [], arrivals: 0, read: 0, unread: 0, lostTurns: 0, createdAt: AT, endedAt: AT + 6 },
    },
    head: entries.length,
    chain: entries.reduce((chain, { type, command: of, data }) => chainAfter(chain, type, of, data), CHAIN_START),
    runtimes: [],
    journal: {
      async *pages() {
        yield entries;
      },
    },
    parts: {},
    ...more,
  };
}

async function textOf(source: BundleSource, form: BundleForm = "full"): Promise<string> {
  const lines = await Array.fromAsync(writeBundle(source, { form, key: KEY, engine: "reprise/0.0.0" }));
  return `${lines.join("\n")}\n`;
}

/** Imports a bundle, and reads the journal of its run if that succeeds. */
async function imported(text: string): Promise<Finished> {
  using folder = new TemporaryFolder();
  const home = ["--home", folder.file("home")];
  writeFileSync(folder.file("b.jsonl"), text);
  const put = await command(["import", folder.file("b.jsonl"), "--as", "m", "--key", KEY.vkey, ...home]);
  return put.code === 0 ? await command(["journal", "m/kid-1", ...home]) : put;
}

test.each(FORMS)("a row that has ended without an end in its journal (%s) is damage", async (form) => {
  const [fine] = await reportsOf(Buffer.from(await textOf(sourceOf(), form)));
  expect(verdictOf(fine!)).toBe("fine");
  const [found] = await reportsOf(Buffer.from(await textOf(sourceOf({ hasEnd: false }), form)));
  expect(found).toMatchObject({ problem: { kind: "damaged", line: 3 } });
});

test.each([1, -5])("a run that is a fork of itself (after entry %i) is reported, and no command hangs", async (seq) => {
  const forked = { at: "Task(0)", chain: "00", generation: 0, run: "kid-1", seq };
  const { code, stderr } = await imported(await textOf(sourceOf({ forked })));
  expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining("Run kid-1 is a fork of itself") });
});

test.each(["{{", "null", '{"step":"a","at":1,"execution":1,"attempt":1,"seq":1,"outcome":"failed","worker":{}}'])(
  "an attempt that is %s is damage",
  async (text) => {
    const { stderr } = await imported(await textOf(sourceOf({ parts: { attempts: [text] } })));
    expect(stderr).toContain("error BUNDLE_DAMAGED: Run kid-1 of");
  },
);

test("a section that is twice in a file is imported once", async () => {
  const text = await textOf(sourceOf());
  expect(await imported(text + text)).toMatchObject({ code: 0 });
});

test("a row with any number of generations ends level 2 with what is missing", async () => {
  using folder = new TemporaryFolder();
  const { run, ...more } = sourceOf();
  const file = folder.file("b.jsonl");
  writeFileSync(file, await textOf({ ...more, run: { ...run, generation: Number.MAX_SAFE_INTEGER } }));
  const { code, stdout } = await command(["verify", file, "--level", "2", "--key", KEY.vkey]);
  expect([code, stdout]).toEqual([7, expect.stringMatching(/incomplete.*earlier generation/s)]);
});

test.each([{ generation: -1 }, { version: -1 }, { id: "" }, { id: "x".repeat(2_000) }, { tags: ["a", "a"] }])(
  "a row that no store has, %o, is damage",
  async (odd) => {
    const { run, ...more } = sourceOf();
    const text = Buffer.from(await textOf({ ...more, run: { ...run, ...odd } }));
    await expect(reportsOf(text)).rejects.toMatchObject({ code: "BUNDLE_DAMAGED" });
  },
);
