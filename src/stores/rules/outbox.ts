// Outbox: the messages of a run are delivered in order, so only the first one can be claimed (outbox.O2).

import { invariant, type EpochMs } from "../../base/index.ts";
import {
  OutboxState,
  type ClaimedMessage,
  type ClaimMessagesOutcome,
  type ClaimMessagesWrite,
  type DestinationInfo,
  type Entry,
  type ItemOutcome,
  type MessageDeliveredOutcome,
  type MessageDeliveredWrite,
  type NewMessage,
  type OutboxInfo,
  type ReturnMessageWrite,
  type RunNumber,
} from "../../kernel/index.ts";
import type { Rows } from "../rows/rows.ts";
import { plainRows } from "./run-rows.ts";
import type { Statements, Tx } from "./statements.ts";
import { firstGeneration } from "./streams.ts";

export function insertOutgoing({ sql, rows, now }: Tx, run: RunNumber, messages: readonly NewMessage[]): void {
  const firstRun = firstGeneration(rows, run);
  let state: OutboxState = sql.hasOutgoing.get(firstRun) === undefined ? OutboxState.next : OutboxState.blocked;
  for (const { seq, destination } of messages) {
    sql.insertOutgoing.run(firstRun, run, seq, destination, state, now);
    state = OutboxState.blocked;
  }
}

interface OutgoingRow {
  /** The number of the run's first generation. */
  readonly line: number;
  readonly run: number;
  readonly seq: number;
  readonly destination: string;
  readonly attempt: number;
}

export function applyClaimMessages({ sql, now }: Tx, write: ClaimMessagesWrite): ClaimMessagesOutcome {
  const messages: ClaimedMessage[] = [];
  for (const destination of write.destinations) {
    const room = write.tokens.length - messages.length;
    for (const found of sql.nextOutgoing.all(destination, now, room) as unknown as OutgoingRow[]) {
      const token = write.tokens[messages.length];
      invariant(token !== undefined, "A claim must not take more messages than it has tokens.");
      sql.claimOutgoing.run(found.line, found.run, found.seq, token, write.worker);
      const { id: runId, generation } = sql.runSummary.get(found.run) as { id: string; generation: number };
      const entry = sql.entry.get(found.run, found.seq) as unknown as Entry | undefined;
      invariant(entry !== undefined, "An outgoing message must have its entry.");
      const { line: firstRun, ...message } = found;
      messages.push({ ...message, firstRun, token, runId, generation, command: entry.command, data: entry.data });
    }
  }
  return { messages, nextAt: dueAgain(sql, now, write.destinations) };
}

/** Undefined when there may be a message to claim. */
export function idleMessages(
  rows: Rows,
  now: EpochMs,
  { destinations, tokens }: ClaimMessagesWrite,
): ClaimMessagesOutcome | undefined {
  if (tokens.length > 0)
    for (const destination of destinations)
      if (rows.first("outbox_next", [destination], AVAILABLE, { upTo: now, peek: true }) !== undefined)
        return undefined;
  let nextAt: EpochMs | undefined;
  for (const destination of destinations) {
    const at = rows.first("outbox_next", [destination], AVAILABLE, { after: now, peek: true })?.available_at;
    if (at !== undefined && (nextAt === undefined || at < nextAt)) nextAt = at;
  }
  return { messages: [], nextAt };
}

const AVAILABLE = ["available_at"] as const;

function dueAgain(sql: Statements, now: EpochMs, destinations: readonly string[]): EpochMs | undefined {
  let next: EpochMs | undefined;
  for (const destination of destinations) {
    const { at } = sql.outgoingDueAt.get(destination, now) as { at: number | null };
    if (at !== null && (next === undefined || at < next)) next = at;
  }
  return next;
}

export function applyMessageDelivered(
  { sql, now }: Tx,
  { firstRun: line, run, seq, token }: MessageDeliveredWrite,
): MessageDeliveredOutcome {
  if (sql.deleteOutgoing.run(line, run, seq, token).changes === 0) return { status: "lease_lost" };
  return { status: "committed", more: sql.promoteOutgoing.run(line, now).changes === 1 };
}

export function applyMessageBack({ sql }: Tx, write: ReturnMessageWrite): ItemOutcome {
  const { firstRun: line, run, seq, token, attempt, availableAt } = write;
  const { changes } = sql.returnOutgoing.run(line, run, seq, token, attempt, availableAt);
  return { status: changes === 0 ? "lease_lost" : "committed" };
}

export function outboxInfo(sql: Statements): OutboxInfo {
  const destinations = plainRows<DestinationInfo>(sql.countOutgoing.all());
  const sum = (of: "pending" | "failing"): number => destinations.reduce((total, one) => total + one[of], 0);
  const oldest = destinations.map(({ oldestAt }) => oldestAt).toSorted((a, b) => a - b)[0];
  return { pending: sum("pending"), failing: sum("failing"), oldestAt: oldest, destinations };
}
