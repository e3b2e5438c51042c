// Peer access: which peer a request is of, and what that peer may do.
//
// peer-access.P1. Without a token a request is of no peer. It may read logs only if the site is public.

import { RepriseError } from "../../base/index.ts";
import { bearerTokenOf, findByToken } from "../../http/index.ts";

/** What another site may do here. */
export interface PeerAccess {
  readonly name: string;
  /** SHA-256 of its bearer token, in hex. */
  readonly tokenSha256: string;
  /** The origins that it may read: names with `*` for any characters. */
  readonly pull: readonly string[];
  /** Whether it may push logs of admitted origins. */
  readonly push: boolean;
  readonly grants: readonly string[];
}

/** bearer-token.B1. The peer of the request's token; undefined: it has none. Refuses an unknown token. */
export function findPeer(request: Request, peers: readonly PeerAccess[]): PeerAccess | undefined {
  const token = bearerTokenOf(request);
  if (token === null) return undefined;
  if (token === undefined) throw unknownToken("The Authorization header is not `Bearer <token>`.");
  const found = findByToken(token, peers, ({ tokenSha256 }) => tokenSha256);
  if (found === undefined) throw unknownToken("No peer of this site has this token.");
  return found;
}

/** Whether the peer may read the log of the origin. */
export function mayRead(peer: PeerAccess | undefined, origin: string, isPublic: boolean): boolean {
  return isPublic || (peer?.pull.some((pattern) => matchesGlob(pattern, origin)) ?? false);
}

/** `*` stands for any characters. Linear in the text: a pattern is configuration, the origin is not. */
export function matchesGlob(pattern: string, text: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return pattern === text;
  if (!text.startsWith(first)) return false;
  const last = rest.pop()!;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}

export function tokenMissing(): RepriseError {
  return unknownToken("This request needs the token of a peer.");
}

function unknownToken(what: string): RepriseError {
  return new RepriseError(
    "NOT_ADMITTED",
    `${what} Send \`Authorization: Bearer <token>\` with the token that \`reprise peer add\` was given at this site.`,
    { details: { status: 401 } },
  );
}
