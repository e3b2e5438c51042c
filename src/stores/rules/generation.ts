// Generation: the next one starts in the commit that ends the one before (N1–N3).

import {
  CHAIN_START,
  chainAfter,
  DEADLINE_ITEM,
  isAnswer,
  markOf,
  type Arrival,
  type NextGeneration,
  type RunNumber,
  type RunRecord,
} from "../../kernel/index.ts";
import { arrive } from "./arrive.ts";
import { START_ITEM } from "./begin.ts";
import { recordOf, type RunRow } from "./rows.ts";
import type { Tx } from "./statements.ts";
import { nextRun } from "./start.ts";

/** Before the rows of the old one are cleared: `read` says which of its messages nobody has looked at. */
export function startNext(tx: Tx, old: RunNumber, read: number, next: NextGeneration, isPaused: boolean): RunRecord {
  const { sql, now } = tx;
  const { version, started, runtime } = next;
  // C1. Who paused the run did not mean the generation that happened to end.
  const claim = isPaused ? undefined : next.claim;
  const run = nextRun(tx);
  tx.nextRun = run + 1;
  const chain = chainAfter(CHAIN_START, "RunStarted", "", started);
  const status = isPaused ? "paused" : claim === undefined ? "queued" : "running";
  const due = status === "queued" ? 1 : 0;
  const { worker = null, token = null } = claim ?? {};
  sql.insertNext.run(run, version, status, chain, due, token, worker, now, runtime, old);
  sql.insertEntry.run(run, 1, "RunStarted", "", started, now, markOf(chain), null);
  sql.copyTags.run(run, old);
  // Those with a time are ids of messages; a sender that repeats one must be recognised here too.
  sql.moveOnce.run(run, old);
  // A run keeps its place in a queue until its last generation has ended.
  sql.movePlace.run(run, old, START_ITEM);
  // A deadline is for the whole run, however many generations it has.
  sql.moveTimer.run(run, old, DEADLINE_ITEM);
  const unread = sql.inboxAfter.all(old, read) as unknown as Arrival[];
  for (const { type, target, data } of [...next.carried, ...unread]) {
    if (isAnswer(type)) continue;
    if (type === "PromiseResolved" || type === "PromiseRejected") sql.insertOnce.run(run, target, 0);
    arrive(tx, run, { type, target, data });
  }
  sql.nothingUnread.run(old);
  return recordOf(sql, sql.run.get(run) as unknown as RunRow);
}
