// Outbox: the messages of a run are delivered in order, so only the first one can be claimed (outbox.O2).

import { invariant, type EpochMs } from "../../base/index.ts";
import {
  isEventLine,
  OutboxState,
  type ClaimedMessage,
  type ClaimMessagesOutcome,
  type ClaimMessagesWrite,
  type DestinationInfo,
  type ItemOutcome,
  type MessageDeliveredOutcome,
  type MessageDeliveredWrite,
  type NewMessage,
  type OutboxInfo,
  type ReturnMessageWrite,
  type RunNumber,
} from "../../kernel/index.ts";
import type { Part, Rows } from "../rows/rows.ts";
import { findEntry } from "./journal-entries.ts";
import { readEvent } from "./run-events.ts";
import type { Tx } from "./transaction.ts";
import { firstGeneration } from "./streams.ts";

const SEQ = ["seq"] as const;

export function insertOutgoing({ rows, now }: Tx, run: RunNumber, messages: readonly NewMessage[]): void {
  const line = firstGeneration(rows, run);
  // The last message is locked, so that it cannot be delivered before the next one is inserted.
  const last = rows.first("outbox", [line], SEQ, { backwards: true });
  let state: OutboxState = last === undefined ? OutboxState.next : OutboxState.blocked;
  for (const { seq, destination } of messages) {
    rows.insert("outbox", {
      line,
      run,
      seq,
      destination,
      state,
      available_at: now,
      sent_at: now,
      attempt: 0,
      token: null,
      worker: null,
    });
    state = OutboxState.blocked;
  }
}

const OUTGOING = ["line", "run", "seq", "destination", "attempt", "sent_at"] as const;
const RUN_NAME = ["id", "generation"] as const;
const NO_RUN = { id: "", generation: 0 };
const NO_ENTRY = { command: "", data: "" };

export function applyClaimMessages({ rows, now }: Tx, write: ClaimMessagesWrite): ClaimMessagesOutcome {
  const messages: ClaimedMessage[] = [];
  for (const destination of write.destinations) {
    const limit = Math.min(write.tokens.length - messages.length, write.perDestination ?? Number.MAX_SAFE_INTEGER);
    if (limit === 0) break;
    for (const found of rows.select("outbox_next", [destination], OUTGOING, { upTo: now, limit })) {
      const { line, run, seq, attempt } = found;
      const token = write.tokens[messages.length];
      invariant(token !== undefined, "A claim must not take more messages than it has tokens.");
      rows.set("outbox", [line, run, seq], { state: OutboxState.leased, token, worker: write.worker });
      if (isEventLine(line)) {
        messages.push({ ...claimedEvent(rows, found), token });
        continue;
      }
      const sender = rows.get("runs", [run], RUN_NAME);
      const entry = findEntry(rows, run, seq);
      // No invariant that both exist: one damaged row must not stop the messages of all other runs. The worker cannot decode the
      // missing entry and returns the message; `doctor` reports it.
      const { id: runId, generation } = sender ?? NO_RUN;
      const { command, data } = sender === undefined || entry === undefined ? NO_ENTRY : entry;
      messages.push({ run, seq, destination, attempt, firstRun: line, token, runId, generation, command, data });
    }
  }
  return { messages, nextAt: dueAgain(rows, now, write.destinations) };
}

/** As for messages: a damaged row stops nothing. The worker drops it. */
function claimedEvent(rows: Rows, row: Part<"outbox", (typeof OUTGOING)[number]>): Omit<ClaimedMessage, "token"> {
  const { line: firstRun, run, seq, destination, attempt, sent_at: at } = row;
  const found = readEvent(rows, run, seq, at);
  const entry = found === undefined ? undefined : findEntry(rows, run, found.event.entry);
  const { command, data } = entry ?? NO_ENTRY;
  const { id: runId, generation } = NO_RUN;
  return { runId, generation, ...found, firstRun, run, seq, destination, attempt, command, data };
}

/** Undefined when there may be a message to claim. */
export function idleMessages(
  rows: Rows,
  now: EpochMs,
  { destinations, tokens }: ClaimMessagesWrite,
): ClaimMessagesOutcome | undefined {
  const nextAt = dueAgain(rows, now, destinations);
  if (tokens.length === 0) return { messages: [], nextAt };
  const due = destinations.map((destination) =>
    rows.first("outbox_next", [destination], SEQ, { upTo: now, peek: true }),
  );
  return due.some((found) => found !== undefined) ? undefined : { messages: [], nextAt };
}

const AVAILABLE = ["available_at"] as const;

function dueAgain(rows: Rows, now: EpochMs, destinations: readonly string[]): EpochMs | undefined {
  let next: EpochMs | undefined;
  for (const destination of destinations) {
    const at = rows.first("outbox_next", [destination], AVAILABLE, { after: now, peek: true })?.available_at;
    if (at !== undefined && (next === undefined || at < next)) next = at;
  }
  return next;
}

const PLACE = ["run", "seq"] as const;

export function applyMessageDelivered(
  { rows, now }: Tx,
  { firstRun: line, run, seq, token }: MessageDeliveredWrite,
): MessageDeliveredOutcome {
  // run-event.E2
  if (isEventLine(line))
    return rows.remove("outbox", [line, run, seq], { token })
      ? { status: "committed", more: false }
      : { status: "lease_lost" };
  // The delivered message is the first one of its run.
  const first = rows.select("outbox", [line], PLACE, { limit: 2 });
  if (!rows.remove("outbox", [line, run, seq], { token })) return { status: "lease_lost" };
  const next = first.find((found) => found.run !== run || found.seq !== seq);
  if (next === undefined) return { status: "committed", more: false };
  // Due from now on: it was blocked before.
  rows.set("outbox", [line, next.run, next.seq], { state: OutboxState.next, available_at: now });
  return { status: "committed", more: true };
}

export function applyMessageBack({ rows }: Tx, write: ReturnMessageWrite): ItemOutcome {
  const { firstRun: line, run, seq, token, attempt, availableAt } = write;
  const values = { state: OutboxState.next, token: null, worker: null, attempt, available_at: availableAt };
  return { status: rows.change("outbox", [line, run, seq], values, { token }) ? "committed" : "lease_lost" };
}

export function outboxInfo(destinations: readonly DestinationInfo[]): OutboxInfo {
  const sum = (of: "pending" | "failing"): number => destinations.reduce((total, one) => total + one[of], 0);
  const oldest = destinations.map(({ oldestAt }) => oldestAt).toSorted((a, b) => a - b)[0];
  return { pending: sum("pending"), failing: sum("failing"), oldestAt: oldest, destinations };
}
