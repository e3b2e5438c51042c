// Keyed answer: what a request with an idempotency key was answered, so that its repetition gets the same answer.
//
// keyed-answer.K1. A key stands for one request: the same key with another body is refused.
// keyed-answer.K2. The key is reserved before the request is executed, and the answer is recorded afterwards. A process that dies in between
//   leaves a reservation without an answer. After `heldUntil` a repetition executes the request again; whatever it does has ids that
//   follow from the key, so it is done once.
// keyed-answer.K3. Answers are kept for a day.

import type { EpochMs } from "../base/index.ts";

/** keyed-answer.K3 */
export const KEYED_ANSWER_MS = 24 * 60 * 60_000;

/** What a reservation found. */
export type KeyReservation =
  /** The caller executes the request. */
  | { readonly status: "reserved" }
  /** Another process executes it, until this time at most. */
  | { readonly status: "held"; readonly heldUntil: EpochMs }
  /** keyed-answer.K1 */
  | { readonly status: "other_body" }
  | { readonly status: "answered"; readonly code: number; readonly answer: string };

/** A request with a key. Both texts are hashes: the first of caller, operation and key, the other of what was sent. */
export interface KeyedRequest {
  readonly request: string;
  readonly body: string;
}
