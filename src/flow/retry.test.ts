import { expect, test } from "vitest";
import { encode } from "../base/index.ts";
import type { Entry, EntryType, Readiness } from "../kernel/index.ts";
import { planFlowRetry } from "./retry.ts";

const record = { definition: "f", version: 2, priority: 5 };

/** A journal from types, commands and data, with its `RunStarted` before them. */
function journal(
  ...entries: readonly (readonly [type: EntryType, command: string, data?: object])[]
): readonly Entry[] {
  const all = [["RunStarted", "", { definition: "f", input: 1 }] as const, ...entries];
  return all.map(([type, command, data = {}], index) => ({
    seq: index + 1,
    type,
    command,
    data: encode(data),
    at: 0,
    mark: 0,
  }));
}

const counter = (node: string, completed: number, required: number, queued?: number): Readiness => ({
  node,
  completed,
  required,
  queued,
});

function planned(entries: readonly Entry[], readiness: readonly Readiness[]) {
  const plan = planFlowRetry({ record, entries, readiness });
  if (plan.status === "refused") throw new Error(plan.reason);
  return { ...plan, queued: plan.items.map(({ item, seq }) => `${item} ${seq}`) };
}

const failedAt = (at: string, entries = 1, more: object = {}) =>
  ["RunFailed", "", { at, entries, error: new Error("broken"), ...more }] as const;

test("a retry makes void what the failing commit has written, and queues the failed node again", () => {
  const entries = journal(["NodeCompleted", "a", { result: 1 }], ["NodeFailed", "b"], failedAt("b"));
  const plan = planned(entries, [counter("a", 1, 1), counter("b", 1, 1)]);
  expect([plan.from, plan.queued]).toEqual([3, ["b 1"]]);
  expect(plan.items[0]).toEqual({ item: "b", kind: "node", name: "f\n2", priority: 5, seq: 1 });
});

test("every node that was ready and has not ended is queued again, and no other", () => {
  const entries = journal(["NodeCompleted", "a"], ["NodeSkipped", "s"], ["NodeFailed", "b"], failedAt("b"));
  const counters = [
    counter("a", 1, 1),
    counter("b", 1, 1),
    counter("ready", 2, 2),
    counter("s", 1, 1),
    counter("waiting", 1, 2),
  ];
  expect(planned(entries, counters).queued).toEqual(["b 1", "ready 1"]);
});

test("an inline node that threw is derived again from the value of its head, which does not run again", () => {
  const entries = journal(
    ["NodeCompleted", "a", { result: 1 }],
    ["NodeFailed", "derived"],
    failedAt("derived", 2, { again: "a" }),
  );
  expect(planned(entries, [counter("a", 1, 1)])).toMatchObject({ from: 2, queued: ["a[again] 2"] });
});

test("a flow that failed at its first commit derives from its input again", () => {
  const entries = journal(["NodeFailed", "derived"], failedAt("derived", 1, { again: "input" }));
  expect(planned(entries, []).queued).toEqual(["input[again] 1"]);
  const notBegun = journal(["RunFailed", "", { begun: false, error: new Error("no worker") }]);
  expect(planned(notBegun, []).queued).toEqual(["input[again] 1"]);
});

const spread = (...more: readonly (readonly [EntryType, string, object?])[]): readonly Entry[] =>
  journal(
    ["NodeCompleted", "s[]", { result: 6 }],
    ["ItemsSpread", "s[]", { from: 0, items: [0, 1] }],
    ["ItemsSpread", "s[]", { from: 2, items: [2, 3] }],
    ["ItemsSpread", "s[]", { from: 4, items: [4, 5] }],
    ...more,
  );

test("items that were queued and have no result are queued again, each with the entry that holds it", () => {
  const entries = spread(
    ["NodeCompleted", "s[0]"],
    ["NodeCompleted", "s[2]"],
    ["NodeFailed", "s[1]"],
    failedAt("s[1]"),
  );
  expect(planned(entries, [counter("s", 2, 6, 5)]).queued).toEqual(["s[1] 3", "s[3] 4", "s[4] 5"]);
});

test("items behind the window are not queued: the items before them queue them", () => {
  const entries = spread(["NodeFailed", "s[0]"], failedAt("s[0]"));
  expect(planned(entries, [counter("s", 0, 6, 2)]).queued).toEqual(["s[0] 3", "s[1] 3"]);
});

test("a spread with keys also queues the node that queues the items that are left", () => {
  const entries = journal(
    ["NodeCompleted", "s[]", { result: 4 }],
    ["ItemsSpread", "s[]", { from: 0, items: [0, 1], keys: ["a", "b"] }],
    ["ItemsSpread", "s[]", { from: 2, items: [2, 3], keys: ["a", null] }],
    ["NodeFailed", "s[0]"],
    failedAt("s[0]"),
  );
  expect(planned(entries, [counter("s", 0, 4, 2)]).queued).toEqual(["s[0] 3", "s[1] 3", "s[more] 4"]);
  expect(planned(entries, [counter("s", 0, 4, 4)]).queued).toEqual(["s[0] 3", "s[1] 3", "s[2] 4", "s[3] 4"]);
});

test("children that have not answered are listed with the node that starts them again, and are not queued", () => {
  const entries = spread(
    ["ChildWorkflowInitiated", "s[3]", { childExecutionId: "r/s[3]" }],
    ["ChildWorkflowInitiated", "call", { childExecutionId: "r/call" }],
    ["ChildWorkflowInitiated", "call", { childExecutionId: "r/call~2" }],
    ["NodeFailed", "s[0]"],
    failedAt("s[0]"),
  );
  const plan = planned(entries, [counter("call", 1, 1), counter("s", 0, 6, 4)]);
  expect(plan.queued).toEqual(["s[0] 3", "s[1] 3", "s[2] 4"]);
  expect(plan.children.map(({ command, id, item }) => [command, id, item?.seq])).toEqual([
    ["s[3]", "r/s[3]", 4],
    ["call", "r/call~2", 1],
  ]);
});

test("entries that an earlier retry made void do not count", () => {
  const entries = journal(
    ["NodeCompleted", "a"],
    ["NodeFailed", "b"],
    failedAt("b"),
    ["RunRetried", "", { from: 3 }],
    ["NodeCompleted", "b"],
    ["NodeFailed", "c"],
    failedAt("c"),
  );
  const plan = planned(entries, [counter("a", 1, 1), counter("b", 1, 1), counter("c", 1, 1)]);
  expect([plan.from, plan.queued]).toEqual([7, ["c 1"]]);
});

test("a run that did not fail is refused, and a deadline starts again", () => {
  expect(planFlowRetry({ record, entries: journal(["RunCompleted", ""]), readiness: [] })).toMatchObject({
    status: "refused",
    reason: expect.stringContaining("RunFailed") as string,
  });
  const [first, ...others] = journal(["NodeFailed", "a"], failedAt("a"));
  const limited = { ...first!, data: encode({ definition: "f", input: 1, deadline: 9_000 }) };
  expect(planned([limited, ...others], [counter("a", 1, 1)]).deadlineMs).toBe(9_000);
});
