// createServer: an engine or a client behind one web-standard handler.
//
// create-server.S1. One table of routes, one handler, one gate for everything that one address serves: the API, the dashboard, and the
//   routes of federation.
// create-server.S2. The server neither opens nor closes the engine. `close` lets running requests finish, and ends what waits or streams.

import type { Socket } from "node:net";
import { ENGINE_NAME, RepriseError, systemClock, systemRandom, systemTimers } from "../base/index.ts";
import { openStoreOf, type Client } from "../engine/index.ts";
import type { Federation } from "../federation/index.ts";
import { isLoopback, listen, RequestHandler, sizedResponse, type HttpRoute, type Listener } from "../http/index.ts";
import { silentLogger, type Definition, type Logger } from "../kernel/index.ts";
import { ServerAccess, type AuthOptions } from "./auth/server-access.ts";
import { signInRoutes } from "./auth/sign-in-page.ts";
import { dashboardRoutes } from "./dashboard.ts";
import { errorPageRoute } from "./error-pages.ts";
import { checkHooks, type Hook } from "./hooks/hook.ts";
import { extensionOperation, type ServerExtension } from "./extension.ts";
import type { Notice, ServerHost } from "./host.ts";
import { OperationCaller, type Operations } from "./mcp/call-operation.ts";
import { mcpEndpoint, setMcpEndpoint } from "./mcp/endpoint-of.ts";
import { IdempotentRequests } from "./idempotency.ts";
import { makeLink, type ApprovalLink, type ApprovalLinkOptions } from "./links/make-link.ts";
import type { LogRing } from "./log-ring.ts";
import { MetricsPage } from "./metrics/create-metrics.ts";
import { timedRoute } from "./metrics/timed-route.ts";
import { openApiOf } from "./openapi.ts";
import { operationRoute } from "./operation-route.ts";
import { OPERATIONS, type ImplementedOperation } from "./operations.ts";
import { problemResponse } from "./problem.ts";
import { serverLimits, type ServerLimits } from "./server-limits.ts";

/** Options of `createServer`. */
export interface ServerOptions {
  /** Who may do what. Default: every program of this machine may, and the server listens on loopback only. */
  readonly auth?: AuthOptions;
  /** The address that people use: `https://runs.example.org`. Links start with it, and the Host and Origin of requests must match it. */
  readonly origin?: string;
  /** Origins of other pages that may use the API with a token: `["https://app.example.org"]`. Default: none. */
  readonly cors?: readonly string[];
  /** Signs sessions, browser tokens and approval links: 32 random characters or more. Default: random, so they end with the process. */
  readonly secret?: string;
  /** A file with the secret, created with the first use. */
  readonly secretFile?: string;
  /** The path under which the server is mounted; default `/`. */
  readonly basePath?: string;
  /** Changes of the limits per caller and in all. */
  readonly limits?: Partial<ServerLimits>;
  /** Gets requests that failed for a reason that is not the client's. Default: none. */
  readonly logger?: Logger;
  /** The last log lines of runs that this process executes. */
  readonly logs?: LogRing;
  /** What an operator must know now, for the dashboard. */
  readonly notices?: () => readonly Notice[];
  /** `false`: this process counts nothing, and has no page `/metrics`. Default: it does. */
  readonly metrics?: boolean;
  /** Whether this process also executes runs. Default: whether an engine was passed. */
  readonly executes?: boolean;
  /** The federated site of this store. */
  readonly federation?: Federation;
  /** The name of the federation peer whose token a request has: such a peer has no role in the API, and the refusal says so. */
  readonly peerOf?: (request: Request) => string | undefined;
  /** Whether the dashboard is served; default true. */
  readonly dashboard?: boolean;
  /** Webhooks of other systems, by name: `POST /v1/hooks/<name>` starts a run, sends a signal or resolves a promise. */
  readonly hooks?: Readonly<Record<string, Hook>>;
  /**
   * The Model Context Protocol at `POST /mcp`. `false`: there is none. `allow`: the only tools that act (by their names, or the definitions
   * that they start). Default: every tool that the role of the caller allows.
   */
  readonly mcp?: false | { readonly allow?: "all" | readonly string[] };
  /** Requests of other protocols, such as `a2a` of `reprise/a2a`. */
  readonly extensions?: readonly ServerExtension[];
  /** Routes of other rooms, tried after those of the API and the dashboard. */
  readonly routes?: readonly HttpRoute[];
}

/** Where a server listens. */
export interface ListenAt {
  /** Default `127.0.0.1`. Another one needs tokens and `expose`. */
  readonly host?: string;
  /** Default 7420; 0: a free port. */
  readonly port?: number;
  /** Files in PEM. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Other machines may reach the server. */
  readonly expose?: boolean;
  /** Without TLS although other machines reach the server, because a proxy in front of it has TLS. */
  readonly insecure?: boolean;
  /** More names that clients call this server by, with port. */
  readonly names?: readonly string[];
  /** Another process listens at `host` and `port`, and passes its connections to the function that this one gets. */
  readonly sockets?: (accept: (socket: Socket) => void) => void;
}

/** An engine behind HTTP. */
export interface Server extends AsyncDisposable {
  /** Answers one request. */
  fetch(request: Request): Promise<Response>;
  /** Listens; `url` is its address. */
  listen(at?: ListenAt): Promise<Listener>;
  /**
   * A one-time address that signs a browser in as an admin: for the operator's terminal, never for a log. Valid for ten minutes, once.
   * `address`: of this server, if neither `origin` nor `listen` says it.
   */
  signInAddress(address?: string): string;
  /**
   * A link to a page that answers a promise of a run, once, for a person without a token; `name` is `by` of the answer. Valid until the
   * promise times out, for 7 days at most. Needs `origin` or `listen`, which say where the server is.
   */
  approvalLink(run: string, port: string, options: ApprovalLinkOptions): Promise<ApprovalLink>;
  /** Ends what waits or streams, and lets the other requests finish. Does not close the engine. */
  close(): Promise<void>;
}

const DEFAULT_PORT = 7420;

/**
 * Puts an engine or a client behind HTTP: the API, and what `options` adds to it.
 *
 * @example
 * ```ts
 * import { createEngine, workflow } from "reprise";
 * import { createServer } from "reprise/server";
 * const hello = workflow("hello", async (ctx, name: string) => ctx.run("greet", () => `Hello, ${name}`));
 * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [hello] });
 * await using server = createServer(engine);
 * const response = await server.fetch(new Request("http://localhost/openapi.json"));
 * console.log(response.status); // 200
 * ```
 */
export function createServer<Defs extends Definition>(engine: Client<Defs>, options: ServerOptions = {}): Server {
  const store = openStoreOf(engine);
  if (store === undefined)
    throw new RepriseError("BAD_OPTIONS", "createServer: pass what createEngine or createClient returned.");
  const { logger = silentLogger, notices = () => [] } = options;
  const basePath = checkBasePath(options.basePath ?? "/");
  const limits = serverLimits(options.limits);
  const onError = (error: unknown): void => logger.error(`server: a request failed: ${String(error)}`, { error });
  const refuse = (error: unknown, request: Request): Response => {
    const { origin } = new URL(request.url);
    const isTagged = /\berrors=tagged\b/.test(request.headers.get("prefer") ?? "");
    return access.secure(problemResponse(error, `${origin}${basePath}/`, onError, isTagged), request);
  };
  const ports = { clock: systemClock, timers: systemTimers, random: systemRandom, logger };
  const access = new ServerAccess({ ...options, basePath: `${basePath}/` }, ports);
  const closing = new AbortController();
  const metrics = options.metrics === false ? undefined : new MetricsPage(store);
  const host: ServerHost = {
    client: engine as unknown as Client,
    store,
    ...ports,
    access,
    basePath,
    logs: options.logs,
    notices,
    executes: options.executes ?? "drain" in engine,
    federation: options.federation,
    metrics,
    hooks: checkHooks(options.hooks),
    closing: closing.signal,
  };
  const requests = new IdempotentRequests(limits.requestMs);
  const compile = { host, limits, requests, timers: systemTimers, basePath, refuse };
  const added = (options.extensions ?? []).flatMap((one) =>
    one.operations.map((operation) => extensionOperation(operation, () => caller)),
  );
  const all = [...OPERATIONS, ...added];
  const operations = new Map(
    all.map((implemented) => [implemented.id, { implemented, route: operationRoute(implemented, compile) }]),
  );
  const caller: OperationCaller = new OperationCaller({ host, operations, bodyBytes: limits.bodyBytes });
  if (options.mcp === false) operations.delete("handleMcp");
  else {
    const endpoint = mcpEndpoint(caller, options.mcp?.allow ?? "all", onError);
    endpoint.checkAllow(host.client);
    setMcpEndpoint(host, endpoint);
  }
  const handler = new RequestHandler({
    routes: [
      ...[...operations.values()].map(({ implemented, route }) => {
        return metrics === undefined
          ? route
          : timedRoute(route, implemented.operation.path, systemClock, metrics.process);
      }),
      documentRoute(basePath, all),
      ...signInRoutes(basePath),
      errorPageRoute(basePath),
      ...(options.dashboard === false ? [] : dashboardRoutes({ basePath, isSecure: (url) => access.isSecure(url) })),
      ...(options.routes ?? []),
    ],
    limits,
    notFound: (url) =>
      new RepriseError(
        "USAGE",
        `There is nothing at ${url.pathname.slice(0, 200)}. \`GET ${basePath}/openapi.json\` lists what there is.`,
        {
          details: { status: 404 },
        },
      ),
    closing: () =>
      new RepriseError("USAGE", "The server is closing. Repeat the request later.", { details: { status: 503 } }),
    refuse,
  });
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing.abort();
    access.close();
    metrics?.close();
    return (closed ??= handler.close());
  };
  const fetch = async (request: Request): Promise<Response> =>
    access.preflight(request) ?? access.secure(await handler.handle(request), request);
  const server: Server = {
    fetch,
    listen: (at = {}) => listenAt(Object.assign(fetch, { close }), at, access, refuse),
    signInAddress: (address = access.guard.publicOrigin() ?? "http://127.0.0.1") =>
      `${address.replace(/\/$/, "")}${basePath}/${access.oneTimePath()}`,
    approvalLink: async (run, port, link) =>
      makeLink(host, run, port, link, { mustBeOpen: false, address: addressOf(access) }),
    close,
    [Symbol.asyncDispose]: close,
  };
  operationsOf.set(server, caller);
  return server;
}

/** The operations of a server, for callers inside this process. */
export const operationsOf = new WeakMap<Server, Operations>();

function addressOf({ guard }: ServerAccess): string {
  const address = guard.publicOrigin();
  if (address !== undefined) return address;
  throw new RepriseError(
    "BAD_OPTIONS",
    'approvalLink: the server does not know its address. Pass it, createServer(engine, { origin: "https://runs.example.org" }), or call listen first.',
  );
}

function checkBasePath(path: string): string {
  if (!path.startsWith("/") || path.includes("//") || /[?#\s]/.test(path))
    throw new RepriseError(
      "BAD_OPTIONS",
      `createServer: basePath: expected a path such as "/runs", got ${JSON.stringify(path)}.`,
    );
  return path.replace(/\/$/, "");
}

/** `GET /openapi.json`, for every caller: it holds no data. */
function documentRoute(basePath: string, operations: readonly ImplementedOperation[]): HttpRoute {
  let text: string | undefined;
  const { pathname } = new URL(`http://localhost${basePath}/openapi.json`);
  return {
    method: "GET",
    path: new RegExp(`^${RegExp.escape(pathname)}$`),
    admit: () => ({ name: "anonymous" }),
    handle: () => {
      text ??= JSON.stringify(openApiOf(operations, { version: ENGINE_NAME.replace(/^.*\//, ""), basePath }));
      return sizedResponse(text, {
        headers: { "content-type": "application/json", "cache-control": "no-cache" },
      });
    },
  };
}

const MAX_PORT = 65_535;

async function listenAt(
  handler: ((request: Request) => Promise<Response>) & { close(): Promise<void> },
  at: ListenAt,
  access: ServerAccess,
  refuse: (error: unknown, request: Request) => Response,
): Promise<Listener> {
  const { host = "127.0.0.1", port = DEFAULT_PORT, tls, expose = false, insecure = false, names = [], sockets } = at;
  if (!Number.isInteger(port) || port < 0 || port > MAX_PORT)
    throw new RepriseError("BAD_OPTIONS", `listen: port: expected 0 (any free port) to ${MAX_PORT}, got ${port}.`);
  access.checkListen(host, expose);
  if (!isLoopback(host)) {
    if (tls === undefined && !insecure)
      throw new RepriseError(
        "BAD_OPTIONS",
        `listen: other machines reach ${host}, and without TLS they see tokens and payloads. Pass tls, { cert, key } (--tls-cert, --tls-key), or insecure (--insecure) behind a proxy that has TLS.`,
      );
  }
  // A proxy in front of the server passes the host of the public address.
  const known = [...names, ...access.guard.publicHosts()];
  let url = `http://${host}:${port}`;
  const refuseHost = (): Response =>
    refuse(
      new RepriseError(
        "WRONG_HOST",
        `The Host header or the request target is not of this server, which is ${[url, ...known].join(", ")}. Pass its public address as \`origin\` (--origin).`,
        { details: { status: 421 } },
      ),
      new Request(url),
    );
  const listener = await listen(handler, {
    refuseHost,
    host,
    port,
    timers: systemTimers,
    ...(tls && { tls }),
    ...(sockets && { sockets }),
    names: known,
  });
  ({ url } = listener);
  access.guard.addAddress(url, names);
  return listener;
}
