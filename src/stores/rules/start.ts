// Start: creates a run, at the top level or as a child.

import { invariant } from "../../base/index.ts";
import {
  TurnDue,
  CHAIN_START,
  chainAfter,
  markOf,
  hasEnded,
  leastNumberAt,
  type Arrival,
  type Claim,
  type Entry,
  type NewRun,
  type RunNumber,
  type RunRecord,
  type StartOutcome,
  type StartWrite,
} from "../../kernel/index.ts";
import { appendToInbox } from "./inbox.ts";
import { insertPendingStart, rewritePendingStart } from "./pending-start.ts";
import { insertDeadline } from "./items.ts";
import { recordOf, type RunRow } from "./run-rows.ts";
import type { Tx } from "./statements.ts";

export function applyStart(tx: Tx, write: StartWrite): StartOutcome {
  const joined = joinOther(tx, write);
  if (joined !== undefined) return joined;
  const { run, delayMs } = write;
  const made = insertRun(tx, run, write.claim, undefined, delayMs);
  if (made === undefined) return foundById(tx, newestRun(tx, run.id));
  for (const kind of ["singleton", "debounce"] as const) {
    const key = write[kind];
    if (key !== undefined) tx.sql.saveStartKey.run(run.definition, kind, key, run.id);
  }
  return { status: "started", ...withMessages(tx, made, write.messages) };
}

interface Started {
  readonly record: RunRecord;
  readonly first: Entry;
}

function withMessages(tx: Tx, started: Started, messages: readonly Arrival[] | undefined): Started {
  if (messages === undefined) return started;
  const { record, first } = started;
  for (const arrival of messages) appendToInbox(tx, record.run, arrival);
  return { record: { ...record, arrivals: record.arrivals + messages.length }, first };
}

/** Joins a start to an existing run (singleton, debounce); undefined when the start creates a run. */
function joinOther(tx: Tx, { run, singleton, debounce, delayMs = 0 }: StartWrite): StartOutcome | undefined {
  if (singleton === undefined && debounce === undefined) return undefined;
  // A run with the caller's id goes before a run with the same key.
  const same = findNewest(tx, run.id);
  if (same !== undefined && same.status !== "expected") return foundById(tx, same);
  if (singleton !== undefined) {
    const other = findByKey(tx, run.definition, "singleton", singleton);
    if (other !== undefined && !hasEnded(other.status)) return { status: "singleton", ...startedOf(tx, other) };
  }
  if (debounce !== undefined) {
    const pending = findByKey(tx, run.definition, "debounce", debounce);
    const first = pending && !hasEnded(pending.status) ? rewritePendingStart(tx, pending.run, run, delayMs) : undefined;
    if (first !== undefined && pending !== undefined)
      return { status: "debounced", record: recordOf(tx.sql, newestRun(tx, pending.id)), first };
  }
  return undefined;
}

/** Finds the run by its id, so that the result is its newest generation. */
export function findByKey(tx: Tx, definition: string, kind: string, key: string): RunRow | undefined {
  const row = tx.sql.startKey.get(definition, kind, key) as { id: string } | undefined;
  return row && findNewest(tx, row.id);
}

export function findNewest({ sql }: Tx, id: string): RunRow | undefined {
  return sql.newestRun.get(id) as unknown as RunRow | undefined;
}

function newestRun(tx: Tx, id: string): RunRow {
  return findNewest(tx, id) as RunRow;
}

function startedOf({ sql }: Tx, row: RunRow): Started {
  const first = sql.entry.get(row.run, 1) as unknown as Entry | undefined;
  invariant(first !== undefined, "A started run must have a first entry.");
  return { record: recordOf(sql, row), first: { ...first } };
}

export function foundById(tx: Tx, row: RunRow): StartOutcome {
  if (row.status === "expected") return { status: "other_definition", record: recordOf(tx.sql, row) };
  const found = startedOf(tx, row);
  if (row.generation === 0) return { status: "exists", ...found };
  // The caller compares the input of the first generation: later ones have their own input.
  const { run } = tx.sql.firstRunOfId.get(row.id) as { run: number };
  return { status: "exists", ...found, first: { ...(tx.sql.entry.get(run, 1) as unknown as Entry) } };
}

export interface Parent {
  readonly run: RunNumber;
  readonly command: string;
  readonly root: RunNumber;
}

/** Undefined when the id is taken. */
export function insertRun(
  tx: Tx,
  run: NewRun,
  wanted: Claim | undefined,
  parent: Parent | undefined,
  delayMs?: number,
): Started | undefined {
  const { sql, now } = tx;
  const number = nextRun(tx);
  const chain = chainAfter(CHAIN_START, "RunStarted", "", run.started);
  const isPending = run.slot !== undefined || delayMs !== undefined;
  const claim = isPending ? undefined : wanted;
  const status = claim === undefined ? "queued" : "running";
  const turnDue = isPending ? TurnDue.notStarted : claim === undefined ? TurnDue.yes : TurnDue.no;
  const { changes } = sql.insertRun.run(
    number,
    run.id,
    run.definition,
    run.kind,
    run.version,
    status,
    parent?.run ?? null,
    parent?.command ?? null,
    parent?.root ?? number,
    run.priority,
    chain,
    turnDue,
    claim?.token ?? null,
    claim?.worker ?? null,
    now,
    run.runtime,
  );
  const made =
    changes === 0
      ? startExpected(tx, run, claim, parent, chain, turnDue)
      : writeFirst(tx, number, run, parent, status, chain, 0);
  if (changes === 1) tx.nextRun = number + 1;
  if (isPending && made !== undefined) insertPendingStart(tx, made.record.run, run, delayMs);
  return made;
}

/** rules.W6. Undefined when the id belongs to a started run, or to an expected run of another definition. */
function startExpected(
  tx: Tx,
  run: NewRun,
  claim: Claim | undefined,
  parent: Parent | undefined,
  chain: string,
  turnDue: TurnDue,
): Started | undefined {
  const row = tx.sql.newestRun.get(run.id) as unknown as RunRow;
  if (row.status !== "expected" || row.definition !== run.definition) return undefined;
  invariant(row.head === 0, "An expected run must have no journal.");
  const status = claim === undefined ? "queued" : "running";
  tx.sql.startExpected.run(
    row.run,
    run.kind,
    run.version,
    status,
    parent?.run ?? null,
    parent?.command ?? null,
    parent?.root ?? row.run,
    run.priority,
    chain,
    turnDue,
    claim?.token ?? null,
    claim?.worker ?? null,
    tx.now,
    run.runtime,
  );
  return writeFirst(tx, row.run, run, parent, status, chain, row.arrivals);
}

function writeFirst(
  tx: Tx,
  number: RunNumber,
  run: NewRun,
  parent: Parent | undefined,
  status: "queued" | "running",
  chain: string,
  arrivals: number,
): Started {
  const { sql, now } = tx;
  const first: Entry = { seq: 1, type: "RunStarted", command: "", data: run.started, at: now, mark: markOf(chain) };
  sql.insertEntry.run(number, 1, "RunStarted", "", run.started, now, first.mark, null);
  for (const tag of run.tags) sql.insertTag.run(number, tag);
  if (run.deadlineMs !== undefined) insertDeadline(tx, number, now + run.deadlineMs);
  const record: RunRecord = {
    run: number,
    id: run.id,
    generation: 0,
    definition: run.definition,
    kind: run.kind,
    version: run.version,
    status,
    parent: parent?.run,
    parentCommand: parent?.command,
    priority: run.priority,
    tags: [...new Set(run.tags)],
    head: 1,
    chain,
    arrivals,
    read: 0,
    unread: 0,
    createdAt: now,
    endedAt: undefined,
    runtime: run.runtime,
    evidence: undefined,
  };
  return { record, first };
}

/** A number is never used again: `prune` saves the highest, and numbers grow with time. Read once per transaction. */
export function nextRun(tx: Tx): RunNumber {
  tx.nextRun ??= Math.max((tx.sql.highestRun.get() as { run: number }).run + 1, leastNumberAt(tx.now));
  return tx.nextRun;
}
