// Offer: what home and peer say to each other about work, as JSON.
//
// offer.O1. An offer is for one peer. Its id is unguessable and of one lease of the item: the home gives every next lease another one.
// offer.O2. The input is named by the key of its text. The peer has the text, or fetches and verifies it.

/** One attempt of a task, offered to a peer. */
export interface Offer {
  readonly offer: string;
  /** The run, at its home. */
  readonly run: string;
  readonly generation: number;
  readonly command: string;
  /** retry-record.V3 */
  readonly epoch: number;
  readonly task: string;
  /** As stored, from 0. */
  readonly attempt: number;
  /** attempts.X1 */
  readonly execution: number;
  readonly idempotencyKey: string;
  /** offer.O2. Absent: the input is undefined. */
  readonly input?: string;
  readonly timeoutMs?: number;
}

/** `POST /offers/claim`: asks for work. The home answers when it has some, or after `waitMs`. */
export interface ClaimRequest {
  /** The tasks that are registered at the peer. */
  readonly tasks: readonly string[];
  /** How many more it executes at once. */
  readonly free: number;
  readonly waitMs?: number;
}
export interface ClaimAnswer {
  readonly offers: readonly Offer[];
  /** Offers that the peer holds and that the home no longer waits for. */
  readonly gone: readonly string[];
  /** An offer that is not renewed for so long is offered again. */
  readonly leaseMs: number;
}

/** `POST /offers/renew` */
export interface RenewRequest {
  readonly offers: readonly string[];
  readonly free: number;
}
export type RenewAnswer = Pick<ClaimAnswer, "gone">;

/** `POST /offers/inputs`: asks for the texts of inputs. */
export interface InputsRequest {
  readonly keys: readonly string[];
}
export interface InputsAnswer {
  /** By key. The peer asks again for what is missing: an answer has a limit. */
  readonly texts: Readonly<Record<string, string>>;
}

/** `POST /offers/end`: several at once, answered in their order. */
export interface EndsRequest {
  readonly ends: readonly End[];
}
export interface EndsAnswer {
  readonly answers: readonly (EndAnswer | { readonly refused: string })[];
}

/** The end of one offer. */
export type End = {
  readonly offer: string;
} & (
  | {
      /** The envelope of the step statement. */
      readonly statement: string;
      /** The text of the result; absent: the function returned undefined. */
      readonly result?: string;
      /** The text of the error that the function threw. */
      readonly error?: string;
      /** The function asked for another attempt after this time. */
      readonly retryAfterMs?: number;
    }
  /** The peer did not call the function, because of this. */
  | { readonly declined: string }
);
export interface EndAnswer {
  /**
   * `committed`: the end is in the run. `retried`: another attempt follows. `waiting`: the home compares it with the end of another peer.
   * `late`: the home no longer waited for it, and keeps it as a statement of the peer.
   */
  readonly status: "committed" | "retried" | "waiting" | "late";
}
