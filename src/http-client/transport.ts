// Transport: requests to one server, and the errors that it answers.
//
// transport.T1. Payloads travel in the tagged form of the codec, so every value and every error arrives as it was.
// transport.T2. A request that may be repeated is repeated after a failure of the network and after 429, 502, 503 and 504, with growing
//   pauses, until `retryMs` is over. Others are sent once.
// transport.T3. An abort of the caller's signal, or `close`, ends a request at once.

import { decode, encode, isErrorCode, RepriseError } from "../base/portable.ts";
import type { ProblemBody } from "../contract/index.ts";
import type { WebPorts } from "./web-ports.ts";

export interface TransportOptions {
  readonly url: string;
  readonly token: string | undefined;
  readonly fetch: typeof fetch;
  readonly retryMs: number;
  readonly ports: WebPorts;
}

type QueryValue = string | number | boolean | undefined | readonly string[];

export interface WebRequest {
  readonly method?: "GET" | "POST" | "DELETE";
  /** Segments that are encoded and joined. */
  readonly path: readonly string[];
  readonly query?: Readonly<Record<string, QueryValue>>;
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** transport.T2. Default: a GET may. */
  readonly repeats?: boolean;
}

/** An answer of the server: its status and its JSON. */
export interface WebAnswer {
  readonly status: number;
  readonly body: any;
}

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;
const PASSING = new Set([429, 502, 503, 504]);

export class Transport {
  readonly #options: TransportOptions;
  readonly #closed = new AbortController();

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  get ports(): WebPorts {
    return this.#options.ports;
  }

  checkOpen(): void {
    if (this.#closed.signal.aborted) throw closedError();
  }

  close(): void {
    this.#closed.abort(closedError());
  }

  json(request: WebRequest): Promise<WebAnswer> {
    return this.#send(request, async (response) => {
      const text = await response.text();
      if (text === "") return { status: response.status, body: undefined };
      this.checkType(response, "application/json");
      return { status: response.status, body: JSON.parse(text) };
    });
  }

  /** The response of a success; throws the error of a refusal. */
  send(request: WebRequest): Promise<Response> {
    return this.#send(request, async (response) => response);
  }

  /** Refuses the answer of another program, such as the page of a proxy: a repetition would get it again. */
  checkType(response: Response, type: string): void {
    const given = response.headers.get("content-type") ?? "no type";
    if (given.split(";")[0]!.trim().toLowerCase() === type) return;
    throw new RepriseError(
      "SERVER_UNREACHABLE",
      `${this.#options.url} answered with ${given.slice(0, 100)} instead of ${type}. Check that it is the address of \`reprise serve\`.`,
    );
  }

  /** transport.T2. An answer that breaks off while it is read counts as a failure of the network. */
  async #send<T>(request: WebRequest, read: (response: Response) => Promise<T>): Promise<T> {
    const { repeats = (request.method ?? "GET") === "GET" } = request;
    const since = this.ports.now();
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
      const outcome = await this.#sendOnce(request, read);
      if ("answer" in outcome) return outcome.answer;
      const isOver = this.ports.now() - since + pauseMs > this.#options.retryMs;
      if (!repeats || isOver || !outcome.passes) throw outcome.error;
      await this.pause(pauseMs, request.signal);
    }
  }

  async pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const ended = this.#endOf(signal);
    await this.ports.wait(ms, ended);
    ended.throwIfAborted();
  }

  async #sendOnce<T>(
    request: WebRequest,
    read: (response: Response) => Promise<T>,
  ): Promise<{ readonly answer: T } | { readonly error: unknown; readonly passes: boolean }> {
    this.checkOpen();
    const { method = "GET", body, headers } = request;
    const { token, fetch } = this.#options;
    const signal = this.#endOf(request.signal);
    signal.throwIfAborted();
    const address = this.#address(request);
    try {
      const response = await fetch(address, {
        method,
        headers: {
          accept: "application/json",
          "x-reprise": "1",
          prefer: "errors=tagged",
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal,
        cache: "no-store",
      });
      if (response.ok) return { answer: await read(response) };
      return { error: await errorOf(response), passes: PASSING.has(response.status) };
    } catch (cause) {
      // transport.T3
      signal.throwIfAborted();
      if (cause instanceof RepriseError) return { error: cause, passes: false };
      return { error: unreachable(this.#options.url, cause), passes: true };
    }
  }

  #endOf(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? this.#closed.signal : AbortSignal.any([this.#closed.signal, signal]);
  }

  #address({ path, query = {} }: WebRequest): string {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value === undefined) continue;
      for (const one of Array.isArray(value) ? (value as readonly string[]) : [String(value)])
        parameters.append(name, one);
    }
    const text = parameters.toString();
    // Such a segment would lead to another operation.
    const short = path.find((segment) => segment === "." || segment === "..");
    if (short !== undefined)
      throw new RepriseError(
        "BAD_ID",
        `"${short}" cannot be a part of an address, so nothing with this name is reached over HTTP.`,
      );
    const address = `${this.#options.url}/v1/${path.map((segment) => encodeURIComponent(segment)).join("/")}`;
    return text === "" ? address : `${address}?${text}`;
  }
}

/** transport.T1 */
export function toWire(value: unknown): unknown {
  return JSON.parse(encode(value)) as unknown;
}

export function fromWire(value: unknown): unknown {
  return value === undefined ? undefined : decode(JSON.stringify(value));
}

async function errorOf(response: Response): Promise<Error> {
  let problem: Partial<ProblemBody> | undefined;
  try {
    problem = (await response.json()) as ProblemBody;
  } catch {
    // A proxy answered.
  }
  const { detail, code, error } = problem ?? {};
  const exact = error === undefined ? undefined : revive(error);
  if (exact !== undefined) return exact;
  const message = detail ?? `The server answered ${response.status} without an explanation.`;
  if (!isErrorCode(code)) return new RepriseError("SERVER_UNREACHABLE", message);
  return new RepriseError(code, message, problem?.issues === undefined ? {} : { details: { issues: problem.issues } });
}

function revive(error: unknown): Error | undefined {
  const revived = fromWire(error);
  if (!(revived instanceof Error)) return undefined;
  const { details, cause } = revived as Error & { details?: Record<string, unknown> };
  // The code of a run threw it, for its caller.
  if (details?.["thrown"] === true && cause instanceof Error) return cause;
  if (details !== undefined) {
    // The server's, for the status of its answer.
    const { status: _status, ...own } = details;
    Object.defineProperty(revived, "details", {
      value: Object.keys(own).length === 0 ? undefined : own,
      enumerable: true,
      writable: true,
      configurable: true,
    });
    if (revived instanceof RepriseError && revived.details === undefined)
      delete (revived as { details?: unknown }).details;
  }
  return revived;
}

function unreachable(url: string, cause: unknown): RepriseError {
  return new RepriseError(
    "SERVER_UNREACHABLE",
    `The server at ${url} does not answer. Check the address, and that \`reprise serve\` runs there.`,
    { cause },
  );
}

function closedError(): RepriseError {
  return new RepriseError("ENGINE_CLOSED", "The client is closed. Create a new one with createHttpClient.");
}
