// Idempotency: the same answer for the same request with the same `Idempotency-Key`.
//
// idempotency.I1. The order is: reserve the key with a hash of the request, act, record the answer. A process that dies in between leaves a
//   reservation; the repetition acts again. It does so with the same ids: the key is the id of a run that is started or forked, and
//   `call.keyId` the `dedupId` of a message and the id of a triggered run.
// idempotency.I2. The same key with another query or body is refused with 422. A key belongs to its caller and its operation with its path.
// idempotency.I3. Two requests at the same time: in one process the second waits for the first; across processes it gets 409 and
//   `Retry-After`.
// idempotency.I4. A refusal frees the key: it did nothing. After an error of the server only the same request may use the key.

import { hash } from "node:crypto";
import { decode, encode, RepriseError } from "../base/index.ts";
import { sizedResponse } from "../http/index.ts";
import type { KeyedRequest } from "../kernel/index.ts";
import type { Call, Caller } from "./host.ts";
import type { Act } from "./operation-route.ts";

/** What a recorded answer keeps. */
interface KeptAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** Headers that belong to the answer, not to the moment. */
const KEPT_HEADERS = ["content-type", "location", "etag", "preference-applied"];
const SWEEP_MS = 10 * 60_000;
/** Larger answers are not kept: the repetition acts again, with the same ids. */
const MAX_KEPT_CHARACTERS = 1_048_576;

export class IdempotentRequests {
  readonly #open = new Map<string, Promise<Response>>();
  readonly #holdMs: number;
  #sweptAt = Number.NEGATIVE_INFINITY;

  /** `holdMs`: how long a request may take before another process takes its key over. */
  constructor(holdMs: number) {
    this.#holdMs = holdMs;
  }

  /** idempotency.I1 */
  async once(call: Call, act: Act): Promise<Response> {
    const keyed = keyedRequest(call);
    // idempotency.I3
    for (let other = this.#open.get(keyed.request); other !== undefined; other = this.#open.get(keyed.request))
      await other.catch(() => undefined);
    const answer = this.#answer(keyed, call, act);
    this.#open.set(keyed.request, answer);
    try {
      return await answer;
    } finally {
      this.#open.delete(keyed.request);
    }
  }

  async #answer(keyed: KeyedRequest, call: Call, act: Act): Promise<Response> {
    const { store } = call.host;
    this.#sweep(call);
    const found = await store.reserveKey(keyed, this.#holdMs + call.waitMs);
    if (found.status === "answered") return repeated(found.code, decode(found.answer) as KeptAnswer);
    if (found.status === "other_body") throw otherBody(call.idempotencyKey!);
    if (found.status === "held") throw held(call.idempotencyKey!);
    let response: Response;
    try {
      response = await act(call);
    } catch (error) {
      // idempotency.I4
      await store.releaseKey(keyed, isRefusal(error));
      throw error;
    }
    return this.#record(keyed, call, response);
  }

  async #record(keyed: KeyedRequest, { host: { store } }: Call, response: Response): Promise<Response> {
    const type = response.headers.get("content-type") ?? "";
    // A stream has no answer that could be kept.
    if (type.startsWith("text/event-stream") || !response.ok) {
      await store.releaseKey(keyed, !response.ok);
      return response;
    }
    const body = response.body === null ? null : await response.text();
    const headers: Record<string, string> = {};
    for (const name of KEPT_HEADERS) {
      const value = response.headers.get(name);
      if (value !== null) headers[name] = value;
    }
    if ((body?.length ?? 0) > MAX_KEPT_CHARACTERS) await store.releaseKey(keyed, false);
    else await store.recordAnswer(keyed, response.status, encode({ headers, body } satisfies KeptAnswer));
    return new Response(body, { status: response.status, headers: response.headers });
  }

  /** Deletes old answers from time to time, beside a request. */
  #sweep({ host: { store, clock, logger } }: Call): void {
    if (clock.monotonic() - this.#sweptAt < SWEEP_MS) return;
    this.#sweptAt = clock.monotonic();
    store
      .deleteOldAnswers()
      .catch((error: unknown) =>
        logger.warn("old answers of idempotency keys could not be deleted", { error: String(error) }),
      );
  }
}

/** idempotency.I2 */
export function keyIdOf(id: string, caller: Caller | undefined, params: Call["params"], key: string): string {
  return hash("sha256", JSON.stringify([caller?.name ?? null, id, Object.entries(params), key]));
}

function keyedRequest({ keyId, query, body, payloads }: Call): KeyedRequest {
  return { request: keyId!, body: hash("sha256", JSON.stringify([query ?? null, body ?? null, payloads])) };
}

function repeated(status: number, { headers, body }: KeptAnswer): Response {
  const all = { ...headers, "idempotent-replayed": "true", "cache-control": "no-store" };
  return body === null ? new Response(null, { status, headers: all }) : sizedResponse(body, { status, headers: all });
}

function isRefusal(error: unknown): boolean {
  if (!(error instanceof RepriseError)) return false;
  const { status } = error.details ?? {};
  return typeof status === "number" ? status < 500 : error.family === "usage";
}

function otherBody(key: string): RepriseError {
  return new RepriseError(
    "USAGE",
    `Idempotency-Key ${key} was used for another request. Send another key, or the same query and body.`,
    { details: { status: 422 } },
  );
}

function held(key: string): RepriseError {
  return new RepriseError(
    "USAGE",
    `A request with the Idempotency-Key ${key} is being executed. Repeat it later: it then gets the same answer.`,
    { details: { status: 409, retryAfter: 1 } },
  );
}
