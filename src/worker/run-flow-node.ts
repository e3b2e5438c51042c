// Runs one attempt of a flow node: decodes its arguments, calls its function, reports the outcome.

import { decode, encode, InvariantError, toMs, type EpochMs, RepriseError } from "../base/index.ts";
import {
  isTask,
  parseNow,
  taskBody,
  type AnyTask,
  type Charge,
  type ClaimedItem,
  type Definition,
  type OpenSpan,
  type PureStep,
  type QueueSlot,
  type TaskCost,
} from "../kernel/index.ts";
import {
  requireSynchronous,
  decodeInputs,
  derive,
  hasKey,
  neededValues,
  slotOf,
  valuesFrom,
  spreadListFrom,
  SKIPPED,
  type FlowBody,
  type FlowNode,
  type NodeOutcome,
  type NodeRef,
} from "../flow/index.ts";
import { Attempt } from "./attempt.ts";
import { answerOf, type Memos } from "./memos.ts";
import type { NodeArguments } from "./node-arguments.ts";
import { retryOrFail } from "./retry-or-fail.ts";
import { factsOf, itemSpending, nextAttempt } from "./run-task.ts";
import type { RunningItem } from "./running-item.ts";

export interface FlowNodeListener {
  /** Its function is called now. */
  span(): OpenSpan | undefined;
  ended(outcome: NodeOutcome): void;
  /** The node waits for the reply of this child. */
  child(child: StartedChild): void;
  /** The node waits in this queue, under its key. */
  queued(slot: QueueSlot): void;
  /** The node's arguments cannot be read. */
  unreadable(error: unknown): void;
}

export interface StartedChild {
  readonly definition: Definition;
  readonly input: unknown;
}

/** Undefined when the attempt has already ended. */
export function runFlowNode(
  running: RunningItem,
  body: FlowBody,
  ref: NodeRef,
  given: NodeArguments,
  listener: FlowNodeListener,
): Attempt | undefined {
  const { item } = running;
  const node = ref.head.region.head;
  const over = (outcome: NodeOutcome): undefined => {
    running.onSettled();
    listener.ended(outcome);
  };
  let read: DecodedArguments | typeof SKIPPED;
  let work: NodeCall | StartedChild | NodeOutcome;
  try {
    read = decodeArguments(body, node, given, item);
  } catch (error) {
    running.onSettled();
    listener.unreadable(error);
    return undefined;
  }
  try {
    const slot = item.slot === undefined ? slotFor(body, ref, read) : undefined;
    if (slot !== undefined) {
      running.onSettled();
      listener.queued(slot);
      return undefined;
    }
    work = workOf(body, ref, node, read);
  } catch (error) {
    return over({ outcome: "failure", error, attempt: item.attempt, failures: item.failures });
  }
  if ("outcome" in work) return over(work);
  if ("definition" in work) {
    running.onSettled();
    listener.child(work);
    return undefined;
  }
  return attempt(running, node, work, listener, listener.span());
}

interface NodeCall {
  /** `pay` calls the function, after it has reserved what the call may cost. */
  readonly call: (ctx: Attempt, memos: Memos, pay: (input: unknown, execute: () => unknown) => unknown) => unknown;
  readonly cost?: TaskCost | undefined;
  readonly isPure?: boolean;
  readonly recover: ((error: unknown) => unknown) | undefined;
  readonly recoversTimeouts?: boolean;
}

/** `value`: the node's own value, which is a barrier's list or the value before a retry. `values`: those of its needs. */
type DecodedArguments =
  | { readonly item: unknown }
  | { readonly value: unknown }
  | { readonly values: Readonly<Record<string, unknown>> };

/** Runs no user code, so an error here means that the store's data is damaged. */
function decodeArguments(
  body: FlowBody,
  node: FlowNode,
  given: NodeArguments,
  { failures }: ClaimedItem,
): DecodedArguments | typeof SKIPPED {
  // Copied as text into the next entry, so checked here.
  if (failures !== undefined) decode(failures);
  if (!("inputs" in given)) return given;
  const arrived = decodeInputs(given.inputs);
  if (node.work.kind !== "barrier") {
    const values = neededValues(node, valuesFrom(body, node.id, arrived));
    return values === SKIPPED ? SKIPPED : { values };
  }
  const list = spreadListFrom(body, node.id, arrived);
  return list === SKIPPED ? SKIPPED : { value: list };
}

/** keys.K1. The slot of a node that is not in its queue yet; undefined if it has no key, or runs no function of the user. */
function slotFor(body: FlowBody, ref: NodeRef, read: DecodedArguments | typeof SKIPPED): QueueSlot | undefined {
  const node = ref.head.region.head;
  if (read === SKIPPED || "value" in read || !hasKey(node)) return undefined;
  if ("item" in read) return slotOf(body, node, read.item, ref.index);
  const { kind } = node.work;
  // The function that makes the items of a spread is not in its queue.
  if (kind === "spread") return undefined;
  return slotOf(body, node, kind === "call" ? derive(node, read.values) : read.values);
}

function workOf(
  { name: of }: FlowBody,
  ref: NodeRef,
  node: FlowNode,
  given: DecodedArguments | typeof SKIPPED,
): NodeCall | StartedChild | NodeOutcome {
  const { work } = node;
  if (given === SKIPPED) return { outcome: "skip" };
  if ("item" in given) {
    if (work.kind !== "spread") throw new InvariantError(`Node ${ref.item} is not an item of a spread.`);
    const { cost } = work;
    const call: NodeCall["call"] = (ctx, _memos, pay) =>
      pay(given.item, () => (work.run as Function)(ctx, given.item, ref.index));
    return callOf(work.run, given.item, cost, call);
  }
  if ("value" in given) return valueOf(given.value);
  const { values } = given;
  switch (work.kind) {
    case "action": {
      const { run, recover, recoversTimeouts } = work;
      const caught = recover && ((error: unknown) => recover(error, values) as unknown);
      const { id: name } = node;
      const { pure } = work;
      const call: NodeCall["call"] =
        pure === undefined
          ? (ctx, _memos, pay) => pay(values, () => run(ctx, values))
          : (ctx, memos, pay) => {
              const step = (): PureStep => ({ kind: "node", name, of, pure, input: encode(values) });
              return memos.recall(step, ctx, () => pay(values, () => run(ctx, values)));
            };
      return { call, cost: work.cost, isPure: pure !== undefined, recover: caught, recoversTimeouts };
    }
    case "call":
      return callOf(work.definition, derive(node, values), work.cost);
    default:
      return valueOf(derive(node, values));
  }
}

function valueOf(value: unknown): NodeOutcome {
  return { outcome: "value", value, attempt: 0 };
}

function callOf(
  what: unknown,
  input: unknown,
  cost: TaskCost | undefined,
  call?: NodeCall["call"],
): NodeCall | StartedChild {
  if (isTask(what)) {
    const { run, schema, pure } = taskBody(what as AnyTask);
    const { name } = what;
    const call: NodeCall["call"] = (ctx, memos, pay) => {
      const parsed = parseNow(schema, input, `task ${name}`);
      if (pure === undefined) return pay(parsed, () => run(ctx, parsed));
      const step = (): PureStep => ({ kind: "task", name, pure, input: textOf(parsed) });
      return memos.recall(step, ctx, () => pay(parsed, () => run(ctx, parsed)));
    };
    return { call, cost, isPure: pure !== undefined, recover: undefined };
  }
  if (typeof what === "function" && call !== undefined) return { call, cost, recover: undefined };
  return { definition: what as Definition, input };
}

function textOf(value: unknown): string | undefined {
  return value === undefined ? undefined : encode(value);
}

function attempt(
  running: RunningItem,
  node: FlowNode,
  work: NodeCall,
  listener: FlowNodeListener,
  span: OpenSpan | undefined,
): Attempt {
  const { item, parts } = running;
  const { timeout } = node.policy;
  const startedAt = parts.now();
  const context = new Attempt({
    span,
    runId: item.runId,
    generation: item.generation,
    step: item.item,
    epoch: 0,
    name: node.id,
    definition: item.definition,
    kind: "node",
    now: parts.now,
    attempt: item.attempt,
    execution: item.execution,
    timeoutMs: timeout === undefined ? undefined : toMs(timeout),
    timers: parts.timers,
    turn: parts.pump.turn,
    logger: parts.logger,
  });
  const spending = itemSpending(running, `Node ${node.id}`, work.cost);
  const pay = (input: unknown, execute: () => unknown): unknown =>
    spending === undefined ? execute() : spending.call(context, input, execute, work.isPure !== true);
  context.start(
    () => work.call(context, parts.memos, pay),
    {
      settled: () => running.onSettled(),
      completed: (returned) => {
        const { attempt, failures } = item;
        const { value, reused, key } = answerOf(returned);
        const charge = spending?.chargeOf(value);
        const ran = reused === undefined ? factsOf(running, startedAt, span, charge) : undefined;
        const remember = key === undefined ? undefined : { memo: key, by: parts.memos.runtime };
        listener.ended({ outcome: "value", value, attempt, failures, ran, reused, remember });
      },
      failed: (error) => fail(running, node, work, error, startedAt, listener, span, spending?.chargeOfFailure(error)),
    },
    work.isPure === true || spending !== undefined,
  );
  return context;
}

function fail(
  running: RunningItem,
  node: FlowNode,
  { recover, recoversTimeouts }: NodeCall,
  error: unknown,
  startedAt: EpochMs,
  listener: FlowNodeListener,
  span: OpenSpan | undefined,
  charge: Charge | undefined,
): void {
  const { item } = running;
  const decision = retryOrFail({ ...item, step: item.item, name: node.id }, node.policy.retry, error);
  const { attempt: count, failures } = item;
  if (decision.retry) return running.onRetry(nextAttempt(running, decision.delayMs, error, startedAt, span, charge));
  const ran = factsOf(running, startedAt, span, charge);
  let last = decision.error;
  if (recover !== undefined && recoversTimeouts !== true && isTimeout(error)) last = uncaughtTimeout(last);
  else if (recover !== undefined)
    try {
      const value = requireSynchronous(node.id, recover(last));
      return listener.ended({ outcome: "value", value, attempt: count, failures, caught: last, ran });
    } catch (thrown) {
      last = thrown;
    }
  listener.ended({ outcome: "failure", error: last, attempt: count, failures, ran });
}

function isTimeout(error: unknown): boolean {
  return error instanceof RepriseError && error.code === "ATTEMPT_TIMEOUT";
}

/** The call may still take effect, so the value for a failed call may be wrong. */
function uncaughtTimeout(last: unknown): unknown {
  if (!(last instanceof RepriseError)) return last;
  const message = `${last.message} Its \`catch\` does not handle timeouts, because the call may still take effect: set \`catchTimeouts: true\` if it should.`;
  return new RepriseError(last.code, message, "cause" in last ? { cause: last.cause } : undefined);
}
