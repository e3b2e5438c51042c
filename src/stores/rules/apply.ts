// Apply: one function per kind of write. Each function first checks the write's fence, and writes nothing when the fence does
// not hold (commit.K1).

import {
  QueueItemState,
  type CompleteWrite,
  type EndItemWrite,
  type ItemOutcome,
  type Outcome,
  type ReturnItemWrite,
  type ReturnTurnWrite,
  type StopOutcome,
  type StopWrite,
  type Write,
} from "../../kernel/index.ts";
import type { Rows } from "../rows/rows.ts";
import { applyAnswerBudget, applyOfferBudget } from "./answer-budget.ts";
import { applyReserve, settle } from "./budgets.ts";
import { appendToInbox } from "./inbox.ts";
import { applyAdmit, idleAdmit } from "./pending-start.ts";
import { applyClaimItems, applyClaimTurns, hasDueTurns, idleClaimItems } from "./claim.ts";
import { applyComplete } from "./complete-node.ts";
import { applyPause, applyResume, applyRetry, applyTerminate, stopItem, stopNodes } from "./control.ts";
import { applyFireDue, nextDue } from "./fire-due.ts";
import { applyFork } from "./fork.ts";
import { applyPutSchedule, applyRemoveSchedule } from "./schedules.ts";
import { rolledBackOutcome } from "./rolled-back-outcome.ts";
import { applyRelease, applySequence } from "./run-log.ts";
import { insertMemo } from "./memo.ts";
import { applyMessage } from "./message.ts";
import { applyMigrate } from "./migrate.ts";
import { saveFlows } from "./flow-rows.ts";
import { freeSlot } from "./queue-limiter.ts";
import { applyClaimMessages, applyMessageBack, applyMessageDelivered, idleMessages } from "./outbox.ts";
import { applyChangeQueue, applyDeclareQueue } from "./queues.ts";
import { LOST_TURN, recordFailedAttempt, returnTurn } from "./attempts.ts";
import { NO_TURN } from "./run-rows.ts";
import { noteStopEvent } from "./run-events.ts";
import type { Tx } from "./transaction.ts";
import { applyStart } from "./start.ts";
import { applyTurn } from "./commit-turn.ts";

/**
 * Applies the writes in order. Completions keep rows of flows in memory (flow-rows.R1); those are saved before any other write
 * reads them. `isLost`: the store was rolled back after the writes were made.
 */
export function apply(tx: Tx, writes: readonly Write[], isLost = false): readonly Outcome[] {
  const outcomes = writes.map((write) => (isLost ? rolledBackOutcome(write) : undefined) ?? applyNext(tx, write));
  saveFlows(tx);
  return outcomes;
}

/** Applies one write of a list. The caller saves the flows after the last one. `rows`: those that this write uses. */
export function applyNext(tx: Tx, write: Write, rows = tx.rows): Outcome {
  if (write.write === "complete") return applyComplete(tx, write);
  saveFlows(tx);
  return applyOne(rows === tx.rows ? tx : { ...tx, rows }, write);
}

function applyOne(tx: Tx, write: Exclude<Write, CompleteWrite>): Outcome {
  switch (write.write) {
    case "turn":
      return applyTurn(tx, write);
    case "start":
      return applyStart(tx, write);
    case "end-item":
      return applyEndItem(tx, write);
    case "return-item":
      return applyReturnItem(tx, write);
    case "return-turn":
      return applyReturnTurn(tx, write);
    case "fork":
      return applyFork(tx, write);
    case "message":
      return applyMessage(tx, write);
    case "stop":
      return applyStop(tx, write);
    case "resume":
      return applyResume(tx, write);
    case "pause":
      return applyPause(tx, write);
    case "reserve":
      return applyReserve(tx, write);
    case "answer-budget":
      return applyAnswerBudget(tx, write);
    case "offer-budget":
      return applyOfferBudget(tx, write);
    case "terminate":
      return applyTerminate(tx, write);
    case "retry":
      return applyRetry(tx, write);
    case "migrate":
      return applyMigrate(tx, write);
    case "claim-turns":
      return applyClaimTurns(tx, write);
    case "claim-items":
      return applyClaimItems(tx, write);
    case "fire-due":
      return applyFireDue(tx, write);
    case "claim-messages":
      return applyClaimMessages(tx, write);
    case "message-delivered":
      return applyMessageDelivered(tx, write);
    case "return-message":
      return applyMessageBack(tx, write);
    case "put-schedule":
      return applyPutSchedule(tx, write);
    case "remove-schedule":
      return applyRemoveSchedule(tx, write);
    case "admit":
      return applyAdmit(tx, write);
    case "declare-queue":
      return applyDeclareQueue(tx, write);
    case "change-queue":
      return applyChangeQueue(tx, write);
    case "sequence":
      return applySequence(tx, write);
    case "release":
      return applyRelease(tx, write);
  }
}

/** The outcome of a poll that would find nothing, read without a transaction; undefined when there may be work. */
export function idleOutcome(rows: Rows, now: number, write: Write): Outcome | undefined {
  switch (write.write) {
    case "claim-turns":
      return write.tokens.length === 0 || !hasDueTurns(rows, write.definitions) ? [] : undefined;
    case "claim-items":
      return idleClaimItems(rows, now, write);
    case "claim-messages":
      return idleMessages(rows, now, write);
    case "admit":
      return idleAdmit(rows, now, write);
    case "fire-due": {
      const nextAt = nextDue(rows);
      return nextAt === undefined || nextAt > now ? { runs: [], ready: 0, nextAt } : undefined;
    }
    default:
      return undefined;
  }
}

const COMMITTED = { status: "committed" } as const;
const LEASE_LOST = { status: "lease_lost" } as const;

function applyReturnTurn(tx: Tx, { run, token }: ReturnTurnWrite): ItemOutcome {
  const { rows } = tx;
  if (!rows.is("runs", [run], { turn_token: token })) return LEASE_LOST;
  const row = rows.get("runs", [run], LOST_TURN);
  if (row !== undefined) returnTurn(tx, row);
  return COMMITTED;
}

function applyEndItem(tx: Tx, { run, item, token, slot, arrival }: EndItemWrite): ItemOutcome {
  if (!tx.rows.remove("queue", [run, item], { token })) return LEASE_LOST;
  if (slot !== undefined) freeSlot(tx, "task", slot);
  const { memo, charge, execution } = arrival.ran ?? {};
  if (charge !== undefined) settle(tx, run, item, charge, execution);
  if (appendToInbox(tx, run, arrival) && memo?.seq !== undefined) insertMemo(tx.rows, run, memo.seq, memo);
  return COMMITTED;
}

function applyReturnItem(tx: Tx, write: ReturnItemWrite): ItemOutcome {
  const { availableAt, attempt, failures, run, item, token, into, executions } = write;
  const values = {
    state: availableAt === undefined ? QueueItemState.ready : QueueItemState.delayed,
    available_at: availableAt ?? tx.now,
    attempt,
    takeovers: 0,
    token: null,
    worker: null,
    ...(into && { name: into.name, queue: into.slot.queue, key: into.slot.key ?? null }),
    ...(executions !== undefined && { executions }),
  };
  const returned = failures === undefined ? values : { ...values, failures };
  if (!tx.rows.change("queue", [run, item], returned, { token })) return LEASE_LOST;
  if (write.slot !== undefined) freeSlot(tx, "task", write.slot);
  if (write.failed !== undefined) recordFailedAttempt(tx, run, item, write.failed);
  if (write.failed?.charge !== undefined) settle(tx, run, item, write.failed.charge, write.failed.execution);
  return COMMITTED;
}

function applyStop(tx: Tx, { status, evidence, run, token, item, slot }: StopWrite): StopOutcome {
  const { rows } = tx;
  const stopped = { ...NO_TURN, status, evidence };
  if (item === undefined) {
    if (!rows.change("runs", [run], stopped, { turn_token: token })) return LEASE_LOST;
  } else {
    if (!rows.is("queue", [run, item], { token })) return LEASE_LOST;
    rows.set("runs", [run], stopped);
    stopItem(rows, run, item);
    if (slot !== undefined) freeSlot(tx, "task", slot);
  }
  stopNodes(rows, run);
  noteStopEvent(tx, run, status);
  return COMMITTED;
}
