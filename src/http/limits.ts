// Limits: how much one caller may use of the server at a time. Rooms that serve have limits of their own besides.

import { RepriseError } from "../base/index.ts";

const MIB = 1_048_576;

export interface HttpLimits {
  /** Nesting of JSON. */
  readonly depth: number;
  /** Bytes per second that the server reads from one caller; it reads no faster. */
  readonly bytesPerSecond: number;
  /** Below this average, after `idleMs`, the server ends an upload. */
  readonly slowBytesPerSecond: number;
  /** How long the server waits for the next bytes of an upload. */
  readonly idleMs: number;
  /** Requests of one caller at the same time, apart from those that wait. */
  readonly requests: number;
  /** Requests of one caller that wait or stream at the same time. */
  readonly waits: number;
  /** Bytes of bodies that the server holds in memory for one caller. */
  readonly bufferedBytes: number;
  /** Requests that wait or stream at the same time, of all callers. Default: no limit. */
  readonly waitsInAll?: number;
  /** Requests per second of one caller, with bursts of one second's worth. Default: no limit. */
  readonly requestsPerSecond?: number;
}

export const HTTP_LIMITS: HttpLimits = {
  depth: 256,
  bytesPerSecond: 256 * MIB,
  slowBytesPerSecond: 16 * 1_024,
  idleMs: 10_000,
  requests: 32,
  waits: 64,
  bufferedBytes: 32 * MIB,
};

/**
 * The error of a limit that a request exceeds: 413 for sizes, 429 for too many at once, 408 for too slow, 503 for a server that is full.
 * `details.what` is the message without the name of the limit.
 */
export function limitExceeded(limit: string, status: 408 | 413 | 429 | 503, what: string): RepriseError {
  return new RepriseError("LIMIT_EXCEEDED", `${what} The limit is \`${limit}\`.`, {
    details: { limit, status, what },
  });
}
