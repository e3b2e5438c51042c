// Entry data: writes the canonical text of each entry from parts that are already canonical. `src/kernel/entry-data.ts` has
// the types of the decoded data.
//
// Keys are written in sorted order by hand, so each value is encoded once and never parsed again.

import {
  decode,
  encode,
  invariant,
  RepriseError,
  type PayloadLimits,
  type RetryPolicy,
  toMs,
  userStack,
} from "../base/index.ts";
import {
  dataWithoutSecrets,
  withoutSecrets,
  type Arrival,
  type EntryData,
  type EntryType,
  type Policy,
  type RetryRecord,
  type SettlementFields,
  nodeItemOf,
} from "../kernel/index.ts";

type Part = string | undefined;

/** `fields` in sorted order. A field whose text is undefined is left out. `Object.keys`, because `for in` also lists inherited keys. */
export function record(fields: Readonly<Record<string, Part>>): string {
  let text = "{";
  for (const key of Object.keys(fields)) {
    const value = fields[key];
    if (value === undefined) continue;
    text += text.length === 1 ? `"${key}":${value}` : `,"${key}":${value}`;
  }
  return `${text}}`;
}

export function indexText(index: number): string {
  invariant(index >= 0, "An entry records the index of an issued command.");
  return String(index);
}

/** Absent unless true. */
export function flag(is: boolean | undefined): Part {
  return is === true ? "true" : undefined;
}

/** `undefined` has no text: the field is left out, and reads back as undefined. */
export function encodeInput(value: unknown, limits?: PayloadLimits): string | undefined {
  return value === undefined ? undefined : encode(value, limits);
}

/** As `encodeInput`; an error names the value that cannot be encoded. */
export function encodeNamed(what: string, value: unknown, limits?: PayloadLimits): string | undefined {
  try {
    return encodeInput(value, limits);
  } catch (error) {
    if (!(error instanceof RepriseError)) throw error;
    const { code, message, details } = error;
    throw new RepriseError(code, `${what} cannot be stored: ${message}`, {
      cause: error.cause,
      ...(details && { details }),
    });
  }
}

function retryText(retry: RetryPolicy | undefined): Part {
  if (retry === undefined) return undefined;
  return record({
    baseDelay: retry.baseDelay === undefined ? undefined : String(toMs(retry.baseDelay)),
    maxAttempts: String(retry.maxAttempts),
    maxDelay: retry.maxDelay === undefined ? undefined : String(toMs(retry.maxDelay)),
  });
}

export interface TaskFields {
  readonly index: number;
  readonly taskType: string;
  readonly input: string | undefined;
  /** Digest of the value that the code passed, if a schema parsed it. */
  readonly given: string | undefined;
  readonly policy: Policy;
  readonly shielded?: boolean;
  /** retry-record.V3 */
  readonly epoch?: number;
}
export function taskScheduledData({
  index,
  taskType,
  input,
  given,
  policy,
  shielded,
  epoch: life = 0,
}: TaskFields): string {
  return record({
    given: given === undefined ? undefined : encode(given),
    index: indexText(index),
    input,
    life: life === 0 ? undefined : String(life),
    retry: retryText(policy.retry),
    shielded: flag(shielded),
    taskType: encode(taskType),
    timeout: policy.timeout === undefined ? undefined : String(toMs(policy.timeout)),
  });
}

export interface ChildFields {
  readonly index: number;
  readonly childExecutionId: string;
  readonly childExecutionName: string;
  readonly childWorkflowKind: string;
  readonly input: string | undefined;
  readonly given: string | undefined;
  readonly shielded?: boolean;
}
export function childInitiatedData(fields: ChildFields): string {
  return record({
    childExecutionId: encode(fields.childExecutionId),
    childExecutionName: encode(fields.childExecutionName),
    childWorkflowKind: encode(fields.childWorkflowKind),
    given: fields.given === undefined ? undefined : encode(fields.given),
    index: indexText(fields.index),
    input: fields.input,
    shielded: flag(fields.shielded),
  });
}

export interface TimerFields {
  readonly index: number;
  readonly timerId: string;
  readonly ms: number;
  readonly shielded: boolean;
  readonly until: boolean | undefined;
}
export function timerStartedData({ index, timerId, ms, shielded, until }: TimerFields): string {
  return record({
    index: indexText(index),
    ms: String(ms),
    shielded: flag(shielded),
    timerId: encode(timerId),
    until: flag(until),
  });
}
export function timerCancelledData(index: number, timerId: string): string {
  return record({ index: indexText(index), timerId: encode(timerId) });
}

export function promiseCreatedData(
  index: number,
  promiseId: string,
  timeout: number | undefined,
  show: Part,
  shielded = false,
  key?: string,
): string {
  return record({
    index: indexText(index),
    key: key === undefined ? undefined : encode(key),
    promiseId: encode(promiseId),
    shielded: flag(shielded),
    show,
    timeout: timeout === undefined ? undefined : String(timeout),
  });
}
/** A wait for the first of several signals. */
export function receiveCreatedData(
  index: number,
  names: readonly string[],
  timeout: number | undefined,
  shielded = false,
): string {
  return record({
    index: indexText(index),
    promiseId: encode(receiveId(names)),
    receives: encode(names),
    shielded: flag(shielded),
    timeout: timeout === undefined ? undefined : String(timeout),
  });
}
export function receiveId(names: readonly string[]): string {
  return names.join(" | ");
}
export function signalReceivedData(name: string, value: string | undefined): string {
  return record({ name: encode(name), value });
}
export function updateRequestedData(id: string, name: string, args: string | undefined): string {
  return record({ args, id: encode(id), name: encode(name) });
}
export function updateCompletedData(id: string, result: string | undefined): string {
  return record({ id: encode(id), result });
}
export function updateFailedData(id: string, error: unknown): string {
  return record({ error: errorText(error), id: encode(id), stack: stackText(error) });
}
/** The command of an update: its request and its answer. */
export function updateCommand(id: string): string {
  return `Update(${id})`;
}
export interface ChildSignalFields {
  readonly index: number;
  readonly childExecutionId: string;
  readonly name: string;
  readonly value: string | undefined;
  readonly given: string | undefined;
}
export function childSignalledData({ index, childExecutionId, name, value, given }: ChildSignalFields): string {
  return record({
    childExecutionId: encode(childExecutionId),
    given: given === undefined ? undefined : encode(given),
    index: indexText(index),
    name: encode(name),
    value,
  });
}
export function childCancelRequestedData(index: number, childExecutionId: string): string {
  return record({ childExecutionId: encode(childExecutionId), index: indexText(index) });
}
export function promiseResolvedData(
  promiseId: string,
  value: string | undefined,
  fields: SettlementFields = {},
): string {
  return settledData(promiseId, fields, undefined, value);
}
export function promiseRejectedData(promiseId: string, error: unknown, fields: SettlementFields = {}): string {
  return settledData(promiseId, fields, errorText(error), undefined);
}
function settledData(promiseId: string, { key, by, reason }: SettlementFields, error: Part, value: Part): string {
  return record({
    by: by === undefined ? undefined : encode(by),
    error,
    key: key === undefined ? undefined : encode(key),
    promiseId: encode(promiseId),
    reason: reason === undefined ? undefined : encode(reason),
    value,
  });
}

export function stateSetData(index: number, key: string, value: string): string {
  return record({ index: indexText(index), key: encode(key), value });
}
/** Without a key: clears everything. */
export function stateClearedData(index: number, key: string | undefined): string {
  return record({ index: indexText(index), key: key === undefined ? undefined : encode(key) });
}

/** `ctx.patched` returned true: the run follows the new code from here on. */
export function patchMarkedData(id: string): string {
  return record({ id: encode(id) });
}

/** A replay passed another input than the recorded one. */
export function inputChangedData(what: string, given: string | undefined): string {
  return record({ given: given === undefined ? undefined : encode(given), what: encode(what) });
}

export function messageSentData(index: number, destination: string, payload: string | undefined): string {
  return record({ destination: encode(destination), index: indexText(index), payload });
}

export interface OperationFields {
  readonly index: number;
  readonly name: string;
  readonly input: string | undefined;
  readonly attempt: number;
}
function operationParts({ index, input, attempt }: OperationFields): [Part, Part, Part] {
  return [attempt === 0 ? undefined : String(attempt), indexText(index), input];
}
export function operationCompletedData(fields: OperationFields, result: string | undefined, reused?: Part): string {
  const [attempt, index, input] = operationParts(fields);
  // The text of `record`, written out because every step pays for it.
  let text = attempt === undefined ? `{"index":${index}` : `{"attempt":${attempt},"index":${index}`;
  if (input !== undefined) text += `,"input":${input}`;
  text += `,"operationName":${encode(fields.name)}`;
  if (result !== undefined) text += `,"result":${result}`;
  return reused === undefined ? `${text}}` : `${text},"reused":${reused}}`;
}
/** With `delay`, an attempt that will be repeated: milliseconds from the time of the entry. */
export function operationFailedData(fields: OperationFields, error: unknown, delay?: number): string {
  const [attempt, index, input] = operationParts(fields);
  return record({
    attempt,
    delay: delay === undefined ? undefined : String(delay),
    error: errorText(error),
    index,
    input,
    operationName: encode(fields.name),
    stack: stackText(error),
  });
}

/** What `run_attempts` stores of an attempt that failed and is retried. */
export function failureData(error: unknown): string {
  return record({ error: errorText(error), stack: stackText(error) });
}

export function taskCompletedData(attempt: number, result: Part, failures: Part, reused?: Part): string {
  const number = attempt === 0 ? undefined : String(attempt);
  return record({ attempt: number, failures, result, reused });
}
export function taskFailedData(attempt: number, error: unknown, failures: Part): string {
  const [number, text, stack] = [attempt === 0 ? undefined : String(attempt), errorText(error), stackText(error)];
  return record({ attempt: number, error: text, failures, stack });
}

export function taskCancelledData(index: number, reason: string | undefined): string {
  return record({ index: indexText(index), reason: reason === undefined ? undefined : encode(reason) });
}

export function childCompletedData(childExecutionId: string, output: string | undefined): string {
  return record({ childExecutionId: encode(childExecutionId), output });
}
export function childFailedData(childExecutionId: string, error: unknown): string {
  return record({ childExecutionId: encode(childExecutionId), error: errorText(error) });
}

export function childIdTakenData(childExecutionId: string, command = ""): string {
  const advice =
    nodeItemOf(command) === undefined
      ? "Use another id for the child."
      : "Each attempt of a node starts another child. Leave out the id, and each attempt gets its own.";
  return childFailedData(
    childExecutionId,
    new RepriseError("START_CONFLICT", `The id of the child, ${childExecutionId}, belongs to another run. ${advice}`),
  );
}

export function cancelRequestedData(reason: string | undefined): string {
  return record({ reason: reason === undefined ? undefined : encode(reason) });
}

export function runRetriedData(
  { from, commands, step, kept, reopened }: Pick<RetryRecord, "from" | "commands" | "step" | "kept" | "reopened">,
  emitted: ReadonlyMap<string, number>,
): string {
  const shown = emitted.size === 0 ? undefined : encode([...emitted].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const isGraph = step !== undefined;
  return record({
    commands: String(commands),
    emitted: shown,
    from: String(from),
    kept: isGraph ? encode(kept) : undefined,
    // For a workflow, `from` names the entry.
    reopened: isGraph && reopened.length > 0 ? encode(reopened) : undefined,
    step: isGraph ? String(step) : undefined,
  });
}

/** The last entry of a terminated run, whose code did not run to an end. */
export function terminatedData(reason: string | undefined): string {
  return record({ reason: reason === undefined ? undefined : encode(reason), terminated: "true" });
}

/** The end of a run that was canceled before its code started. */
export function notStartedData(reason: string | undefined): string {
  return record({ begun: "false", reason: reason === undefined ? undefined : encode(reason) });
}

export function runCompletedData(output: string | undefined): string {
  return record({ output });
}
export interface FailedFields {
  /** False: the code never started. */
  readonly begun?: false;
  /** The command that failed, and the number of commands when the code received the failure. */
  readonly at?: string | undefined;
  readonly commands?: number | undefined;
  readonly undone?: boolean;
  /** Flows: the number of entries before this one that belong to the failure, and the node to derive from again. */
  readonly entries?: number;
  readonly again?: string | undefined;
}
export function runFailedData(error: unknown, fields: FailedFields = {}): string {
  return record({
    again: fields.again === undefined ? undefined : encode(fields.again),
    at: fields.at === undefined ? undefined : encode(fields.at),
    begun: fields.begun === false ? "false" : undefined,
    commands: fields.commands === undefined ? undefined : String(fields.commands),
    entries: fields.entries === undefined ? undefined : String(fields.entries),
    error: errorText(error),
    stack: stackText(error),
    undone: flag(fields.undone),
  });
}

export function runContinuedData(version: number, given: string | undefined): string {
  return record({ given: given === undefined ? undefined : encode(given), version: String(version) });
}

/** A recorded message as an arrival at the next generation. */
export function arrivalOf<T extends EntryType>(type: T, data: EntryData[T]): Arrival {
  const { id, name, promiseId } = data as { readonly [field in "id" | "name" | "promiseId"]?: string };
  const fields = Object.fromEntries(Object.entries(data).filter(([, value]) => value !== undefined));
  return { type, target: (type === "UpdateRequested" ? id : (name ?? promiseId)) ?? "", data: encode(fields) };
}

/** Code can throw any value; an entry always records an Error. */
export function asError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  const message = typeof thrown === "string" ? thrown : "A value that is not an Error was thrown.";
  return new Error(message, { cause: thrown });
}

const STACK_LIMIT = 4_000;
const MESSAGE_LIMIT = 4_000;

/** The text of any thrown value. Never throws, even if the value is too large or its getters throw. */
export function errorText(thrown: unknown): string {
  try {
    return redactedText(encode(asError(thrown)));
  } catch (reason) {
    const why = reason instanceof RepriseError ? reason.message : "reading it fails";
    return encode(new Error(`${shortMessage(thrown)} (The error itself cannot be recorded: ${withoutSecrets(why)})`));
  }
}

/** Redacts values, not the text: a secret may equal a word of the format. */
function redactedText(text: string): string {
  if (withoutSecrets(text) === text) return text;
  const error = dataWithoutSecrets(decode(text)) as Error;
  const clean = encode(error);
  // A secret in the name of a member remains: record only the message then.
  return withoutSecrets(clean) === clean ? clean : encode(new Error(error.message));
}

function shortMessage(thrown: unknown): string {
  try {
    return withoutSecrets(asError(thrown).message).slice(0, MESSAGE_LIMIT).toWellFormed();
  } catch {
    return "Something was thrown.";
  }
}

function stackText(error: unknown): Part {
  try {
    const stack = userStack(error);
    return stack !== undefined ? encode(withoutSecrets(stack).slice(0, STACK_LIMIT).toWellFormed()) : undefined;
  } catch {
    return undefined;
  }
}

/** The errors of the last failed attempts, as one array. */
export function addFailure(failures: string | undefined, error: unknown): string {
  const earlier = failures === undefined || failures === "[]" ? [] : splitFailures(failures);
  return `[${[...earlier.slice(1 - FAILURES_KEPT), errorText(error)].join(",")}]`;
}
const FAILURES_KEPT = 10;

function splitFailures(failures: string): string[] {
  return (decode(failures) as unknown[]).map((failure) => encode(failure));
}
