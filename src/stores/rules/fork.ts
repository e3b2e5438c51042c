// Fork: creates a run from a checkpoint of another run, in one commit (fork.F1 to fork.F4).

import { invariant } from "../../base/index.ts";
import { chainAfter, markOf, type ForkOutcome, type ForkWrite } from "../../kernel/index.ts";
import { deleteOrphanedKey, insertCheckpoint } from "./checkpoints.ts";
import { findEntry, insertEntry } from "./journal-entries.ts";
import { findNewest } from "./run-rows.ts";
import type { Tx } from "./transaction.ts";
import { foundById, insertRun } from "./start.ts";

export function applyFork(tx: Tx, { run, origin, data, checkpoint, settled }: ForkWrite): ForkOutcome {
  const { rows, now } = tx;
  const same = findNewest(rows, run.id);
  // Before the origin is read: a fork that exists stays valid when its origin is gone.
  if (same !== undefined && same.status !== "expected") return existing(tx, run.id);
  // The checkpoint of a pruned run may exist until it is swept.
  const hasOrigin = rows.own("runs", [origin.run]) && rows.get("runs", [origin.run], NUMBER) !== undefined;
  const hasStep = rows.is("checkpoints", [origin.run, origin.step], { key: origin.key });
  if (!hasOrigin || !hasStep) return { status: "no_checkpoint" };
  const made = insertRun(tx, run, undefined, undefined);
  if (made === undefined) return existing(tx, run.id);
  const { record } = made;
  const chain = chainAfter(record.chain, "StepCommitted", "", data);
  const { step, key, label, state } = checkpoint;
  deleteOrphanedKey(tx, key);
  insertCheckpoint(rows, record.run, { step, seq: 2, chain, key, label, state });
  insertEntry(rows, record.run, 2, "StepCommitted", "", data, now, markOf(chain));
  const hasMoved = rows.change("runs", [record.run], { head: 2, chain });
  invariant(hasMoved, "A fork must have a row for its head.");
  rows.insert("forks", { run: record.run, origin: origin.run, step: origin.step });
  for (const promise of settled) rows.add("once", { run: record.run, target: promise, at: 0 });
  return { status: "started", record: { ...record, head: 2, chain } };
}

const NUMBER = ["run"] as const;

function existing(tx: Tx, id: string): ForkOutcome {
  const { rows } = tx;
  const row = findNewest(rows, id);
  invariant(row !== undefined, "A fork whose id is taken must have a row.");
  const found = foundById(tx, row);
  if (found.status !== "exists") return { status: "other_definition", record: found.record };
  return { status: "exists", record: found.record, first: found.first, second: findEntry(rows, row.run, 2) };
}
