// Deliveries: messages of the outbox on their way to their handlers (O1–O4).
//
// A handler takes a slot, like every user function. It is called until it has answered without throwing: there is nobody
// left to whom a message that was given up could be reported.

import { backoffMs, decode, drawUnit, RetryLater, seedOf, type EpochMs, type Timers } from "../base/index.ts";
import {
  emit,
  isObserved,
  type ClaimedMessage,
  type MessageBackWrite,
  type MessageDeliveredWrite,
} from "../kernel/index.ts";
import { callInStep, idempotencyKeyOf, type LogLevel } from "../workflow/index.ts";
import type { Pump } from "./pump.ts";
import type { Slots } from "./slots.ts";

/** Hands a message to the outside; `dedupKey` is the same every time the message comes. */
export type OutboxHandler = (payload: unknown, dedupKey: string) => Promise<void> | void;

export interface DeliveriesHost {
  readonly handlers: ReadonlyMap<string, OutboxHandler>;
  readonly pump: Pump;
  readonly timers: Timers;
  readonly slots: Slots;
  now(): EpochMs;
  isStopped(): boolean;
  /** The run has another message, or a slot is free. */
  more(): void;
  dueAt(at: EpochMs): void;
  log(level: LogLevel, message: string, data: Readonly<Record<string, unknown>>): void;
  report(error: unknown): void;
}

const RETRY = { maxAttempts: Number.MAX_SAFE_INTEGER, baseDelay: "1s", maxDelay: "1m" } as const;
/** Pause before a write the store could not take is tried again. */
const INSIST_MS = 250;

export class Deliveries {
  readonly #host: DeliveriesHost;
  /** Tokens of messages that are being delivered, or about whose end the store was not told yet. */
  readonly #atWork = new Set<string>();

  constructor(host: DeliveriesHost) {
    this.#host = host;
  }

  get destinations(): readonly string[] {
    return [...this.#host.handlers.keys()];
  }

  /** Calls the handler of a claimed message; its slot has been taken. */
  deliver(message: ClaimedMessage): void {
    this.#atWork.add(message.token);
    this.#call(message)
      .then(
        () => this.#delivered(message),
        (error: unknown) => this.#failed(message, error),
      )
      .finally(() => {
        this.#host.slots.give();
        this.#host.more();
      });
  }

  knows(token: string): boolean {
    return this.#atWork.has(token);
  }

  async #call({ destination, data, runId, generation, command }: ClaimedMessage): Promise<void> {
    const { payload } = decode(data) as { payload?: unknown };
    const handler = this.#host.handlers.get(destination);
    if (handler === undefined) throw new Error(`claimed a message to ${destination}, which has no handler`);
    await callInStep(`outbox ${destination}`, () => handler(payload, idempotencyKeyOf(runId, generation, command)));
  }

  #delivered(message: ClaimedMessage): void {
    const { line, run, seq, token, runId, destination, command, attempt } = message;
    if (isObserved()) emit({ event: "message.delivered", run: runId, message: command, destination, attempt });
    this.insist({ write: "message-delivered", line, run, seq, token });
  }

  #failed(message: ClaimedMessage, error: unknown): void {
    const { line, run, seq, token, runId, generation, destination, command, attempt } = message;
    const jitter = drawUnit(seedOf(runId, generation), `${command}/retry`, attempt);
    const retryInMs = error instanceof RetryLater ? error.afterMs : backoffMs(RETRY, attempt, jitter);
    if (isObserved())
      emit({ event: "message.failed", run: runId, message: command, destination, attempt, error, retryInMs });
    const said = error instanceof Error ? error.message : "something that is not an Error was thrown";
    this.#host.log("warn", `The message to ${destination} was not delivered: ${said}`, {
      run: runId,
      message: command,
      attempt,
      retryInMs,
    });
    const availableAt = this.#host.now() + retryInMs;
    this.insist({ write: "message-back", line, run, seq, token, attempt: attempt + 1, availableAt });
    this.#host.dueAt(availableAt);
  }

  /** A lost lease needs nothing: whoever took over delivers it again. */
  insist(write: MessageDeliveredWrite | MessageBackWrite): void {
    this.#host.pump.submit(write).then(
      (outcome) => {
        this.#atWork.delete(write.token);
        if ("more" in outcome && outcome.more) this.#host.more();
      },
      (error: unknown) => {
        if (this.#host.isStopped()) return;
        this.#host.report(error);
        this.#host.timers.set(INSIST_MS, () => this.insist(write), { ref: false });
      },
    );
  }
}
