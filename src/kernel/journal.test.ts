import { expect, test } from "vitest";
import { digestOf } from "../base/index.ts";
import { CHAIN_START, chainAfter, findJournalFault, markOf, type Entry } from "./journal.ts";

test("the chain is the domain-separated, length-prefixed digest of the entry and the chain before it", () => {
  for (const data of ["{}", '{"text":"Grüße, 世界 🎉"}', '{"v":"\u0000"}', `"${"ä🎉x".repeat(40_000)}"`])
    for (const command of ["", "Task(12)"])
      expect(chainAfter(CHAIN_START, "TaskCompleted", command, data)).toBe(
        digestOf("reprise/entry/v1", CHAIN_START, "TaskCompleted", command, data),
      );
});

function journalOf(...data: readonly string[]): { entries: Entry[]; head: number; chain: string } {
  let chain = CHAIN_START;
  const entries = data.map((text, index): Entry => {
    chain = chainAfter(chain, "StateSet", `State(${index})`, text);
    return { seq: index + 1, type: "StateSet", command: `State(${index})`, data: text, at: index, mark: markOf(chain) };
  });
  return { entries, head: entries.length, chain };
}

test("a journal that is whole has no fault, whatever its times", () => {
  const { entries, ...head } = journalOf("{}", '{"a":1}', '{"b":2}');
  expect(findJournalFault(entries, head)).toBeUndefined();
  expect(
    findJournalFault(
      entries.map((entry) => ({ ...entry, at: 99 })),
      head,
    ),
  ).toBeUndefined();
});

test("a changed, missing, reordered or extra entry is named", () => {
  const { entries, ...head } = journalOf("{}", '{"a":1}', '{"b":2}');
  const [first, second, third] = entries as [Entry, Entry, Entry];
  expect(findJournalFault([first, { ...second, data: '{"a":2}' }, third], head)?.seq).toBe(2);
  expect(findJournalFault([first, third], head)?.seq).toBe(2);
  expect(findJournalFault([first, second], head)?.seq).toBe(3);
  expect(findJournalFault([second, first, third], head)?.seq).toBe(1);
  expect(findJournalFault(entries, { ...head, chain: CHAIN_START })?.seq).toBe(3);
});
