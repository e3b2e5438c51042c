// Start: how a run comes to be, by itself or as a child.

import {
  CHAIN_START,
  chainAfter,
  markOf,
  type Arrival,
  type Claim,
  type Entry,
  type NewRun,
  type RunNumber,
  type RunRecord,
  type StartOutcome,
  type StartWrite,
} from "../../kernel/index.ts";
import { arrive } from "./arrive.ts";
import { recordOf, type RunRow } from "./rows.ts";
import type { Tx } from "./session.ts";

export function applyStart(tx: Tx, write: StartWrite): StartOutcome {
  const made = insertRun(tx, write.run, write.claim, undefined);
  if (made !== undefined) return { status: "started", ...withMessages(tx, made, write.messages) };
  const row = tx.sql.newestRun.get(write.run.id) as unknown as RunRow;
  const record = recordOf(tx.sql, row);
  if (row.status === "expected") return { status: "expected-otherwise", record };
  const first = tx.sql.entry.get(row.run, 1) as unknown as Entry;
  return { status: "exists", record, first: { ...first } };
}

interface Started {
  readonly record: RunRecord;
  readonly first: Entry;
}

function withMessages(tx: Tx, started: Started, messages: readonly Arrival[] | undefined): Started {
  if (messages === undefined) return started;
  const { record, first } = started;
  for (const arrival of messages) arrive(tx, record.run, arrival);
  return { record: { ...record, arrivals: record.arrivals + messages.length }, first };
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
  claim: Claim | undefined,
  parent: Parent | undefined,
): Started | undefined {
  const { sql, now } = tx;
  const number = nextRun(tx);
  const chain = chainAfter(CHAIN_START, "RunStarted", "", run.started);
  const status = claim === undefined ? "queued" : "running";
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
    claim === undefined ? 1 : 0,
    claim?.token ?? null,
    claim?.worker ?? null,
    now,
    run.runtime,
  );
  if (changes === 0) return startExpected(tx, run, claim, parent, chain);
  tx.nextRun = number + 1;
  return writeFirst(tx, number, run, parent, status, chain, 0);
}

/** W6. Undefined when the id belongs to a run that was started, or is expected to follow another definition. */
function startExpected(
  tx: Tx,
  run: NewRun,
  claim: Claim | undefined,
  parent: Parent | undefined,
  chain: string,
): Started | undefined {
  const row = tx.sql.newestRun.get(run.id) as unknown as RunRow;
  if (row.status !== "expected" || row.definition !== run.definition) return undefined;
  const status = claim === undefined ? "queued" : "running";
  tx.sql.startExpected.run(
    run.version,
    status,
    parent?.run ?? null,
    parent?.command ?? null,
    parent?.root ?? row.run,
    run.priority,
    chain,
    claim === undefined ? 1 : 0,
    claim?.token ?? null,
    claim?.worker ?? null,
    tx.now,
    run.runtime,
    row.run,
  );
  return writeFirst(tx, row.run, run, parent, status, chain, row.arrivals);
}

function writeFirst(
  { sql, now }: Tx,
  number: RunNumber,
  run: NewRun,
  parent: Parent | undefined,
  status: "queued" | "running",
  chain: string,
  arrivals: number,
): Started {
  const first: Entry = { seq: 1, type: "RunStarted", command: "", data: run.started, at: now, mark: markOf(chain) };
  sql.insertEntry.run(number, 1, "RunStarted", "", run.started, now, first.mark);
  for (const tag of run.tags) sql.insertTag.run(number, tag);
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
    unread: 0,
    createdAt: now,
    endedAt: undefined,
    runtime: run.runtime,
    evidence: undefined,
  };
  return { record, first };
}

/** Numbers are never used again: `prune` notes the highest. Asked once per transaction. */
export function nextRun(tx: Tx): RunNumber {
  tx.nextRun ??= (tx.sql.highestRun.get() as { run: number }).run + 1;
  return tx.nextRun;
}
