// Server access: who makes a request, and whether it may be made: the one place that all requests of the API pass before their code runs.
//
// server-access.A1. Denied unless allowed: an operation has a role in the table, and a request without a caller of that role gets no
//   further than this file. Only operations that the table calls `public` need no caller.
// server-access.A2. The order is: Host, Origin, token, forgery, role. So a page of another origin learns nothing, not even whether a token
//   is right; and the scope is checked after the body was (scope.ts), before any code of the operation.
// server-access.A3. Without tokens, a file of tokens or `authenticate`, only a loopback address answers. `local: "open"` (default of
//   `createServer`): every program of this machine is an admin. `local: "session"` (`reprise dev`, `reprise serve`): only who signs in with
//   the one-time address, so that other users of the machine see nothing.
// server-access.A4. A request with a bearer token is judged by it alone; a cookie beside it is ignored, and an invalid token is refused even if
//   the cookie is valid.
// server-access.A5. What waits or streams is checked again every few seconds: it ends when its token is revoked or allows something else,
//   its session is signed out, or either expires.

import { isDeepStrictEqual } from "node:util";
import { RepriseError, type Clock, type Random, type Timers } from "../../base/index.ts";
import type { Operation, Role } from "../../contract/index.ts";
import { bearerTokenOf, findByToken, isLoopback } from "../../http/index.ts";
import type { Logger } from "../../kernel/index.ts";
import type { Caller } from "../host.ts";
import { checkTokens, type KnownToken, type TokenSettings } from "./api-token.ts";
import { BROWSER_PREFIX, mintBrowserToken, openBrowserToken, type BrowserWish } from "./browser-token.ts";
import { RequestGuard } from "./request-guard.ts";
import { hasRole, roleRequired } from "./role.ts";
import { securityHeaders, withHeaders, type AnswerKind } from "./security-headers.ts";
import { randomSecret, secretInFile, secretOf, type ServerSecret } from "./server-secret.ts";
import { Sessions, type Session } from "./sessions.ts";
import { TokenFile } from "./token-file.ts";

/** Who may use a server. */
export interface AuthOptions {
  /** Tokens by their hashes. */
  tokens?: readonly TokenSettings[];
  /** A file that `reprise token` writes; a change of it is seen without a restart. */
  tokenFile?: string;
  /**
   * Own authentication, asked when a request has no bearer token: a header that a reverse proxy sets, a session of the application.
   * `undefined`: it does not know the caller.
   */
  authenticate?: (request: Request) => Caller | undefined | Promise<Caller | undefined>;
  /**
   * Who is at this machine. `"open"`: without any of the above, every program of this machine is an admin. `"session"`: only a browser that
   * used the one-time address. Default: `"open"`.
   */
  local?: "open" | "session";
}

export interface AccessOptions {
  readonly auth?: AuthOptions;
  /** The address that people use: `https://runs.example.org`. */
  readonly origin?: string;
  /** Origins of other pages that may use the API with a token. */
  readonly cors?: readonly string[];
  /** Signs sessions, browser tokens and approval links. Default: random, so they end with the process. */
  readonly secret?: string;
  /** A file with the secret, created with the first use. */
  readonly secretFile?: string;
  /** The path that the server is mounted at. */
  readonly basePath?: string;
  /** The name of the federation peer that has this token: such a peer has no role in the API. */
  readonly peerOf?: (request: Request) => string | undefined;
}

export interface AccessPorts {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly logger: Logger;
}

/** A caller and the check that it still is one. */
interface Credential {
  readonly caller: Caller;
  /** The digest of its API token. */
  readonly digest?: string;
  isValid(): boolean | Promise<boolean>;
}

/** Of a token that is gone. */
const NO_ROLE = { role: "none" as Role };
const RECHECK_MS = 2_000;
/** The person at the machine, in the mode `open` and after a one-time address. */
const LOCAL: Caller = { name: "local", role: "admin" };

export class ServerAccess {
  readonly guard: RequestGuard;
  readonly secret: ServerSecret;
  readonly #options: AccessOptions;
  readonly #ports: AccessPorts;
  readonly #isOpen: boolean;
  readonly #tokens: readonly KnownToken[];
  readonly #file: TokenFile | undefined;
  readonly #sessions: Sessions;
  readonly #credentials = new WeakMap<Caller, Credential>();
  readonly #watched = new Map<AbortController, Credential>();
  #stopChecks: (() => void) | undefined;

  constructor(options: AccessOptions, ports: AccessPorts) {
    this.#options = options;
    this.#ports = ports;
    const { auth = {}, origin, cors, secret, secretFile, basePath = "/" } = options;
    this.#isOpen = !hasCallers(auth) && auth.local !== "session";
    this.#tokens = checkTokens(auth.tokens ?? [], "auth.tokens");
    this.#file = auth.tokenFile === undefined ? undefined : new TokenFile(auth.tokenFile, (error) => this.#warn(error));
    this.guard = new RequestGuard({
      ...(origin !== undefined && { origin }),
      ...(cors && { cors }),
      isOpen: this.#isOpen,
    });
    if (secret !== undefined) this.secret = secretOf(secret, "secret");
    else this.secret = secretFile === undefined ? randomSecret(ports.random) : secretInFile(secretFile, ports.random);
    this.#sessions = new Sessions({ secret: this.secret, clock: ports.clock, random: ports.random, path: basePath });
  }

  /** server-access.A3. Refuses to listen where other machines reach a server that has no tokens, or was not meant to be reached. */
  checkListen(host: string, expose: boolean): void {
    if (isLoopback(host)) return;
    const { auth = {} } = this.#options;
    if (!hasCallers(auth))
      throw new RepriseError(
        "BAD_OPTIONS",
        `The host ${host} is reached by other machines, and the server has no tokens: everyone could start and stop runs. Create a token first: \`reprise token create <name> --role <role>\`, or pass \`auth.tokens\`.`,
      );
    if (!expose)
      throw new RepriseError(
        "BAD_OPTIONS",
        `The host ${host} is reached by other machines. If that is meant, pass \`--expose\`, or \`expose: true\` in code; else listen on 127.0.0.1.`,
      );
  }

  /** The answer to a preflight of another origin; undefined: the request is none, or the origin is not named in `cors`. */
  preflight(request: Request): Response | undefined {
    const response = this.guard.preflight(request);
    return response === undefined ? undefined : this.secure(response, request);
  }

  /** server-access.A2, but for the scope. The caller of a request for an operation; undefined only for public ones. */
  async admit(request: Request, url: URL, name: string, operation: Operation): Promise<Caller | undefined> {
    this.guard.checkHost(request, url);
    if (operation.form === true) return undefined;
    this.guard.checkOrigin(request, url);
    if (operation.role === "public") return undefined;
    refuseTokenInAddress(url);
    const credential = await this.#authenticate(request, url);
    if (credential === undefined) throw this.#tokenRequired("This request needs a token.");
    if (bearerTokenOf(request) === null) this.guard.checkAmbient(request, url);
    this.guard.checkContentType(request);
    if (!hasRole(credential.caller, operation.role)) throw roleRequired(name, operation.role, credential.caller);
    this.#credentials.set(credential.caller, credential);
    return credential.caller;
  }

  async #authenticate(request: Request, url: URL): Promise<Credential | undefined> {
    const token = bearerTokenOf(request);
    // server-access.A4
    if (token !== null) return this.#ofToken(token, request);
    const { authenticate } = this.#options.auth ?? {};
    const own = await authenticate?.(request);
    if (own !== undefined)
      return {
        caller: { ...own },
        isValid: async () => isDeepStrictEqual(rightsOf(await authenticate?.(request)), rightsOf(own)),
      };
    const session = this.#sessions.find(request, this.isSecure(url));
    if (session !== undefined) return this.#ofSession(session);
    return this.#isOpen ? { caller: { ...LOCAL }, isValid: () => true } : undefined;
  }

  #ofToken(token: string | undefined, request: Request): Credential {
    if (token === undefined) throw this.#tokenRequired("The Authorization header is not one `Bearer <token>`.");
    if (token.startsWith(BROWSER_PREFIX)) return this.#ofBrowserToken(token);
    const known = this.findToken(token);
    if (known !== undefined) {
      const { digest } = known;
      const { caller } = known;
      return { caller: { ...caller }, digest, isValid: () => isDeepStrictEqual(this.#find(digest)?.caller, caller) };
    }
    const peer = this.#options.peerOf?.(request);
    if (peer === undefined) throw this.#tokenRequired("The token is unknown, expired or revoked.");
    throw new RepriseError(
      "ROLE_REQUIRED",
      `The token is of the federation peer ${peer}, which has no role in this API. \`reprise token create ${peer} --role <role>\` makes a token that has one.`,
      { details: { status: 403 } },
    );
  }

  #ofBrowserToken(token: string): Credential {
    const grant = openBrowserToken(this.secret, token);
    const isValid = (): boolean =>
      grant !== undefined &&
      grant.expiresAt > this.#ports.clock.now() &&
      (grant.digest === undefined || hasRole(this.#find(grant.digest)?.caller ?? NO_ROLE, grant.role));
    if (grant === undefined || !isValid()) throw this.#tokenRequired("The browser token is unknown or expired.");
    const { name, role, run, stream } = grant;
    return { caller: { name, role, run, ...(stream !== undefined && { stream }) }, isValid };
  }

  #ofSession(session: Session): Credential | undefined {
    const { name, role, digest } = session;
    const known = digest === undefined ? undefined : this.#find(digest);
    const isValid = (): boolean =>
      this.#sessions.isValid(session) &&
      (digest === undefined || isDeepStrictEqual(this.#find(digest)?.caller ?? NO_ROLE, known?.caller));
    if (!isValid()) return undefined;
    if (known !== undefined) return { caller: { ...known.caller }, digest: known.digest, isValid };
    return role === undefined ? undefined : { caller: { name, role }, isValid };
  }

  /** The token, if it is known and has not expired. */
  findToken(token: string): KnownToken | undefined {
    const known = findByToken(token, this.#all(), ({ digest }) => digest);
    return known !== undefined && known.expiresAt > this.#ports.clock.now() ? known : undefined;
  }

  #find(digest: string): KnownToken | undefined {
    return this.#all().find((one) => one.digest === digest && one.expiresAt > this.#ports.clock.now());
  }

  #all(): readonly KnownToken[] {
    return this.#file === undefined ? this.#tokens : [...this.#tokens, ...this.#file.tokens()];
  }

  /** browser-token.W2 */
  mint(caller: Caller, wish: BrowserWish): string {
    return mintBrowserToken(this.secret, caller, this.#credentials.get(caller)?.digest, wish);
  }

  /** The path and fragment of a one-time address (sessions.S1). The person who uses it is an admin: it is shown to the operator only. */
  oneTimePath(): string {
    return `login#${this.#sessions.createCode({ name: LOCAL.name, role: LOCAL.role })}`;
  }

  /** Signs a browser in, with a one-time code or a token; the header for its cookie. */
  signIn(
    request: Request,
    url: URL,
    given: { readonly code?: string | undefined; readonly token?: string | undefined },
  ): string {
    // A public operation: its caller is made here, so a page of another origin is refused here.
    this.guard.checkAmbient(request, url);
    if (given.code !== undefined) {
      const owner = this.#sessions.useCode(given.code);
      if (owner === undefined) throw this.#tokenRequired("The one-time address was used, or has expired.");
      return this.#sessions.cookieFor(owner, Number.POSITIVE_INFINITY, this.isSecure(url));
    }
    const known = given.token === undefined ? undefined : this.findToken(given.token);
    if (known === undefined) throw this.#tokenRequired("The token is unknown, expired or revoked.");
    const owner = { name: known.caller.name, digest: known.digest };
    return this.#sessions.cookieFor(owner, known.expiresAt, this.isSecure(url));
  }

  /** Ends the session of the request; the header that removes its cookie. */
  signOut(request: Request, url: URL): string {
    this.guard.checkAmbient(request, url);
    const session = this.#sessions.find(request, this.isSecure(url));
    if (session !== undefined) this.#sessions.end(session);
    this.#check();
    return this.#sessions.endedCookie(this.isSecure(url));
  }

  /** Whether browsers reach the server over TLS, at a proxy or here. */
  isSecure(url: URL): boolean {
    return (this.#options.origin ?? url.origin).startsWith("https:");
  }

  /** server-access.A5. Aborts when the caller's credential ends; `end` stops the checks. */
  watch(caller: Caller | undefined): { readonly signal: AbortSignal; readonly end: () => void } {
    const controller = new AbortController();
    const credential = caller === undefined ? undefined : this.#credentials.get(caller);
    if (credential === undefined) return { signal: controller.signal, end: () => undefined };
    this.#watched.set(controller, credential);
    this.#schedule();
    return { signal: controller.signal, end: () => void this.#watched.delete(controller) };
  }

  #schedule(): void {
    this.#stopChecks ??= this.#ports.timers.set(RECHECK_MS, () => this.#check(), { ref: false });
  }

  #check(): void {
    this.#stopChecks?.();
    this.#stopChecks = undefined;
    for (const [controller, credential] of this.#watched) void this.#checkOne(controller, credential);
    if (this.#watched.size > 0) this.#schedule();
  }

  async #checkOne(controller: AbortController, credential: Credential): Promise<void> {
    // `authenticate` of the user may throw; that is no reason to trust the caller further.
    const isValid = await Promise.resolve(credential.isValid()).catch(() => false);
    if (isValid) return;
    this.#watched.delete(controller);
    controller.abort(this.#tokenRequired("The token was revoked, or it has expired."));
  }

  close(): void {
    this.#stopChecks?.();
    this.#watched.clear();
  }

  /** The answer with the headers of every answer. */
  secure(response: Response, request: Request, kind: AnswerKind = "data"): Response {
    const cors = this.guard.corsHeaders(request);
    return withHeaders(response, { ...securityHeaders(kind, this.isSecure(new URL(request.url))), ...cors });
  }

  #tokenRequired(what: string): RepriseError {
    const how = "Send `Authorization: Bearer <token>`; `reprise token create <name> --role <role>` prints one.";
    return new RepriseError("TOKEN_REQUIRED", `${what} ${how}`, {
      details: { status: 401, headers: { "www-authenticate": 'Bearer realm="reprise"' } },
    });
  }

  #warn(error: unknown): void {
    this.#ports.logger.error("no token is accepted: the file of tokens cannot be used", {
      error: error instanceof Error ? error.message : String(error),
    });
  }
}

function hasCallers({ tokens, tokenFile, authenticate }: AuthOptions): boolean {
  return (tokens !== undefined && tokens.length > 0) || tokenFile !== undefined || authenticate !== undefined;
}

/** What user code may add to a caller, such as a time, is no right. */
function rightsOf({ role, definitions, tags, queues, run, stream }: Partial<Caller> = {}): readonly unknown[] {
  return [role, definitions, tags, queues, run, stream];
}

/** bearer-token.B2 */
function refuseTokenInAddress(url: URL): void {
  for (const [name, value] of url.searchParams)
    if (/^(?:access_)?token$/i.test(name) || /^rpb?_[\w.-]{20,}$/.test(value))
      throw new RepriseError(
        "TOKEN_REQUIRED",
        "A token in an address ends up in logs and histories, so it is refused there; revoke it if it was sent. Send it as `Authorization: Bearer <token>`.",
        { details: { status: 401 } },
      );
}
