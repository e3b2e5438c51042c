// Carrier: a place with files that sites exchange their logs through: a directory, a web server, a bucket, a NATS server.
//
// carrier.C1. A carrier is never the truth: a home fills it again, and a reader verifies every byte that it got.
// carrier.C2. A file is there completely or not at all, and is durable once `put` has returned, as far as the server of the carrier is.
// carrier.C3. Of several writers of one path with the same condition one succeeds; each other one gets "refused".
// carrier.C4. `put` with `absent` is for files that never change, `put` with `match` for the few that do (`checkpoint`).
// carrier.C5. A path names a file below the carrier, on every carrier alike, and nothing else on the machine.

import { RepriseError, type Clock, type Random, type Timers } from "../base/index.ts";

/** The version of a file. Opaque: each carrier has its own. Any string is one; written this way, "refused" stays a case of its own. */
export type Etag = string & Record<never, never>;

export interface CarrierFile {
  readonly bytes: Uint8Array;
  readonly etag: Etag;
}

export interface GetOptions {
  /** The version that the caller has: if the file still has it, the answer is "unchanged". */
  readonly after?: Etag;
  /** Waits up to this time while the file is unchanged or, without `after`, absent. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
  /** A longer file is refused with LIMIT_EXCEEDED before it is in memory. */
  readonly maxBytes?: number;
}

/** `absent` and `match: null`: the file must not exist. `match`: it must have this version. */
export type PutOptions = ({ readonly absent: true } | { readonly match: Etag | null }) & {
  readonly signal?: AbortSignal;
};

export interface ListOptions {
  /** Only the direct children: files, and folders with "/" at their end. */
  readonly shallow?: boolean;
}

/** A place with files that sites exchange their logs through. */
export interface Carrier {
  /** Without user name, password and token. */
  readonly url: string;
  /** The file; "unchanged" if it still is `after`; undefined if there is none. */
  get(path: string, options?: GetOptions): Promise<CarrierFile | "unchanged" | undefined>;
  /** Writes the whole file if the condition holds; returns its new version. */
  put?(path: string, bytes: Uint8Array, options: PutOptions): Promise<Etag | "refused">;
  /** The paths of the files below a folder ("" or a path with "/" at its end), in no particular order. */
  list?(prefix: string, options?: ListOptions): AsyncIterable<string>;
  /** Removes a file; without effect if there is none. */
  remove?(path: string): Promise<void>;
  close(): Promise<void>;
}

export interface CarrierLimits {
  /** The longest file that `get` reads, where a call does not say it. */
  readonly maxBytes: number;
  /** How long a server may take until it begins to answer, and until a slow body is cut off. */
  readonly responseMs: number;
  /** After `responseMs`, a body must have arrived at this rate at least. */
  readonly bytesPerSecond: number;
  /** How often a request is tried, the first time included. */
  readonly attempts: number;
  /** How often a carrier that cannot notify is asked for a change. */
  readonly pollMs: number;
}

export const CARRIER_LIMITS: CarrierLimits = {
  maxBytes: 32 * 1024 * 1024,
  responseMs: 30_000,
  bytesPerSecond: 16 * 1024,
  attempts: 4,
  pollMs: 1_000,
};

export interface CarrierPorts {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
}

export interface CarrierOptions extends CarrierPorts {
  /** A bearer token for HTTP, a token or user credentials for NATS. */
  readonly token?: string;
  readonly limits?: Partial<CarrierLimits>;
  /** Where the keys of S3 are read from (AWS_ACCESS_KEY_ID, …); default: the environment of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

const MAX_PATH = 900;
// The same names on every carrier, without escaping. No leading dot: "..", ".git", and the carrier's own files stay out of reach.
const SEGMENT = /^[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,199}$/;

/** Whether a name can be a part of a path. */
export function isFileName(name: string): boolean {
  return SEGMENT.test(name);
}

/** Refuses a path that some carrier would not keep, or that leaves the carrier (carrier.C5). */
export function checkPath(path: string): string {
  if (path.length <= MAX_PATH && path.split("/").every(isFileName)) return path;
  throw badPath(path, "a path");
}

/** Refuses a prefix that is neither "" nor a path with "/" at its end. */
export function checkPrefix(prefix: string): string {
  if (prefix === "") return prefix;
  if (prefix.endsWith("/") && prefix.length <= MAX_PATH && prefix.slice(0, -1).split("/").every(isFileName))
    return prefix;
  throw badPath(prefix, 'a prefix is "", or ends with "/", and');
}

function badPath(path: string, what: string): RepriseError {
  return new RepriseError(
    "BAD_NAME",
    `${JSON.stringify(path.slice(0, 200))} cannot be a file of a carrier: ${what} has at most ${MAX_PATH} characters in names of letters, digits, ".", "_", "~" and "-" that do not begin with a dot, separated by "/".`,
    { details: { path: path.slice(0, 1_000) } },
  );
}

/** The error for a file that is longer than the caller takes. */
export function tooLong(url: string, path: string, maxBytes: number): RepriseError {
  return new RepriseError(
    "LIMIT_EXCEEDED",
    `${path} of ${url} is longer than ${maxBytes} bytes, and was not read. Raise \`limits.maxBytes\` if you trust this site.`,
    { details: { url, path, maxBytes } },
  );
}
