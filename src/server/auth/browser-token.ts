// Browser token: lets one page read one run, or one stream of it, or answer its promises, for an hour at most.
//
// browser-token.W1. The token is `rpb_` and a signed value: the server keeps nothing. It names its run, so it opens no other.
// browser-token.W2. It allows no more than the caller that minted it, and ends with the token of that caller, or
//   with its role.

import { RepriseError } from "../../base/index.ts";
import type { Caller } from "../host.ts";
import { hasRole } from "./role.ts";
import type { ServerSecret } from "./server-secret.ts";

export interface BrowserGrant {
  readonly run: string;
  readonly stream?: string;
  readonly role: "reader" | "approver";
  /** For `by` and logs: who minted it, and for whom. */
  readonly name: string;
  /** The digest of the token that minted it; absent: a session or the loopback address did. */
  readonly digest?: string;
  readonly expiresAt: number;
}

export const BROWSER_PREFIX = "rpb_";
export const MAX_BROWSER_TTL_MS = 60 * 60_000;

/** What a caller wishes to mint. */
export interface BrowserWish {
  readonly run: string;
  readonly stream?: string | undefined;
  readonly role: "reader" | "approver";
  readonly name?: string | undefined;
  readonly expiresAt: number;
}

/** browser-token.W2. Refuses a role above the caller's. */
export function mintBrowserToken(
  secret: ServerSecret,
  caller: Caller,
  digest: string | undefined,
  { run, stream, role, name, expiresAt }: BrowserWish,
): string {
  if (!hasRole(caller, role))
    throw new RepriseError(
      "ROLE_REQUIRED",
      `A browser token with the role ${role} needs a caller with it; ${caller.name} has the role ${caller.role}.`,
      { details: { status: 403 } },
    );
  const grant: BrowserGrant = {
    run,
    ...(stream !== undefined && { stream }),
    role,
    name: name === undefined ? `${caller.name} (browser)` : `${name} (${caller.name})`,
    ...(digest !== undefined && { digest }),
    expiresAt,
  };
  return `${BROWSER_PREFIX}${secret.sign("browser-token", grant)}`;
}

/** The grant of a token that this server minted; it may have expired. */
export function openBrowserToken(secret: ServerSecret, token: string): BrowserGrant | undefined {
  return secret.verify("browser-token", token.slice(BROWSER_PREFIX.length)) as BrowserGrant | undefined;
}
