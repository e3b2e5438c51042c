// Route: one line of the table of a server: method, path, who may, limits, handler.
//
// The table is the only place that says who may do what. The handler of a route runs after `admit` has returned the caller.

import { RepriseError } from "../base/index.ts";
import type { HttpLimits } from "./limits.ts";
import type { BodyLimit } from "./read-body.ts";

/** Who makes a request. Limits count by its name. */
export interface HttpCaller {
  readonly name: string;
}

export type Params = Readonly<Record<string, string>>;

/** What a handler gets. */
export interface HttpCall<C extends HttpCaller = HttpCaller> {
  readonly request: Request;
  readonly url: URL;
  /** The named groups of the path. */
  readonly params: Params;
  readonly caller: C;
  /** Aborts when the client disconnects or the server closes. */
  readonly signal: AbortSignal;
  /** Reads the body under the limit of the route. */
  readonly body: <T>(use: (bytes: Uint8Array) => T | Promise<T>) => Promise<T>;
  /** The body as JSON, of bounded depth. */
  readonly json: () => Promise<unknown>;
}

export interface HttpRoute<C extends HttpCaller = any> {
  readonly method: string;
  /** Matches the whole path. From a template such as `/v1/runs/{id}` with `pathPattern`. */
  readonly path: RegExp;
  /** A request that it refuses passes to the next route with the same method and path. Default: none. */
  serves?(request: Request, url: URL): boolean;
  /** The caller of the request; throws if it may not make it. Nothing of the body was read. */
  admit(request: Request, params: Params, url: URL): C | Promise<C>;
  /** The limit of the body; a route without one takes no body. */
  readonly body?: BodyLimit;
  /** Default: the limits of the handler. */
  readonly limits?: HttpLimits;
  /** Whether this request waits for a change or streams: such requests have a limit of their own. */
  waits?(url: URL, request: Request): boolean;
  handle(call: HttpCall<C>): Response | Promise<Response>;
  /** How an error leaves the server. Default: that of the handler. */
  refuse?(error: unknown, request: Request): Response;
}

export interface RouteMatch {
  readonly route: HttpRoute;
  readonly params: Params;
}

/** The route of a request, or the methods that its path allows: none if no route has the path. HEAD is a GET without its body. */
export function findRoute(
  routes: readonly HttpRoute[],
  request: Request,
  url: URL,
): RouteMatch | { readonly allowed: readonly string[] } {
  const wanted = request.method === "HEAD" ? "GET" : request.method;
  const allowed = new Set<string>();
  for (const route of routes) {
    const match = route.path.exec(url.pathname);
    if (match === null || route.serves?.(request, url) === false) continue;
    if (route.method === wanted) return { route, params: { ...match.groups } };
    allowed.add(route.method);
  }
  return { allowed: [...allowed] };
}

/** The error for a method that the path does not allow. */
export function methodNotAllowed(allowed: readonly string[], method: string): RepriseError {
  return new RepriseError("USAGE", `This path allows ${allowed.join(", ")}, not ${method.slice(0, 20)}.`, {
    details: { status: 405, allow: allowed.join(", ") },
  });
}

/** The pattern of a template: `/v1/runs/{id}` has a group `id`, which is one segment and not decoded. */
export function pathPattern(template: string): RegExp {
  const parts = template.split(/\{(\w+)\}/);
  const source = parts.map((part, at) =>
    at % 2 === 1 ? `(?<${part}>[^/]+)` : part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"),
  );
  return new RegExp(`^${source.join("")}$`);
}

/** The segments of a path, decoded. */
export function decodeParams(params: Params): Params {
  try {
    return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, decodeURIComponent(value)]));
  } catch (cause) {
    throw new RepriseError("BAD_FORMAT", "A segment of the path is not percent-encoded UTF-8.", { cause });
  }
}
