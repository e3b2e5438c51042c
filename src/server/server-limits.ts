// Server limits: what the HTTP API accepts from one caller, and in all.

import { HTTP_LIMITS, type HttpLimits } from "../http/index.ts";
import { RepriseError } from "../base/index.ts";

export interface ServerLimits extends Required<HttpLimits> {
  /** Bytes of a body without payloads. */
  readonly bodyBytes: number;
  /** Bytes of a body that carries payloads of runs. */
  readonly payloadBytes: number;
  /** How long a request may take that does not wait. */
  readonly requestMs: number;
}

const MIB = 1_048_576;

export const SERVER_LIMITS: ServerLimits = {
  ...HTTP_LIMITS,
  requests: 100,
  waits: 500,
  waitsInAll: 500,
  requestsPerSecond: 100,
  bodyBytes: MIB,
  payloadBytes: 8 * MIB,
  requestMs: 10_000,
};

/** The defaults with changes. A limit is a whole number above 0. */
export function serverLimits(changes: Partial<ServerLimits> = {}): ServerLimits {
  for (const [name, value] of Object.entries(changes)) {
    if (!Object.hasOwn(SERVER_LIMITS, name))
      throw new RepriseError(
        "BAD_OPTIONS",
        `createServer: limits: there is no limit ${JSON.stringify(name)}. There are ${Object.keys(SERVER_LIMITS).join(", ")}.`,
      );
    if (!Number.isSafeInteger(value) || value < 1)
      throw new RepriseError(
        "BAD_OPTIONS",
        `createServer: limits.${name} is a whole number above 0; got ${String(value)}.`,
      );
  }
  return { ...SERVER_LIMITS, ...changes };
}
