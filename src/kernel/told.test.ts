// Whole checkpoints keep what a run was told and later steps may still ask for (CP4).

import { expect, test } from "vitest";
import { encode } from "../base/index.ts";
import { readWhole, rebuildCheckpoints } from "./checkpoint.ts";
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
/** The types of what the newest whole checkpoint keeps. */
function toldIn(entries: readonly Entry[]): readonly string[] {
  const whole = rebuildCheckpoints(entries).findLast(({ state }) => state !== undefined);
  return readWhole(whole!.state!).told.map(({ type }) => type);
}

test("promises, cancels and missed deadlines go with the whole state; other entries do not", () => {
  const entries = journalOf(
    ["RunStarted", {}],
    ["PromiseResolved", { promiseId: "a" }],
    ["NodeCompleted", {}],
    ["PromiseRejected", { promiseId: "b" }],
    ["DeadlineExceeded", {}],
    step(0),
  );
  expect(toldIn(entries)).toEqual(["PromiseResolved", "PromiseRejected", "DeadlineExceeded"]);
});

test("after a retry a cancel, a missed deadline and the rejection of a port that is open again are not told any more", () => {
  const before = [
    ["RunStarted", {}],
    ["PromiseRejected", { promiseId: "open again" }],
    ["PromiseRejected", { promiseId: "still closed" }],
    step(0),
    ["DeadlineExceeded", {}],
    ["RunFailed", {}],
    ["RunRetried", { commands: 0, from: 5, kept: [], reopened: ["open again"], step: 1 }],
  ] as const;
  expect(toldIn(journalOf(...before))).toEqual(["PromiseRejected", "PromiseRejected"]);
  expect(toldIn(journalOf(...before, ["PromiseResolved", { promiseId: "open again" }], step(1), step(2)))).toEqual([
    "PromiseRejected",
    "PromiseResolved",
  ]);
});
