// Runs one attempt of a flow node: decodes its arguments, calls its function, reports the outcome.

import { decode, InvariantError, toMs } from "../base/index.ts";
import { isTask, parseNow, taskBody, type AnyTask, type ClaimedItem, type Definition } from "../kernel/index.ts";
import {
  requireSynchronous,
  decodeInputs,
  derive,
  neededValues,
  valuesFrom,
  spreadListFrom,
  SKIPPED,
  type FlowBody,
  type FlowNode,
  type NodeOutcome,
  type NodeRef,
} from "../flow/index.ts";
import { entryData } from "../workflow/index.ts";
import { Attempt } from "./attempt.ts";
import type { NodeArguments } from "./flow-runner.ts";
import { retryOrFail } from "./retry-or-fail.ts";
import type { TaskHost } from "./run-task.ts";

export interface FlowNodeListener {
  ended(outcome: NodeOutcome): void;
  /** The node waits for the reply of this child. */
  child(child: StartedChild): void;
  /** The node's arguments cannot be read. */
  unreadable(error: unknown): void;
}

export interface StartedChild {
  readonly definition: Definition;
  readonly input: unknown;
}

/** Undefined when the attempt has already ended. */
export function runFlowNode(
  host: TaskHost,
  body: FlowBody,
  ref: NodeRef,
  item: ClaimedItem,
  given: NodeArguments,
  listener: FlowNodeListener,
): Attempt | undefined {
  const node = ref.head.region.head;
  const over = (outcome: NodeOutcome): undefined => {
    host.onSettled(item);
    listener.ended(outcome);
  };
  let read: DecodedArguments | typeof SKIPPED;
  let work: NodeCall | StartedChild | NodeOutcome;
  try {
    read = decodeArguments(body, node, given, item);
  } catch (error) {
    host.onSettled(item);
    listener.unreadable(error);
    return undefined;
  }
  try {
    work = workOf(ref, node, read);
  } catch (error) {
    return over({ outcome: "failure", error, attempt: item.attempt, failures: item.failures });
  }
  if ("outcome" in work) return over(work);
  if ("definition" in work) {
    host.onSettled(item);
    listener.child(work);
    return undefined;
  }
  return attempt(host, node, item, work, listener);
}

interface NodeCall {
  readonly call: (ctx: Attempt) => unknown;
  readonly recover: ((error: unknown) => unknown) | undefined;
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

function workOf(
  ref: NodeRef,
  node: FlowNode,
  given: DecodedArguments | typeof SKIPPED,
): NodeCall | StartedChild | NodeOutcome {
  const { work } = node;
  if (given === SKIPPED) return { outcome: "skip" };
  if ("item" in given) {
    if (work.kind !== "spread") throw new InvariantError(`Node ${ref.item} is not an item of a spread.`);
    return callOf(work.run, given.item, (ctx) => (work.run as Function)(ctx, given.item, ref.index));
  }
  if ("value" in given) return valueOf(given.value);
  const { values } = given;
  switch (work.kind) {
    case "action": {
      const { run, recover } = work;
      return { call: (ctx) => run(ctx, values), recover: recover && ((error) => recover(error, values)) };
    }
    case "call":
      return callOf(work.definition, derive(node, values));
    default:
      return valueOf(derive(node, values));
  }
}

function valueOf(value: unknown): NodeOutcome {
  return { outcome: "value", value, attempt: 0 };
}

function callOf(what: unknown, input: unknown, call?: (ctx: Attempt) => unknown): NodeCall | StartedChild {
  if (isTask(what)) {
    const { run, schema } = taskBody(what as AnyTask);
    return { call: (ctx) => run(ctx, parseNow(schema, input, `task ${what.name}`)), recover: undefined };
  }
  if (typeof what === "function" && call !== undefined) return { call, recover: undefined };
  return { definition: what as Definition, input };
}

function attempt(
  host: TaskHost,
  node: FlowNode,
  item: ClaimedItem,
  work: NodeCall,
  listener: FlowNodeListener,
): Attempt {
  const { timeout } = node.policy;
  const context = new Attempt({
    runId: item.runId,
    generation: item.generation,
    step: item.item,
    epoch: 0,
    name: node.id,
    attempt: item.attempt,
    timeoutMs: timeout === undefined ? undefined : toMs(timeout),
    timers: host.timers,
    logger: host.logger,
  });
  context.start(() => work.call(context), {
    settled: () => host.onSettled(item),
    completed: (value) => listener.ended({ outcome: "value", value, attempt: item.attempt, failures: item.failures }),
    failed: (error) => fail(host, node, item, work, error, listener),
  });
  return context;
}

function fail(
  host: TaskHost,
  node: FlowNode,
  item: ClaimedItem,
  { recover }: NodeCall,
  error: unknown,
  listener: FlowNodeListener,
): void {
  const decision = retryOrFail({ ...item, step: item.item, name: node.id }, node.policy.retry, error);
  const { attempt: count, failures } = item;
  if (decision.retry)
    return host.onRetry(item, {
      availableAt: host.now() + decision.delayMs,
      attempt: count + 1,
      failures: entryData.addFailure(failures, error),
    });
  let last = decision.error;
  if (recover !== undefined)
    try {
      const value = requireSynchronous(node.id, recover(last));
      return listener.ended({ outcome: "value", value, attempt: count, failures, caught: last });
    } catch (thrown) {
      last = thrown;
    }
  listener.ended({ outcome: "failure", error: last, attempt: count, failures });
}
