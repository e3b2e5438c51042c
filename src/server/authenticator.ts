// Authenticator: who makes a request, and what that caller may do. The server asks it before anything else happens.

import type { Operation } from "../contract/index.ts";
import type { Params } from "../http/index.ts";
import type { Caller } from "./host.ts";

export interface Authenticator {
  /**
   * The caller of the request: from its token, its cookie, or because every request of this machine may. Undefined: it has none. Throws
   * for a token that is unknown or expired, and for a Host or Origin that is not of this server.
   */
  authenticate(request: Request, url: URL): Caller | undefined | Promise<Caller | undefined>;
  /** Throws unless the caller may use the operation: its role, and those of its scopes that the path shows. */
  authorize(caller: Caller | undefined, operation: Operation, params: Params): void | Promise<void>;
  /** Headers of every response: content security policy, framing, referrer. */
  securityHeaders?(request: Request): Readonly<Record<string, string>>;
}

/** Every request has full access: for a server without tokens, which only this machine reaches. */
export const openAccess: Authenticator = {
  authenticate: () => ({ name: "local", role: "admin" }),
  authorize: () => undefined,
};
