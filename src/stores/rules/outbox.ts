// The outbox: one line of messages per run, of which only the first can be taken (O2).

import type { EpochMs } from "../../base/index.ts";
import type {
  ClaimedMessage,
  ClaimMessagesOutcome,
  ClaimMessagesWrite,
  Entry,
  ItemOutcome,
  MessageBackWrite,
  MessageDeliveredOutcome,
  MessageDeliveredWrite,
  NewMessage,
  DestinationInfo,
  OutboxInfo,
  RunNumber,
} from "../../kernel/index.ts";
import { plain } from "./rows.ts";
import type { Statements, Tx } from "./statements.ts";
import { firstGeneration } from "./streams.ts";

const BEHIND = 0;
const NEXT = 1;

export function insertOutgoing({ sql, now }: Tx, run: RunNumber, messages: readonly NewMessage[]): void {
  const line = firstGeneration(sql, run);
  let state = sql.hasMessages.get(line) === undefined ? NEXT : BEHIND;
  for (const { seq, destination } of messages) {
    sql.insertOutgoing.run(line, run, seq, destination, state, now);
    state = BEHIND;
  }
}

interface Outgoing {
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
    for (const found of sql.nextOutgoing.all(destination, now, room) as unknown as Outgoing[]) {
      const token = write.tokens[messages.length] as string;
      sql.claimOutgoing.run(found.line, found.run, found.seq, token, write.worker);
      const { id: runId, generation } = sql.runOfItem.get(found.run) as { id: string; generation: number };
      const { command, data } = sql.entry.get(found.run, found.seq) as unknown as Entry;
      messages.push({ ...found, token, runId, generation, command, data });
    }
  }
  return { messages, nextAt: dueAgain(sql, now, write.destinations) };
}

/** Undefined when there may be something to take. */
export function idleMessages(
  sql: Statements,
  now: EpochMs,
  { destinations, tokens }: ClaimMessagesWrite,
): ClaimMessagesOutcome | undefined {
  if (tokens.length > 0)
    for (const destination of destinations)
      if (sql.nextOutgoing.get(destination, now, 1) !== undefined) return undefined;
  return { messages: [], nextAt: dueAgain(sql, now, destinations) };
}

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
  { line, run, seq, token }: MessageDeliveredWrite,
): MessageDeliveredOutcome {
  if (sql.dropOutgoing.run(line, run, seq, token).changes === 0) return { status: "lease-lost" };
  return { status: "committed", more: sql.promoteOutgoing.run(line, now).changes === 1 };
}

export function applyMessageBack({ sql }: Tx, write: MessageBackWrite): ItemOutcome {
  const { line, run, seq, token, attempt, availableAt } = write;
  const { changes } = sql.returnOutgoing.run(line, run, seq, token, attempt, availableAt);
  return { status: changes === 0 ? "lease-lost" : "committed" };
}

export function outboxInfo(sql: Statements): OutboxInfo {
  const destinations = plain<DestinationInfo>(sql.countOutgoing.all());
  const sum = (of: "pending" | "failing"): number => destinations.reduce((total, one) => total + one[of], 0);
  const oldest = destinations.map(({ oldestAt }) => oldestAt).toSorted((a, b) => a - b)[0];
  return { pending: sum("pending"), failing: sum("failing"), oldestAt: oldest, destinations };
}
