// Check options: validates the options of a graph and of its nodes when the builder is called.

import { checkName, checkOptionNames, encode, RepriseError, toMs, type Duration } from "../base/index.ts";
import {
  checkBudget,
  checkDeadline,
  checkPolicy,
  checkRetention,
  labelOption,
  checkQueueSlot,
  type Policy,
} from "../kernel/index.ts";
import { checkPorts } from "../workflow/index.ts";
import { findMisfit, type Channel, type Channels } from "./channel.ts";
import type { NodeEffects, GraphOptions } from "./definition.ts";

const OPTIONS = [
  "backpressureTimeout",
  "budget",
  "deadline",
  "defaultNodeTimeout",
  "fold",
  "key",
  "label",
  "maxConcurrentNodes",
  "maxSteps",
  "output",
  "ports",
  "queue",
  "queueDepth",
  "retention",
  "state",
  "version",
] as const;

export function checkOptions(name: string, options: GraphOptions<any, any, any>): void {
  const what = `Graph ${name}`;
  checkOptionNames(options, OPTIONS, what);
  const { state, output, fold, deadline } = options;
  if (typeof state !== "object" || state === null || Array.isArray(state))
    throw bad(what, 'expected channels as `state`, such as { answer: last("") }');
  for (const [key, channel] of Object.entries(state as Channels)) checkChannel(what, key, channel);
  if (options.ports !== undefined)
    checkPorts(
      what,
      options.ports,
      ["promise", "stream"],
      "a graph has no code that would receive it. Wait for a promise() in a node, or declare it on a workflow that starts the graph.",
    );
  checkQueueSlot(options, what);
  labelOption(options, what);
  for (const count of ["maxSteps", "maxConcurrentNodes", "queueDepth", "version"] as const) {
    const value = options[count];
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 1))
      throw bad(what, `expected ${count} of 1 or more, got ${String(value)}`);
  }
  if (output !== undefined) checkFunction(output, `${what}: output`);
  if (fold !== undefined && fold !== "written" && fold !== "order-key")
    throw bad(what, `expected a fold of "written" or "order-key", got ${String(fold)}`);
  if (deadline !== undefined) checkDeadline(deadline as Duration, what);
  for (const limit of ["backpressureTimeout", "defaultNodeTimeout"] as const) {
    const value = options[limit];
    if (value !== undefined && toMs(value, `${what}: ${limit}`) === 0)
      throw bad(what, `expected a ${limit} above 0, got 0`);
  }
  if (options.retention !== undefined) checkRetention(options.retention, what);
  if (options.budget !== undefined) checkBudget(options.budget, what);
}

function checkChannel(what: string, key: string, channel: Channel<unknown, unknown> | undefined): void {
  checkName(key, `${what}: channel name`);
  if (key === "goto")
    throw bad(what, "a channel cannot be named goto, because a node returns { goto } to choose the next node");
  if (typeof channel?.reduce !== "function")
    throw bad(what, `channel ${key} was not created by last, append, merge, max or channel`);
  const problem = findMisfit(channel, channel.initial);
  if (problem !== undefined) throw bad(what, `the initial value of channel ${key}, which ${problem}`);
  try {
    encode(channel.initial);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new RepriseError("BAD_OPTIONS", `${what}: the initial value of channel ${key} cannot be stored: ${said}`, {
      cause: error,
    });
  }
}

export interface CheckedNodeOptions {
  readonly policy: Policy;
  readonly effects: NodeEffects;
  readonly idempotencyKey: ((state: unknown, item: unknown) => string) | undefined;
}

export function checkNodeOptions(options: unknown, what: string): CheckedNodeOptions {
  checkOptionNames(options as object, ["effects", "idempotencyKey", "retry", "timeout"], what);
  const { effects = {}, idempotencyKey, retry, timeout } = options as Policy & Partial<CheckedNodeOptions>;
  checkPolicy(options as Policy, what);
  checkOptionNames(effects, ["recordable", "requiresIdempotency"], `${what}: effects`);
  for (const flag of ["recordable", "requiresIdempotency"] as const)
    if (effects[flag] !== undefined && typeof effects[flag] !== "boolean")
      throw bad(what, `expected true or false as effects.${flag}, got ${typeof effects[flag]}`);
  if (effects.requiresIdempotency === true && typeof idempotencyKey !== "function")
    throw new RepriseError(
      "BAD_GRAPH",
      `${what} requires idempotency: expected a function \`idempotencyKey\`, got ${typeof idempotencyKey}.`,
    );
  if (idempotencyKey !== undefined) checkFunction(idempotencyKey, `${what}: idempotencyKey`);
  return {
    policy: { ...(retry && { retry }), ...(timeout !== undefined && { timeout }) },
    effects,
    idempotencyKey,
  };
}

export function checkFunction(value: unknown, what: string): void {
  if (typeof value !== "function")
    throw new RepriseError("BAD_OPTIONS", `${what}: expected a function, got ${typeof value}.`);
}

function bad(what: string, problem: string): RepriseError {
  return new RepriseError("BAD_OPTIONS", `${what}: ${problem}.`);
}
