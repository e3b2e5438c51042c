// Approval link: an address that answers one promise of one run, once, for a person without a token.
//
// approval-link.L1. The link is signed by the server and names run, port, key, the person it is for and its expiry. The server keeps
//   nothing: the promise itself takes one answer only.
// approval-link.L2. It is valid until the promise times out, and for 7 days at most.
// approval-link.L3. It answers with one of two values that were fixed when it was made, or that follow from the schema of the port: the person
//   who has it cannot send another one.

import type { EpochMs } from "../../base/index.ts";
import type { ServerSecret } from "../auth/server-secret.ts";

/** What a link is signed for. The names are short, because they are part of an address. */
export interface LinkGrant {
  /** The id of the run. */
  readonly r: string;
  /** The port. */
  readonly p: string;
  readonly k?: string;
  /** The person: `by` of the answer. */
  readonly n: string;
  /** When it expires. */
  readonly x: EpochMs;
  /** The value of Approve, in a list, so that every value is possible. */
  readonly a?: readonly [unknown];
  /** The value of Reject. */
  readonly j?: readonly [unknown];
}

export const MAX_LINK_MS = 7 * 24 * 60 * 60_000;

export function signLink(secret: ServerSecret, grant: LinkGrant): string {
  return secret.sign("approval-link", grant);
}

/** The grant of a link that this server made; it may have expired. */
export function openLink(secret: ServerSecret, token: string): LinkGrant | undefined {
  return secret.verify("approval-link", token) as LinkGrant | undefined;
}

/** approval-link.L2. `deadline`: when the promise times out. */
export function linkExpiry(now: EpochMs, deadline: EpochMs | undefined): EpochMs {
  return Math.min(now + MAX_LINK_MS, deadline ?? Number.POSITIVE_INFINITY);
}
