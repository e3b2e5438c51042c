// Fork: a run that begins from a checkpoint of another, in one commit (FK1–FK4).

import { chainAfter, markOf, type Entry, type ForkOutcome, type ForkWrite } from "../../kernel/index.ts";
import { forgetKey } from "./checkpoints.ts";
import { recordOf } from "./rows.ts";
import type { Tx } from "./statements.ts";
import { findNewest, foundById, insertRun } from "./start.ts";

export function applyFork(tx: Tx, { run, origin, data, checkpoint, settled }: ForkWrite): ForkOutcome {
  const { sql, now } = tx;
  const same = findNewest(tx, run.id);
  // Before the origin is looked for: a fork that was made stays made.
  if (same !== undefined && same.status !== "expected") return existing(tx, run.id);
  // Rows of a pruned run may still wait to be swept.
  const kept = sql.checkpointAt.get(origin.run, origin.step) as { key: string } | undefined;
  if (kept?.key !== origin.key || sql.statusOf.get(origin.run) === undefined) return { status: "no-checkpoint" };
  const made = insertRun(tx, run, undefined, undefined);
  if (made === undefined) return existing(tx, run.id);
  const { record } = made;
  const chain = chainAfter(record.chain, "StepCommitted", "", data);
  const { step, key, label, state } = checkpoint;
  forgetKey(tx, key);
  sql.insertCheckpoint.run(record.run, step, 2, chain, key, label ?? null, state ?? null);
  sql.insertEntry.run(record.run, 2, "StepCommitted", "", data, now, markOf(chain), null);
  sql.forkHead.run(chain, record.run);
  sql.insertFork.run(record.run, origin.run, origin.step);
  for (const promise of settled) sql.insertOnce.run(record.run, promise, 0);
  return { status: "started", record: { ...record, head: 2, chain } };
}

function existing(tx: Tx, id: string): ForkOutcome {
  const row = findNewest(tx, id);
  if (row === undefined || row.status === "expected")
    return { status: "expected-otherwise", record: recordOf(tx.sql, row!) };
  const found = foundById(tx, row);
  if (found.status !== "exists") return { status: "expected-otherwise", record: found.record };
  const second = tx.sql.entry.get(row.run, 2) as unknown as Entry | undefined;
  return { status: "exists", record: found.record, first: found.first, second: second && { ...second } };
}
