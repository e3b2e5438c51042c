// HTTP client: requests to a server that may be hostile, slow or broken. HTTP and S3 carriers send through it.
//
// http-client.H1. Redirects are not followed: a server cannot send this process to another address.
// http-client.H2. A body is counted while it arrives, after decompression. Beyond the limit, or below the lowest rate, the connection is
//   cut. What the server says about its length only makes a refusal earlier.
// http-client.H3. Only requests that may safely be repeated are: the server did not answer, or said that it could not now. After such a
//   failure the first request may have had its effect: the answer then says `isRepeated`.

import { backoffMs, ENGINE_NAME, RepriseError } from "../base/index.ts";
import { tooLong, type CarrierLimits, type CarrierPorts } from "./carrier.ts";
import { pause } from "./waiting.ts";

export interface HttpRequest {
  readonly method: "GET" | "PUT" | "DELETE" | "POST";
  readonly url: string;
  /** What the request is about, for messages. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly maxBytes?: number;
  /** How long the server may wait before it answers, beyond the usual time. */
  readonly waitMs?: number;
  /** False for a request that must not be sent twice; default true. */
  readonly canRepeat?: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  /** Whether an earlier try may have had its effect (http-client.H3). */
  readonly isRepeated: boolean;
}

type Init = RequestInit & { readonly headers: Record<string, string> };
/** Sends one request; S3 signs it first. */
export type Send = (url: string, init: Init) => Promise<Response>;

/** The server could not answer now. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 425, 429, 502, 503, 504]);
const BASE_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;
/** Answers that are not files: errors in JSON or XML. */
const ERROR_BYTES = 64 * 1024;

export class HttpClient {
  readonly #url: string;
  readonly #ports: CarrierPorts;
  readonly #limits: CarrierLimits;
  readonly #send: Send;
  readonly #transient: ReadonlySet<number>;
  readonly #closed = new AbortController();

  /** `url`: the carrier's, without secrets, for messages. `transient`: further statuses that the next try may not have. */
  constructor(
    url: string,
    ports: CarrierPorts,
    limits: CarrierLimits,
    { send = fetch, transient = [] }: { readonly send?: Send; readonly transient?: readonly number[] } = {},
  ) {
    this.#url = url;
    this.#ports = ports;
    this.#limits = limits;
    this.#send = send;
    this.#transient = new Set([...TRANSIENT, ...transient]);
  }

  async request(request: HttpRequest): Promise<HttpAnswer> {
    const attempts = request.canRepeat === false ? 1 : this.#limits.attempts;
    for (let attempt = 0; ; attempt += 1) {
      const isLast = attempt + 1 >= attempts;
      const isRepeated = attempt > 0;
      let pauseMs = this.#backoff(attempt);
      try {
        const answer = await this.#once(request);
        if (!this.#transient.has(answer.status)) return { ...answer, isRepeated };
        if (isLast) throw this.#unreachable(request, `answered ${answer.status}${textIn(answer)}`);
        pauseMs = Math.max(pauseMs, retryAfterMs(answer.headers));
      } catch (error) {
        request.signal?.throwIfAborted();
        if (isLast || !(error instanceof NoAnswer)) throw error instanceof NoAnswer ? error.toError() : error;
      }
      await pause(
        this.#ports,
        pauseMs,
        AbortSignal.any([this.#closed.signal, ...(request.signal ? [request.signal] : [])]),
      );
    }
  }

  /** Ends requests that wait. */
  close(): void {
    this.#closed.abort(new RepriseError("USAGE", `The carrier ${this.#url} was closed during a request.`));
  }

  async #once(request: HttpRequest): Promise<Omit<HttpAnswer, "isRepeated">> {
    const { method, url, headers = {}, body, waitMs = 0, signal } = request;
    const cut = new AbortController();
    const signals = [cut.signal, this.#closed.signal, ...(signal ? [signal] : [])];
    const { responseMs } = this.#limits;
    const stop = this.#ports.timers.set(responseMs + waitMs, () =>
      cut.abort(new NoAnswer(() => this.#unreachable(request, `did not answer within ${responseMs + waitMs} ms`))),
    );
    try {
      const response = await this.#send(url, {
        method,
        headers: { "user-agent": ENGINE_NAME, "accept-encoding": "identity", ...headers },
        ...(body === undefined ? {} : { body: body as Uint8Array<ArrayBuffer> }),
        // http-client.H1
        redirect: "manual",
        signal: AbortSignal.any(signals),
      });
      stop();
      const bytes = await this.#readBody(request, response, cut);
      return { status: response.status, headers: response.headers, bytes };
    } catch (error) {
      signal?.throwIfAborted();
      this.#closed.signal.throwIfAborted();
      if (cut.signal.aborted) throw cut.signal.reason;
      if (error instanceof RepriseError) throw error;
      throw new NoAnswer(() => this.#unreachable(request, reasonOf(error), error));
    } finally {
      stop();
    }
  }

  /** http-client.H2 */
  async #readBody(request: HttpRequest, response: Response, cut: AbortController): Promise<Uint8Array> {
    if (response.body === null) return new Uint8Array();
    const { maxBytes: ownLimit, responseMs, bytesPerSecond } = this.#limits;
    const maxBytes = response.ok ? (request.maxBytes ?? ownLimit) : ERROR_BYTES;
    const refusal = response.ok
      ? tooLong(this.#url, request.path, maxBytes)
      : refused(this.#url, request.path, `answered ${response.status} with more than ${maxBytes} bytes`);
    const chunks: Uint8Array[] = [];
    let length = 0;
    let elapsedMs = 0;
    let stop: () => void = () => undefined;
    const checkRate = (): void => {
      stop = this.#ports.timers.set(responseMs, () => {
        elapsedMs += responseMs;
        const least = (elapsedMs / 1_000) * bytesPerSecond;
        if (length >= least) return checkRate();
        cut.abort(
          this.#unreachable(request, `sent ${length} bytes in ${elapsedMs} ms, less than ${bytesPerSecond} per second`),
        );
      });
    };
    const reader = response.body.getReader();
    try {
      if (Number(response.headers.get("content-length") ?? 0) > maxBytes) throw refusal;
      checkRate();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return joined(chunks, length);
        length += value.length;
        if (length > maxBytes) throw refusal;
        chunks.push(value);
      }
    } finally {
      stop();
      // Closes the connection if the body has not ended. A body that was cut off has an error already.
      await reader.cancel().catch(() => undefined);
    }
  }

  #backoff(attempt: number): number {
    const [byte = 0] = this.#ports.random.bytes(1);
    const policy = { maxAttempts: this.#limits.attempts, baseDelay: BASE_DELAY_MS, maxDelay: MAX_DELAY_MS };
    return backoffMs(policy, attempt, byte / 256);
  }

  #unreachable({ method, path }: HttpRequest, problem: string, cause?: unknown): RepriseError {
    return new RepriseError(
      "CARRIER_UNREACHABLE",
      `${this.#url} ${problem} (${method} ${path}). Check that the server runs and that this machine reaches it, then repeat the command.`,
      { ...(cause === undefined ? {} : { cause }), details: { url: this.#url, path } },
    );
  }
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** A failure that may be over with the next try. */
class NoAnswer extends Error {
  readonly toError: () => RepriseError;

  constructor(toError: () => RepriseError) {
    super("no answer");
    this.toError = toError;
  }
}

/** The error for an answer that a person must act on. */
export function refused(
  url: string,
  path: string,
  problem: string,
  details: Record<string, unknown> = {},
): RepriseError {
  return new RepriseError("CARRIER_REFUSED", `${url} ${problem} (${path}).`, { details: { url, path, ...details } });
}

/** What fetch hides in `cause`: ECONNREFUSED, a certificate, a reset connection. */
function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: string; message?: string } };
  const reason = cause?.code ?? cause?.message ?? (error instanceof Error ? error.message : String(error));
  return `could not be reached: ${reason === "" ? "no reason given" : reason}`;
}

function textIn({ bytes }: { bytes: Uint8Array }): string {
  const text = Buffer.from(bytes.subarray(0, 200)).toString("utf8").replace(/\s+/g, " ").trim();
  return text === "" ? "" : ` (${text})`;
}

function retryAfterMs(headers: Headers): number {
  const seconds = Number(headers.get("retry-after") ?? 0);
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1_000, 30_000) : 0;
}
