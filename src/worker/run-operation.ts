// Runs operations (`ctx.run`) and nodes of graphs. The worker that holds the run calls the function; the journal gets one entry
// when the call has ended.

import { decode, encode, toMs, type EpochMs } from "../base/index.ts";
import { decodeData, stepTraceOf, type Charge, type OpenSpan, type PureStep } from "../kernel/index.ts";
import { entryData, type OperationRequest } from "../workflow/index.ts";
import { Attempt } from "./attempt.ts";
import { answerOf, factsWithMemo } from "./memos.ts";
import type { HotRun } from "./hot-run.ts";
import type { EndedExecution } from "./journal-writer.ts";
import type { PartsOf } from "./worker-parts.ts";
import { retryOrFail } from "./retry-or-fail.ts";
import { Spending } from "./spender.ts";

export type OperationParts = PartsOf<
  | "budgetOffers"
  | "drain"
  | "log"
  | "logger"
  | "memos"
  | "nodeSlots"
  | "now"
  | "options"
  | "pump"
  | "runs"
  | "slots"
  | "store"
  | "timers"
>;

/** The request with the function of a test instead of its own. Its results are not remembered, and it is always called. */
function withStub({ options }: OperationParts, request: OperationRequest): OperationRequest {
  const stub = request.isNode === true ? undefined : options.stubOperation?.(request.name);
  return stub === undefined ? request : { ...request, pure: undefined, call: (_op, input) => stub(input) };
}

/** Runs an operation until it ends, with its retries. */
export function runOperation(parts: OperationParts, run: HotRun, requested: OperationRequest): void {
  const request = withStub(parts, requested);
  const { dueAt, attempt } = request;
  const waitMs = dueAt === undefined ? 0 : dueAt - parts.now();
  if (waitMs > 0) parts.timers.set(waitMs, () => attemptOperation(parts, run, request, attempt), { ref: false });
  else attemptOperation(parts, run, request, attempt);
}

function attemptOperation(parts: OperationParts, run: HotRun, request: OperationRequest, attempt: number): void {
  if (!run.acceptsResults) return;
  if (request.database !== undefined) return run.enqueueTransaction({ request, attempt });
  // A node takes no slot: it may wait for days, and its own operations need slots. The graph limits its nodes.
  if (request.isNode === true) return startOperation(parts, run, request, attempt, nothing);
  parts.slots.whenFree(() => startOperation(parts, run, request, attempt, () => parts.slots.release()));
}

function startOperation(
  parts: OperationParts,
  run: HotRun,
  request: OperationRequest,
  attempt: number,
  giveBack: () => void,
): void {
  const { id: runId, generation } = run.record;
  const { timeout } = request.policy;
  const traced = stepTraceOf(request.policy);
  const span = run.journal.begin(
    request.isNode === true ? "node" : (traced?.kind ?? "run"),
    traced?.name ?? request.name,
    {
      command: request.command,
      attempt: attempt + 1,
      execution: executionOf(request, attempt),
      attributes: traced?.attributes,
    },
  );
  if (traced?.content !== undefined) span?.annotate({}, traced.content);
  const context = new Attempt({
    span,
    runId,
    generation,
    step: request.command,
    epoch: request.epoch,
    name: request.name,
    definition: run.record.definition,
    kind: request.isNode === true ? "node" : "operation",
    now: parts.now,
    attempt,
    execution: executionOf(request, attempt),
    timeoutMs: timeout === undefined ? undefined : toMs(timeout),
    timers: parts.timers,
    turn: parts.pump.turn,
    logger: parts.logger,
    streams: run,
    node: request.isNode === true ? { slots: parts.nodeSlots } : undefined,
  });
  if (parts.drain.isDraining || !run.startOperation(request, context)) return giveBack();
  const fields = operationFields(request, attempt, parts.now(), span);
  const spending = spendingOf(parts, run, request, attempt);
  const inputOf = (): unknown => (request.input === undefined ? undefined : decode(request.input));
  const execute = (): unknown => request.call(context, inputOf());
  const isPure = request.pure !== undefined;
  const call = spending === undefined ? execute : () => spending.call(context, undefined, execute, !isPure);
  context.start(
    request.pure === undefined ? call : () => recall(parts, run, request, request.pure!, context, call),
    {
      settled: giveBack,
      completed: (value) =>
        complete(parts, run, request, charged(fields, spending?.chargeOf(answerOf(value).value)), value),
      failed: (error) =>
        context.stoppedBy === undefined
          ? failOperation(parts, run, request, charged(fields, spending?.chargeOfFailure(error)), error)
          : // rules.G12. An aborted node is not retried, and its error is not the reason the run fails.
            end(run, request, fields, context.stoppedBy),
    },
    isPure || spending !== undefined,
  );
}

const nothing = (): void => {};

/** Undefined: the call costs nothing, or its run has no budget. */
function spendingOf(
  parts: OperationParts,
  run: HotRun,
  request: OperationRequest,
  attempt: number,
): Spending | undefined {
  const { cost, command } = request;
  const { run: number, id: runId, definition, budget } = run.record;
  if (cost === undefined || budget === undefined || run.token === undefined) return undefined;
  return new Spending(parts, {
    ...{ run: number, runId, definition, budget, token: run.token, command, cost },
    name: `Operation ${request.name}`,
    execution: executionOf(request, attempt),
    onWaiting: () => run.budget?.add({ ...request, attempt, dueAt: undefined }),
    onLost: () => parts.runs.evict(run),
  });
}

function charged(fields: Fields, charge: Charge | undefined): Fields {
  return charge === undefined ? fields : { ...fields, charge };
}

interface Fields extends entryData.OperationFields, EndedExecution {}

/** attempts.X1 */
function executionOf({ lostTurns }: OperationRequest, attempt: number): number {
  return lostTurns + attempt + 1;
}

export function operationFields(
  request: OperationRequest,
  attempt: number,
  startedAt: EpochMs,
  span: OpenSpan | undefined,
): Fields {
  const { index, name, input } = request;
  return { index, name, input, attempt, execution: executionOf(request, attempt), startedAt, span };
}

function recall(
  { memos }: OperationParts,
  { record }: HotRun,
  { name, input }: OperationRequest,
  pure: string,
  attempt: Attempt,
  call: () => unknown,
): unknown {
  const step: PureStep = { kind: "operation", name, of: record.definition, pure, input };
  return memos.recall(() => step, attempt, call);
}

/** What a library says about the value of its step. */
function annotate({ policy }: OperationRequest, { span }: Fields, value: unknown): void {
  if (span === undefined) return;
  const { resultOf, resultContentOf } = stepTraceOf(policy) ?? {};
  if (resultOf !== undefined) span.annotate(resultOf(value), resultContentOf && (() => resultContentOf(value)));
}

function complete(parts: OperationParts, run: HotRun, request: OperationRequest, fields: Fields, value: unknown): void {
  annotate(request, fields, value);
  const answer = request.pure === undefined ? undefined : answerOf(value);
  let result = answer?.text;
  try {
    if (answer?.reused === undefined)
      result = entryData.encodeNamed(
        `The result of ${request.isNode === true ? "node" : "operation"} ${request.name}`,
        answer === undefined ? value : answer.value,
        run.execution.limits,
      );
  } catch (notData) {
    return end(run, request, fields, notData);
  }
  // The code receives the decoded stored value, as it does in a replay.
  const decoded = result === undefined ? undefined : decode(result);
  const type = request.isNode === true ? "NodeCompleted" : "OperationCompleted";
  const text = entryData.operationCompletedData(fields, result, answer?.reused && encode(answer.reused));
  const ran = answer && factsWithMemo<EndedExecution>(fields, answer, result, parts.memos.runtime);
  run.endOperation(request, type, text, { result: decoded }, answer === undefined ? fields : ran);
}

function end(run: HotRun, request: OperationRequest, fields: Fields, error: unknown): void {
  fields.span?.finish({ error });
  const text = entryData.operationFailedData(fields, error);
  const type = request.isNode === true ? "NodeFailed" : "OperationFailed";
  run.endOperation(request, type, text, decodeData(type, text), fields);
}

/** Records a failed attempt: a retry, or the end of the operation. */
export function failOperation(
  parts: OperationParts,
  run: HotRun,
  request: OperationRequest,
  fields: Fields,
  error: unknown,
): void {
  if (run.defer(() => failOperation(parts, run, request, fields, error))) return;
  const { id: runId, generation } = run.record;
  const failed = { runId, generation, step: request.command, name: request.name, attempt: fields.attempt };
  const decision = retryOrFail(failed, request.policy.retry, error);
  if (!decision.retry) return end(run, request, fields, decision.error);
  const text = entryData.operationFailedData(fields, error, decision.delayMs);
  const dueAt = run.retryOperation(request, text, decision.delayMs, fields);
  if (dueAt === undefined) return;
  // Not referenced: a long delay must not keep the process of a closed engine alive.
  const again = (): void => attemptOperation(parts, run, request, fields.attempt + 1);
  parts.timers.set(Math.max(0, dueAt - parts.now()), again, { ref: false });
}
