// Tasks: items of the queue, run by whichever worker claimed them.

import {
  decode,
  RepriseError,
  toMs,
  type EpochMs,
  type PayloadLimits,
  type RetryPolicy,
  type Timers,
} from "../base/index.ts";
import { type Arrival, type ClaimedItem, type Logger, type Policy, type TaskBody } from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import { Attempt } from "./attempt.ts";
import { judgeFailure } from "./judge-failure.ts";

export interface TaskHost {
  readonly limits: PayloadLimits | undefined;
  readonly timers: Timers;
  now(): EpochMs;
  readonly logger: (runId: string, step: string) => Logger;
  /** The attempt is over, whatever came of it; its slot is free. */
  taskOver(item: ClaimedItem): void;
  report(error: unknown): void;
  /** The item has its terminal entry. */
  taskEnded(item: ClaimedItem, arrival: Arrival): void;
  /** The item goes back and waits for its next attempt. */
  taskFailed(item: ClaimedItem, next: NextAttempt): void;
}

export interface NextAttempt {
  readonly availableAt: EpochMs;
  readonly attempt: number;
  readonly failures?: string;
}

/** How long an item waits that this worker has no key for: another one may have it, or this one after a restart. */
const KEY_PAUSE_MS = 1_000;

interface Scheduled {
  readonly input?: unknown;
  readonly retry?: RetryPolicy;
  readonly timeout?: number;
  readonly life?: number;
}

/** What the call says goes before what the task says; `retryable` is a function and only the task can have it. */
function policyOf(body: TaskBody, scheduled: Scheduled): Policy {
  const { retryable } = body.policy.retry ?? {};
  const retry =
    scheduled.retry === undefined ? body.policy.retry : { ...scheduled.retry, ...(retryable && { retryable }) };
  const timeout = scheduled.timeout ?? body.policy.timeout;
  return { ...(retry && { retry }), ...(timeout !== undefined && { timeout }) };
}

/** Starts one attempt of a claimed item; undefined when its entry is damaged. */
export function runTask(host: TaskHost, body: TaskBody, item: ClaimedItem): Attempt | undefined {
  let scheduled: Scheduled;
  try {
    scheduled = decode(item.data) as Scheduled;
    // Handed on as text: looked at before it stands in an entry.
    if (item.failures !== undefined) decode(item.failures);
  } catch (damage) {
    if (damage instanceof RepriseError && damage.code === "PAYLOAD_KEY_MISSING") {
      host.taskOver(item);
      host.report(damage);
      host.taskFailed(item, { availableAt: host.now() + KEY_PAUSE_MS, attempt: item.attempt });
      return undefined;
    }
    // Its failure wakes the run, whose journal then is looked at as a whole: it is stopped, and nothing else is.
    host.taskOver(item);
    end(host, { ...item, failures: undefined }, damage);
    return undefined;
  }
  const policy = policyOf(body, scheduled);
  const context = new Attempt({
    runId: item.runId,
    generation: item.generation,
    step: item.item,
    life: scheduled.life ?? 0,
    name: item.name,
    attempt: item.attempt,
    timeoutMs: policy.timeout === undefined ? undefined : toMs(policy.timeout),
    timers: host.timers,
    logger: host.logger,
  });
  context.start(() => body.run(context, scheduled.input), {
    over: () => host.taskOver(item),
    done: (value) => complete(host, item, value),
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
  host.taskEnded(item, { type: "TaskCompleted", target: item.item, data });
}

function end(host: TaskHost, item: ClaimedItem, error: unknown): void {
  const data = entryData.taskFailedData(item.attempt, error, item.failures);
  host.taskEnded(item, { type: "TaskFailed", target: item.item, data });
}

function fail(host: TaskHost, retry: RetryPolicy | undefined, item: ClaimedItem, error: unknown): void {
  const decision = judgeFailure({ ...item, step: item.item }, retry, error);
  if (!decision.retry) return end(host, item, decision.error);
  host.taskFailed(item, {
    availableAt: host.now() + decision.delayMs,
    attempt: item.attempt + 1,
    failures: entryData.addFailure(item.failures, error),
  });
}
