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
import { openBudget } from "./budgets.ts";
import { appendToInbox } from "./inbox.ts";
import { insertPendingStart, rewritePendingStart } from "./pending-start.ts";
import { insertDeadline } from "./items.ts";
import { findEntry, insertEntry } from "./journal-entries.ts";
import { findNewest, NEW_RUN, recordOf, type RunRow } from "./run-rows.ts";
import type { Tx } from "./transaction.ts";
import { insertTags } from "./tags.ts";

export function applyStart(tx: Tx, write: StartWrite): StartOutcome {
  const joined = joinOther(tx, write);
  if (joined !== undefined) return joined;
  const { run, delayMs } = write;
  const made = insertRun(tx, run, write.claim, undefined, delayMs);
  if (made === undefined) return foundById(tx, newestRun(tx, run.id));
  for (const kind of ["singleton", "debounce"] as const) {
    const key = write[kind];
    if (key !== undefined) saveStartKey(tx, run.definition, kind, key, run.id);
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
  const same = findNewest(tx.rows, run.id);
  if (same !== undefined && same.status !== "expected") return foundById(tx, same);
  if (singleton !== undefined) {
    const other = findByKey(tx, run.definition, "singleton", singleton);
    if (other !== undefined && !hasEnded(other.status)) return { status: "singleton", ...startedOf(tx, other) };
  }
  if (debounce !== undefined) {
    const pending = findByKey(tx, run.definition, "debounce", debounce);
    const first = pending && !hasEnded(pending.status) ? rewritePendingStart(tx, pending.run, run, delayMs) : undefined;
    if (first !== undefined && pending !== undefined)
      return { status: "debounced", record: recordOf(tx.rows, newestRun(tx, pending.id)), first };
  }
  return undefined;
}

export type StartKeyKind = "singleton" | "debounce";

/** Finds the run by its id, so that the result is its newest generation. */
export function findByKey({ rows }: Tx, definition: string, kind: StartKeyKind, key: string): RunRow | undefined {
  const row = rows.get("start_keys", [definition, kind, key], START_KEY);
  return row && findNewest(rows, row.id);
}

const START_KEY = ["id"] as const;

export function saveStartKey({ rows }: Tx, definition: string, kind: StartKeyKind, key: string, id: string): void {
  if (!rows.add("start_keys", { definition, kind, key, id })) rows.set("start_keys", [definition, kind, key], { id });
}

function newestRun({ rows }: Tx, id: string): RunRow {
  const row = findNewest(rows, id);
  invariant(row !== undefined || rows.isGuess, "A run whose id is taken must have a row.");
  return row ?? GUESSED_RUN;
}

/** Where the row of a taken id is not loaded yet. */
const GUESSED_RUN: RunRow = {
  ...NEW_RUN,
  run: 0,
  id: "",
  definition: "",
  kind: "workflow",
  version: 1,
  status: "expected",
  head: 0,
  chain: "",
  created_at: 0,
  runtime: "",
};

function startedOf({ rows }: Tx, row: RunRow): Started {
  const first = findEntry(rows, row.run, 1);
  invariant(first !== undefined, "A started run must have a first entry.");
  return { record: recordOf(rows, row), first };
}

const NUMBER = ["run"] as const;

export function foundById(tx: Tx, row: RunRow): StartOutcome {
  const { rows } = tx;
  if (row.status === "expected") return { status: "other_definition", record: recordOf(rows, row) };
  const found = startedOf(tx, row);
  if (row.generation === 0) return { status: "exists", ...found };
  // The caller compares the input of the first generation: later ones have their own input.
  const firstRun = rows.first("runs_by_id", [row.id, 0], NUMBER);
  const first = firstRun && findEntry(rows, firstRun.run, 1);
  invariant(first !== undefined || rows.isGuess, "The first generation of a run must have a first entry.");
  return { status: "exists", ...found, ...(first && { first }) };
}

export interface Parent {
  readonly run: RunNumber;
  /** The budget that it pays from. */
  readonly budget: RunNumber | null;
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
  const { rows, now } = tx;
  const number = nextRun(tx);
  const chain = chainAfter(CHAIN_START, "RunStarted", "", run.started);
  const isPending = run.slot !== undefined || delayMs !== undefined;
  const claim = isPending ? undefined : wanted;
  const status = claim === undefined ? "queued" : "running";
  const turnDue = isPending ? TurnDue.notStarted : claim === undefined ? TurnDue.yes : TurnDue.no;
  const isNew = rows.add(
    "runs",
    {
      run: number,
      id: run.id,
      generation: 0,
      definition: run.definition,
      kind: run.kind,
      version: run.version,
      status,
      parent: parent?.run ?? null,
      parent_command: parent?.command ?? null,
      root: parent?.root ?? number,
      priority: run.priority,
      head: 1,
      chain,
      arrivals: 0,
      read: 0,
      unread: 0,
      turn_due: turnDue,
      turn_token: claim?.token ?? null,
      turn_worker: claim?.worker ?? null,
      takeovers: 0,
      created_at: now,
      ended_at: null,
      runtime: run.runtime,
      evidence: null,
      lost_turns: 0,
      turn_at: claim === undefined ? null : now,
      error_code: null,
      budget: null,
    },
    "runs_by_id",
  );
  const made = isNew
    ? writeFirst(tx, number, run, parent, status, chain, 0)
    : startExpected(tx, run, claim, parent, chain, turnDue);
  if (isNew) tx.nextRun = number + 1;
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
  const row = newestRun(tx, run.id);
  if (row.status !== "expected" || row.definition !== run.definition) return undefined;
  invariant(row.head === 0, "An expected run must have no journal.");
  const status = claim === undefined ? "queued" : "running";
  tx.rows.set("runs", [row.run], {
    kind: run.kind,
    version: run.version,
    status,
    parent: parent?.run ?? null,
    parent_command: parent?.command ?? null,
    root: parent?.root ?? row.run,
    priority: run.priority,
    head: 1,
    chain,
    turn_due: turnDue,
    turn_token: claim?.token ?? null,
    turn_worker: claim?.worker ?? null,
    turn_at: claim === undefined ? null : tx.now,
    created_at: tx.now,
    runtime: run.runtime,
  });
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
  const { rows, now } = tx;
  const first: Entry = { seq: 1, type: "RunStarted", command: "", data: run.started, at: now, mark: markOf(chain) };
  insertEntry(rows, number, 1, "RunStarted", "", run.started, now, first.mark);
  const tags = run.tags.length < 2 ? run.tags : [...new Set(run.tags)];
  insertTags(rows, number, tags);
  if (run.deadlineMs !== undefined) insertDeadline(tx, number, now + run.deadlineMs);
  const budget = openBudget(tx, number, run, parent?.budget ?? null) ?? undefined;
  if (budget !== undefined) rows.set("runs", [number], { budget });
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
    tags: [...tags],
    head: 1,
    chain,
    arrivals,
    read: 0,
    unread: 0,
    lostTurns: 0,
    createdAt: now,
    endedAt: undefined,
    errorCode: undefined,
    runtime: run.runtime,
    budget,
    evidence: undefined,
  };
  return { record, first };
}

/** A number is never used again: `prune` saves the highest, and numbers grow with time. Read once per transaction. */
export function nextRun(tx: Tx): RunNumber {
  tx.nextRun ??= Math.max((tx.runNumbers?.highest() ?? 0) + 1, leastNumberAt(tx.now));
  return tx.nextRun;
}
