// Deliveries: what comes in to an execution: completions and messages, one at a time, in journal order.
//
// execution.E2, execution.E4 and execution.E6 are kept here.

import { InvariantError, type EpochMs } from "../base/index.ts";
import {
  DEADLINE_ITEM,
  errorOf,
  isAnswer,
  isCancel,
  isOfType,
  type Arrival,
  type DeliveredMessage,
  type Delivery,
} from "../kernel/index.ts";
import { deliverAnswer } from "./command-settle.ts";
import { arrivalOf } from "./entry-data.ts";
import type { Execution } from "./execution.ts";
import { FailureOrigins, type FailureOrigin } from "./failure-origins.ts";
import type { RecordedJournal } from "./recorded-journal.ts";
import { noteAnswer } from "./scope.ts";
import type { Wait } from "./waits.ts";

export class Deliveries {
  readonly #execution: Execution;
  #undelivered: number;
  #time: EpochMs;
  #failures: FailureOrigins | undefined;
  /** Messages that came too late for this generation. */
  #late: Arrival[] | undefined;

  constructor(execution: Execution, recorded: RecordedJournal) {
    this.#execution = execution;
    this.#undelivered = recorded.deliveries.length;
    this.#time = recorded.started.at;
  }

  /** The time of the last delivery. */
  get time(): EpochMs {
    return this.#time;
  }

  /** The journal has completions that the code has not received. */
  get areLeft(): boolean {
    return this.#undelivered > 0;
  }

  /** Delivers one completion to the code (execution.E2). */
  deliver(delivery: Delivery): void {
    const execution = this.#execution;
    if (execution.stop !== undefined) return;
    if (this.#undelivered > 0) this.#undelivered -= 1;
    execution.draws.leaveShared(delivery);
    // The code has ended: it came in the same commit as the last result. A replay must not go further than the run did.
    if (execution.outcome !== undefined) return this.#keepLate(delivery);
    const { type, command, data, at } = delivery;
    const isUndoing = execution.undos?.phase !== undefined && !isCancel(type);
    // undo.U3
    if (isUndoing && execution.waits.get(command) === undefined && !execution.commands.isUnmatched(command)) return;
    this.#time = at;
    switch (type) {
      case "TaskCompleted":
      case "OperationCompleted":
      case "NodeCompleted":
        return this.settle(command, data.result);
      case "ChildWorkflowCompleted":
        return this.settle(command, data.output);
      case "TaskFailed":
      case "OperationFailed":
      case "NodeFailed":
      case "ChildWorkflowFailed":
        return this.fail(command, this.noteFailure(errorOf(data), command));
      case "TimerFired":
      case "PromiseTimedOut":
        return this.settle(command, undefined);
      case "PromiseResolved":
      case "PromiseRejected":
        return execution.promisePorts.settle(execution, delivery);
      case "SettleAnswered":
        return deliverAnswer(execution, delivery);
      case "SignalReceived":
        return execution.signals.deliver(execution, delivery);
      case "UpdateRequested":
        return execution.updates.deliver(execution, delivery);
      case "CancelRequested":
      case "DeadlineExceeded":
        return this.#applyCancel(type, data.reason);
      default:
        throw new InvariantError("An entry of this type is not delivered to code.", { details: { type } });
    }
  }

  /** A message that was delivered before the checkpoint that the code starts from (checkpoint.C4). */
  restoreMessage(message: DeliveredMessage, at: EpochMs): void {
    if (isOfType(message, "CancelRequested", "DeadlineExceeded")) this.#applyCancel(message.type, message.data.reason);
    else this.#execution.promisePorts.settle(this.#execution, { ...message, command: "", at });
  }

  /** generation.N3 */
  #keepLate({ type, data }: Delivery): void {
    if (this.#execution.outcome?.status !== "continued" || isAnswer(type)) return;
    if (type === "CancelRequested" || type === "DeadlineExceeded") this.#applyCancel(type, data.reason);
    else (this.#late ??= []).push(arrivalOf(type, data));
  }

  /** Messages that the code has not used, in order. The next generation gets them (generation.N3). */
  unusedMessages(): readonly Arrival[] {
    const execution = this.#execution;
    const ports = execution.promisePorts.untaken().map(({ type, data }) => arrivalOf(type, data));
    const signals = execution.signals.buffered().map((signal) => arrivalOf("SignalReceived", { ...signal }));
    const updates = execution.updates.unhandled().map((request) => arrivalOf("UpdateRequested", request));
    return [...ports, ...signals, ...updates, ...(this.#late ?? [])];
  }

  /** Remembers which command failed with an error, in case the code throws it. */
  noteFailure(error: unknown, at: string): unknown {
    (this.#failures ??= new FailureOrigins()).note(error, { at, commands: this.#execution.commands.issued });
    return error;
  }

  /** The failure that made the code throw; undefined if it threw an error of its own. */
  findFailureOrigin(error: unknown): FailureOrigin | undefined {
    return this.#failures?.find(error);
  }

  settle(command: string, value: unknown): void {
    this.#finish(command, (wait) => {
      wait.resolve(value);
      if (wait.undo !== undefined) this.#execution.undos?.completed(this.#execution, wait, value);
    });
  }

  fail(command: string, error: unknown): void {
    this.#finish(command, (wait) => {
      wait.reject(error);
      if (wait.undo !== undefined) this.#execution.undos?.settled(command);
    });
  }

  #finish(command: string, settle: (wait: Wait) => void): void {
    if (this.#execution.waits.settle(command, settle)) return;
    if (this.#execution.commands.isUnmatched(command)) this.keepEarly(command, settle);
  }

  /** Keeps a completion that the code has not requested yet. */
  keepEarly(command: string, settle: (wait: Wait) => void): void {
    const [at, seq] = [this.#time, this.#execution.lostTurns.deliveredSeq];
    this.#execution.waits.keepEarly(command, (wait) => {
      if (wait.node !== undefined) noteAnswer(wait.node, at, seq);
      settle(wait);
    });
  }

  /** execution.E6. The first cancel counts. */
  #applyCancel(type: "CancelRequested" | "DeadlineExceeded", reason: string | undefined): void {
    const execution = this.#execution;
    if (execution.cancellation.error !== undefined) return;
    const error = execution.cancellation.apply(type, reason, execution.identity.id, execution.started.data.deadline);
    if (type === "DeadlineExceeded") this.noteFailure(error, DEADLINE_ITEM);
    execution.abandon(execution.waits.cancellable());
    for (const wait of execution.waits.all()) {
      if (wait.shielded) continue;
      // undo.U2. The code gets the error; the step finishes, because it is undone if it completes.
      if (wait.undo !== undefined) wait.reject(error);
      else this.fail(wait.command, error);
    }
  }
}
