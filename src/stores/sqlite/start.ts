// Start: how a run comes to be, by itself or as a child.

import {
  CHAIN_START,
  chainAfter,
  markOf,
  type Claim,
  type Entry,
  type NewRun,
  type RunNumber,
  type RunRecord,
  type StartOutcome,
  type StartWrite,
} from "../../kernel/index.ts";
import { recordOf, type RunRow } from "./rows.ts";
import type { Tx } from "./session.ts";

export function applyStart(tx: Tx, write: StartWrite): StartOutcome {
  const made = insertRun(tx, write.run, write.claim, undefined);
  if (made !== undefined) return { status: "started", ...made };
  const row = tx.sql.newestRun.get(write.run.id) as unknown as RunRow;
  const first = tx.sql.entry.get(row.run, 1) as unknown as Entry;
  return { status: "exists", record: recordOf(tx.sql, row), first: { ...first } };
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
): { record: RunRecord; first: Entry } | undefined {
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
  if (changes === 0) return undefined;
  tx.nextRun = number + 1;
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
    arrivals: 0,
    unread: 0,
    createdAt: now,
    endedAt: undefined,
    runtime: run.runtime,
    evidence: undefined,
  };
  return { record, first };
}

/** Numbers are never used again: `prune` notes the highest. Asked once per transaction. */
function nextRun(tx: Tx): RunNumber {
  tx.nextRun ??= (tx.sql.highestRun.get() as { run: number }).run + 1;
  return tx.nextRun;
}
