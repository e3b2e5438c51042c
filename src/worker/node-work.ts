// NodeWork: one attempt of a flow's node, from what it is given to what came of it.

import { decode, RepriseError, toMs } from "../base/index.ts";
import { isTask, parseNow, taskBody, type AnyTask, type ClaimedItem, type Definition } from "../kernel/index.ts";
import {
  atOnce,
  decodeInputs,
  derive,
  givenOf,
  knownFrom,
  listFrom,
  SKIPPED,
  type FlowBody,
  type FlowNode,
  type NodeOutcome,
  type NodeRef,
} from "../flow/index.ts";
import { entryData } from "../workflow/index.ts";
import { Attempt } from "./attempt.ts";
import type { NodeGiven } from "./flows.ts";
import { judgeFailure } from "./judge-failure.ts";
import type { TaskHost } from "./tasks.ts";

export interface NodeListener {
  ended(outcome: NodeOutcome): void;
  /** It waits for this one's answer. */
  child(child: StartedChild): void;
  /** What it was to be given cannot be read. */
  unreadable(error: unknown): void;
}

export interface StartedChild {
  readonly definition: Definition;
  readonly input: unknown;
}

/** Undefined when it is over already. */
export function runNode(
  host: TaskHost,
  body: FlowBody,
  ref: NodeRef,
  item: ClaimedItem,
  given: NodeGiven,
  listener: NodeListener,
): Attempt | undefined {
  const node = ref.head.region.head;
  const over = (outcome: NodeOutcome): undefined => {
    host.taskOver(item);
    listener.ended(outcome);
  };
  let read: ReadGiven | typeof SKIPPED;
  let work: Call | StartedChild | NodeOutcome;
  try {
    read = readGiven(body, node, given, item);
  } catch (error) {
    host.taskOver(item);
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
    host.taskOver(item);
    listener.child(work);
    return undefined;
  }
  return attempt(host, node, item, work, listener);
}

interface Call {
  readonly call: (ctx: Attempt) => unknown;
  readonly recover: ((error: unknown) => unknown) | undefined;
}

/** `value`: what it came to, a barrier's list or what stood there before. `values`: of what it needs. */
type ReadGiven =
  | { readonly item: unknown }
  | { readonly value: unknown }
  | { readonly values: Readonly<Record<string, unknown>> };

/** No user code runs here: what goes wrong is wrong with the store. */
function readGiven(
  body: FlowBody,
  node: FlowNode,
  given: NodeGiven,
  { failures }: ClaimedItem,
): ReadGiven | typeof SKIPPED {
  // Handed on as text: looked at before it stands in an entry.
  if (failures !== undefined) decode(failures);
  if (!("inputs" in given)) return given;
  const arrived = decodeInputs(given.inputs);
  if (node.work.kind !== "barrier") {
    const values = givenOf(node, knownFrom(body, node.id, arrived));
    return values === SKIPPED ? SKIPPED : { values };
  }
  const list = listFrom(body, node.id, arrived);
  return list === SKIPPED ? SKIPPED : { value: list };
}

function workOf(ref: NodeRef, node: FlowNode, given: ReadGiven | typeof SKIPPED): Call | StartedChild | NodeOutcome {
  const { work } = node;
  if (given === SKIPPED) return { outcome: "skip" };
  if ("item" in given) {
    if (work.kind !== "spread") throw new RepriseError("INVARIANT", `${ref.item} is no item of a spread.`);
    return called(work.run, given.item, (ctx) => (work.run as Function)(ctx, given.item, ref.index));
  }
  if ("value" in given) return valueOf(given.value);
  const { values } = given;
  switch (work.kind) {
    case "action": {
      const { run, recover } = work;
      return { call: (ctx) => run(ctx, values), recover: recover && ((error) => recover(error, values)) };
    }
    case "call":
      return called(work.definition, derive(node, values));
    default:
      return valueOf(derive(node, values));
  }
}

function valueOf(value: unknown): NodeOutcome {
  return { outcome: "value", value, attempt: 0 };
}

function called(what: unknown, input: unknown, call?: (ctx: Attempt) => unknown): Call | StartedChild {
  if (isTask(what)) {
    const { run, schema } = taskBody(what as AnyTask);
    return { call: (ctx) => run(ctx, parseNow(schema, input, `task ${what.name}`)), recover: undefined };
  }
  if (typeof what === "function" && call !== undefined) return { call, recover: undefined };
  return { definition: what as Definition, input };
}

function attempt(host: TaskHost, node: FlowNode, item: ClaimedItem, work: Call, listener: NodeListener): Attempt {
  const { timeout } = node.policy;
  const context = new Attempt({
    runId: item.runId,
    generation: item.generation,
    step: item.item,
    life: 0,
    name: node.id,
    attempt: item.attempt,
    timeoutMs: timeout === undefined ? undefined : toMs(timeout),
    timers: host.timers,
    logger: host.logger,
  });
  context.start(() => work.call(context), {
    over: () => host.taskOver(item),
    done: (value) => listener.ended({ outcome: "value", value, attempt: item.attempt, failures: item.failures }),
    failed: (error) => fail(host, node, item, work, error, listener),
  });
  return context;
}

function fail(
  host: TaskHost,
  node: FlowNode,
  item: ClaimedItem,
  { recover }: Call,
  error: unknown,
  listener: NodeListener,
): void {
  const decision = judgeFailure({ ...item, step: item.item, name: node.id }, node.policy.retry, error);
  const { attempt: count, failures } = item;
  if (decision.retry)
    return host.taskFailed(item, {
      availableAt: host.now() + decision.delayMs,
      attempt: count + 1,
      failures: entryData.addFailure(failures, error),
    });
  let last = decision.error;
  if (recover !== undefined)
    try {
      const value = atOnce(node.id, recover(last));
      return listener.ended({ outcome: "value", value, attempt: count, failures, caught: last });
    } catch (thrown) {
      last = thrown;
    }
  listener.ended({ outcome: "failure", error: last, attempt: count, failures });
}
