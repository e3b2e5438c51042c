// Outbox: messages to external destinations, written in the commit of their run and delivered by workers with a handler.
//
// outbox.O1. A message and its entry are one commit; the entry holds the payload.
// outbox.O2. The messages of a run are delivered in order, across its generations: a worker can claim a message when the one
//   before it is delivered.
// outbox.O3. One worker at a time holds a message, under a token. Workers repeat the delivery until one succeeds: at least
//   once. The key is the same every time.
// outbox.O4. Messages outlive the end of their run; a run with undelivered messages is not pruned.
// outbox.O5. Events of webhooks are rows of the outbox, too, with rules of their own (run-event.ts).

import type { EpochMs } from "../base/index.ts";
import type { RunNumber } from "./run.ts";
import type { ClaimedEvent } from "./run-event.ts";
import type { Traced } from "./telemetry.ts";

/** A message to write; its entry is in the same commit. */
export interface NewMessage extends Traced {
  readonly seq: number;
  readonly destination: string;
}

/** Claims due messages that are next in their run, oldest first. */
export interface ClaimMessagesWrite {
  readonly write: "claim-messages";
  readonly worker: number;
  readonly tokens: readonly string[];
  readonly destinations: readonly string[];
  /** How many to claim of one destination at most. */
  readonly perDestination?: number;
}
export interface ClaimedMessage extends MessageFence {
  readonly runId: string;
  readonly generation: number;
  readonly destination: string;
  /** `Message(3)` */
  readonly command: string;
  /** The number of deliveries that failed, or whose worker died. */
  readonly attempt: number;
  /** The data of its entry; empty if it has none. */
  readonly data: string;
  /** Set: it is an event of a webhook (outbox.O5). */
  readonly event?: ClaimedEvent;
}
export interface ClaimMessagesOutcome {
  readonly messages: readonly ClaimedMessage[];
  /** When the next message of these destinations is due. */
  readonly nextAt: EpochMs | undefined;
}

export interface MessageFence {
  /** The number of the run's first generation: orders messages across generations. Of an event: its line (run-event.E2). */
  readonly firstRun: RunNumber;
  readonly run: RunNumber;
  readonly seq: number;
  readonly token: string;
}

/** Removes a delivered message; the next one of its run becomes due. */
export interface MessageDeliveredWrite extends MessageFence, Traced {
  readonly write: "message-delivered";
}
export type MessageDeliveredOutcome =
  /** `more`: the run has another message. */
  { readonly status: "committed"; readonly more: boolean } | { readonly status: "lease_lost" };

/** Returns a message, for another delivery. */
export interface ReturnMessageWrite extends MessageFence, Traced {
  readonly write: "return-message";
  readonly attempt: number;
  readonly availableAt: EpochMs;
}

export interface OutboxInfo {
  /** Undelivered messages. */
  readonly pending: number;
  /** Undelivered messages whose delivery failed at least once. */
  readonly failing: number;
  /** When the oldest of them was sent. */
  readonly oldestAt: EpochMs | undefined;
  /** By name. */
  readonly destinations: readonly DestinationInfo[];
}

/** The undelivered messages of a destination. */
export interface DestinationInfo {
  readonly destination: string;
  readonly pending: number;
  readonly failing: number;
  /** The highest number of failed deliveries of one message. */
  readonly attempts: number;
  readonly oldestAt: EpochMs;
}
