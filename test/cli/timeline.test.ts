// The timeline has a line for every type of entry, also for types of newer versions.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { renderTimeline } from "../../src/cli/timeline.ts";
import type { JournalEntry } from "../../src/kernel/index.ts";
import { ROOT } from "./cli-process.ts";

const source = readFileSync(join(ROOT, "src/kernel/journal.ts"), "utf8");
const union = /export type EntryType =([\s\S]*?);/.exec(source)?.[1] ?? "";
const types = Array.from(union.matchAll(/"(\w+)"/g), (match) => match[1] as JournalEntry["type"]);

const bare = (_style: unknown, text: string): string => text;

function linesOf(...entries: readonly Pick<JournalEntry, "type" | "data">[]): string[] {
  const journal = entries.map((entry, index) => ({
    ...entry,
    seq: index + 1,
    command: "Task(0)",
    at: new Date(index),
  }));
  return renderTimeline(journal, { width: 100, paint: bare });
}

test("the list of entry types is not empty", () => {
  expect(types.length).toBeGreaterThan(25);
});

test.each(types)("%s has a line, also if its data is unexpected", (type) => {
  for (const data of [{}, null, "text", { name: 1, error: 2, ms: "x", failures: 3 }]) {
    const [, line = ""] = linesOf({ type: "RunStarted", data: {} }, { type, data });
    expect(line).toMatch(/^ {6}\+1 ms {2}[●✖○·] \S/);
    expect(line).not.toContain("[object");
  }
});

test("an entry of a newer version is printed as it is", () => {
  const unknown = "MoonPhaseObserved" as JournalEntry["type"];
  expect(linesOf({ type: unknown, data: { phase: "full" } })).toEqual([
    "      +0 ms  · MoonPhaseObserved  { phase: 'full' }",
  ]);
});
