// OutboxRelay: delivers claimed outbox messages to their handlers (outbox.O1 to outbox.O4).
//
// A handler takes an execution slot, like every user function. The relay retries it without limit: the run that sent the
// message may have ended, so no code could handle a final failure.

import {
  backoffMs,
  drawUnit,
  InvariantError,
  RetryLaterError,
  seedOf,
  type EpochMs,
  type Timers,
} from "../base/index.ts";
import {
  decodeData,
  emit,
  isEventLine,
  isObserved,
  sentContext,
  type ClaimedMessage,
  type ReturnMessageWrite,
  type MessageDeliveredWrite,
  type OpenSpan,
  type Telemetry,
  type Write,
} from "../kernel/index.ts";
import { callInStep, idempotencyKeyOf, type LogLevel } from "../workflow/index.ts";
import type { Pump } from "./pump.ts";
import type { ExecutionSlots } from "./execution-slots.ts";
import type { WebhookEndpoint } from "./webhook-endpoint.ts";
import { WebhookRelay } from "./webhook-relay.ts";

/**
 * Delivers a message to another system; every attempt for a message gets the same `dedupKey`.
 *
 * @example
 * ```ts
 * import type { OutboxHandler } from "reprise";
 * const received = new Map<string, unknown>();
 * export const mail: OutboxHandler = (payload, dedupKey) => {
 *   if (!received.has(dedupKey)) received.set(dedupKey, payload);
 * };
 * ```
 */
export type OutboxHandler = (payload: unknown, dedupKey: string) => Promise<void> | void;

export interface OutboxRelayHost {
  readonly handlers: ReadonlyMap<string, OutboxHandler>;
  readonly webhooks?: readonly WebhookEndpoint[] | undefined;
  readonly pump: Pump;
  readonly timers: Timers;
  readonly slots: ExecutionSlots;
  readonly telemetry?: Telemetry | undefined;
  now(): EpochMs;
  isStopped(): boolean;
  /** The run has another message, or a slot is free. */
  wantMessages(): void;
  dueAt(at: EpochMs): void;
  log(level: LogLevel, message: string, data: Readonly<Record<string, unknown>>): void;
  report(error: unknown): void;
}

const RETRY = { maxAttempts: Number.MAX_SAFE_INTEGER, baseDelay: "1s", maxDelay: "1m" } as const;
/** Delay before a failed write is repeated. */
const RETRY_WRITE_MS = 250;

export class OutboxRelay {
  readonly #host: OutboxRelayHost;
  /** Tokens of messages whose delivery has not ended, or whose end the store has not confirmed. */
  readonly #inDelivery = new Set<string>();

  readonly #webhooks: WebhookRelay;

  constructor(host: OutboxRelayHost) {
    this.#host = host;
    this.#webhooks = new WebhookRelay({
      ...host,
      webhooks: host.webhooks ?? [],
      submit: (write) => this.submit(write),
    });
  }

  get destinations(): readonly string[] {
    return [...this.#host.handlers.keys()];
  }

  /** The webhooks that may get more events. */
  get webhooks(): readonly string[] {
    return this.#webhooks.destinations;
  }

  /** After every write of this process: it may have written events. */
  wrote(write: Write, outcome: object): void {
    if (this.#host.webhooks !== undefined && this.#host.webhooks.length > 0 && mayReport(write, outcome))
      this.#host.wantMessages();
  }

  /** Ends what only waits for another system. */
  stop(): void {
    this.#webhooks.stop();
  }

  /** Calls the handler of a claimed message; the caller has acquired its slot. An event has none (webhook-relay.W1). */
  deliver(message: ClaimedMessage): void {
    this.#inDelivery.add(message.token);
    if (isEventLine(message.firstRun)) return this.#webhooks.deliver(message);
    const span = this.#begin(message);
    this.#call(message, span)
      .then(
        () => this.#delivered(message, span),
        (error: unknown) => this.#failed(message, error, span),
      )
      .finally(() => {
        this.#host.slots.release();
        this.#host.wantMessages();
      });
  }

  isDelivering(token: string): boolean {
    return this.#inDelivery.has(token);
  }

  /** A message that cannot be read has none; its delivery fails. */
  #begin({ destination, data, runId: run, generation, command, attempt }: ClaimedMessage): OpenSpan | undefined {
    const { telemetry } = this.#host;
    if (telemetry === undefined) return undefined;
    try {
      const { trace } = decodeData("MessageSent", data);
      const link = trace && sentContext(trace);
      const what = { kind: "process", name: destination, parent: trace, link } as const;
      return telemetry.begin({ ...what, run, generation, command, attempt: attempt + 1, now: () => this.#host.now() });
    } catch {
      return undefined;
    }
  }

  async #call(message: ClaimedMessage, span: OpenSpan | undefined): Promise<void> {
    const { destination, data, runId, generation, command } = message;
    const { payload } = decodeData("MessageSent", data);
    const handler = this.#host.handlers.get(destination);
    if (handler === undefined)
      throw new InvariantError(`The worker claimed a message to ${destination}, which has no handler.`);
    const call = (): unknown => handler(payload, idempotencyKeyOf(runId, generation, command));
    await callInStep(`outbox ${destination}`, span === undefined ? call : () => span.call(call));
  }

  #delivered(message: ClaimedMessage, span: OpenSpan | undefined): void {
    span?.finish();
    const { firstRun, run, seq, token, runId, destination, command, attempt } = message;
    if (isObserved())
      emit({ event: "message.delivered", run: runId, message: command, destination, attempt: attempt + 1 });
    this.submit({ write: "message-delivered", firstRun, run, seq, token, span });
  }

  #failed(message: ClaimedMessage, error: unknown, span: OpenSpan | undefined): void {
    span?.finish({ error });
    const { firstRun, run, seq, token, runId, generation, destination, command, attempt } = message;
    const jitter = drawUnit(seedOf(runId, generation), `${command}/retry`, attempt);
    const retryInMs = error instanceof RetryLaterError ? error.afterMs : backoffMs(RETRY, attempt, jitter);
    // People count attempts from 1.
    const count = attempt + 1;
    if (isObserved())
      emit({ event: "message.failed", run: runId, message: command, destination, attempt: count, error, retryInMs });
    const reason = error instanceof Error ? error.message : "the handler threw a value that is not an Error.";
    this.#host.log(
      "warn",
      `Attempt ${count} to deliver ${command} of run ${runId} to ${destination} failed: ${reason}`,
      {
        run: runId,
        message: command,
        attempt: count,
        retryInMs,
      },
    );
    const availableAt = this.#host.now() + retryInMs;
    this.submit({ write: "return-message", firstRun, run, seq, token, attempt: attempt + 1, availableAt, span });
    this.#host.dueAt(availableAt);
  }

  /** Nothing to do after a lost lease: the worker that took over delivers the message again. */
  submit(write: MessageDeliveredWrite | ReturnMessageWrite): void {
    this.#host.pump.submit(write).then(
      (outcome) => {
        this.#inDelivery.delete(write.token);
        if ("more" in outcome && outcome.more) this.#host.wantMessages();
      },
      (error: unknown) => {
        if (this.#host.isStopped()) return;
        this.#host.report(error);
        this.#host.timers.set(RETRY_WRITE_MS, () => this.submit(write), { ref: false });
      },
    );
  }
}

/** Whether the write ends or stops a run, opens a promise, or found the budget reached. */
function mayReport(write: Write, outcome: object): boolean {
  switch (write.write) {
    case "turn":
      return (write.then !== "hold" && write.then !== "release") || (write.promises?.opened.length ?? 0) > 0;
    case "complete":
      return write.then !== "continue";
    case "reserve":
      return "status" in outcome && outcome.status === "waiting";
    default:
      return write.write === "stop" || write.write === "terminate";
  }
}
