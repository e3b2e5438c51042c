// Request guard: whether a request was meant for this server, and whether a page of another origin may have sent it.
//
// request-guard.G1. The Host header is one of the server's names, compared as a whole: a page whose name resolves to this machine (DNS
//   rebinding) sends its own name. A server that is mounted elsewhere and has tokens takes any name, because it cannot know its own.
// request-guard.G2. A request with an Origin header comes from a page of this server or of an origin in `cors`; `null` is neither.
// request-guard.G3. Authority that a browser adds by itself (a cookie, a header of a proxy, the loopback address) counts only for requests
//   that no other page can make: a state change needs the header `x-reprise: 1`, which no form can send and no other origin without CORS.
// request-guard.G4. Ports of one machine are one site for a browser: `SameSite` does not tell http://localhost:3000 from this server. So
//   `Sec-Fetch-Site` must be `same-origin` or `none`, apart from links that a person follows.

import { RepriseError } from "../../base/index.ts";
import { isLoopback } from "../../http/index.ts";

export interface GuardOptions {
  /** The address that people use, `https://runs.example.org`. */
  readonly origin?: string;
  /** Origins of other pages that may use the API. */
  readonly cors?: readonly string[];
  /** Whether a caller without token has rights, so that only loopback names are accepted. */
  readonly isOpen: boolean;
}

/** What another origin may send and read. */
const CORS_METHODS = "GET, HEAD, POST, PUT, DELETE";
const CORS_HEADERS =
  "authorization, content-type, idempotency-key, if-none-match, last-event-id, mcp-method, mcp-name, mcp-protocol-version, prefer, traceparent, x-reprise";
const CORS_EXPOSED =
  "etag, link, location, retry-after, stream-closed, stream-cursor, stream-next-offset, stream-up-to-date, www-authenticate";
const PREFLIGHT_SECONDS = "600";

export class RequestGuard {
  readonly #isOpen: boolean;
  readonly #cors: ReadonlySet<string>;
  readonly #public: string | undefined;
  /** The addresses of listeners. */
  readonly #listening = new Set<string>();
  /** A listener that other machines reach, by names that it cannot know. */
  #isExposed = false;

  constructor({ origin, cors = [], isOpen }: GuardOptions) {
    this.#isOpen = isOpen;
    this.#public = origin === undefined ? undefined : checkOrigin(origin, "origin");
    this.#cors = new Set(cors.map((one) => checkOrigin(one, "cors")));
  }

  /** The host of the public address. */
  publicHosts(): readonly string[] {
    return this.#public === undefined ? [] : [new URL(this.#public).host];
  }

  /** Adds the address of a listener, with the other names of the loopback address and `more` of the user. */
  addAddress(address: string, more: readonly string[] = []): void {
    const { protocol, hostname, port } = new URL(address);
    const isLocal = isLoopbackName(hostname);
    if (!isLocal) this.#isExposed = true;
    for (const name of isLocal ? [hostname, "127.0.0.1", "localhost", "[::1]"] : [hostname])
      this.#listening.add(new URL(`${protocol}//${name}:${port}`).origin);
    for (const name of more) this.#listening.add(new URL(`${protocol}//${name}`).origin);
  }

  /** request-guard.G1 */
  checkHost(request: Request, url: URL): void {
    const host = (request.headers.get("host") ?? url.host).toLowerCase();
    if (this.#isOwnHost(host, url)) return;
    throw new RepriseError(
      "WRONG_HOST",
      `The Host header is ${host.slice(0, 100)}; this server is ${this.#ownHosts().join(", ") || "on a loopback address only"}. Pass its public address as \`origin\`.`,
      { details: { status: 421 } },
    );
  }

  #isOwnHost(host: string, url: URL): boolean {
    const given = URL.parse(`${url.protocol}//${host}`);
    // A host is a host only: no user, no path, and written as a browser writes it.
    if (given === null || given.host !== (given.port === "" ? host.replace(/:(?:80|443)$/, "") : host)) return false;
    if (this.#ownHosts().includes(given.host)) return true;
    if (!this.#takesAnyHost()) return false;
    return !this.#isOpen || isLoopbackName(given.hostname);
  }

  /** Without a public address, and not only on loopback addresses: other names of this server are unknown. */
  #takesAnyHost(): boolean {
    return this.#public === undefined && (this.#listening.size === 0 || this.#isExposed);
  }

  #ownHosts(): readonly string[] {
    return this.#ownOrigins().map((origin) => new URL(origin).host);
  }

  #ownOrigins(): readonly string[] {
    return [...(this.#public === undefined ? [] : [this.#public]), ...this.#listening];
  }

  /** request-guard.G2 */
  checkOrigin(request: Request, url: URL): void {
    const origin = request.headers.get("origin");
    if (origin === null || this.#isOwn(origin, url) || this.#cors.has(origin)) return;
    throw wrongOrigin(
      `The request comes from a page of ${origin.slice(0, 100)}; this server is ${this.#ownOrigins().join(", ") || url.origin}. Add the origin to \`cors\`, or the public address of this server as \`origin\`.`,
    );
  }

  /** request-guard.G3, request-guard.G4. For callers without a bearer token. */
  checkAmbient(request: Request, url: URL): void {
    const { headers, method } = request;
    const site = headers.get("sec-fetch-site");
    const isLink =
      method === "GET" && headers.get("sec-fetch-mode") === "navigate" && headers.get("sec-fetch-dest") === "document";
    if (site !== null && site !== "same-origin" && site !== "none" && !isLink)
      throw wrongOrigin(
        `The request comes from another page (Sec-Fetch-Site: ${site.slice(0, 20)}). Use a browser token: POST /v1/tokens.`,
      );
    if (method === "GET" || method === "HEAD") return;
    const origin = headers.get("origin");
    if (origin !== null && !this.#isOwn(origin, url))
      throw wrongOrigin(
        `A page of ${origin.slice(0, 100)} cannot change state without a bearer token. Use a browser token: POST /v1/tokens.`,
      );
    if (headers.get("x-reprise") !== "1")
      throw wrongOrigin(
        "A state change without a bearer token needs the header `x-reprise: 1`, which a form of another page cannot send.",
      );
  }

  /** A state change carries JSON; a request without a body has no type. */
  checkContentType(request: Request): void {
    const { headers, method } = request;
    if (method === "GET" || method === "HEAD") return;
    const type = headers.get("content-type");
    if (type === null && request.body === null) return;
    if (type !== null && /^application\/(?:[\w.+-]+\+)?json(?:\s*;.*)?$/i.test(type)) return;
    throw new RepriseError(
      "BAD_FORMAT",
      `The body has the type ${type?.slice(0, 100) ?? "of no header"}. Send JSON: \`content-type: application/json\`.`,
      { details: { status: 415 } },
    );
  }

  /** The answer to a preflight; undefined: it is none. */
  preflight(request: Request): Response | undefined {
    const origin = request.headers.get("origin");
    if (request.method !== "OPTIONS" || origin === null || !this.#cors.has(origin)) return undefined;
    if (request.headers.get("access-control-request-method") === null) return undefined;
    return new Response(null, {
      status: 204,
      headers: {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": CORS_METHODS,
        "access-control-allow-headers": CORS_HEADERS,
        "access-control-max-age": PREFLIGHT_SECONDS,
        vary: "origin",
      },
    });
  }

  /** What a page of a named origin may read. Never with credentials: cookies are for pages of this server. */
  corsHeaders(request: Request): Readonly<Record<string, string>> {
    if (this.#cors.size === 0) return {};
    const origin = request.headers.get("origin");
    if (origin === null || !this.#cors.has(origin)) return { vary: "origin" };
    return {
      "access-control-allow-origin": origin,
      "access-control-expose-headers": CORS_EXPOSED,
      "cross-origin-resource-policy": "cross-origin",
      vary: "origin",
    };
  }

  /** The address that links start with. */
  publicOrigin(): string | undefined {
    return this.#ownOrigins()[0];
  }

  #isOwn(origin: string, url: URL): boolean {
    return this.#ownOrigins().includes(origin) || (this.#takesAnyHost() && origin === url.origin);
  }
}

function isLoopbackName(hostname: string): boolean {
  return isLoopback(hostname.replaceAll(/^\[|\]$/g, ""));
}

function wrongOrigin(message: string): RepriseError {
  return new RepriseError("WRONG_ORIGIN", message, { details: { status: 403 } });
}

/** An origin as browsers send it: scheme, host, port, and nothing else. */
function checkOrigin(text: unknown, what: string): string {
  const url = typeof text === "string" ? URL.parse(text) : null;
  if (url !== null && /^https?:$/.test(url.protocol) && url.origin === String(text).replace(/\/$/, ""))
    return url.origin;
  throw new RepriseError(
    "BAD_OPTIONS",
    `${what}: expected a scheme, a host and a port if it is not the usual one, such as "https://runs.example.org", got ${JSON.stringify(text)}.`,
  );
}
