// The timeline has a line for every type of entry, also for types of newer versions.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { encode } from "../../src/base/index.ts";
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

test("a timer with an id is named by it in the timeline", () => {
  const started = { type: "TimerStarted", command: "Timer(0)", at: new Date(1) } as const;
  const named = { ...started, seq: 2, data: { index: 0, ms: 3_600_000, timerId: "renewal" } };
  const until = { ...started, seq: 2, data: { index: 0, ms: 3_600_000, timerId: "renewal", until: true } };
  const journal = (entry: JournalEntry): JournalEntry[] => [
    { seq: 1, type: "RunStarted", data: {}, at: new Date(0) },
    entry,
    { ...started, seq: 3, type: "TimerFired", data: {}, at: new Date(3_600_001) },
  ];
  const lines = (entry: JournalEntry): string[] => renderTimeline(journal(entry), { width: 100, paint: bare }).slice(1);
  expect(lines(named)).toEqual([
    "      +1 ms  ○ renewal  sleep 1 h, until +1 h",
    "       +1 h  ● renewal  ended after 1 h",
  ]);
  expect(lines(until)[0]).toBe("      +1 ms  ○ renewal  sleep until +1 h");
});

test("an answer that a fork took from its origin has no time of its own", () => {
  const task = { command: "Task(0)", seq: 2 };
  const journal: JournalEntry[] = [
    { seq: 1, type: "RunStarted", data: {}, at: new Date(60_000) },
    { ...task, type: "TaskScheduled", data: { index: 0, taskType: "charge" }, at: new Date(60_001) },
    { ...task, type: "TaskCompleted", data: { result: 5 }, at: new Date(7) },
  ];
  expect(renderTimeline(journal, { width: 100, paint: bare }).slice(1)).toEqual([
    "      +1 ms  ○ charge   task, scheduled",
    "   recorded  ● charge   took 0 ms → 5",
  ]);
});

test("the time in the queue counts from the retry of a run, and each failed attempt shows where it threw", () => {
  const at = (ms: number): Date => new Date(ms);
  const stack = (line: number): string => `Error: no\n    at charge (file:///app/orders.ts:${line}:9)`;
  const failed = Object.assign(new Error("no"), { stack: stack(12) });
  const ran = { command: "Task(0)", worker: "shop-1", tookMs: 1 };
  const journal: JournalEntry[] = [
    { seq: 1, type: "RunStarted", data: {}, at: at(0) },
    { seq: 2, type: "TaskScheduled", data: { index: 0, taskType: "charge" }, command: "Task(0)", at: at(1) },
    {
      ...{ ...ran, seq: 3, type: "TaskFailed", at: at(9_001), startedAt: at(9_000), execution: 2 },
      data: { attempt: 1, error: failed, stack: stack(20) },
    },
    { seq: 4, type: "RunFailed", data: { error: failed }, at: at(9_002) },
    { seq: 5, type: "RunRetried", data: { from: 3 }, at: at(60_000) },
    {
      ...ran,
      seq: 6,
      type: "TaskCompleted",
      data: {},
      at: at(62_001),
      startedAt: at(62_000),
      execution: 1,
      worker: "shop-2",
    },
  ];
  const attempts = [
    {
      ...({ step: "Task(0)", execution: 1, attempt: 0, outcome: "failed", worker: "shop-1", seq: 0 } as const),
      ...{ startedAt: 1, at: 2, data: encode({ error: failed, stack: stack(12) }) },
    },
  ];
  const lines = renderTimeline(journal, { width: 100, paint: bare, attempts });
  expect(lines.slice(3, 7)).toEqual([
    "                        └ attempt 1 on shop-1, took 1 ms: Error: no",
    "                        └ at charge (file:///app/orders.ts:12:9)",
    "                        └ attempt 2 threw",
    "                        └ at charge (file:///app/orders.ts:20:9)",
  ]);
  expect(lines.at(-1)).toBe("   +1 m 2 s  ● charge   took 1 ms (2 s in the queue) on shop-2");
  const narrow = renderTimeline(journal, { width: 60, paint: bare, attempts });
  expect(narrow.filter((line) => line.includes("└ at charge"))).toEqual([
    expect.stringMatching(/└ at charge.*….*ers\.ts:12:9\)$/),
    expect.stringMatching(/└ at charge.*….*ers\.ts:20:9\)$/),
  ]);
});

test("an entry of a newer version is printed as it is", () => {
  const unknown = "MoonPhaseObserved" as JournalEntry["type"];
  expect(linesOf({ type: unknown, data: { phase: "full" } })).toEqual([
    "      +0 ms  · MoonPhaseObserved  { phase: 'full' }",
  ]);
});
