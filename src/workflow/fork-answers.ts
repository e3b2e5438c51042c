// Fork answers: what a fork answers to its own commands without calling anything (fork.F6).
//
// fork-answers.A1. An answer that the caller gave belongs to one command, in a graph to every attempt of its node. It is given when the code
//   requests the command.
// fork-answers.A2. With recorded effects, a command gets the answer that the origin recorded for the same command, with the same
//   name and input; if that was another call, the first answer to a call with this name and input that the fork has not used yet,
//   or the last one. Only entries up to `head` count, so every replay and every worker finds the same answers.
// fork-answers.A3. The code receives recorded answers in the order of the origin, one at a time: a race has the same winner.
// fork-answers.A4. Time and messages are no effects: a timer without a recorded answer runs. With recorded effects, the messages
//   that the origin received after the fork arrive again, in their order among the answers; the code waits for others.
// fork-answers.A5. The code of a graph's node runs, and what it requests is answered. A node that is not `recordable` does not
//   run: it gets the result that the origin recorded (rules.G8).
// fork-answers.A6. A live call is executed, also with recorded effects: a model that the fork replaces has no recorded answer.

import { encode, type EpochMs } from "../base/index.ts";
import {
  commandTypeOf,
  errorOf,
  isOfType,
  isTerminal,
  stableCommandOf,
  type Arrival,
  type DecodedEntry,
  type Entry,
  type EntryData,
  type EntryType,
  type ForkChanges,
} from "../kernel/index.ts";
import {
  arrivalOf,
  childCompletedData,
  childFailedData,
  encodeInput,
  operationCompletedData,
  operationFailedData,
  promiseResolvedData,
  signalReceivedData,
  taskCompletedData,
} from "./entry-data.ts";
import type { OpeningEntry } from "./open-commands.ts";
import { decodeEffectiveEntries } from "./recorded-journal.ts";

/** A call of an operation or a node, which has no entry before it ends. */
export interface OperationCall {
  readonly type: "Operation";
  readonly command: string;
  readonly name: string;
  readonly index: number;
  readonly input: string | undefined;
  readonly isNode: boolean;
  /** False for a node that calls services outside of `ctx`. */
  readonly isRecordable: boolean;
  readonly isLive: boolean;
}
/** What the code requests. */
export type AnswerableCall = OpeningCall | OperationCall;
type OpeningCall = {
  readonly [K in OpeningEntry["type"]]: { readonly type: K; readonly command: string; readonly data: EntryData[K] };
}[OpeningEntry["type"]];

export interface GivenAnswer {
  readonly arrival: Arrival;
  /** fork-answers.A3 */
  readonly order: number;
  /** When the origin recorded it; undefined: now. */
  readonly at: EpochMs | undefined;
}

/** `unanswered`: the origin requested it, too, and recorded no answer. `unrecorded`: it did not. */
export type FoundAnswer = GivenAnswer | "unanswered" | "unrecorded";

interface RecordedCalls {
  /** Openings, and the ends of operations. */
  readonly calls: ReadonlyMap<string, DecodedEntry>;
  /** The commands with the same type, name and input, in the order of the journal. */
  readonly byKey: ReadonlyMap<string, readonly string[]>;
  readonly answers: ReadonlyMap<string, DecodedEntry>;
}

/** What the first entry of a fork says. `seq`: the last entry before the fork, as the origin numbers it. */
type RecordedOrigin = ForkChanges & { readonly seq: number };

export class ForkAnswers {
  readonly #overrides: ReadonlyMap<string, unknown>;
  readonly #recorded: RecordedCalls | undefined = undefined;
  /** fork-answers.A2. The calls of the origin whose answers the fork has used. */
  readonly #used = new Set<string>();

  /** fork-answers.A4. The messages that the fork has not received yet, in order. */
  readonly messages: readonly GivenAnswer[] = [];

  /** `history`: that of the origin; only read with recorded effects. `own`: the journal of the fork. */
  constructor(
    { answers = {}, effects, head = 0, seq }: RecordedOrigin,
    history: readonly Entry[],
    own: readonly Entry[],
  ) {
    this.#overrides = new Map(Object.entries(answers));
    if (effects !== "recorded") return;
    const recorded = decodeEffectiveEntries(history.filter((entry) => entry.seq <= head));
    this.#recorded = callsIn(recorded);
    for (const [command, call] of callsIn(decodeEffectiveEntries(own)).calls) this.#use(this.#recorded, call, command);
    const replaced = this.#overriddenPorts(recorded);
    const arrived = own.filter(({ seq: at, type }) => at > 1 && MESSAGES.has(type)).map(({ data }) => data);
    this.messages = recorded
      .filter((entry) => entry.seq > seq && MESSAGES.has(entry.type))
      .filter((entry) => !replaced.has(portOf(entry)) && !this.#overrides.has(stableCommandOf(entry.command)))
      .map((entry) => ({ arrival: arrivalOf(entry.type, entry.data), order: entry.seq, at: entry.at }))
      .filter(({ arrival }) => {
        if (arrived[0] !== arrival.data) return true;
        arrived.shift();
        return false;
      });
  }

  /** The promises whose value the caller gave. */
  #overriddenPorts(recorded: readonly DecodedEntry[]): ReadonlySet<string | undefined> {
    const override = recorded.filter(({ command }) => this.#overrides.has(stableCommandOf(command)));
    return new Set(override.flatMap((entry) => (entry.type === "PromiseCreated" ? [entry.data.promiseId] : [])));
  }

  /** Nothing is called and no message leaves. */
  get isRecorded(): boolean {
    return this.#recorded !== undefined;
  }

  /** fork-answers.A2. The call of the origin whose answer this one gets; undefined: there is none. */
  #use(
    { calls, byKey, answers }: RecordedCalls,
    call: AnswerableCall | DecodedEntry,
    command: string,
  ): string | undefined {
    const key = keyOf(call);
    const same = calls.get(command);
    let source = same !== undefined && keyOf(same) === key ? command : undefined;
    if (source === undefined && canMove(call)) {
      const answered = (byKey.get(key) ?? []).filter((one) => answers.has(one));
      source = answered.find((one) => !this.#used.has(one)) ?? answered.at(-1);
    }
    if (source !== undefined) this.#used.add(source);
    return source;
  }

  /** Undefined: the call is executed. */
  find(call: AnswerableCall): FoundAnswer | undefined {
    const command = withoutEpoch(call.command);
    // fork-answers.A5, fork-answers.A6
    const runs = call.type === "Operation" && ((call.isNode && call.isRecordable) || call.isLive);
    const source = this.#recorded && this.#use(this.#recorded, call, command);
    const answer = this.#recorded && findRecorded(this.#recorded, call, source);
    // fork-answers.A1
    const stable = stableCommandOf(call.command);
    if (this.#overrides.has(stable)) {
      const arrival = overrideAnswer(call, this.#overrides.get(stable));
      if (arrival === undefined) return undefined;
      return { arrival, order: Number.NEGATIVE_INFINITY, at: typeof answer === "object" ? answer.at : undefined };
    }
    if (this.#recorded === undefined || runs) return undefined;
    if (typeof answer === "object") return answer;
    return canWait(call) ? undefined : answer;
  }
}

/** Whether its answer may be that to another command: a node and a wait belong to their place. */
function canMove(call: AnswerableCall | DecodedEntry): boolean {
  if (call.type === "Operation") return !call.isNode;
  return MOVABLE.has(call.type);
}
const MOVABLE: ReadonlySet<string> = new Set<EntryType>([
  "OperationCompleted",
  "OperationFailed",
  "TaskScheduled",
  "ChildWorkflowInitiated",
]);

/** fork-answers.A4 */
function canWait(call: AnswerableCall): boolean {
  return call.type === "TimerStarted" || call.type === "PromiseCreated";
}

/** A fork of a retried graph starts without epochs (retry-record.V4). */
function withoutEpoch(command: string): string {
  return command.replace(/~\d+(?=#|$)/, "");
}

/** What others sent to the run. */
const MESSAGES: ReadonlySet<EntryType> = new Set<EntryType>([
  "PromiseResolved",
  "PromiseRejected",
  "SignalReceived",
  "UpdateRequested",
]);

function portOf(entry: DecodedEntry): string | undefined {
  return isOfType(entry, "PromiseResolved", "PromiseRejected") ? entry.data.promiseId : undefined;
}

function callsIn(recorded: readonly DecodedEntry[]): RecordedCalls {
  const calls = new Map<string, DecodedEntry>();
  const answers = new Map<string, DecodedEntry>();
  for (const entry of recorded) {
    const command = withoutEpoch(entry.command);
    if (isOfType(entry, "OperationCompleted", "OperationFailed", "NodeCompleted", "NodeFailed"))
      calls.set(command, entry);
    // The code cancels a timer or a task itself.
    if (isOfType(entry, "TimerCancelled", "TaskCancelled")) continue;
    if (MESSAGES.has(entry.type)) continue;
    if (isTerminal(entry.type)) answers.set(command, entry);
    else if (command !== "" && !calls.has(command)) calls.set(command, entry);
  }
  const byKey = new Map<string, string[]>();
  for (const [command, entry] of calls) {
    if (!canMove(entry)) continue;
    const key = keyOf(entry);
    const same = byKey.get(key);
    if (same === undefined) byKey.set(key, [command]);
    else same.push(command);
  }
  return { calls, byKey, answers };
}

/** fork-answers.A2 */
function findRecorded({ answers }: RecordedCalls, call: AnswerableCall, source: string | undefined): FoundAnswer {
  if (source === undefined) return "unrecorded";
  const answer = answers.get(source);
  const arrival = answer && repeatedAnswer(call, answer);
  return answer === undefined || arrival === undefined ? "unanswered" : { arrival, order: answer.seq, at: answer.at };
}

/** What must be equal for two calls to have the same answer. */
function keyOf(call: AnswerableCall | DecodedEntry): string {
  if (call.type === "Operation") return encode([commandTypeOf(call.command), call.name, call.input]);
  if (isOfType(call, "OperationCompleted", "OperationFailed", "NodeCompleted", "NodeFailed"))
    return encode([commandTypeOf(call.command), call.data.operationName, encodeInput(call.data.input)]);
  if (isOfType(call, "TaskScheduled")) return encode([call.type, call.data.taskType, call.data.input]);
  if (isOfType(call, "ChildWorkflowInitiated")) {
    const { childExecutionName, childWorkflowKind, input } = call.data;
    return encode([call.type, childExecutionName, childWorkflowKind, input]);
  }
  if (isOfType(call, "TimerStarted")) return encode([call.type, call.data.timerId, call.data.ms, call.data.until]);
  if (isOfType(call, "PromiseCreated")) return encode([call.type, call.data.promiseId, call.data.receives]);
  if (isOfType(call, "SettleRequested")) {
    const { runId, promiseId, value, error } = call.data;
    return encode([call.type, runId, promiseId, value, error]);
  }
  return call.type;
}

/** The origin's answer, as one to the fork's own call. */
function repeatedAnswer(call: AnswerableCall, answer: DecodedEntry): Arrival | undefined {
  const { command: target } = call;
  if (call.type === "Operation") {
    const { index, name, input } = call;
    const fields = { index, name, input, attempt: 0 };
    if (isOfType(answer, "OperationCompleted", "NodeCompleted"))
      return { type: answer.type, target, data: operationCompletedData(fields, encodeInput(answer.data.result)) };
    if (isOfType(answer, "OperationFailed", "NodeFailed"))
      return { type: answer.type, target, data: operationFailedData(fields, errorOf(answer.data)) };
    return undefined;
  }
  if (call.type === "ChildWorkflowInitiated") {
    const { childExecutionId } = call.data;
    if (isOfType(answer, "ChildWorkflowCompleted"))
      return { type: answer.type, target, data: childCompletedData(childExecutionId, encodeInput(answer.data.output)) };
    if (isOfType(answer, "ChildWorkflowFailed"))
      return { type: answer.type, target, data: childFailedData(childExecutionId, errorOf(answer.data)) };
    return undefined;
  }
  return { type: answer.type, target, data: encode(answer.data) };
}

/** The value that a caller gave, as the completion of the call; undefined: a caller cannot answer the call. */
function overrideAnswer(call: AnswerableCall, value: unknown): Arrival | undefined {
  const { command: target } = call;
  const text = encodeInput(value);
  switch (call.type) {
    case "Operation": {
      const { index, name, input, isNode } = call;
      const fields = { index, name, input, attempt: 0 };
      if (!isNode) return { type: "OperationCompleted", target, data: operationCompletedData(fields, text) };
      // As the entry of a node stores the changes that its function returned.
      const changes = value === undefined ? "{}" : encode({ change: value });
      return { type: "NodeCompleted", target, data: operationCompletedData(fields, changes) };
    }
    case "TaskScheduled":
      return { type: "TaskCompleted", target, data: taskCompletedData(0, text, undefined) };
    case "ChildWorkflowInitiated":
      return {
        type: "ChildWorkflowCompleted",
        target,
        data: childCompletedData(call.data.childExecutionId, text),
      };
    case "TimerStarted":
      return { type: "TimerFired", target, data: "{}" };
    case "PromiseCreated":
      return overridePromise(call.data, value);
    case "SettleRequested":
      return undefined;
  }
}

/** The answer to a wait for one of several signals is `{ name, value }`, as the code receives it. */
export function overridePromise(
  { promiseId, key, receives }: DecodedEntry<"PromiseCreated">["data"],
  value: unknown,
): Arrival {
  if (receives === undefined) {
    const fields = key === undefined ? {} : { key };
    return {
      type: "PromiseResolved",
      target: promiseId,
      data: promiseResolvedData(promiseId, encodeInput(value), fields),
    };
  }
  const single = receives.length === 1 ? receives[0] : undefined;
  const override = single === undefined ? (value as { readonly name: string; readonly value?: unknown }) : undefined;
  const name = override?.name ?? single ?? "";
  const text = encodeInput(override === undefined ? value : override.value);
  return { type: "SignalReceived", target: name, data: signalReceivedData(name, text) };
}
