// Bearer token: the token of a request, and whose it is.
//
// bearer-token.B1. A server keeps the SHA-256 of a token, never the token. Every known digest is compared, each in constant time: how
//   long it takes says neither which one a guess resembles nor how much of it is right.
// bearer-token.B2. A token is taken from the Authorization header only: an address ends up in logs, in histories and in referrers.

import { hash, timingSafeEqual } from "node:crypto";

/** No token is longer: the run, port and key of a browser token have bounded lengths. */
const MAX_TOKEN_CHARACTERS = 4_096;

/** What a token is kept as: SHA-256, in hex. */
export function tokenDigest(token: string): string {
  return hash("sha256", token);
}

/** The token of the request; null: it has no Authorization header; undefined: the header is not `Bearer <token>`, or there are two. */
export function bearerTokenOf(request: Request): string | null | undefined {
  const header = request.headers.get("authorization");
  if (header === null) return null;
  // Two headers arrive as one text with a comma and a space, which no token has.
  const [, token] = /^Bearer ([\x21-\x7e]+)$/i.exec(header) ?? [];
  return token === undefined || token.length > MAX_TOKEN_CHARACTERS ? undefined : token;
}

/** bearer-token.B1. Which of the known ones has this token. */
export function findByToken<T>(token: string, known: Iterable<T>, digestOf: (one: T) => string): T | undefined {
  const given = hash("sha256", token, "buffer");
  let found: T | undefined;
  for (const one of known) {
    const expected = Buffer.from(digestOf(one), "hex");
    if (expected.length === given.length && timingSafeEqual(expected, given)) found = one;
  }
  return found;
}
