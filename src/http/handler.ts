// Handler: the answers of a server, as a function from web-standard requests to responses.
//
// handler.H1. A request passes, in this order: its route, `admit` of the route, the counts of its caller. Only then does the handler of
//   the route run, and only there is a body read.
// handler.H2. A request that waits or streams counts until its body has ended or it is aborted, not until its headers were sent.
// handler.H3. Every outcome is a response: an error is answered by `refuse` of the route, or of the handler where no route was found.
// handler.H4. `close` aborts the signal of every request, and waits for those that run; a request that comes later is refused.

import { systemClock, systemTimers, type Clock, type Timers } from "../base/index.ts";
import { CallerGate } from "./caller-gate.ts";
import { parseJson } from "./json-depth.ts";
import type { HttpLimits } from "./limits.ts";
import { withBody } from "./read-body.ts";
import { findRoute, methodNotAllowed, type HttpCall, type HttpRoute } from "./route.ts";

export interface RequestHandlerOptions {
  readonly routes: readonly HttpRoute[];
  readonly limits: HttpLimits;
  /** The error for a path that no route has. */
  readonly notFound: (url: URL) => Error;
  /** The error while the server closes. */
  readonly closing: () => Error;
  /** The response for an error. */
  readonly refuse: (error: unknown, request: Request) => Response;
  readonly clock?: Clock;
  readonly timers?: Timers;
}

export class RequestHandler {
  readonly #options: RequestHandlerOptions;
  readonly #clock: Clock;
  readonly #timers: Timers;
  readonly #gate: CallerGate;
  readonly #closing = new AbortController();
  readonly #open = new Set<Promise<Response>>();

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#timers = options.timers ?? systemTimers;
    this.#gate = new CallerGate(this.#clock);
  }

  /** Aborts when the handler closes. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** handler.H3 */
  async handle(request: Request): Promise<Response> {
    const response = this.#answer(request);
    this.#open.add(response);
    try {
      return await response;
    } finally {
      this.#open.delete(response);
    }
  }

  async #answer(request: Request): Promise<Response> {
    let { refuse } = this.#options;
    try {
      if (this.#closing.signal.aborted) throw this.#options.closing();
      const url = new URL(request.url);
      const found = findRoute(this.#options.routes, request, url);
      if ("allowed" in found)
        throw found.allowed.length === 0
          ? this.#options.notFound(url)
          : methodNotAllowed(found.allowed, request.method);
      const { route, params } = found;
      if (route.refuse !== undefined) refuse = (error) => route.refuse!(error, request);
      return await this.#call(route, params, request, url);
    } catch (error) {
      const isCut = this.#closing.signal.aborted || request.signal.aborted;
      // What waited was ended: the client repeats it elsewhere or later.
      return refuse(isCut && isAbort(error) ? this.#options.closing() : error, request);
    }
  }

  /** handler.H1 */
  async #call(route: HttpRoute, params: HttpCall["params"], request: Request, url: URL): Promise<Response> {
    const caller = await route.admit(request, params, url);
    const limits = route.limits ?? this.#options.limits;
    const waits = route.waits?.(url, request) === true;
    const leave = this.#gate.enter(caller.name, waits ? "waits" : "requests", limits);
    let response: Response | undefined;
    try {
      const bodyOptions = { caller: caller.name, gate: this.#gate, limits, clock: this.#clock, timers: this.#timers };
      const body: HttpCall["body"] = (use) => withBody(request, route.body ?? NO_BODY, bodyOptions, use);
      const json = (): Promise<unknown> => body((bytes) => parseJson(bytes, limits.depth));
      const signal = AbortSignal.any([request.signal, this.#closing.signal]);
      response = await route.handle({ request, url, params, caller, signal, body, json });
      if (!waits || response.body === null || request.method === "HEAD") return response;
      // A program that mounts the handler may drop the body of an aborted request without canceling it.
      if (request.signal.aborted) leave();
      request.signal.addEventListener("abort", leave, { once: true });
      return onceEnded(response, response.body, leave);
    } finally {
      if (!waits || response === undefined || response.body === null || request.method === "HEAD") leave();
    }
  }

  /** handler.H4 */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#open);
  }
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** handler.H2. The same response, whose end, failure or cancellation calls `ended` once. */
function onceEnded(response: Response, body: ReadableStream<Uint8Array>, ended: () => void): Response {
  const reader = body.getReader();
  const counted = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        ended();
      },
      async cancel(reason) {
        ended();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(counted, response);
}

const NO_BODY = { name: "body", bytes: 0 } as const;
