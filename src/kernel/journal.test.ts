import { expect, test } from "vitest";
import { digestOf } from "../base/index.ts";
import { CHAIN_START, chainAfter, findJournalFault, markOf, type Entry } from "./journal.ts";

test("the chain is the domain-separated, length-prefixed digest of the entry and the previous chain", () => {
  for (const data of ["{}", '{"text":"Grüße, 世界 🎉"}', '{"v":"\u0000"}', `"${"ä🎉x".repeat(40_000)}"`])
    for (const command of ["", "Task(12)", "zählen", "数える 🎉"])
      expect(chainAfter(CHAIN_START, "TaskCompleted", command, data)).toBe(
        digestOf("reprise/entry/v1", CHAIN_START, "TaskCompleted", command, data),
      );
});

test("lengths in the chain count bytes, also of a type and a command that are not ASCII", () => {
  expect(chainAfter(CHAIN_START, "Größe", "数える 🎉", "{}")).toBe(
    digestOf("reprise/entry/v1", CHAIN_START, "Größe", "数える 🎉", "{}"),
  );
});

// Published values: a checker in another language must compute the same ones (docs/reference/entries.md).
test("the chain before the first entry, after three entries and after a node with a name that is not ASCII is the published one", () => {
  expect(CHAIN_START).toBe("2f8501eef817d4e6bb361d8308fdf6fdaa76233c85f59e5e341576fb6f39a5e2");
  const entries = [
    ["RunStarted", "", '{"definition":"kid","flags":[1],"input":4,"version":1}'],
    ["OperationCompleted", "Operation(0)", '{"index":0,"input":{"n":4},"operationName":"double","result":8}'],
    ["RunCompleted", "", '{"output":8}'],
  ] as const;
  const chain = entries.reduce<string>(
    (before, [type, command, data]) => chainAfter(before, type, command, data),
    CHAIN_START,
  );
  expect(chain).toBe("079c0e0a774649cef13d62dbaaede3e196f11875f0a745c57db9de938775e2d6");
  expect(chainAfter(CHAIN_START, "NodeCompleted", "zählen", "{}")).toBe(
    "80b31e18759895a05401635d9894eef59255f769159835d4827c3427f9b7ff48",
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

test("an intact journal has no fault, whatever its times", () => {
  const { entries, ...head } = journalOf("{}", '{"a":1}', '{"b":2}');
  expect(findJournalFault(entries, head)).toBeUndefined();
  expect(
    findJournalFault(
      entries.map((entry) => ({ ...entry, at: 99 })),
      head,
    ),
  ).toBeUndefined();
});

test("the check names a changed, missing, reordered or extra entry", () => {
  const { entries, ...head } = journalOf("{}", '{"a":1}', '{"b":2}');
  const [first, second, third] = entries as [Entry, Entry, Entry];
  expect(findJournalFault([first, { ...second, data: '{"a":2}' }, third], head)?.seq).toBe(2);
  expect(findJournalFault([first, third], head)?.seq).toBe(2);
  expect(findJournalFault([first, second], head)?.seq).toBe(3);
  expect(findJournalFault([second, first, third], head)?.seq).toBe(1);
  expect(findJournalFault(entries, { ...head, chain: CHAIN_START })?.seq).toBe(3);
});
