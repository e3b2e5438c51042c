// Fork: creates a run from a checkpoint of another run, in one commit (fork.F1 to fork.F4).

import { invariant } from "../../base/index.ts";
import { chainAfter, markOf, type Entry, type ForkOutcome, type ForkWrite } from "../../kernel/index.ts";
import { deleteOrphanedKey } from "./checkpoints.ts";
import { recordOf } from "./run-rows.ts";
import type { Tx } from "./statements.ts";
import { findNewest, foundById, insertRun } from "./start.ts";

export function applyFork(tx: Tx, { run, origin, data, checkpoint, settled }: ForkWrite): ForkOutcome {
  const { sql, now } = tx;
  const same = findNewest(tx, run.id);
  // Before the origin is read: a fork that exists stays valid when its origin is gone.
  if (same !== undefined && same.status !== "expected") return existing(tx, run.id);
  // The checkpoint of a pruned run may exist until it is swept.
  const kept = sql.checkpointAt.get(origin.run, origin.step) as { key: string } | undefined;
  if (kept?.key !== origin.key || sql.statusOf.get(origin.run) === undefined) return { status: "no_checkpoint" };
  const made = insertRun(tx, run, undefined, undefined);
  if (made === undefined) return existing(tx, run.id);
  const { record } = made;
  const chain = chainAfter(record.chain, "StepCommitted", "", data);
  const { step, key, label, state } = checkpoint;
  deleteOrphanedKey(tx, key);
  sql.insertCheckpoint.run(record.run, step, 2, chain, key, label ?? null, state ?? null);
  sql.insertEntry.run(record.run, 2, "StepCommitted", "", data, now, markOf(chain), null);
  const { changes } = sql.setForkHead.run(chain, record.run);
  invariant(changes === 1, "A fork must have a row for its head.");
  sql.insertFork.run(record.run, origin.run, origin.step);
  for (const promise of settled) sql.insertDedupKey.run(record.run, promise, 0);
  return { status: "started", record: { ...record, head: 2, chain } };
}

function existing(tx: Tx, id: string): ForkOutcome {
  const row = findNewest(tx, id);
  if (row === undefined || row.status === "expected")
    return { status: "other_definition", record: recordOf(tx.sql, row!) };
  const found = foundById(tx, row);
  if (found.status !== "exists") return { status: "other_definition", record: found.record };
  const second = tx.sql.entry.get(row.run, 2) as unknown as Entry | undefined;
  return { status: "exists", record: found.record, first: found.first, second: second && { ...second } };
}
