// The checkers of examples/first-run: each one can fail.

import { expect, test } from "vitest";
import type { JournalEntry } from "reprise";
import { calledWithStableKeys, committedOnce, gapFree, type Call } from "../../examples/first-run/proofs.ts";

function entry(seq: number, type: JournalEntry["type"], command?: string): JournalEntry {
  return { seq, type, ...(command !== undefined && { command }), data: {}, at: new Date(0) };
}
const journal = [
  entry(1, "RunStarted"),
  entry(2, "TaskScheduled", "Task(0)"),
  entry(3, "TaskCompleted", "Task(0)"),
  entry(4, "RunCompleted"),
];

test("committedOnce finds a command without an end, or with two ends", () => {
  expect(committedOnce(journal).holds).toBe(true);
  expect(committedOnce(journal.toSpliced(2, 1)).holds).toBe(false);
  expect(committedOnce([...journal, entry(5, "TaskFailed", "Task(0)")]).holds).toBe(false);
  expect(committedOnce([]).holds).toBe(false);
});

test("gapFree finds a gap and a journal that is too short", () => {
  expect(gapFree(journal, 4).holds).toBe(true);
  expect(gapFree(journal, 5).holds).toBe(false);
  expect(gapFree(journal.toSpliced(1, 1), 3).holds).toBe(false);
});

test("calledWithStableKeys finds a changed key, a shared key and an extra call", () => {
  const call = (step: string, key: string): Call => ({ run: "r", step, attempt: 0, key, process: 1 });
  const calls = [call("charge", "a"), call("charge", "a"), call("ship", "b")];
  const expected = { charge: 2, ship: 1 };
  expect(calledWithStableKeys(calls, expected).holds).toBe(true);
  expect(calledWithStableKeys(calls.with(1, call("charge", "c")), expected).holds).toBe(false);
  expect(calledWithStableKeys(calls.with(2, call("ship", "a")), expected).holds).toBe(false);
  expect(calledWithStableKeys([...calls, call("ship", "b")], expected).holds).toBe(false);
  expect(calledWithStableKeys([...calls, call("refund", "d")], expected).holds).toBe(false);
});
