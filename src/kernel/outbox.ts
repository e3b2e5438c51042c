// Outbox: messages to the outside, written in the commit of their run and delivered by whoever has a handler.
//
// O1. A message and its entry are one commit; the payload stays in the entry.
// O2. The messages of a run are delivered in order, across its generations: the next one is handed out when the one before
//     it has been delivered.
// O3. A message is handed to one worker at a time, under a token. Until it is said to be delivered it comes again, without
//     end: at least once. Its key is the same every time.
// O4. Messages outlive the end of their run; a run with messages to deliver is not pruned.

import type { EpochMs } from "../base/index.ts";
import type { RunNumber } from "./run.ts";

/** A message about to be written; its entry is in the same commit. */
export interface NewMessage {
  readonly seq: number;
  readonly destination: string;
}

/** Takes messages that are next in their run and due, oldest first. */
export interface ClaimMessagesWrite {
  readonly write: "claim-messages";
  readonly worker: number;
  readonly tokens: readonly string[];
  readonly destinations: readonly string[];
}
export interface ClaimedMessage extends MessageFence {
  readonly runId: string;
  readonly generation: number;
  readonly destination: string;
  /** `Message(3)` */
  readonly command: string;
  /** Deliveries that failed, or whose worker died. */
  readonly attempt: number;
  /** The data of its entry. */
  readonly data: string;
}
export interface ClaimMessagesOutcome {
  readonly messages: readonly ClaimedMessage[];
  /** When the next of these destinations is due again. */
  readonly nextAt: EpochMs | undefined;
}

export interface MessageFence {
  /** The number of the run's first generation. */
  readonly firstRun: RunNumber;
  readonly run: RunNumber;
  readonly seq: number;
  readonly token: string;
}

/** The message is not needed any more; the next one of its run is due. */
export interface MessageDeliveredWrite extends MessageFence {
  readonly write: "message-delivered";
}
export type MessageDeliveredOutcome =
  /** `more`: the run has another one. */
  { readonly status: "committed"; readonly more: boolean } | { readonly status: "lease_lost" };

/** Gives a message back, to be tried again. */
export interface ReturnMessageWrite extends MessageFence {
  readonly write: "return-message";
  readonly attempt: number;
  readonly availableAt: EpochMs;
}

export interface OutboxInfo {
  /** Messages that have not been delivered. */
  readonly pending: number;
  /** Those of them whose delivery has failed at least once. */
  readonly failing: number;
  /** When the oldest of them was sent. */
  readonly oldestAt: EpochMs | undefined;
  /** Where they are to go, by name. */
  readonly destinations: readonly DestinationInfo[];
}

/** What waits for one destination. */
export interface DestinationInfo {
  readonly destination: string;
  readonly pending: number;
  readonly failing: number;
  /** How often the one that failed most has failed. */
  readonly attempts: number;
  readonly oldestAt: EpochMs;
}
