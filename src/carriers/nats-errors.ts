// NATS errors: what the errors of the packages mean for a carrier. By name and code: the packages may be loaded twice.

import { RepriseError } from "../base/index.ts";

const STREAM_NOT_FOUND = 10059;
const WRONG_LAST_SEQUENCE = [10071, 10164];
const NOT_ENABLED = [10039, 10076];
/** No answer came, or the connection broke. */
const TRANSIENT = [
  "TimeoutError",
  "ConnectionError",
  "ClosedConnectionError",
  "DrainingConnectionError",
  "RequestError",
];

/** The version is not the one that the caller expected. */
export function isStale(error: unknown): boolean {
  return WRONG_LAST_SEQUENCE.includes(codeOf(error));
}

export function isMissing(error: unknown): boolean {
  return codeOf(error) === STREAM_NOT_FOUND;
}

/** The next try may succeed. */
export function isTransient(error: unknown): boolean {
  // 503: the cluster has no leader now.
  return TRANSIENT.includes(nameOf(error)) || (error as { status?: number }).status === 503;
}

/** The error that a failure means. */
export function natsError(url: string, path: string, error: unknown): RepriseError {
  const message = error instanceof Error ? error.message : String(error);
  const options = { cause: error, details: { url, path } };
  if (nameOf(error) === "JetStreamNotEnabled" || NOT_ENABLED.includes(codeOf(error)))
    return new RepriseError(
      "CARRIER_REFUSED",
      `${url} has no JetStream, which keeps the files (${path}). Start the server with \`nats-server -js -sd <folder>\`, or enable JetStream for this account.`,
      options,
    );
  if (isTransient(error))
    return new RepriseError(
      "CARRIER_UNREACHABLE",
      `${url} could not be reached: ${message} (${path}). Check that the server runs and that this machine reaches it, then repeat the command.`,
      options,
    );
  const hint = /authorization|permission|authentication/i.test(`${nameOf(error)} ${message}`)
    ? " Check the credentials of this peer."
    : "";
  return new RepriseError("CARRIER_REFUSED", `${url} refused a request: ${message} (${path}).${hint}`, options);
}

function codeOf(error: unknown): number {
  const { code } = error as { code?: unknown };
  return typeof code === "number" ? code : 0;
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : "";
}
