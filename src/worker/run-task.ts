// Runs one attempt of a claimed task.

import {
  decode,
  encode,
  RepriseError,
  toMs,
  type EpochMs,
  type PayloadLimits,
  type RetryPolicy,
  type Timers,
} from "../base/index.ts";
import {
  decodeData,
  sentContext,
  type Arrival,
  type Charge,
  type ClaimedItem,
  type ExecutionFacts,
  type FailedExecution,
  type Logger,
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
import { answerOf, factsWithMemo, type Memos } from "./memos.ts";
import { ItemReturned, type RemoteTasks } from "./remote-tasks.ts";
import { retryOrFail } from "./retry-or-fail.ts";
import { Spending, type SpendingHost } from "./spender.ts";

export interface TaskHost {
  readonly limits: PayloadLimits | undefined;
  readonly timers: Timers;
  readonly workerName: string;
  readonly memos: Memos;
  readonly spending: SpendingHost;
  /** Set: the function is called at another site. */
  readonly remote?: RemoteTasks | undefined;
  readonly telemetry?: Telemetry | undefined;
  now(): EpochMs;
  readonly logger: (runId: string, step: string) => Required<Logger>;
  /** The attempt has settled; its slot is free. */
  onSettled(item: ClaimedItem): void;
  report(error: unknown): void;
  /** The item has its terminal entry. */
  onEnded(item: ClaimedItem, arrival: Arrival): void;
  /** The item waits for its budget: the store has released it. */
  onWaiting(item: ClaimedItem): void;
  /** The worker releases the item; any worker runs the next attempt. */
  onRetry(item: ClaimedItem, next: NextAttempt): void;
}

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
export function runTask(host: TaskHost, body: TaskBody, item: ClaimedItem): Attempt | undefined {
  let scheduled: TaskScheduledData;
  try {
    scheduled = decodeData("TaskScheduled", item.data);
    // Copied as text into the next entry, so checked here.
    if (item.failures !== undefined) decode(item.failures);
  } catch (damage) {
    if (damage instanceof RepriseError && damage.code === "PAYLOAD_KEY_MISSING") {
      host.onSettled(item);
      host.report(damage);
      host.onRetry(item, { availableAt: host.now() + KEY_PAUSE_MS, attempt: item.attempt });
      return undefined;
    }
    // The failure wakes the run. Its replay finds the damaged journal and stops the run.
    host.onSettled(item);
    end(host, { ...item, failures: undefined }, damage);
    return undefined;
  }
  const policy = policyOf(body, scheduled);
  const timeoutMs = policy.timeout === undefined ? undefined : toMs(policy.timeout);
  const startedAt = host.now();
  const span = host.telemetry && taskSpan(host, host.telemetry, item, scheduled);
  const context = new Attempt({
    span,
    runId: item.runId,
    generation: item.generation,
    step: item.item,
    epoch: scheduled.life ?? 0,
    name: item.name,
    definition: item.definition,
    kind: "task",
    now: () => host.now(),
    attempt: item.attempt,
    execution: item.execution,
    // remote-tasks.R1
    timeoutMs: host.remote === undefined ? timeoutMs : undefined,
    timers: host.timers,
    logger: host.logger,
  });
  const spending = itemSpending(host, item, `Task ${item.name}`, body.cost);
  context.start(
    () => callTask(host, body, item, scheduled, context, timeoutMs, spending),
    {
      settled: () => host.onSettled(item),
      completed: (value) =>
        complete(host, item, value, factsOf(host, item, startedAt, span, spending?.chargeOf(answerOf(value).value))),
      failed: (error) => fail(host, policy.retry, item, error, startedAt, span, spending?.chargeOfFailure(error)),
    },
    body.pure !== undefined || spending !== undefined,
  );
  return context;
}

function taskSpan(
  host: TaskHost,
  telemetry: Telemetry,
  item: ClaimedItem,
  { trace }: TaskScheduledData,
): OpenSpan | undefined {
  const { runId: run, definition, generation, name, item: command, execution, slot } = item;
  return telemetry.begin({
    ...{ kind: "task", name, run, definition, generation, command, execution, now: () => host.now() },
    attempt: item.attempt + 1,
    queue: slot?.queue,
    parent: trace,
    link: trace && sentContext(trace),
  });
}

/** The function is not called if the task is pure and its result is known. */
function callTask(
  { memos, remote }: TaskHost,
  { run, pure, label }: TaskBody,
  item: ClaimedItem,
  { input, life: epoch = 0 }: TaskScheduledData,
  context: Attempt,
  timeoutMs: number | undefined,
  spending: Spending | undefined,
): unknown {
  const inputText = (): string | undefined => (input === undefined ? undefined : encode(input));
  const execute = (): unknown =>
    remote === undefined
      ? run(context, input)
      : remote.execute({ item, label, input: inputText(), epoch, timeoutMs, context });
  const call = spending === undefined ? execute : () => spending.call(context, input, execute, pure === undefined);
  if (pure === undefined) return call();
  const step = (): PureStep => ({ kind: "task", name: item.name, pure, input: inputText() });
  return memos.recall(step, context, call);
}

/** Undefined: the item costs nothing, or its run has no budget. */
export function itemSpending(
  host: TaskHost,
  item: ClaimedItem,
  name: string,
  cost: TaskCost | undefined,
): Spending | undefined {
  const { run, runId, definition, budget, token, item: command, execution, slot } = item;
  if (cost === undefined || budget === undefined) return undefined;
  const place = { run, runId, definition, budget, token, command, execution, item: { slot } };
  return new Spending(host.spending, { ...place, name, cost, onWaiting: () => host.onWaiting(item) });
}

/** The facts of an execution that ends now. */
export function factsOf(
  host: TaskHost,
  { execution }: ClaimedItem,
  startedAt: EpochMs,
  span: OpenSpan | undefined,
  charge: Charge | undefined,
): ExecutionFacts {
  const tookMs = Math.max(0, host.now() - startedAt);
  return { execution, worker: host.workerName, startedAt, tookMs, span, ...(charge && { charge }) };
}

function complete(host: TaskHost, item: ClaimedItem, value: unknown, ran: ExecutionFacts): void {
  const answer = answerOf(value);
  let result = answer.text;
  try {
    if (answer.reused === undefined)
      result = entryData.encodeNamed(`The result of task ${item.name}`, answer.value, host.limits);
  } catch (notData) {
    return end(host, item, notData, ran);
  }
  const reused = answer.reused && encode(answer.reused);
  const data = entryData.taskCompletedData(item.attempt, result, item.failures, reused);
  const facts = factsWithMemo(ran, answer, result, host.memos.runtime, item.seq);
  host.onEnded(item, { type: "TaskCompleted", target: item.item, data, ran: facts });
}

function end(host: TaskHost, item: ClaimedItem, error: unknown, ran?: ExecutionFacts): void {
  ran?.span?.finish({ error });
  const data = entryData.taskFailedData(item.attempt, error, item.failures);
  host.onEnded(item, { type: "TaskFailed", target: item.item, data, ran });
}

function fail(
  host: TaskHost,
  retry: RetryPolicy | undefined,
  item: ClaimedItem,
  error: unknown,
  startedAt: EpochMs,
  span: OpenSpan | undefined,
  charge: Charge | undefined,
): void {
  // remote-tasks.R2
  if (error instanceof ItemReturned)
    return host.onRetry(item, { availableAt: host.now() + error.delayMs, attempt: item.attempt });
  const decision = retryOrFail({ ...item, step: item.item }, retry, error);
  if (!decision.retry) return end(host, item, decision.error, factsOf(host, item, startedAt, span, charge));
  host.onRetry(item, nextAttempt(host, item, decision.delayMs, error, startedAt, span, charge));
}

/** The attempt after one that failed. */
export function nextAttempt(
  host: TaskHost,
  { attempt, execution, failures }: ClaimedItem,
  delayMs: number,
  error: unknown,
  startedAt: EpochMs,
  span: OpenSpan | undefined,
  charge: Charge | undefined,
): NextAttempt {
  const failed = { attempt, execution, worker: host.workerName, startedAt, data: entryData.failureData(error), span };
  return {
    availableAt: host.now() + delayMs,
    attempt: attempt + 1,
    failures: entryData.addFailure(failures, error),
    failed: charge === undefined ? failed : { ...failed, charge },
  };
}
