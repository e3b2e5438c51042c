import { expect, test } from "vitest";
import { DEADLINE_ITEM } from "../../kernel/index.ts";
import type { Change, WireRow } from "./backend.ts";
import { PendingNotice, decodeNotice, encodeNotice } from "./change-notice.ts";

const QUEUED = { change: "update", table: "queue", columns: ["state"] } as const;
const HELD = { run: 7, status: "running", turn_due: 0, turn_token: "t" };

function updated(row: WireRow, columns = ["status", "turn_due", "arrivals"]): Change {
  return { change: "update", table: "runs", columns, rows: [row] };
}

function noticeOf(...changes: readonly Change[]): string | undefined {
  const notice = new PendingNotice();
  return notice.add(changes) ? encodeNotice(notice) : undefined;
}

test.each([
  ["a step of a run that is held", updated({ ...HELD, head: 3 }, ["head", "chain"]), undefined],
  ["a run that was claimed", updated(HELD), undefined],
  ["a run that has ended", updated({ ...HELD, status: "completed", turn_token: null }), " 7"],
  ["a message to a run that waits", updated({ ...HELD, turn_due: 1, turn_token: null }), "turns 7"],
  ["a message to a run that is held", updated({ ...HELD, turn_due: 1 }), " 7"],
  [
    "a run started without a claim",
    { change: "insert", table: "runs", rows: [{ ...HELD, turn_due: 1, turn_token: null }] },
    "turns ",
  ],
  ["a run started with a claim", { change: "insert", table: "runs", rows: [HELD] }, undefined],
  [
    "a run that starts later",
    { change: "insert", table: "runs", rows: [{ ...HELD, turn_token: null }] },
    "starts,due ",
  ],
  ["a task that any worker may claim", { change: "insert", table: "queue", rows: [{ run: 7, state: 1 }] }, "items "],
  ["a task that its worker has claimed", { change: "insert", table: "queue", rows: [{ run: 7, state: 2 }] }, undefined],
  ["an outbox message", { change: "insert", table: "outbox", rows: [{ run: 7 }] }, "messages "],
  ["a schedule", { change: "insert", table: "schedules", rows: [{ name: "daily" }] }, "schedules "],
  [
    "a task that frees its slot in a queue",
    { change: "delete", table: "queue", rows: [{ run: 7, queue: "mail" }] },
    " ",
  ],
  ["a task in a queue that is retried later", { ...QUEUED, rows: [{ run: 7, state: 0, queue: "mail" }] }, " "],
  ["a task in a queue that was claimed", { ...QUEUED, rows: [{ run: 7, state: 2, queue: "mail" }] }, undefined],
  ["a task that is retried later", { ...QUEUED, rows: [{ run: 7, state: 0, queue: null }] }, undefined],
  ["the result of an update", { change: "insert", table: "journal", rows: [{ run: 7, type: "UpdateCompleted" }] }, " "],
  [
    "any other entry",
    { change: "insert", table: "journal", rows: [{ run: 7, type: "OperationCompleted" }] },
    undefined,
  ],
  ["a suspect", updated({ ...HELD, status: "queued", turn_due: 2, turn_token: null }), "turns 7"],
  ["a deleted item", { change: "delete", table: "queue", rows: [{ run: 7, item: "a" }] }, undefined],
] as const)("the notice of %s contains what other processes need", (_what, change, text) => {
  expect(noticeOf(change as Change)).toBe(text);
});

test("a deadline is announced with a run that other processes may claim, not with a claimed run", () => {
  const deadline = { change: "insert", table: "queue", rows: [{ run: 7, item: DEADLINE_ITEM, state: 0 }] } as const;
  const started = (turn_token: string | null): Change => ({
    change: "insert",
    table: "runs",
    rows: [{ ...HELD, turn_due: 1, turn_token }],
  });
  expect(noticeOf(started(null), deadline)).toBe("turns,due ");
  expect(noticeOf(started("t"), deadline)).toBeUndefined();
});

test("received notices are merged", () => {
  const received = new PendingNotice();
  received.merge(decodeNotice("turns,items 1,2")!);
  received.merge(decodeNotice("turns 2,3")!);
  expect(encodeNotice(received)).toBe("turns,items 1,2,3");
});

test.each(["", "*", "everything", "turns 1,x", "lunches 1", "turns"])(
  "%j means that anything may have changed",
  (text) => {
    expect(decodeNotice(text)).toBeUndefined();
  },
);

test("a notice with more runs than fit into a notification means that anything may have changed", () => {
  const many = { work: new Set([]), runs: new Set(Array.from({ length: 2_000 }, (_, index) => 1_000_000 + index)) };
  expect(decodeNotice(encodeNotice(many))).toBeUndefined();
});
