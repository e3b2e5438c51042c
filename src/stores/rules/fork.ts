// Fork: creates a run from a checkpoint or a command of another run, in one commit (fork.F1 to fork.F5).

import { invariant } from "../../base/index.ts";
import {
  chainAfter,
  markOf,
  type CopiedFlow,
  type ForkOutcome,
  type ForkWrite,
  type RunRecord,
} from "../../kernel/index.ts";
import { deleteOrphanedKey, insertCheckpoint } from "./checkpoints.ts";
import { ARRIVAL_KINDS } from "./flow-reads.ts";
import { insertNode } from "./items.ts";
import { findEntry, insertEntry } from "./journal-entries.ts";
import { findNewest } from "./run-rows.ts";
import type { Tx } from "./transaction.ts";
import { foundById, insertRun } from "./start.ts";

export function applyFork(tx: Tx, { run, origin, step, flow, settled }: ForkWrite): ForkOutcome {
  const { rows } = tx;
  const same = findNewest(rows, run.id);
  // Before the origin is read: a fork that exists stays valid when its origin is gone.
  if (same !== undefined && same.status !== "expected") return existing(tx, run.id);
  // The checkpoints and entries of a pruned run may exist until they are swept.
  const hasOrigin = rows.own("runs", [origin.run]) && rows.get("runs", [origin.run], NUMBER) !== undefined;
  const hasPlace = isThere(tx, origin);
  if (!hasOrigin || !hasPlace) return { status: "no_checkpoint" };
  const made = insertRun(tx, run, undefined, undefined);
  if (made === undefined) return existing(tx, run.id);
  const record = step !== undefined ? insertStep(tx, made.record, step) : insertFlow(tx, made.record, flow);
  const place = "step" in origin ? origin.step : origin.seq;
  rows.insert("forks", { run: record.run, origin: origin.run, step: place });
  for (const { target, data: value } of settled) rows.add("once", { run: record.run, target, at: 0, data: value });
  return { status: "started", record };
}

function isThere({ rows }: Tx, origin: ForkWrite["origin"]): boolean {
  if ("step" in origin) return rows.is("checkpoints", [origin.run, origin.step], { key: origin.key });
  // Entries are never removed while their run exists; the mark tells another history with the same numbers.
  return origin.mark === undefined || rows.is("journal", [origin.run, origin.seq], { mark: origin.mark });
}

/** fork.F2 */
function insertStep(tx: Tx, record: RunRecord, { data, checkpoint }: NonNullable<ForkWrite["step"]>): RunRecord {
  const { rows, now } = tx;
  const chain = chainAfter(record.chain, "StepCommitted", "", data);
  const { step, key, label, state } = checkpoint;
  deleteOrphanedKey(tx, key);
  insertCheckpoint(rows, record.run, { step, seq: 2, chain, key, label, state });
  insertEntry(rows, record.run, 2, "StepCommitted", "", data, now, markOf(chain));
  const hasMoved = rows.change("runs", [record.run], { head: 2, chain });
  invariant(hasMoved, "A fork must have a row for its head.");
  return { ...record, head: 2, chain };
}

/** fork.F7 */
function insertFlow(tx: Tx, record: RunRecord, flow: CopiedFlow | undefined): RunRecord {
  if (flow === undefined) return record;
  const { rows, now } = tx;
  const { run } = record;
  let { head, chain } = record;
  for (const { type, command, data } of flow.entries) {
    chain = chainAfter(chain, type, command, data);
    head += 1;
    insertEntry(rows, run, head, type, command, data, now, markOf(chain));
  }
  for (const { target, edge, index: idx, kind, seq } of flow.arrivals)
    rows.insert("arrivals", { run, target, edge, idx, kind: ARRIVAL_KINDS.indexOf(kind), seq });
  for (const { node, required, completed, queued, window, firstSeq, perEntry } of flow.counters) {
    invariant(completed <= required, "A node must not have more arrivals than it requires.");
    const spread = { queued: queued ?? null, window: window ?? null };
    const place = { first_seq: firstSeq ?? null, per_entry: perEntry ?? null };
    rows.insert("readiness", { run, node, required, completed, ...spread, ...place });
  }
  for (const { item, node, seq } of flow.items) insertNode(tx, run, item, node, undefined, seq, false);
  if (head !== record.head) rows.set("runs", [run], { head, chain });
  return { ...record, head, chain };
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
