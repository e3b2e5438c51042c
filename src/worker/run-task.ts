// Runs one attempt of a claimed task.

import {
  decode,
  RepriseError,
  toMs,
  type EpochMs,
  type PayloadLimits,
  type RetryPolicy,
  type Timers,
} from "../base/index.ts";
import {
  decodeData,
  type Arrival,
  type ClaimedItem,
  type Logger,
  type Policy,
  type TaskBody,
  type TaskScheduledData,
} from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import { Attempt } from "./attempt.ts";
import { retryOrFail } from "./retry-or-fail.ts";

export interface TaskHost {
  readonly limits: PayloadLimits | undefined;
  readonly timers: Timers;
  now(): EpochMs;
  readonly logger: (runId: string, step: string) => Logger;
  /** The attempt has settled; its slot is free. */
  onSettled(item: ClaimedItem): void;
  report(error: unknown): void;
  /** The item has its terminal entry. */
  onEnded(item: ClaimedItem, arrival: Arrival): void;
  /** The worker releases the item; any worker runs the next attempt. */
  onRetry(item: ClaimedItem, next: NextAttempt): void;
}

export interface NextAttempt {
  readonly availableAt: EpochMs;
  readonly attempt: number;
  readonly failures?: string;
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
  const context = new Attempt({
    runId: item.runId,
    generation: item.generation,
    step: item.item,
    epoch: scheduled.life ?? 0,
    name: item.name,
    attempt: item.attempt,
    timeoutMs: policy.timeout === undefined ? undefined : toMs(policy.timeout),
    timers: host.timers,
    logger: host.logger,
  });
  context.start(() => body.run(context, scheduled.input), {
    settled: () => host.onSettled(item),
    completed: (value) => complete(host, item, value),
    failed: (error) => fail(host, policy.retry, item, error),
  });
  return context;
}

function complete(host: TaskHost, item: ClaimedItem, value: unknown): void {
  let result: string | undefined;
  try {
    result = entryData.encodeNamed(`The result of task ${item.name}`, value, host.limits);
  } catch (notData) {
    return end(host, item, notData);
  }
  const data = entryData.taskCompletedData(item.attempt, result, item.failures);
  host.onEnded(item, { type: "TaskCompleted", target: item.item, data });
}

function end(host: TaskHost, item: ClaimedItem, error: unknown): void {
  const data = entryData.taskFailedData(item.attempt, error, item.failures);
  host.onEnded(item, { type: "TaskFailed", target: item.item, data });
}

function fail(host: TaskHost, retry: RetryPolicy | undefined, item: ClaimedItem, error: unknown): void {
  const decision = retryOrFail({ ...item, step: item.item }, retry, error);
  if (!decision.retry) return end(host, item, decision.error);
  host.onRetry(item, {
    availableAt: host.now() + decision.delayMs,
    attempt: item.attempt + 1,
    failures: entryData.addFailure(item.failures, error),
  });
}
