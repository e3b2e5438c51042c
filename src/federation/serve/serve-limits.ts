// Serve limits: what this site accepts from another one, announced by `GET /` and enforced before anything is written.

import { RepriseError } from "../../base/index.ts";
import { HTTP_LIMITS, type HttpLimits } from "../../http/index.ts";

const KIB = 1_024;
const MIB = 1_024 * KIB;

export interface ServeLimits extends Omit<HttpLimits, "waitsInAll" | "requestsPerSecond"> {
  /** Bytes of one record of a log. */
  readonly recordBytes: number;
  /** Bytes of one content. */
  readonly artifactBytes: number;
  /** Bytes of one journal. */
  readonly journalBytes: number;
  /** Ends of a link, on each side. */
  readonly linkEnds: number;
  /** Bytes of one pack. */
  readonly packBytes: number;
  /** Origins of this site. */
  readonly origins: number;
  /** Bytes that a peer may have uploaded without a checkpoint that covers them. */
  readonly stagedBytes: number;
  /** Files that a peer may have uploaded without a checkpoint that covers them. */
  readonly stagedFiles: number;
  /** How long uploaded files wait for their checkpoint. */
  readonly stagedMs: number;
  /** The longest a long poll waits. */
  readonly waitMs: number;
}

export const DEFAULT_LIMITS: ServeLimits = {
  ...HTTP_LIMITS,
  recordBytes: 64 * KIB - 1,
  artifactBytes: 16 * MIB,
  journalBytes: 32 * MIB,
  linkEnds: 1_024,
  packBytes: 16 * MIB,
  origins: 1_024,
  stagedBytes: 64 * MIB,
  stagedFiles: 4_096,
  stagedMs: 60 * 60_000,
  waitMs: 60_000,
};

/** The defaults with changes. A limit is a whole number above 0. */
export function serveLimits(changes: Partial<ServeLimits> = {}): ServeLimits {
  for (const [name, value] of Object.entries(changes)) {
    if (!Object.hasOwn(DEFAULT_LIMITS, name))
      throw new RepriseError(
        "BAD_OPTIONS",
        `limits: there is no limit ${JSON.stringify(name)}. There are ${Object.keys(DEFAULT_LIMITS).join(", ")}.`,
      );
    if (!Number.isSafeInteger(value) || value < 1)
      throw new RepriseError("BAD_OPTIONS", `limits.${name} is a whole number above 0; got ${String(value)}.`);
  }
  return { ...DEFAULT_LIMITS, ...changes };
}

/** The error of a limit that a request exceeds: 413 for sizes, 429 for too many at once, 408 for too slow. */
export function limitExceeded(limit: keyof ServeLimits, status: 408 | 413 | 429, message: string): RepriseError {
  return new RepriseError("LIMIT_EXCEEDED", `${message} The limit is \`${limit}\`: \`GET /\` announces its value.`, {
    details: { limit, status },
  });
}
