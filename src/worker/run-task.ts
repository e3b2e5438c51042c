// Runs one attempt of a claimed task.

import { decode, encode, RepriseError, toMs, type EpochMs, type RetryPolicy } from "../base/index.ts";
import {
  decodeData,
  sentContext,
  type Arrival,
  type Charge,
  type ClaimedItem,
  type ExecutionFacts,
  type FailedExecution,
  type OpenSpan,
  type Policy,
  type PureStep,
  type TaskBody,
  type TaskCost,
  type TaskScheduledData,
  type Telemetry,
} from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import { Attempt } from "./attempt.ts";
import { answerOf, factsWithMemo } from "./memos.ts";
import { ItemReturned } from "./remote-tasks.ts";
import { retryOrFail } from "./retry-or-fail.ts";
import type { RunningItem } from "./running-item.ts";
import { Spending } from "./spender.ts";

export interface NextAttempt {
  readonly availableAt: EpochMs;
  readonly attempt: number;
  readonly failures?: string;
  readonly failed?: FailedExecution;
}

/** Delay before an item whose payload key is missing is claimed again: another worker, or a restarted one, may have the key. */
const KEY_PAUSE_MS = 1_000;

/** The call's policy overrides the task's, except `retryable`: a function cannot be journaled, so only the task has it. */
function policyOf(body: TaskBody, scheduled: TaskScheduledData): Policy {
  const { retryable } = body.policy.retry ?? {};
  const retry =
    scheduled.retry === undefined ? body.policy.retry : { ...scheduled.retry, ...(retryable && { retryable }) };
  const timeout = scheduled.timeout ?? body.policy.timeout;
  return { ...(retry && { retry }), ...(timeout !== undefined && { timeout }) };
}

/** Undefined when the attempt did not start: its entry cannot be read. */
export function runTask(running: RunningItem, body: TaskBody): Attempt | undefined {
  const { parts, item } = running;
  const { telemetry, remote } = parts.options;
  let scheduled: TaskScheduledData;
  try {
    scheduled = decodeData("TaskScheduled", item.data);
    // Copied as text into the next entry, so checked here.
    if (item.failures !== undefined) decode(item.failures);
  } catch (damage) {
    running.onSettled();
    if (damage instanceof RepriseError && damage.code === "PAYLOAD_KEY_MISSING") {
      parts.log.report(damage);
      running.onRetry({ availableAt: parts.now() + KEY_PAUSE_MS, attempt: item.attempt });
    }
    // The failure wakes the run. Its replay finds the damaged journal and stops the run.
    else running.onEnded(failedArrival(item, undefined, damage));
    return undefined;
  }
  const policy = policyOf(body, scheduled);
  const timeoutMs = policy.timeout === undefined ? undefined : toMs(policy.timeout);
  const startedAt = parts.now();
  const span = telemetry && taskSpan(running, telemetry, scheduled);
  const context = new Attempt({
    span,
    runId: item.runId,
    generation: item.generation,
    step: item.item,
    epoch: scheduled.life ?? 0,
    name: item.name,
    definition: item.definition,
    kind: "task",
    now: parts.now,
    attempt: item.attempt,
    execution: item.execution,
    // remote-tasks.R1
    timeoutMs: remote === undefined ? timeoutMs : undefined,
    timers: parts.timers,
    turn: parts.pump.turn,
    logger: parts.logger,
  });
  const spending = itemSpending(running, `Task ${item.name}`, body.cost);
  context.start(
    () => callTask(running, body, scheduled, context, timeoutMs, spending),
    {
      settled: () => running.onSettled(),
      completed: (value) =>
        complete(running, value, factsOf(running, startedAt, span, spending?.chargeOf(answerOf(value).value))),
      failed: (error) => fail(running, policy.retry, error, startedAt, span, spending?.chargeOfFailure(error)),
    },
    body.pure !== undefined || spending !== undefined,
  );
  return context;
}

function taskSpan(
  { parts, item }: RunningItem,
  telemetry: Telemetry,
  { trace }: TaskScheduledData,
): OpenSpan | undefined {
  const { runId: run, definition, generation, name, item: command, execution, slot } = item;
  return telemetry.begin({
    ...{ kind: "task", name, run, definition, generation, command, execution, now: parts.now },
    attempt: item.attempt + 1,
    queue: slot?.queue,
    parent: trace,
    link: trace && sentContext(trace),
  });
}

/** The function is not called if the task is pure and its result is known. */
function callTask(
  { parts, item }: RunningItem,
  { run, pure, label }: TaskBody,
  { input, life: epoch = 0 }: TaskScheduledData,
  context: Attempt,
  timeoutMs: number | undefined,
  spending: Spending | undefined,
): unknown {
  const { remote } = parts.options;
  const inputText = (): string | undefined => (input === undefined ? undefined : encode(input));
  const execute = (): unknown =>
    remote === undefined
      ? run(context, input)
      : remote.execute({ item, label, input: inputText(), epoch, timeoutMs, context });
  const call = spending === undefined ? execute : () => spending.call(context, input, execute, pure === undefined);
  if (pure === undefined) return call();
  const step = (): PureStep => ({ kind: "task", name: item.name, pure, input: inputText() });
  return parts.memos.recall(step, context, call);
}

/** Undefined: the item costs nothing, or its run has no budget. */
export function itemSpending(running: RunningItem, name: string, cost: TaskCost | undefined): Spending | undefined {
  const { run, runId, definition, budget, token, item: command, execution, slot } = running.item;
  if (cost === undefined || budget === undefined) return undefined;
  const place = { run, runId, definition, budget, token, command, execution, item: { slot } };
  return new Spending(running.parts, { ...place, name, cost, onWaiting: () => running.onWaiting() });
}

/** The facts of an execution that ends now. */
export function factsOf(
  { parts, item: { execution } }: RunningItem,
  startedAt: EpochMs,
  span: OpenSpan | undefined,
  charge: Charge | undefined,
): ExecutionFacts {
  const tookMs = Math.max(0, parts.now() - startedAt);
  return { execution, worker: parts.options.name, startedAt, tookMs, span, ...(charge && { charge }) };
}

function complete(running: RunningItem, value: unknown, ran: ExecutionFacts): void {
  const { item, parts } = running;
  const answer = answerOf(value);
  let result = answer.text;
  try {
    if (answer.reused === undefined)
      result = entryData.encodeNamed(`The result of task ${item.name}`, answer.value, parts.limits);
  } catch (notData) {
    return end(running, notData, ran);
  }
  const reused = answer.reused && encode(answer.reused);
  const data = entryData.taskCompletedData(item.attempt, result, item.failures, reused);
  const facts = factsWithMemo(ran, answer, result, parts.memos.runtime, item.seq);
  running.onEnded({ type: "TaskCompleted", target: item.item, data, ran: facts });
}

function end(running: RunningItem, error: unknown, ran: ExecutionFacts): void {
  ran.span?.finish({ error });
  running.onEnded(failedArrival(running.item, running.item.failures, error, ran));
}

function failedArrival(
  { attempt, item }: ClaimedItem,
  failures: string | undefined,
  error: unknown,
  ran?: ExecutionFacts,
): Arrival {
  return { type: "TaskFailed", target: item, data: entryData.taskFailedData(attempt, error, failures), ran };
}

function fail(
  running: RunningItem,
  retry: RetryPolicy | undefined,
  error: unknown,
  startedAt: EpochMs,
  span: OpenSpan | undefined,
  charge: Charge | undefined,
): void {
  const { item, parts } = running;
  // remote-tasks.R2
  if (error instanceof ItemReturned)
    return running.onRetry({ availableAt: parts.now() + error.delayMs, attempt: item.attempt });
  const decision = retryOrFail({ ...item, step: item.item }, retry, error);
  if (!decision.retry) return end(running, decision.error, factsOf(running, startedAt, span, charge));
  running.onRetry(nextAttempt(running, decision.delayMs, error, startedAt, span, charge));
}

/** The attempt after one that failed. */
export function nextAttempt(
  { parts, item }: RunningItem,
  delayMs: number,
  error: unknown,
  startedAt: EpochMs,
  span: OpenSpan | undefined,
  charge: Charge | undefined,
): NextAttempt {
  const { attempt, execution, failures } = item;
  const failed = {
    attempt,
    execution,
    worker: parts.options.name,
    startedAt,
    data: entryData.failureData(error),
    span,
  };
  return {
    availableAt: parts.now() + delayMs,
    attempt: attempt + 1,
    failures: entryData.addFailure(failures, error),
    failed: charge === undefined ? failed : { ...failed, charge },
  };
}
