// KnownAnswers: gives a fork the answers that it does not have to call anything for (fork.F6).
//
// known-answers.S1. A call that is answered is recorded as any other, and gets no queue item, no child and no attempt.
// known-answers.S2. One answer at a time becomes an entry, when the code has received everything before (fork-answers.A3).
// known-answers.S3. A worker that takes the run over finds the answers again: which ones there are follows from the journals.

import { decodeData } from "../kernel/index.ts";
import {
  effectNotRecorded,
  type AnswerableCall,
  type CommandRequest,
  type Execution,
  type ForkAnswers,
  type GivenAnswer,
  type OpeningEntry,
} from "../workflow/index.ts";
import type { HotRun } from "./hot-run.ts";
import type { JournalWriter } from "./journal-writer.ts";
import type { OpenOperations } from "./open-operations.ts";

export class KnownAnswers {
  readonly #answers: ForkAnswers;
  readonly #execution: Execution;
  readonly #journal: JournalWriter;
  readonly #operations: OpenOperations;
  readonly #next: GivenAnswer[];
  /** Calls that the origin never got an answer to. */
  readonly #unanswered = new Set<string>();

  constructor(execution: Execution, answers: ForkAnswers, journal: JournalWriter, operations: OpenOperations) {
    this.#answers = answers;
    this.#execution = execution;
    this.#journal = journal;
    this.#operations = operations;
    this.#next = [...answers.messages];
    // known-answers.S3
    for (const call of execution.openCalls) if (execution.isOpen(call.command)) this.#find(call);
  }

  /** True: the call is answered, or the run is stopped; nothing is executed. */
  take(request: CommandRequest): boolean {
    if (this.#execution.stop !== undefined) return true;
    if (request.kind === "send" && this.#answers.isRecorded) {
      this.#journal.append("MessageSent", request.command, request.data);
      return true;
    }
    const call = callOf(request);
    if (call === undefined || !this.#find(call)) return false;
    // known-answers.S1
    if (call.type === "Operation") this.#operations.wait(call.command);
    else if ("data" in request) this.#journal.append(call.type, call.command, request.data);
    return true;
  }

  /** known-answers.S2. Nothing is given while the code has something to receive. */
  giveNext(run: HotRun): void {
    if (!run.isCurrent || run.isPaused) return;
    const next = this.#takeNext();
    if (next === undefined) return this.#checkWaiting();
    const { arrival, at } = next;
    this.#operations.end(arrival.target);
    this.#journal.at = at;
    run.receive(arrival);
    this.#journal.at = undefined;
    if (arrival.type === "NodeCompleted")
      this.#execution.nodes?.onCompleted?.(arrival.target, at ?? this.#execution.deliveries.time);
  }

  /** fork-answers.A3 */
  #takeNext(): GivenAnswer | undefined {
    let first: GivenAnswer | undefined;
    for (const one of this.#next) if (first === undefined || one.order < first.order) first = one;
    if (first !== undefined) this.#next.splice(this.#next.indexOf(first), 1);
    return first;
  }

  /** Stops a run that waits only for answers that its origin never got. */
  #checkWaiting(): void {
    if (this.#unanswered.size === 0) return;
    const open = this.#execution.waits.open();
    const [first] = open;
    if (first === undefined || !open.every(({ command }) => this.#unanswered.has(command))) return;
    void this.#execution.halt(effectNotRecorded(this.#execution.body.name, first.command, first.name, true));
  }

  #find(call: AnswerableCall): boolean {
    const found = this.#answers.find(call);
    if (found === undefined) return false;
    if (found === "unanswered") this.#unanswered.add(call.command);
    else if (found === "unrecorded")
      void this.#execution.halt(effectNotRecorded(this.#execution.body.name, call.command, nameOf(call), false));
    else this.#next.push(found);
    return true;
  }
}

function textOf(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}

function nameOf(call: AnswerableCall): string {
  if (call.type === "Operation") return call.name;
  const { taskType, childExecutionName, promiseId } = { ...call.data } as Readonly<Record<string, unknown>>;
  return textOf(taskType ?? childExecutionName ?? promiseId, call.command);
}

/** Undefined: nothing answers the request. */
function callOf(request: CommandRequest): AnswerableCall | undefined {
  switch (request.kind) {
    case "operation": {
      const { command, name, index, input, isNode = false, isRecordable = true, isLive = false } = request;
      return { type: "Operation", command, name, index, input, isNode, isRecordable, isLive };
    }
    case "task":
      return opening("TaskScheduled", request);
    case "child":
      return opening("ChildWorkflowInitiated", request);
    case "timer":
      return opening("TimerStarted", request);
    case "promise":
      return opening("PromiseCreated", request);
    case "settle":
      return opening("SettleRequested", request);
    default:
      return undefined;
  }
}

function opening(
  type: OpeningEntry["type"],
  { command, data }: { readonly command: string; readonly data: string },
): AnswerableCall {
  return { type, command, data: decodeData(type, data) } as AnswerableCall;
}
