// Next generation: starts a run's next generation in the commit that ends the one before (generation.N1 to generation.N3).

import { invariant } from "../../base/index.ts";
import {
  CHAIN_START,
  chainAfter,
  DEADLINE_ITEM,
  isAnswer,
  markOf,
  TurnDue,
  type Arrival,
  type NextGeneration,
  type RunNumber,
  type RunRecord,
} from "../../kernel/index.ts";
import { appendToInbox } from "./inbox.ts";
import { START_ITEM } from "./pending-start.ts";
import { recordOf, type RunRow } from "./run-rows.ts";
import type { Tx } from "./statements.ts";
import { nextRun } from "./start.ts";

/** Runs before the rows of the old generation are cleared. Messages after `read` are unread and move to the new one. */
export function startNextGeneration(
  tx: Tx,
  old: RunNumber,
  read: number,
  next: NextGeneration,
  isPaused: boolean,
): RunRecord {
  const { sql, now } = tx;
  const { version, started, runtime } = next;
  // control.C1. A pause applies to the run, so the next generation is paused too.
  const claim = isPaused ? undefined : next.claim;
  const run = nextRun(tx);
  tx.nextRun = run + 1;
  const chain = chainAfter(CHAIN_START, "RunStarted", "", started);
  const status = isPaused ? "paused" : claim === undefined ? "queued" : "running";
  const due = status === "queued" ? TurnDue.yes : TurnDue.no;
  const { worker = null, token = null } = claim ?? {};
  const { changes } = sql.insertNextGeneration.run(run, version, status, chain, due, token, worker, now, runtime, old);
  invariant(changes === 1, "A next generation must copy the row of the one before.");
  sql.insertEntry.run(run, 1, "RunStarted", "", started, now, markOf(chain), null);
  sql.copyTags.run(run, old);
  // Dedup ids of senders: a repeated message is ignored by the new generation, too.
  sql.moveDedupIds.run(run, old);
  // A run keeps its slot of a queue until its last generation has ended.
  sql.moveAdmittedStart.run(run, old, START_ITEM);
  // The deadline applies to all generations together.
  sql.moveTimer.run(run, old, DEADLINE_ITEM);
  const unread = sql.inboxAfter.all(old, read) as unknown as Arrival[];
  for (const { type, target, data } of [...next.carried, ...unread]) {
    if (isAnswer(type)) continue;
    if (type === "PromiseResolved" || type === "PromiseRejected") sql.insertDedupKey.run(run, target, 0);
    appendToInbox(tx, run, { type, target, data });
  }
  sql.clearUnread.run(old);
  return recordOf(sql, sql.run.get(run) as unknown as RunRow);
}
