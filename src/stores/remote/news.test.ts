import { expect, test } from "vitest";
import { DEADLINE_ITEM } from "../../kernel/index.ts";
import type { Change, WireRow } from "./backend.ts";
import { Gathered, newsIn, textOf } from "./news.ts";

const QUEUED = { change: "update", table: "queue", columns: ["state"] } as const;
const HELD = { run: 7, status: "running", turn_due: 0, turn_token: "t" };

function updated(row: WireRow, columns = ["status", "turn_due", "arrivals"]): Change {
  return { change: "update", table: "runs", columns, rows: [row] };
}

function told(...changes: readonly Change[]): string | undefined {
  const news = new Gathered();
  return news.add(changes) ? textOf(news) : undefined;
}

test.each([
  ["a step of a run that is held", updated({ ...HELD, head: 3 }, ["head", "chain"]), undefined],
  ["a run that was claimed", updated(HELD), undefined],
  ["a run that has ended", updated({ ...HELD, status: "completed", turn_token: null }), " 7"],
  ["a message to a run that rests", updated({ ...HELD, turn_due: 1, turn_token: null }), "turns 7"],
  ["a message to a run that is held", updated({ ...HELD, turn_due: 1 }), " 7"],
  [
    "a run started for others",
    { change: "insert", table: "runs", rows: [{ ...HELD, turn_due: 1, turn_token: null }] },
    "turns ",
  ],
  ["a run started for itself", { change: "insert", table: "runs", rows: [HELD] }, undefined],
  [
    "a run that begins later",
    { change: "insert", table: "runs", rows: [{ ...HELD, turn_token: null }] },
    "starts,due ",
  ],
  ["a task anybody may take", { change: "insert", table: "queue", rows: [{ run: 7, state: 1 }] }, "items "],
  ["a task of its own", { change: "insert", table: "queue", rows: [{ run: 7, state: 2 }] }, undefined],
  ["a message to the outside", { change: "insert", table: "outbox", rows: [{ run: 7 }] }, "messages "],
  ["a schedule", { change: "insert", table: "schedules", rows: [{ name: "daily" }] }, "schedules "],
  [
    "a task that leaves its place in a queue",
    { change: "delete", table: "queue", rows: [{ run: 7, queue: "mail" }] },
    " ",
  ],
  ["a task in a queue that is tried again later", { ...QUEUED, rows: [{ run: 7, state: 0, queue: "mail" }] }, " "],
  ["a task in a queue that was taken", { ...QUEUED, rows: [{ run: 7, state: 2, queue: "mail" }] }, undefined],
  ["a task that is tried again later", { ...QUEUED, rows: [{ run: 7, state: 0, queue: null }] }, undefined],
  ["an answer", { change: "insert", table: "journal", rows: [{ run: 7, type: "UpdateCompleted" }] }, " "],
  ["an entry", { change: "insert", table: "journal", rows: [{ run: 7, type: "OperationCompleted" }] }, undefined],
  ["a suspect", updated({ ...HELD, status: "queued", turn_due: 2, turn_token: null }), "turns 7"],
  ["something that is gone", { change: "delete", table: "queue", rows: [{ run: 7, item: "a" }] }, undefined],
] as const)("%s is told as it is", (_what, change, text) => {
  expect(told(change as Change)).toBe(text);
});

test("a deadline is told with the run others shall work on, and not with one's own", () => {
  const deadline = { change: "insert", table: "queue", rows: [{ run: 7, item: DEADLINE_ITEM, state: 0 }] } as const;
  const started = (turn_token: string | null): Change => ({
    change: "insert",
    table: "runs",
    rows: [{ ...HELD, turn_due: 1, turn_token }],
  });
  expect(told(started(null), deadline)).toBe("turns,due ");
  expect(told(started("t"), deadline)).toBeUndefined();
});

test("what was told is heard, and more of it adds up", () => {
  const heard = new Gathered();
  heard.merge(newsIn("turns,items 1,2")!);
  heard.merge(newsIn("turns 2,3")!);
  expect(textOf(heard)).toBe("turns,items 1,2,3");
});

test.each(["", "*", "everything", "turns 1,x", "lunches 1", "turns"])(
  "%j means that anything may have changed",
  (text) => {
    expect(newsIn(text)).toBeUndefined();
  },
);

test("more runs than fit into a notification are any runs", () => {
  const many = { work: new Set([]), runs: new Set(Array.from({ length: 2_000 }, (_, index) => 1_000_000 + index)) };
  expect(newsIn(textOf(many))).toBeUndefined();
});
