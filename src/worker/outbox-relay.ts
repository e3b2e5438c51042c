// OutboxRelay: delivers claimed outbox messages to their handlers (outbox.O1 to outbox.O4).
//
// A handler takes an execution slot, like every user function. The relay retries it without limit: the run that sent the
// message may have ended, so no code could handle a final failure.

import { backoffMs, drawUnit, InvariantError, RetryLaterError, seedOf } from "../base/index.ts";
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
  type Write,
} from "../kernel/index.ts";
import { callInStep, idempotencyKeyOf } from "../workflow/index.ts";
import type { PartsOf } from "./worker-parts.ts";
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

const RETRY = { maxAttempts: Number.MAX_SAFE_INTEGER, baseDelay: "1s", maxDelay: "1m" } as const;
/** Delay before a failed write is repeated. */
const RETRY_WRITE_MS = 250;

type UsedParts = PartsOf<"claimer" | "isStopped" | "log" | "now" | "options" | "poller" | "pump" | "slots" | "timers">;

export class OutboxRelay {
  readonly #parts: UsedParts;
  /** The destinations this worker has handlers for. */
  readonly destinations: readonly string[];
  /** Tokens of messages whose delivery has not ended, or whose end the store has not confirmed. */
  readonly #inDelivery = new Set<string>();

  readonly #webhooks: WebhookRelay;

  constructor(parts: UsedParts) {
    this.#parts = parts;
    const { timers, now, options } = parts;
    this.destinations = [...(options.outbox?.keys() ?? [])];
    this.#webhooks = new WebhookRelay({
      ...{ timers, now, log: options.log, webhooks: options.webhooks ?? [] },
      wantMessages: () => parts.claimer.request("messages"),
      dueAt: (at) => parts.poller.dueAt(at),
      submit: (write) => this.submit(write),
    });
  }

  /** The webhooks that may get more events. */
  get webhooks(): readonly string[] {
    return this.#webhooks.destinations;
  }

  /** After every write of this process: it may have written events. */
  wrote(write: Write, outcome: object): void {
    const { claimer, options } = this.#parts;
    if (options.webhooks !== undefined && options.webhooks.length > 0 && mayReport(write, outcome))
      claimer.request("messages");
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
        this.#parts.slots.release();
        this.#parts.claimer.request("messages");
      });
  }

  isDelivering(token: string): boolean {
    return this.#inDelivery.has(token);
  }

  /** A message that cannot be read has none; its delivery fails. */
  #begin({ destination, data, runId: run, generation, command, attempt }: ClaimedMessage): OpenSpan | undefined {
    const { now, options } = this.#parts;
    const { telemetry } = options;
    if (telemetry === undefined) return undefined;
    try {
      const { trace } = decodeData("MessageSent", data);
      const link = trace && sentContext(trace);
      const what = { kind: "process", name: destination, parent: trace, link } as const;
      return telemetry.begin({ ...what, run, generation, command, attempt: attempt + 1, now });
    } catch {
      return undefined;
    }
  }

  async #call(message: ClaimedMessage, span: OpenSpan | undefined): Promise<void> {
    const { destination, data, runId, generation, command } = message;
    const { payload } = decodeData("MessageSent", data);
    const handler = this.#parts.options.outbox?.get(destination);
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
    this.#parts.options.log(
      "warn",
      `Attempt ${count} to deliver ${command} of run ${runId} to ${destination} failed: ${reason}`,
      {
        run: runId,
        message: command,
        attempt: count,
        retryInMs,
      },
    );
    const availableAt = this.#parts.now() + retryInMs;
    this.submit({ write: "return-message", firstRun, run, seq, token, attempt: attempt + 1, availableAt, span });
    this.#parts.poller.dueAt(availableAt);
  }

  /** Nothing to do after a lost lease: the worker that took over delivers the message again. */
  submit(write: MessageDeliveredWrite | ReturnMessageWrite): void {
    const { pump, claimer, log, timers } = this.#parts;
    pump.submit(write).then(
      (outcome) => {
        this.#inDelivery.delete(write.token);
        if ("more" in outcome && outcome.more) claimer.request("messages");
      },
      (error: unknown) => {
        if (this.#parts.isStopped) return;
        log.report(error);
        timers.set(RETRY_WRITE_MS, () => this.submit(write), { ref: false });
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
