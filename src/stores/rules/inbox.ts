// Inbox: the only way to append a message to a run's inbox.
//
// The run's row counts the message and makes the turn due before the inbox row is written. So no wake-up is lost, and arrival
// numbers are dense.

import {
  hasEnded,
  isCancel,
  TurnDue,
  type Arrival,
  type InboxRow,
  type RunNumber,
  type RunStatus,
} from "../../kernel/index.ts";
import type { Part } from "../rows/rows.ts";
import type { Tx } from "./transaction.ts";
import { startCancelled, START_ITEM } from "./pending-start.ts";
import { isMovable } from "./run-rows.ts";

const COUNTED = ["status", "arrivals", "turn_due"] as const;

/** False when the run does not exist or has ended: the message is dropped. */
export function appendToInbox(tx: Tx, run: RunNumber, { type, target, data, ran }: Arrival): boolean {
  const { rows } = tx;
  const row = rows.get("runs", [run], COUNTED);
  if (row === undefined || hasEnded(row.status)) return false;
  const arrival = row.arrivals + 1;
  rows.set("runs", [run], { arrivals: arrival, turn_due: dueWithMessage(row.status, row.turn_due) });
  // The target `Start` says to the holder of the turn that the run's code has never run.
  const wasNotStarted = isCancel(type) && startCancelled(tx, run);
  rows.insert("inbox", {
    run,
    arrival,
    type,
    target: wasNotStarted ? START_ITEM : target,
    data,
    worker: ran?.worker ?? null,
    execution: ran?.execution ?? null,
    started_at: ran?.startedAt ?? null,
    took_ms: ran?.tookMs ?? null,
  });
  return true;
}

/** A message wakes a run that is not stopped; one that has not started or is a suspect stays what it is. */
function dueWithMessage(status: RunStatus, due: TurnDue): TurnDue {
  if (!isMovable(status)) return TurnDue.no;
  return due === TurnDue.no ? TurnDue.yes : due;
}

export const MESSAGE = ["arrival", "type", "target", "data", "worker", "execution", "started_at", "took_ms"] as const;

export function messageOf(row: Part<"inbox", (typeof MESSAGE)[number]>): InboxRow {
  const { arrival, type, target, data, worker, execution, started_at: startedAt, took_ms: tookMs } = row;
  if (worker === null || execution === null || startedAt === null || tookMs === null)
    return { arrival, type, target, data };
  return { arrival, type, target, data, ran: { worker, execution, startedAt, tookMs } };
}
