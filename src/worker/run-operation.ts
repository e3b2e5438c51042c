// Runs operations (`ctx.run`) and nodes of graphs. The worker that holds the run calls the function; the journal gets one entry
// when the call has ended.

import { decode, toMs, type EpochMs, type Timers } from "../base/index.ts";
import { decodeData, type Logger } from "../kernel/index.ts";
import { entryData, type OperationRequest } from "../workflow/index.ts";
import { Attempt } from "./attempt.ts";
import type { HotRun } from "./hot-run.ts";
import { retryOrFail } from "./retry-or-fail.ts";
import type { ExecutionSlots } from "./execution-slots.ts";

export interface OperationHost {
  readonly timers: Timers;
  readonly slots: ExecutionSlots;
  /** Counts the running nodes of graphs, without those that wait. */
  readonly nodeSlots: ExecutionSlots;
  readonly now: () => EpochMs;
  /** False while the worker drains: the next holder runs the operations that have not started. */
  mayStart(): boolean;
  readonly logger: (runId: string, step: string) => Logger;
}

/** Runs an operation until it ends, with its retries. */
export function runOperation(host: OperationHost, run: HotRun, request: OperationRequest): void {
  const waitMs = request.dueAt === undefined ? 0 : request.dueAt - host.now();
  if (waitMs > 0) host.timers.set(waitMs, () => attemptOperation(host, run, request, request.attempt), { ref: false });
  else attemptOperation(host, run, request, request.attempt);
}

function attemptOperation(host: OperationHost, run: HotRun, request: OperationRequest, attempt: number): void {
  if (!run.acceptsResults) return;
  if (request.database !== undefined) return run.enqueueTransaction({ request, attempt });
  // A node takes no slot: it may wait for days, and its own operations need slots. The graph limits its nodes.
  if (request.isNode === true) return startOperation(host, run, request, attempt, nothing);
  host.slots.whenFree(() => startOperation(host, run, request, attempt, () => host.slots.release()));
}

function startOperation(
  host: OperationHost,
  run: HotRun,
  request: OperationRequest,
  attempt: number,
  giveBack: () => void,
): void {
  const { id: runId, generation } = run.record;
  const { timeout } = request.policy;
  const context = new Attempt({
    runId,
    generation,
    step: request.command,
    epoch: request.epoch,
    name: request.name,
    attempt,
    timeoutMs: timeout === undefined ? undefined : toMs(timeout),
    timers: host.timers,
    logger: host.logger,
    streams: run,
    node: request.isNode === true ? { slots: host.nodeSlots, now: host.now } : undefined,
  });
  if (!host.mayStart() || !run.startOperation(request, context)) return giveBack();
  const fields = { index: request.index, name: request.name, input: request.input, attempt, startedAt: host.now() };
  context.start(() => request.call(context, request.input === undefined ? undefined : decode(request.input)), {
    settled: giveBack,
    completed: (value) => complete(run, request, fields, value),
    failed: (error) =>
      context.stoppedBy === undefined
        ? failOperation(host, run, request, fields, error)
        : // rules.G12. An aborted node is not retried, and its error is not the reason the run fails.
          end(run, request, fields, context.stoppedBy),
  });
}

const nothing = (): void => {};

interface Fields extends entryData.OperationFields {
  readonly startedAt: EpochMs | undefined;
}

function complete(run: HotRun, request: OperationRequest, fields: Fields, value: unknown): void {
  let result: string | undefined;
  try {
    result = entryData.encodeNamed(
      `The result of ${request.isNode === true ? "node" : "operation"} ${request.name}`,
      value,
      run.execution.limits,
    );
  } catch (notData) {
    return end(run, request, fields, notData);
  }
  // The code receives the decoded stored value, as it does in a replay.
  const decoded = result === undefined ? undefined : decode(result);
  const type = request.isNode === true ? "NodeCompleted" : "OperationCompleted";
  const text = entryData.operationCompletedData(fields, result);
  run.endOperation(request, type, text, { result: decoded }, fields.startedAt);
}

function end(run: HotRun, request: OperationRequest, fields: Fields, error: unknown): void {
  const text = entryData.operationFailedData(fields, error);
  const type = request.isNode === true ? "NodeFailed" : "OperationFailed";
  run.endOperation(request, type, text, decodeData(type, text), fields.startedAt);
}

/** Records a failed attempt: a retry, or the end of the operation. */
export function failOperation(
  host: OperationHost,
  run: HotRun,
  request: OperationRequest,
  fields: Fields,
  error: unknown,
): void {
  if (run.defer(() => failOperation(host, run, request, fields, error))) return;
  const { id: runId, generation } = run.record;
  const failed = { runId, generation, step: request.command, name: request.name, attempt: fields.attempt };
  const decision = retryOrFail(failed, request.policy.retry, error);
  if (!decision.retry) return end(run, request, fields, decision.error);
  const text = entryData.operationFailedData(fields, error, decision.delayMs);
  const dueAt = run.retryOperation(request, text, decision.delayMs, fields.startedAt);
  if (dueAt === undefined) return;
  // Not referenced: a long delay must not keep the process of a closed engine alive.
  const again = (): void => attemptOperation(host, run, request, fields.attempt + 1);
  host.timers.set(Math.max(0, dueAt - host.now()), again, { ref: false });
}
