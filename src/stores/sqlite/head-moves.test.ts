import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { runRow } from "../../../test/stores/rows.ts";
import { CHAIN_START, chainAfter, markOf, type TurnWrite } from "../../kernel/index.ts";
import type { RowOf } from "../rows/tables.ts";
import { changeHead } from "../rules/commit-turn.ts";
import { createSchema } from "./migrate.ts";
import { SqliteRows } from "./sqlite-rows.ts";

const NEXT = chainAfter(CHAIN_START, "OperationCompleted", "Operation(0)", "1");
const ENTRY = {
  seq: 4,
  type: "OperationCompleted",
  command: "Operation(0)",
  data: "1",
  at: 5,
  mark: markOf(NEXT),
} as const;

/** A held turn of a suspect, with messages that were read. */
const HELD = {
  head: 3,
  chain: CHAIN_START,
  status: "running",
  turn_token: "t",
  turn_worker: 7,
  arrivals: 2,
  read: 1,
  takeovers: 3,
};

function turnOf(then: TurnWrite["then"], hasEntry: boolean): TurnWrite {
  return {
    write: "turn",
    run: 1,
    token: "t",
    head: 3,
    previousChain: CHAIN_START,
    chain: hasEntry ? NEXT : CHAIN_START,
    read: 2,
    entries: hasEntry ? [ENTRY] : [],
    finished: [],
    dropped: [],
    items: [],
    children: [],
    messages: [],
    chunks: [],
    outgoing: [],
    then,
    ...(then === "failed" && { unread: 4 }),
  };
}

const THENS = ["hold", "release", "completed", "failed", "cancelled", "continued"] as const;
/** What differs from a held turn, and whether the head may still move in one statement. */
const STATES: readonly (readonly [string, Partial<RowOf<"runs">>])[] = [
  ["as it was read", {}],
  ["with an unread message", { arrivals: 3 }],
  ["paused", { status: "paused" }],
  ["under another token", { turn_token: "other" }],
  ["without a token", { turn_token: null }],
  ["with a longer journal", { head: 4 }],
  ["with another chain", { chain: NEXT }],
];

test.each(THENS.flatMap((then) => STATES.map(([name, state]) => [then, name, state] as const)))(
  "the statement for %s of a run %s does what the rule's change does",
  (then, _, state) => {
    for (const hasEntry of [true, false]) {
      const [statement, change] = [true, false].map((isOverride) => {
        const db = new DatabaseSync(":memory:");
        createSchema(db);
        const rows = new SqliteRows(db, false);
        rows.insert("runs", { ...(runRow(1) as RowOf<"runs">), ...(HELD as Partial<RowOf<"runs">>), ...state });
        const turn = turnOf(then, hasEntry);
        const isMoved = isOverride ? rows.moveHead(turn, 99) : changeHead(rows, turn, 99);
        const found = db.prepare("select * from runs").all();
        db.close();
        return { isMoved, found };
      });
      expect(statement).toEqual(change);
    }
  },
);

test("both forms move a run that is as it was read", () => {
  const db = new DatabaseSync(":memory:");
  createSchema(db);
  const rows = new SqliteRows(db, false);
  rows.insert("runs", { ...(runRow(1) as RowOf<"runs">), ...(HELD as Partial<RowOf<"runs">>) });
  expect(rows.moveHead(turnOf("hold", true), 99)).toBe(true);
  expect(rows.get("runs", [1], ["head", "chain", "read", "takeovers"])).toEqual({
    head: 4,
    chain: NEXT,
    read: 2,
    takeovers: 0,
  });
  db.close();
});
