// Operation route: an operation of the contract as a route of the HTTP server.
//
// operation-route.O1. A request passes, in this order: its caller, its role and scopes, the counts of its caller, what it accepts, its
//   query, its body and their schemas. Only then does the code of the operation run: a request that is refused has changed nothing.
// operation-route.O2. A request that does not wait is ended after `requestMs`: its signal aborts, and the client gets 503.
// operation-route.O3. GET answers carry an ETag of their bytes unless the code set one; If-None-Match with it is 304.

import { hash } from "node:crypto";
import { RepriseError, type Timers } from "../base/index.ts";
import { checkJson, checkQuery, type JsonIssue, type JsonSchema, type Operation } from "../contract/index.ts";
import {
  decodeParams,
  limitExceeded,
  pathPattern,
  sizedResponse,
  type HttpCall,
  type HttpCaller,
  type HttpRoute,
} from "../http/index.ts";
import { auditLine, isAudited } from "./auth/audit.ts";
import { refusedCaller } from "./auth/role.ts";
import { checkScope } from "./auth/scope.ts";
import { watchedResponse } from "./auth/watched-response.ts";
import type { Call, Caller, ServerHost } from "./host.ts";
import { keyIdOf, type IdempotentRequests } from "./idempotency.ts";
import type { ImplementedOperation } from "./operations.ts";
import { refusalOf } from "./problem.ts";
import type { ServerLimits } from "./server-limits.ts";
import type { PayloadForm } from "./wire-payload.ts";

export interface OperationRouteOptions {
  readonly host: ServerHost;
  readonly limits: ServerLimits;
  readonly timers: Timers;
  /** Without a slash at its end. */
  readonly basePath: string;
  readonly refuse: (error: unknown, request: Request) => Response;
  readonly requests: IdempotentRequests;
}

export interface OperationRouteCaller extends HttpCaller {
  readonly caller: Caller | undefined;
}

/** What an operation answered, before it becomes a response. */
export type Act = (call: Call) => Promise<Response>;

export function operationRoute(
  implemented: ImplementedOperation,
  options: OperationRouteOptions,
): HttpRoute<OperationRouteCaller> {
  const { id, operation } = implemented;
  const { host, limits, refuse, basePath, requests } = options;
  const { access, logger } = host;
  /** audit.A2 */
  const refused = (error: unknown, caller: Caller | undefined, params: HttpCall["params"], body: unknown): void => {
    if (isAudited(operation)) auditLine(logger, { name: id, operation, caller, params, body, ...refusalOf(error) });
  };
  return {
    method: operation.method,
    path: pathPattern(`${basePath}${operation.path}`),
    limits,
    body: { name: "bodyBytes", bytes: operation.body === undefined ? 0 : (operation.maxBytes ?? limits.bodyBytes) },
    waits: (_url, request) => operation.waits === true || waitOf(request) > 0,
    async admit(request, params, url) {
      try {
        const caller = await access.admit(request, url, id, operation);
        // Of callers without a name, those of one operation cannot use up the share of another: webhooks, links, probes.
        return { name: caller === undefined ? `anonymous ${id}` : `token ${caller.name}`, caller };
      } catch (error) {
        refused(error, refusedCaller(error), params, undefined);
        throw error;
      }
    },
    async handle(http) {
      const { caller } = http.caller;
      let [params, body] = [http.params, undefined as unknown];
      try {
        params = decodeParams(http.params);
        checkAccept(operation, http.request);
        const query = readQuery(operation, http.url);
        body = await readBody(operation, http);
        await checkScope({ operation, caller, params, body, host });
        const idempotencyKey = idempotencyKeyOf(http.request, operation);
        const call: Call = {
          host,
          request: http.request,
          url: http.url,
          caller,
          params,
          query,
          body,
          payloads: (query?.["payloads"] as PayloadForm | undefined) ?? "plain",
          idempotencyKey,
          keyId: idempotencyKey === undefined ? undefined : keyIdOf(id, caller, params, idempotencyKey),
          traceparent: traceparentOf(http.request),
          waitMs: waitOf(http.request),
          signal: http.signal,
        };
        const plain: Act = async (one) => respond(operation, await implemented.handler(one), one);
        // An answer with a token must not be in the store, so its request is made again.
        const isKept = call.idempotencyKey !== undefined && operation.secret !== true;
        const act: Act = isKept ? (one) => requests.once(one, plain) : plain;
        const waits = operation.waits === true || call.waitMs > 0;
        const response = await (waits ? whileValid(call, act) : withinTime(call, act, options));
        // The operations that a message asks for have lines of their own.
        if (isAudited(operation) && operation.relays !== true)
          auditLine(logger, { name: id, operation, caller, params, body, status: response.status });
        return response;
      } catch (error) {
        refused(error, caller, params, body);
        throw error;
      }
    },
    refuse,
  };
}

/** server-access.A5 */
async function whileValid(call: Call, act: Act): Promise<Response> {
  const { signal, end } = call.host.access.watch(call.caller);
  try {
    const response = await act({ ...call, signal: AbortSignal.any([call.signal, signal]) });
    if (call.request.signal.aborted) end();
    call.request.signal.addEventListener("abort", end, { once: true });
    return watchedResponse(response, signal, end);
  } catch (error) {
    end();
    // The code of the operation noticed that its caller is none any more.
    throw signal.aborted ? signal.reason : error;
  }
}

/** operation-route.O2 */
async function withinTime(call: Call, act: Act, { limits, timers }: OperationRouteOptions): Promise<Response> {
  const late = new AbortController();
  let cancel: (() => void) | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    cancel = timers.set(limits.requestMs, () => {
      late.abort();
      reject(limitExceeded("requestMs", 503, `The request was not answered within ${limits.requestMs} ms.`));
    });
  });
  try {
    return await Promise.race([act({ ...call, signal: AbortSignal.any([call.signal, late.signal]) }), timeout]);
  } finally {
    cancel?.();
  }
}

function checkAccept({ answer, negotiates }: Operation, request: Request): void {
  const accept = request.headers.get("accept");
  if (accept === null || answer === null || negotiates === true) return;
  const type = typeof answer === "string" ? answer : "application/json";
  if (isAccepted(accept, type)) return;
  throw new RepriseError(
    "USAGE",
    `This operation answers with ${type}, which \`Accept: ${accept.slice(0, 100)}\` excludes.`,
    {
      details: { status: 406 },
    },
  );
}

/** Whether a media type is in an Accept header, by itself or by `*`. */
export function isAccepted(accept: string, type: string): boolean {
  const [main] = type.split("/");
  return accept
    .toLowerCase()
    .split(",")
    .some((part) => {
      const [range = "", ...rules] = part.split(";").map((piece) => piece.trim());
      const isRefused = rules.some((rule) => /^q=0(?:\.0*)?$/.test(rule));
      return (
        !isRefused &&
        (range === "*/*" || range === `${main}/*` || range === type || range === "application/problem+json")
      );
    });
}

function readQuery(operation: Operation, url: URL): Readonly<Record<string, unknown>> | undefined {
  const { value, issues } = checkQuery(operation.query ?? NO_FIELDS, url.searchParams);
  if (issues.length > 0) throw badRequest("query", issues);
  return operation.query === undefined ? undefined : value;
}

const NO_FIELDS: JsonSchema = { type: "object", additionalProperties: false };

async function readBody(operation: Operation, { request, json, body }: HttpCall): Promise<unknown> {
  if (operation.body === undefined) {
    // Refuses one that is not empty.
    if (request.body !== null) await body(() => undefined);
    return undefined;
  }
  if (operation.raw === true) return body((bytes) => bytes.slice());
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  const isEmpty = request.body === null || request.headers.get("content-length") === "0";
  // A body whose fields are all optional may be left out.
  if (isEmpty && checkJson(operation.body, {}).length === 0) return {};
  if (operation.form === true) return readForm(operation.body, type, body);
  if (type !== "application/json")
    throw new RepriseError(
      "USAGE",
      `The body must be application/json, got ${type?.slice(0, 100) ?? "no content type"}.`,
      {
        details: { status: 415 },
      },
    );
  return checked(operation.body, await json());
}

/** The fields of a form, each once. */
async function readForm(schema: JsonSchema, type: string | undefined, body: HttpCall["body"]): Promise<unknown> {
  if (type !== "application/x-www-form-urlencoded")
    throw new RepriseError("USAGE", "The body must be a form: application/x-www-form-urlencoded.", {
      details: { status: 415 },
    });
  const fields = await body((bytes) => new URLSearchParams(Buffer.from(bytes).toString("utf8")));
  return checked(schema, Object.fromEntries(fields));
}

function checked(schema: JsonSchema, body: unknown): unknown {
  const issues = checkJson(schema, body);
  if (issues.length > 0) throw badRequest("body", issues);
  return body;
}

export function badRequest(what: "query" | "body", issues: readonly JsonIssue[]): RepriseError {
  const [first] = issues;
  const more = issues.length > 1 ? `, and ${issues.length - 1} more` : "";
  return new RepriseError(
    "BAD_FORMAT",
    `The ${what} does not match its schema: ${first!.path}: ${first!.message}${more}. \`GET /openapi.json\` has the schema.`,
    { details: { status: 400, issues } },
  );
}

const MAX_KEY = 255;

function idempotencyKeyOf(request: Request, { method }: Operation): string | undefined {
  const key = request.headers.get("idempotency-key");
  if (key === null || method !== "POST") return undefined;
  if (key === "" || key.length > MAX_KEY || !/^[\x21-\x7e]+$/.test(key))
    throw new RepriseError("BAD_ID", `Idempotency-Key is 1 to ${MAX_KEY} visible ASCII characters without spaces.`);
  return key;
}

/** An invalid one is ignored, as W3C Trace Context says. */
function traceparentOf(request: Request): string | undefined {
  const value = request.headers.get("traceparent");
  if (value === null || !/^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(value)) return undefined;
  return value.startsWith("ff") || /^..-0{32}|-0{16}-..$/.test(value) ? undefined : value;
}

const MAX_WAIT_SECONDS = 60;

/** `Prefer: wait=20` (RFC 7240). */
function waitOf(request: Request): number {
  const [, seconds] = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?/.exec(request.headers.get("prefer") ?? "") ?? [];
  return seconds === undefined ? 0 : Math.min(Number(seconds), MAX_WAIT_SECONDS) * 1_000;
}

function respond(operation: Operation, answer: unknown, { request }: Call): Response {
  if (answer instanceof Response) return answer;
  const status = operation.status ?? 200;
  if (operation.answer === null || answer === undefined)
    return new Response(null, { status: answer === undefined ? 204 : status });
  const text = `${JSON.stringify(answer)}\n`;
  const headers = new Headers({ "content-type": "application/json", "cache-control": "no-store" });
  if (operation.method !== "GET") return sizedResponse(text, { status, headers });
  return withEtag(request, text, status, headers);
}

/** operation-route.O3 */
function withEtag(request: Request, text: string, status: number, headers: Headers): Response {
  const etag = `"${hash("sha256", text, "base64url").slice(0, 22)}"`;
  headers.set("etag", etag);
  headers.set("cache-control", "private, no-cache");
  const known = request.headers.get("if-none-match");
  if (known !== null && known.split(",").some((one) => one.trim().replace(/^W\//, "") === etag || one.trim() === "*"))
    return new Response(null, { status: 304, headers: { etag, "cache-control": "private, no-cache" } });
  return sizedResponse(text, { status, headers });
}
