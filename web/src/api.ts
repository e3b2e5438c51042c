// API: requests to the server by the types of the contract. Every refusal is a `Problem` with the words of the server.

import type { ProblemBody } from "../../src/contract/site.ts";
import { basePath, type QueryChange } from "./router.ts";

/** A refusal of the server, or no answer (`status` 0). */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly hint: string | undefined;
  readonly issues: readonly { readonly path: string; readonly message: string }[];

  constructor(body: Partial<ProblemBody> & { readonly status: number }) {
    super(body.detail ?? body.title ?? `The server answered ${body.status}.`);
    this.name = "Problem";
    this.status = body.status;
    this.code = body.code ?? "";
    this.detail = this.message;
    this.hint = body.hint;
    this.issues = body.issues ?? [];
  }

  /** The server or its store is out of reach: data of the page are stale until it answers. */
  get isOutage(): boolean {
    return this.status === 0 || this.status >= 502 || (this.status === 500 && this.code.startsWith("STORE_"));
  }
}

export interface Fetched<T> {
  readonly data: T;
  readonly etag: string | undefined;
}

interface RequestOptions {
  readonly query?: QueryChange;
  readonly signal?: AbortSignal;
}

/** The address of an operation. Names in `path` must be encoded already: use the tag `at`. */
export function apiUrl(path: string, query: QueryChange = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, String(one));
  }
  const text = search.toString();
  return basePath + path.replace(/^\//, "") + (text === "" ? "" : `?${text}`);
}

/** A path with encoded values: at`/v1/runs/${id}`. */
export function at(parts: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return parts.reduce((path, part, index) => path + encodeURIComponent(String(values[index - 1])) + part);
}

/** Called with every outage and every answer, so that the page knows whether it is stale. */
let onReachable: (problem: Problem | undefined) => void = () => {};
export function watchReachability(watcher: typeof onReachable): void {
  onReachable = watcher;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

async function send(url: string, init: RequestInit): Promise<Answer> {
  let response: Response;
  let body: unknown;
  try {
    response = await fetch(url, { credentials: "same-origin", ...init });
    if (response.ok && response.status !== 204) body = await response.json();
  } catch (thrown) {
    if (init.signal?.aborted === true) throw thrown;
    const problem = new Problem({ status: 0, code: "SERVER_UNREACHABLE", detail: "The server does not answer." });
    onReachable(problem);
    throw problem;
  }
  const { status, headers } = response;
  if (response.ok || status === 304) return { status, headers, body };
  const problem = await problemOf(response);
  if (problem.isOutage) onReachable(problem);
  throw problem;
}

async function problemOf(response: Response): Promise<Problem> {
  try {
    return new Problem({ ...((await response.json()) as ProblemBody), status: response.status });
  } catch {
    return new Problem({ status: response.status, detail: `The server answered ${response.status}.` });
  }
}

export async function get<T>(path: string, { query, signal }: RequestOptions = {}): Promise<T> {
  const { body } = await send(apiUrl(path, query), {
    headers: { accept: "application/json" },
    ...(signal !== undefined && { signal }),
  });
  return body as T;
}

/** As `get`, but answers `undefined` if nothing changed since `etag`. */
export async function getIfChanged<T>(
  path: string,
  etag: string | undefined,
  { query, signal }: RequestOptions = {},
): Promise<Fetched<T> | undefined> {
  const { status, headers, body } = await send(apiUrl(path, query), {
    headers: { accept: "application/json", ...(etag !== undefined && { "if-none-match": etag }) },
    // The browser's own cache would answer 200 for a 304 of the server.
    cache: "no-store",
    ...(signal !== undefined && { signal }),
  });
  return status === 304 ? undefined : { data: body as T, etag: headers.get("etag") ?? undefined };
}

/** A change. The key makes a repeated request the same request. */
export async function post<T>(
  path: string,
  body: unknown = {},
  {
    key = newKey(),
    method = "POST",
    signal,
  }: { readonly key?: string; readonly method?: "POST" | "PUT" | "DELETE"; readonly signal?: AbortSignal } = {},
): Promise<T> {
  const text = JSON.stringify(body);
  const { body: answer } = await send(apiUrl(path), {
    method,
    // An answer that a person gave is sent although the page is left; browsers allow 64 KB for that.
    keepalive: text.length < 20_000,
    headers: {
      accept: "application/json",
      "content-type": "application/json",
      // A form of another site cannot send a header of its own.
      "x-reprise": "1",
      "idempotency-key": key,
    },
    body: text,
    ...(signal !== undefined && { signal }),
  });
  return answer as T;
}

/** A random key. `crypto.randomUUID` exists only on https and localhost. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
