// Backlog: waiting turns and items by the names that claims use. Two round trips: first the names, versions and priorities that
// exist, one index seek each; then the count of each, up to a limit, and the first of each priority.

import { QueueItemState, TurnDue } from "../../kernel/index.ts";
import type { Backlog, QueueState } from "../../kernel/index.ts";
import { backlogOf, queueStates, type QueueCount, type QueueRow, type ClaimableCount } from "../rules/backlog.ts";
import type { QueryResult, WireRow } from "./backend.ts";
import type { Condition, Count, Distinct, Query, Select } from "./query.ts";

/** Several queries, one snapshot: `Connection.read`. */
export type Read = (queries: readonly Query[]) => Promise<readonly QueryResult[]>;

const fixed = (column: string, value: number | string): Condition => ({ column, is: "=", value, fixed: true });
const equal = (column: string, value: number | string): Condition => ({ column, is: "=", value });
const isNull = (column: string): Condition => ({ column, is: "null" });
const isSet = (column: string): Condition => ({ column, is: "not null" });

const DUE = [fixed("turn_due", TurnDue.yes), isNull("turn_token")];
const SUSPECT = [fixed("turn_due", TurnDue.suspect), isNull("turn_token")];
const READY = [fixed("state", QueueItemState.ready), isNull("queue")];
const LINED = [fixed("state", QueueItemState.ready), isSet("queue")];
const BUSY: readonly Condition[] = [
  { column: "state", is: "in", values: [QueueItemState.leased, QueueItemState.admitted], fixed: true },
  isSet("queue"),
];
const LATER: readonly Condition[] = [
  fixed("state", QueueItemState.delayed),
  { column: "kind", is: "<>", value: "timer", fixed: true },
];

const distinct = (table: "runs" | "queue", columns: readonly string[], where: readonly Condition[]): Distinct => ({
  kind: "distinct",
  table,
  columns,
  where,
});
const count = (table: "runs" | "queue", where: readonly Condition[], more: Partial<Count>): Count => ({
  kind: "count",
  table,
  where,
  ...more,
});
const first = (table: "runs" | "queue", where: readonly Condition[], column: string): Select => ({
  kind: "select",
  table,
  where,
  order: [[column, "asc"]],
  limit: 1,
  lock: "none",
});

export async function readBacklog(read: Read, upTo: number): Promise<readonly Backlog[]> {
  const [due = [], ready = [], lined = [], suspectTurns = [], suspectItems = [], parked = []] = await read([
    distinct("runs", ["definition", "version", "priority"], DUE),
    distinct("queue", ["name", "priority"], READY),
    distinct("queue", ["kind", "queue", "name", "priority"], LINED),
    count("runs", SUSPECT, { by: ["definition", "version"] }),
    count("queue", [fixed("state", QueueItemState.suspect)], { by: ["name", "queue"], least: "available_at" }),
    count("queue", [fixed("state", QueueItemState.parked)], { by: ["kind", "queue", "name"], least: "available_at" }),
  ]);
  const turns = groups(due, ["definition", "version"]);
  const items = [...groups(ready, ["name"]), ...groups(lined, ["kind", "queue", "name"])];
  const whereOf = (group: Group): readonly Condition[] => {
    const keys = Object.entries(group.key).map(([column, value]) => equal(column, value));
    return [...("definition" in group.key ? DUE : "queue" in group.key ? LINED : READY), ...keys];
  };
  const asked = [...turns, ...items];
  const answers = await read(
    asked.flatMap((group) => {
      const [table, column] =
        "definition" in group.key ? (["runs", "run"] as const) : (["queue", "available_at"] as const);
      const where = whereOf(group);
      return [
        count(table, where, { upTo }),
        ...group.priorities.map((priority) => first(table, [...where, equal("priority", priority)], column)),
      ];
    }),
  );
  let at = 0;
  const waiting = asked.map(({ key, priorities }): ClaimableCount => {
    const [counted, ...firsts] = answers.slice(at, (at += 1 + priorities.length));
    const isTurn = "definition" in key;
    const times = firsts.flatMap((rows) => rows.flatMap((row) => sinceOf(row, isTurn)));
    return {
      kind: isTurn ? "turn" : ((key["kind"] ?? "task") as ClaimableCount["kind"]),
      name: String(isTurn ? key["definition"] : key["name"]),
      ...(isTurn && { version: Number(key["version"]) }),
      queue: "queue" in key ? String(key["queue"]) : null,
      count: Number(counted?.[0]?.["count"] ?? 0),
      oldest: times.length === 0 ? null : Math.min(...times),
    };
  });
  return backlogOf([
    ...waiting,
    ...suspectTurns.map(suspectTurn),
    ...[...suspectItems, ...parked].map((row) => waitingItem(row, upTo)),
  ]);
}

export async function listQueues(read: Read, upTo: number): Promise<readonly QueueState[]> {
  const [declared = [], busy = [], later = [], leased = [], put = []] = await read([
    { kind: "select", table: "queues", where: [], lock: "none" },
    distinct("queue", ["kind", "queue"], BUSY),
    distinct("queue", ["queue"], [...LATER, isSet("queue")]),
    count("queue", [fixed("state", QueueItemState.leased), isNull("queue")], { upTo }),
    count("queue", [...LATER, isNull("queue"), equal("kind", "task")], { upTo }),
  ]);
  const counts = await read([
    ...busy.map((row) => count("queue", [...BUSY, ...keysOf(row)], { upTo })),
    ...later.map((row) => count("queue", [...LATER, ...keysOf(row)], { upTo })),
  ]);
  const countOf = (row: WireRow | undefined, answer: QueryResult | undefined): QueueCount => ({
    queue: row === undefined ? null : String(row["queue"]),
    count: Number(answer?.[0]?.["count"] ?? 0),
  });
  return queueStates(
    declared as readonly unknown[] as readonly QueueRow[],
    await readBacklog(read, upTo),
    [countOf(undefined, leased), ...busy.map((row, index) => countOf(row, counts[index]))],
    [countOf(undefined, put), ...later.map((row, index) => countOf(row, counts[busy.length + index]))],
  );
}

interface Group {
  readonly key: Readonly<Record<string, string | number>>;
  readonly priorities: readonly number[];
}

function groups(rows: QueryResult, columns: readonly string[]): readonly Group[] {
  const found = new Map<string, Group>();
  for (const row of rows) {
    const key = Object.fromEntries(columns.map((column) => [column, row[column] as string | number]));
    const text = JSON.stringify(Object.values(key));
    found.set(text, { key, priorities: [...(found.get(text)?.priorities ?? []), Number(row["priority"])] });
  }
  return [...found.values()];
}

/** Only a run that has not executed yet has a known start of its wait. */
function sinceOf(row: WireRow, isTurn: boolean): readonly number[] {
  if (!isTurn) return [Number(row["available_at"])];
  return row["head"] === 1 ? [Number(row["created_at"])] : [];
}

function keysOf(row: WireRow): readonly Condition[] {
  return Object.entries(row).map(([column, value]) => equal(column, value as string | number));
}

function suspectTurn(row: WireRow): ClaimableCount {
  const version = Number(row["version"]);
  return {
    kind: "turn",
    name: String(row["definition"]),
    version,
    queue: null,
    count: Number(row["count"]),
    oldest: null,
  };
}

function waitingItem(row: WireRow, upTo: number): ClaimableCount {
  return {
    kind: (row["kind"] ?? "task") as ClaimableCount["kind"],
    name: String(row["name"]),
    queue: row["queue"] as string | null,
    count: Math.min(Number(row["count"]), upTo),
    oldest: Number(row["least"]),
  };
}
