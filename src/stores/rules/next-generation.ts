// Next generation: starts a run's next generation in the commit that ends the one before (generation.N1 to generation.N3).

import { invariant } from "../../base/index.ts";
import {
  CHAIN_START,
  chainAfter,
  DEADLINE_ITEM,
  isAnswer,
  markOf,
  QueueItemState,
  TurnDue,
  type NextGeneration,
  type RunNumber,
  type RunRecord,
} from "../../kernel/index.ts";
import { appendToInbox } from "./inbox.ts";
import { START_ITEM } from "./pending-start.ts";
import type { Rows } from "../rows/rows.ts";
import { columnsOf } from "../rows/tables.ts";
import { insertEntry } from "./journal-entries.ts";
import { NEW_RUN, RUN_COLUMNS, recordOf } from "./run-rows.ts";
import type { Tx } from "./transaction.ts";
import { nextRun } from "./start.ts";
import { insertTags, tagsOf } from "./tags.ts";

/** Runs before the rows of the old generation are cleared. Messages after `read` are unread and move to the new one. */
export function startNextGeneration(
  tx: Tx,
  old: RunNumber,
  read: number,
  next: NextGeneration,
  isPaused: boolean,
): RunRecord {
  const { rows, now } = tx;
  const { version, started, runtime } = next;
  // control.C1. A pause applies to the run, so the next generation is paused too.
  const claim = isPaused ? undefined : next.claim;
  const run = nextRun(tx);
  tx.nextRun = run + 1;
  const chain = chainAfter(CHAIN_START, "RunStarted", "", started);
  const status = isPaused ? "paused" : claim === undefined ? "queued" : "running";
  const row = rows.get("runs", [old], INHERITED);
  invariant(row !== undefined, "A next generation must copy the row of the one before.");
  rows.insert("runs", {
    ...NEW_RUN,
    run,
    id: row.id,
    generation: row.generation + 1,
    definition: row.definition,
    kind: row.kind,
    version,
    status,
    parent: row.parent,
    parent_command: row.parent_command,
    root: row.root,
    budget: row.budget,
    priority: row.priority,
    head: 1,
    chain,
    turn_due: status === "queued" ? TurnDue.yes : TurnDue.no,
    turn_token: claim?.token ?? null,
    turn_worker: claim?.worker ?? null,
    turn_at: claim === undefined ? null : now,
    created_at: now,
    runtime,
  });
  insertEntry(rows, run, 1, "RunStarted", "", started, now, markOf(chain));
  insertTags(rows, run, tagsOf(rows, old));
  moveDedupIds(rows, old, run);
  // A run keeps its slot of a queue until its last generation has ended.
  moveItem(rows, old, run, START_ITEM, QueueItemState.admitted);
  // The deadline applies to all generations together.
  moveItem(rows, old, run, DEADLINE_ITEM);
  const unread = rows.select("inbox", [old], MESSAGE, { after: read });
  for (const { type, target, data } of [...next.carried, ...unread]) {
    if (isAnswer(type)) continue;
    if (type === "PromiseResolved" || type === "PromiseRejected") rows.add("once", { run, target, at: 0, data });
    appendToInbox(tx, run, { type, target, data });
  }
  rows.set("runs", [old], { unread: 0 });
  const made = rows.get("runs", [run], RUN_COLUMNS);
  invariant(made !== undefined, "A next generation must have a row.");
  return recordOf(rows, made);
}

const INHERITED = [
  "id",
  "generation",
  "definition",
  "kind",
  "parent",
  "parent_command",
  "root",
  "priority",
  "budget",
] as const;
const MESSAGE = ["type", "target", "data"] as const;
const DEDUP_ID = ["target", "at"] as const;

/** Dedup ids of senders: a repeated message is ignored by the new generation, too. */
function moveDedupIds(rows: Rows, from: RunNumber, to: RunNumber): void {
  for (const { target, at } of rows.select("once", [from], DEDUP_ID, SENT)) {
    rows.drop("once", [from, target]);
    rows.insert("once", { run: to, target, at, data: null });
  }
}

/** Zero is the time of a key that stays as long as its run. */
const SENT = { also: { at: { above: 0 } } } as const;

const ITEM = columnsOf("queue");

/** Moves an item to another run, if it is in the given state. */
function moveItem(rows: Rows, from: RunNumber, to: RunNumber, item: string, state?: QueueItemState): void {
  const row = rows.get("queue", [from, item], ITEM);
  if (row === undefined || (state !== undefined && row.state !== state)) return;
  rows.drop("queue", [from, item]);
  rows.insert("queue", { ...row, run: to });
}
