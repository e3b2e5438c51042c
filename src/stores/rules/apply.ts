// Apply: one function per kind of write. Each checks its fence with its first statement, and writes nothing when that
// does not hold (K1).

import type {
  CompleteWrite,
  ItemBackWrite,
  ItemEndWrite,
  ItemOutcome,
  Outcome,
  StopOutcome,
  StopWrite,
  Write,
} from "../../kernel/index.ts";
import { arrive } from "./arrive.ts";
import { applyAdmit, idleAdmit } from "./begin.ts";
import { applyClaimItems, applyClaimTurns, hasDueTurns, idleClaimItems } from "./claim.ts";
import { applyComplete } from "./complete.ts";
import { applyPause, applyResume, applyRetry, applyTerminate } from "./control.ts";
import { applyFireDue, nextDue } from "./fire.ts";
import { applyFork } from "./fork.ts";
import { applyPutSchedule, applyRemoveSchedule } from "./schedules.ts";
import { lostOutcome } from "./lost-history.ts";
import { applyMessage } from "./message.ts";
import { saveFlows } from "./flow-rows.ts";
import { freeKey } from "./gates.ts";
import { applyClaimMessages, applyMessageBack, applyMessageDelivered, idleMessages } from "./outbox.ts";
import { applyChangeQueue, applyDeclareQueue } from "./queues.ts";
import type { Statements, Tx } from "./statements.ts";
import { applyStart } from "./start.ts";
import { applyTurn } from "./turn.ts";

/** In order. What completions keep in memory is written before anything else looks. `isLost`: history went back since. */
export function apply(tx: Tx, writes: readonly Write[], isLost = false): readonly Outcome[] {
  const outcomes = writes.map((write) => (isLost ? lostOutcome(write) : undefined) ?? applyNext(tx, write));
  saveFlows(tx);
  return outcomes;
}

/** Of several in order; after the last one come the flows. */
export function applyNext(tx: Tx, write: Write): Outcome {
  if (write.write === "complete") return applyComplete(tx, write);
  saveFlows(tx);
  return applyOne(tx, write);
}

function applyOne(tx: Tx, write: Exclude<Write, CompleteWrite>): Outcome {
  switch (write.write) {
    case "turn":
      return applyTurn(tx, write);
    case "start":
      return applyStart(tx, write);
    case "item-end":
      return applyItemEnd(tx, write);
    case "item-back":
      return applyItemBack(tx, write);
    case "turn-back":
      return tx.sql.returnTurn.run(write.run, write.token).changes === 0 ? LEASE_LOST : COMMITTED;
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
    case "terminate":
      return applyTerminate(tx, write);
    case "retry":
      return applyRetry(tx, write);
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
    case "message-back":
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
  }
}

/** The outcome of a poll that would find nothing, without a transaction; undefined when there may be something to do. */
export function idleOutcome(sql: Statements, now: number, write: Write): Outcome | undefined {
  switch (write.write) {
    case "claim-turns":
      return write.tokens.length === 0 || !hasDueTurns(sql, write.definitions) ? [] : undefined;
    case "claim-items":
      return idleClaimItems(sql, now, write);
    case "claim-messages":
      return idleMessages(sql, now, write);
    case "admit":
      return idleAdmit(sql, now, write);
    case "fire-due": {
      const nextAt = nextDue(sql);
      return nextAt === undefined || nextAt > now ? { runs: [], ready: 0, nextAt } : undefined;
    }
    default:
      return undefined;
  }
}

const COMMITTED = { status: "committed" } as const;
const LEASE_LOST = { status: "lease-lost" } as const;

function applyItemEnd(tx: Tx, { run, item, token, line, arrival }: ItemEndWrite): ItemOutcome {
  if (tx.sql.endItem.run(run, item, token).changes === 0) return LEASE_LOST;
  if (line !== undefined) freeKey(tx, "task", line);
  arrive(tx, run, arrival);
  return COMMITTED;
}

function applyItemBack(tx: Tx, write: ItemBackWrite): ItemOutcome {
  const { sql, now } = tx;
  const { availableAt, attempt, failures, run, item, token } = write;
  const state = availableAt === undefined ? 1 : 0;
  const { changes } = sql.returnItem.run(state, availableAt ?? now, attempt, failures ?? null, run, item, token);
  if (changes === 0) return LEASE_LOST;
  if (write.line !== undefined) freeKey(tx, "task", write.line);
  return COMMITTED;
}

function applyStop(tx: Tx, { status, evidence, run, token, item, line }: StopWrite): StopOutcome {
  const { sql } = tx;
  if (item === undefined) {
    if (sql.stop.run(status, evidence, run, token).changes === 0) return LEASE_LOST;
  } else {
    if (sql.heldItem.get(run, item, token) === undefined) return LEASE_LOST;
    sql.stopFlow.run(status, evidence, run);
    sql.stopItem.run(run, item);
    if (line !== undefined) freeKey(tx, "task", line);
  }
  sql.stopNodes.run(run);
  return COMMITTED;
}
