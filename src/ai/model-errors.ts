// Model errors: which failures of a model call are repeated, when, and what the journal keeps of them.
//
// model-errors.E1. The engine retries, not the SDK: the error that the SDK receives is the recorded one, which it does not take for
//   an error of its own. It says nothing about the request, and has no headers.
// model-errors.E2. The SDK's flag decides (`isRetryable`), and so does a connection that broke. `retry-after` sets the delay.

import { RepriseError, RetryLaterError, type RetryPolicy } from "../base/index.ts";

/** What errors of provider packages have, as far as it is known here. */
interface ProviderError extends Error {
  readonly isRetryable?: unknown;
  readonly statusCode?: unknown;
  readonly status?: unknown;
  readonly responseHeaders?: unknown;
  readonly headers?: unknown;
  readonly responseBody?: unknown;
}

/** The recorded form of a failure. */
class ModelCallError extends Error {
  readonly statusCode?: number;
  readonly responseBody?: string;
  readonly isRetryable: boolean;
  /** True if no answer can have been billed. */
  readonly isUnbilled: boolean;

  constructor(error: ProviderError, isRetryable: boolean) {
    super(error.message);
    this.name = error.name;
    const statusCode = statusOf(error);
    if (statusCode !== undefined) this.statusCode = statusCode;
    if (typeof error.responseBody === "string" && error.responseBody !== "")
      this.responseBody = error.responseBody.slice(0, BODY_LIMIT);
    this.isRetryable = isRetryable;
    this.isUnbilled =
      statusCode === undefined
        ? isConnection(error, REFUSED)
        : (statusCode >= 400 && statusCode < 500) || statusCode === OVERLOADED;
  }
}

const BODY_LIMIT = 2_000;
const OVERLOADED = 529;
const MAX_DELAY_MS = 60 * 60_000;
const ATTEMPTS = 3;

/** The connection was never made. */
const REFUSED = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"];
/** The connection was made and broke, or was never made. */
const BROKEN = [...REFUSED, "ECONNRESET", "EPIPE", "ETIMEDOUT", "UND_ERR_SOCKET", "UND_ERR_HEADERS_TIMEOUT"];

/** Three attempts by model-errors.E2, unless the options say otherwise. */
export function modelRetry(given: RetryPolicy | undefined): RetryPolicy {
  return { maxAttempts: ATTEMPTS, ...given, retryable: given?.retryable ?? isRetryable };
}

export function isRetryable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof RepriseError) return error.code === "ATTEMPT_TIMEOUT";
  const { isRetryable: flag } = error as ProviderError;
  if (typeof flag === "boolean") return flag;
  const status = statusOf(error);
  if (status !== undefined) return status === 408 || status === 409 || status === 429 || status >= 500;
  // undici: the response body ended early.
  return isConnection(error, BROKEN) || (error instanceof TypeError && error.message === "terminated");
}

/** model-errors.E1. `policy` decides by the error as it is; what is thrown is the recorded form. */
export function recordedError(error: unknown, policy: RetryPolicy): unknown {
  if (!(error instanceof Error) || error instanceof RepriseError) return error;
  const recorded = new ModelCallError(error, isRetryable(error));
  const delayMs = recorded.isRetryable ? retryAfterMs(error) : undefined;
  if (delayMs === undefined || policy.retryable?.(recorded) === false) return recorded;
  return Object.assign(new RetryLaterError(delayMs, error.message), { cause: recorded });
}

/** Whether an execution that failed like this costs nothing: not connected, 4xx, 529. */
export function isUnbilled(error: Error): boolean {
  const failed = (error instanceof RetryLaterError ? error.cause : error) as Partial<ModelCallError>;
  return failed.isUnbilled === true;
}

function statusOf({ statusCode, status }: ProviderError): number | undefined {
  return [statusCode, status].find((code): code is number => typeof code === "number");
}

function isConnection(error: unknown, codes: readonly string[], depth = 4): boolean {
  if (!(error instanceof Error) || depth === 0) return false;
  const { code } = error as { code?: unknown };
  return (typeof code === "string" && codes.includes(code)) || isConnection(error.cause, codes, depth - 1);
}

/** `retry-after-ms`, or `retry-after` as seconds or as a date. */
function retryAfterMs(error: ProviderError): number | undefined {
  const headers = error.responseHeaders ?? error.headers ?? (error.cause as ProviderError | undefined)?.responseHeaders;
  if (typeof headers !== "object" || headers === null) return undefined;
  const read = (name: string): string | undefined =>
    headers instanceof Headers ? (headers.get(name) ?? undefined) : (headers as Record<string, string>)[name];
  const [precise, after] = [read("retry-after-ms"), read("retry-after")];
  const seconds = Number.parseFloat(after ?? "");
  const ms = [
    Number.parseFloat(precise ?? ""),
    seconds * 1000,
    Date.parse(after ?? "") - Date.parse(read("date") ?? ""),
  ].find((delay) => delay >= 0);
  return ms === undefined || ms > MAX_DELAY_MS ? undefined : ms;
}
