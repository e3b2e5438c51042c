// WebhookRelay: delivers claimed events to their endpoints (run-event.E1 to run-event.E4).
//
// webhook-relay.W1. An endpoint has a few requests in flight and no execution slots. So one that does not answer delays neither the code
//   of runs, nor messages of `ctx.send`, nor other endpoints.
// webhook-relay.W2. Redirects are not followed: an endpoint cannot send this process to another address. No answer is read.
// webhook-relay.W3. A delivery is repeated, at growing distances or as `Retry-After` says, until the endpoint answers 2xx. 410 ends it,
//   and so does `EVENT_MS`: the event is then dropped, with an error in the log.

import { backoffMs, drawUnit, ENGINE_NAME, seedOf, signWebhook, type EpochMs, type Timers } from "../base/index.ts";
import {
  emit,
  EVENT_MS,
  eventTypeOf,
  isObserved,
  type ClaimedMessage,
  type MessageDeliveredWrite,
  type ReturnMessageWrite,
} from "../kernel/index.ts";
import { callInStep, type LogLevel } from "../workflow/index.ts";
import { eventIdOf, webhookBodyOf, type WebhookEndpoint } from "./webhook-endpoint.ts";

export interface WebhookRelayHost {
  readonly webhooks: readonly WebhookEndpoint[];
  readonly timers: Timers;
  now(): EpochMs;
  /** An endpoint may take more events. */
  wantMessages(): void;
  dueAt(at: EpochMs): void;
  submit(write: MessageDeliveredWrite | ReturnMessageWrite): void;
  log(level: LogLevel, message: string, data: Readonly<Record<string, unknown>>): void;
}

const RETRY = { maxAttempts: Number.MAX_SAFE_INTEGER, baseDelay: "1s", maxDelay: "1h" } as const;
const TIMEOUT_MS = 15_000;
/** webhook-relay.W1. A claim takes at most this many events of an endpoint. */
export const WEBHOOK_CLAIM = 4;
const GONE = 410;

/** The outcome of one request. */
type Answer = { readonly status: number; readonly retryAfterMs: number } | { readonly reason: string };

export class WebhookRelay {
  readonly #host: WebhookRelayHost;
  readonly #endpoints: ReadonlyMap<string, WebhookEndpoint>;
  readonly #inFlight = new Map<string, number>();
  readonly #stopped = new AbortController();

  constructor(host: WebhookRelayHost) {
    this.#host = host;
    this.#endpoints = new Map(host.webhooks.map((endpoint) => [endpoint.destination, endpoint]));
  }

  /** The destinations that have room for `WEBHOOK_CLAIM` events. */
  get destinations(): readonly string[] {
    return [...this.#endpoints.keys()].filter((one) => (this.#inFlight.get(one) ?? 0) < WEBHOOK_CLAIM);
  }

  deliver(message: ClaimedMessage): void {
    const { destination } = message;
    this.#count(destination, 1);
    void this.#deliver(message).finally(() => {
      this.#count(destination, -1);
      this.#host.wantMessages();
    });
  }

  /** Ends requests that wait for an answer. Their events are delivered again, by this or another process. */
  stop(): void {
    this.#stopped.abort();
  }

  #count(destination: string, by: number): void {
    this.#inFlight.set(destination, (this.#inFlight.get(destination) ?? 0) + by);
  }

  async #deliver(message: ClaimedMessage): Promise<void> {
    const endpoint = this.#endpoints.get(message.destination);
    if (message.event === undefined || endpoint === undefined)
      return this.#drop(message, "its run is gone", { name: message.destination });
    const answer = await this.#send(message, endpoint).catch((error: unknown) => ({ reason: reasonOf(error) }));
    if (this.#stopped.signal.aborted) return;
    if ("status" in answer && answer.status >= 200 && answer.status < 300) return this.#delivered(message);
    const reason = "status" in answer ? `the endpoint answered ${answer.status}` : answer.reason;
    if ("status" in answer && answer.status === GONE) return this.#drop(message, reason, endpoint);
    this.#failed(message, reason, "status" in answer ? answer.retryAfterMs : 0, endpoint);
  }

  async #send(message: ClaimedMessage, endpoint: WebhookEndpoint): Promise<Answer> {
    const body = JSON.stringify(await callInStep(`webhook ${endpoint.name}`, () => webhookBodyOf(message, endpoint)));
    const now = this.#host.now();
    const headers = signWebhook(endpoint.keys, { id: eventIdOf(message), at: now, body });
    const cut = new AbortController();
    const cancel = this.#host.timers.set(TIMEOUT_MS, () => cut.abort(new Error(`no answer within ${TIMEOUT_MS} ms`)), {
      ref: false,
    });
    try {
      const response = await fetch(endpoint.url, {
        method: "POST",
        headers: { ...endpoint.headers, "content-type": "application/json", "user-agent": ENGINE_NAME, ...headers },
        body,
        redirect: "manual",
        signal: AbortSignal.any([cut.signal, this.#stopped.signal]),
      });
      await response.body?.cancel().catch(() => undefined);
      return { status: response.status, retryAfterMs: retryAfterMs(response.headers.get("retry-after"), now) };
    } finally {
      cancel();
    }
  }

  #delivered(message: ClaimedMessage): void {
    const { firstRun, run, seq, token, runId, destination, attempt } = message;
    if (isObserved())
      emit({ event: "message.delivered", run: runId, message: typeOf(message), destination, attempt: attempt + 1 });
    this.#host.submit({ write: "message-delivered", firstRun, run, seq, token });
  }

  #failed(message: ClaimedMessage, reason: string, afterMs: number, endpoint: WebhookEndpoint): void {
    const { firstRun, run, seq, token, runId, generation, destination, attempt, event } = message;
    const now = this.#host.now();
    const until = (event?.at ?? 0) + EVENT_MS;
    // webhook-relay.W3
    if (now >= until) return this.#drop(message, `${reason}, for ${EVENT_MS / 86_400_000} days`, endpoint);
    const jitter = drawUnit(seedOf(runId, generation), `${destination}/${seq}`, attempt);
    const retryInMs = Math.min(Math.max(afterMs, backoffMs(RETRY, attempt, jitter)), until - now);
    const count = attempt + 1;
    const type = typeOf(message);
    if (isObserved())
      emit({
        event: "message.failed",
        run: runId,
        message: type,
        destination,
        attempt: count,
        error: reason,
        retryInMs,
      });
    this.#host.log(
      "warn",
      `Attempt ${count} to deliver ${type} of run ${runId} to the webhook ${endpoint.name} failed: ${reason}.`,
      { run: runId, webhook: endpoint.name, attempt: count, retryInMs },
    );
    const availableAt = now + retryInMs;
    this.#host.submit({ write: "return-message", firstRun, run, seq, token, attempt: count, availableAt });
    this.#host.dueAt(availableAt);
  }

  #drop(message: ClaimedMessage, reason: string, { name }: Pick<WebhookEndpoint, "name">): void {
    const { firstRun, run, seq, token, runId } = message;
    this.#host.log(
      "error",
      `The event ${typeOf(message)} of run ${runId} for the webhook ${name} is dropped: ${reason}.`,
      {
        run: runId,
        webhook: name,
      },
    );
    this.#host.submit({ write: "message-delivered", firstRun, run, seq, token });
  }
}

function typeOf({ event }: ClaimedMessage): string {
  return event === undefined ? "event" : eventTypeOf(event.kind);
}

/** Seconds, or a date; 0: nothing usable. */
export function retryAfterMs(header: string | null, now: EpochMs): number {
  if (header === null) return 0;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1_000;
  // `Date.parse` finds a date in almost any text.
  const at = /^[A-Za-z]{3}, \d/.test(header.trim()) ? Date.parse(header) : Number.NaN;
  return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}

/** `fetch failed` has its reason in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "the request failed";
  const { cause } = error;
  return cause instanceof Error && cause.message !== "" ? cause.message : error.message;
}
