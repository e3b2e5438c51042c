// Snapshots contain the delivered messages that later steps may still need (checkpoint.C4).

import { expect, test } from "vitest";
import { encode } from "../base/index.ts";
import { readSnapshot, rebuildCheckpoints } from "./checkpoint.ts";
import type { Entry, EntryType } from "./journal.ts";

function journalOf(...entries: readonly (readonly [EntryType, object])[]): readonly Entry[] {
  return entries.map(([type, data], index) => ({
    seq: index + 1,
    type,
    command: "",
    data: encode(data),
    at: 0,
    mark: 0 as never,
  }));
}

const step = (number: number): readonly [EntryType, object] => [
  "StepCommitted",
  { step: number, key: `key ${number}`, delta: { set: { text: `${number}`.repeat(40_000) } }, frontier: [] },
];
/** The types of the messages in the newest snapshot. */
function deliveredIn(entries: readonly Entry[]): readonly string[] {
  const newest = rebuildCheckpoints(entries).findLast(({ state }) => state !== undefined);
  return readSnapshot(newest!.state!).delivered.map(({ type }) => type);
}

test("a snapshot contains promises, cancels and missed deadlines, and no other entries", () => {
  const entries = journalOf(
    ["RunStarted", {}],
    ["PromiseResolved", { promiseId: "a" }],
    ["NodeCompleted", {}],
    ["PromiseRejected", { promiseId: "b" }],
    ["DeadlineExceeded", {}],
    step(0),
  );
  expect(deliveredIn(entries)).toEqual(["PromiseResolved", "PromiseRejected", "DeadlineExceeded"]);
});

test("a snapshot after a retry omits cancels, missed deadlines and rejections of reopened ports", () => {
  const before = [
    ["RunStarted", {}],
    ["PromiseRejected", { promiseId: "open again" }],
    ["PromiseRejected", { promiseId: "still closed" }],
    step(0),
    ["DeadlineExceeded", {}],
    ["RunFailed", {}],
    ["RunRetried", { commands: 0, from: 5, kept: [], reopened: ["open again"], step: 1 }],
  ] as const;
  expect(deliveredIn(journalOf(...before))).toEqual(["PromiseRejected", "PromiseRejected"]);
  expect(deliveredIn(journalOf(...before, ["PromiseResolved", { promiseId: "open again" }], step(1), step(2)))).toEqual(
    ["PromiseRejected", "PromiseResolved"],
  );
});
