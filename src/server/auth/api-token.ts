// API token: the tokens that programs and people use: how they are made, kept and checked.
//
// api-token.T1. A token is `rp_<id>_<256 random bits in base64url>`. Settings keep its SHA-256. `id` is not secret: it tells tokens apart
//   in lists and logs, and lets scanners of repositories recognize a leaked token.
// api-token.T2. A token without scopes reaches everything that its role allows; each scope only narrows that.

import { checkName, checkOptionNames, RepriseError, type EpochMs, type Random } from "../../base/index.ts";
import { ROLES, type Role } from "../../contract/index.ts";
import { tokenDigest } from "../../http/index.ts";
import type { Caller } from "../host.ts";

/** A token as settings and files keep it: its hash, what it allows, and until when. */
export interface TokenSettings {
  /** Who uses it: stands in logs, in limits and as `by` of answers. */
  name: string;
  /** `sha256:<hex>` of the token: what `tokenHash(token)` returns. */
  hash: string;
  role: Role;
  /** Only runs of these definitions. Default: all. */
  definitions?: readonly string[];
  /** Only runs with one of these tags. Default: all. */
  tags?: readonly string[];
  /** Only these queues. Default: all. */
  queues?: readonly string[];
  /** ISO 8601. Default: it does not expire. */
  expiresAt?: string;
  /** The part of the token after `rp_`, for lists. */
  id?: string;
  /** ISO 8601. */
  createdAt?: string;
}

/** A checked token. */
export interface KnownToken {
  readonly digest: string;
  readonly expiresAt: EpochMs;
  readonly caller: Caller;
}

const FIELDS = ["createdAt", "definitions", "expiresAt", "hash", "id", "name", "queues", "role", "tags"];
const SECRET_BYTES = 32;
const ID_BYTES = 4;

/**
 * What settings keep instead of a token.
 *
 * @example
 * ```ts
 * import { tokenHash } from "reprise/server";
 * const hash = tokenHash(process.env["CI_TOKEN"] ?? "rp_7c1f09ab_example");
 * console.log(hash.startsWith("sha256:"));
 * ```
 */
export function tokenHash(token: string): string {
  return `sha256:${tokenDigest(token)}`;
}

/** api-token.T1 */
export function createToken(random: Random): { readonly token: string; readonly id: string; readonly hash: string } {
  const id = Buffer.from(random.bytes(ID_BYTES)).toString("hex");
  const token = `rp_${id}_${Buffer.from(random.bytes(SECRET_BYTES)).toString("base64url")}`;
  return { token, id, hash: tokenHash(token) };
}

/** Refuses settings that would allow more or less than they say. `where` is the option or file, for messages. */
export function checkTokens(tokens: unknown, where: string): readonly KnownToken[] {
  if (!Array.isArray(tokens)) throw bad(where, "expected a list of tokens");
  const names = new Set<string>();
  return tokens.map((one: TokenSettings, at) => {
    const what = `${where}[${at}]`;
    const known = checkToken(one, what);
    if (names.has(one.name)) throw bad(what, `another token has the name ${one.name}`);
    names.add(one.name);
    return known;
  });
}

function checkToken(one: TokenSettings, what: string): KnownToken {
  checkOptionNames(one, FIELDS, what);
  const { hash, role, expiresAt, definitions, tags, queues } = one;
  const name = checkName(one.name, `${what}.name`);
  if (typeof hash !== "string" || !/^sha256:[0-9a-f]{64}$/.test(hash))
    throw bad(`${what}.hash`, "expected sha256:<64 hex digits>, the hash of the token; `tokenHash(token)` makes it");
  if (!ROLES.includes(role)) throw bad(`${what}.role`, `expected one of ${ROLES.join(", ")}`);
  const expiry = expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
  if (Number.isNaN(expiry)) throw bad(`${what}.expiresAt`, "expected a time in ISO 8601");
  return {
    digest: hash.slice("sha256:".length),
    expiresAt: expiry,
    caller: {
      name,
      role,
      ...(definitions !== undefined && { definitions: namesOf(definitions, `${what}.definitions`) }),
      ...(tags !== undefined && { tags: namesOf(tags, `${what}.tags`) }),
      ...(queues !== undefined && { queues: namesOf(queues, `${what}.queues`) }),
    },
  };
}

/** An empty list would be read as "none" by one person and as "all" by another. */
function namesOf(names: unknown, what: string): readonly string[] {
  if (!Array.isArray(names) || names.length === 0) throw bad(what, "expected at least one name; leave it out for all");
  return names.map((name) => checkName(name, what));
}

function bad(what: string, problem: string): RepriseError {
  return new RepriseError("BAD_OPTIONS", `${what}: ${problem}.`);
}
