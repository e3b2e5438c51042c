// Operations: `ctx.run`. Called here, by the holder of the run; the journal gets one entry when the call has ended.

import { decode, toMs, type EpochMs, type Timers } from "../base/index.ts";
import { type Logger } from "../kernel/index.ts";
import { entryData, type OperationAsk } from "../workflow/index.ts";
import { Attempt } from "./attempt.ts";
import type { HotRun } from "./hot-run.ts";
import { judgeFailure } from "./judge-failure.ts";
import type { Slots } from "./slots.ts";

export interface OperationHost {
  readonly timers: Timers;
  readonly slots: Slots;
  /** Nodes of graphs that are at work and do not wait. */
  readonly nodeSlots: Slots;
  readonly now: () => EpochMs;
  /** False while the worker drains: what waits in line, or for its next try, is left to the next holder. */
  mayStart(): boolean;
  readonly logger: (runId: string, step: string) => Logger;
}

/** Runs an operation to its end, attempts and pauses included. */
export function runOperation(host: OperationHost, run: HotRun, ask: OperationAsk): void {
  const waitMs = ask.dueAt === undefined ? 0 : ask.dueAt - host.now();
  if (waitMs > 0) host.timers.set(waitMs, () => attemptOperation(host, run, ask, ask.attempt), { ref: false });
  else attemptOperation(host, run, ask, ask.attempt);
}

function attemptOperation(host: OperationHost, run: HotRun, ask: OperationAsk, attempt: number): void {
  if (!run.accepts) return;
  if (ask.database !== undefined) return run.addTransaction({ ask, attempt });
  // A node may wait for days, and its code asks for operations: it takes no slot of theirs, its graph says how many run at once.
  if (ask.isNode === true) return startOperation(host, run, ask, attempt, nothing);
  host.slots.whenFree(() => startOperation(host, run, ask, attempt, () => host.slots.give()));
}

function startOperation(
  host: OperationHost,
  run: HotRun,
  ask: OperationAsk,
  attempt: number,
  giveBack: () => void,
): void {
  const { id: runId, generation } = run.record;
  const { timeout } = ask.policy;
  const context = new Attempt({
    runId,
    generation,
    step: ask.command,
    life: ask.life,
    name: ask.name,
    attempt,
    timeoutMs: timeout === undefined ? undefined : toMs(timeout),
    timers: host.timers,
    logger: host.logger,
    streams: run,
    node: ask.isNode === true ? { slots: host.nodeSlots, now: host.now } : undefined,
  });
  if (!host.mayStart() || !run.operationStarted(ask, context)) return giveBack();
  const fields = { index: ask.index, name: ask.name, input: ask.input, attempt, startedAt: host.now() };
  context.start(() => ask.call(context, ask.input === undefined ? undefined : decode(ask.input)), {
    over: giveBack,
    done: (value) => complete(run, ask, fields, value),
    failed: (error) =>
      context.stoppedBy === undefined
        ? failOperation(host, run, ask, fields, error)
        : // G12. Whatever it says, it was told to stop: nobody repeats it, and it is not what the run fails of.
          end(run, ask, fields, context.stoppedBy),
  });
}

const nothing = (): void => {};

interface Fields extends entryData.OperationFields {
  readonly startedAt: EpochMs | undefined;
}

function complete(run: HotRun, ask: OperationAsk, fields: Fields, value: unknown): void {
  let result: string | undefined;
  try {
    result = entryData.encodeNamed(
      `The result of ${ask.isNode === true ? "node" : "operation"} ${ask.name}`,
      value,
      run.execution.limits,
    );
  } catch (notData) {
    return end(run, ask, fields, notData);
  }
  // The code gets what a replay will read, not what the function returned.
  const decoded = result === undefined ? undefined : decode(result);
  const type = ask.isNode === true ? "NodeCompleted" : "OperationCompleted";
  const text = entryData.operationCompletedData(fields, result);
  run.operationEnded(ask, type, text, { result: decoded }, fields.startedAt);
}

function end(run: HotRun, ask: OperationAsk, fields: Fields, error: unknown): void {
  const text = entryData.operationFailedData(fields, error);
  const type = ask.isNode === true ? "NodeFailed" : "OperationFailed";
  run.operationEnded(ask, type, text, decode(text) as Record<string, unknown>, fields.startedAt);
}

/** Records the failure of an attempt, or its end. */
export function failOperation(
  host: OperationHost,
  run: HotRun,
  ask: OperationAsk,
  fields: Fields,
  error: unknown,
): void {
  if (run.postpone(() => failOperation(host, run, ask, fields, error))) return;
  const { id: runId, generation } = run.record;
  const failed = { runId, generation, step: ask.command, name: ask.name, attempt: fields.attempt };
  const decision = judgeFailure(failed, ask.policy.retry, error);
  if (!decision.retry) return end(run, ask, fields, decision.error);
  const text = entryData.operationFailedData(fields, error, decision.delayMs);
  const dueAt = run.operationRetried(ask, text, decision.delayMs, fields.startedAt);
  if (dueAt === undefined) return;
  // A pause may be long: a process whose engine was closed must not stay for it.
  const again = (): void => attemptOperation(host, run, ask, fields.attempt + 1);
  host.timers.set(Math.max(0, dueAt - host.now()), again, { ref: false });
}
