// Context object: the `ctx` of workflow code. It checks arguments and makes the requests. Its methods need no `this`.
//
// context-object.X1. A method is made when code first uses it. Most code uses few of them, and all of them would be a third of the memory of a
//   run that waits.

import { checkName, checkOptionNames, checkRunId, digestOf, RepriseError, toMs } from "../base/index.ts";
import {
  checkChildBudget,
  checkCost,
  checkDeadline,
  checkPolicy,
  checkPriority,
  checkPure,
  checkVersion,
  isDefaultTimerId,
  isTask,
  stableCommandOf,
  taskBody,
  type AnyTask,
  type Database,
  type Definition,
  type Logger,
  type Policy,
} from "../kernel/index.ts";
import type { OperationRequest } from "./command-request.ts";
import { requestChild } from "./command-child.ts";
import { cancelChild, signalChild } from "./command-child-message.ts";
import { requestContinue } from "./command-continue.ts";
import { requestOperation } from "./command-operation.ts";
import { checkPatched } from "./command-patched.ts";
import { sendMessage } from "./command-send.ts";
import { requestSettle } from "./command-settle.ts";
import { clearState, setState } from "./command-state.ts";
import { callDeterministic } from "./deterministic-call.ts";
import { emitChunk } from "./emit-chunk.ts";
import { requestTask, unrequestedTask } from "./command-task.ts";
import { requestTimer } from "./command-timer.ts";
import type {
  Child,
  ChildOptions,
  ContinueOptions,
  DurableState,
  InputOperationOptions,
  OperationOptions,
  ScheduledTask,
  PromiseSettleOptions,
  TaskCallOptions,
  TimerOptions,
  WorkflowContext,
} from "./context.ts";
import { unregistered } from "./execution-host.ts";
import type { Execution } from "./execution.ts";
import { requestPromise } from "./promise-ports.ts";
import { never, rejected } from "./refusals.ts";
import { onQuery, type QueryHandler } from "./queries.ts";
import { nodeOfCaller, refuseInsideStep } from "./scope.ts";
import { requestReceive } from "./signals.ts";
import { onUpdate, type UpdateHandler } from "./updates.ts";
import { checkUndo, type StepUndo, type Undo } from "./undo.ts";

const NO_OPTIONS: OperationOptions = {};
const OPERATION_OPTIONS = ["cost", "live", "pure", "retry", "timeout", "undo"] as const;
const TASK_OPTIONS = ["priority", "retry", "timeout", "undo"] as const;

type AnyFunction = (...args: never[]) => unknown;

/** The idempotency key of a step: H(run, step path), the same for every attempt of the step and of its node (rules.A2). */
export function idempotencyKeyOf(runId: string, generation: number, path: string): string {
  return digestOf("reprise/idempotency/v1", runId, generation, stableCommandOf(path));
}

/** A synchronous error becomes a rejection, like every other failure of an awaited call. */
function scheduleTask(
  execution: Execution,
  task: AnyTask,
  input: unknown,
  options: TaskCallOptions | undefined,
): ScheduledTask<unknown> {
  try {
    return runTask(execution, task, input, options);
  } catch (error) {
    return unrequestedTask(rejected(error as Error));
  }
}

function runTask(
  execution: Execution,
  task: AnyTask,
  input: unknown,
  options: TaskCallOptions = {},
): ScheduledTask<unknown> {
  const body = taskBody(task);
  checkOptionNames(options, TASK_OPTIONS, `Task ${task.name}`);
  checkPolicy(options, `Task ${task.name}`);
  checkPriority(options.priority, `Task ${task.name}`);
  if (options.retry?.retryable !== undefined)
    throw new RepriseError(
      "BAD_POLICY",
      `Task ${task.name}: \`retryable\` is a function and cannot be stored with the call. Pass it in the options of task().`,
    );
  const policy: Policy = {
    ...(options.retry && { retry: options.retry }),
    ...(options.timeout !== undefined && { timeout: options.timeout }),
  };
  const undo = undoOf(execution, options.undo, policy, `Task ${task.name}`, body.pure !== undefined);
  return undo === "unknown"
    ? unrequestedTask(never())
    : requestTask(execution, task, input, policy, options.priority ?? body.priority, undo);
}

/** "unknown": the task of the undo is not registered. This stops the run before the step, so there is nothing to undo yet. */
function undoOf(
  execution: Execution,
  how: Undo<any> | undefined,
  policy: Policy,
  what: string,
  isPure: boolean,
): StepUndo | "unknown" | undefined {
  if (how === undefined) return undefined;
  checkUndo(how, what);
  if (isPure)
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what} is pure, so it changes nothing that could be undone. Remove \`undo\`, or \`pure\` if the step has effects.`,
    );
  if (nodeOfCaller() !== undefined)
    throw new RepriseError(
      "USAGE",
      `${what}: a node cannot have steps with an undo. Move the steps into a workflow and start it with ctx.child().`,
    );
  if (!isTask(how) || execution.host.hasTask(how)) return { how, policy };
  void execution.halt(unregistered("UNKNOWN_TASK", execution.body, how.name, `undo of ${what}`));
  return "unknown";
}

function runOperation(execution: Execution, name: string, rest: readonly unknown[]): Promise<unknown> {
  checkName(name, "operation name");
  const hasInput = typeof rest[0] !== "function";
  const call = rest[hasInput ? 1 : 0];
  const options = (rest[hasInput ? 2 : 1] ?? NO_OPTIONS) as InputOperationOptions;
  if (typeof call !== "function")
    throw new RepriseError("BAD_OPTIONS", `ctx.run(${name}): expected a function, got ${typeof call}.`);
  if (options !== NO_OPTIONS) {
    checkOptionNames(options, OPERATION_OPTIONS, `Operation ${name}`);
    checkPolicy(options, `Operation ${name}`);
    checkLive(options.live, name);
    checkCost(options.cost, `Operation ${name}`);
    if (checkPure(options.pure, `Operation ${name}`) !== undefined && !hasInput) throw pureWithoutInput(name);
  }
  const input = hasInput ? { value: rest[0] } : undefined;
  const undo = undoOf(execution, options.undo, options, `Operation ${name}`, options.pure !== undefined);
  if (undo === "unknown") return never();
  return requestOperation(execution, name, input, call as AnyFunction as OperationRequest["call"], options, undo);
}

function checkLive(live: unknown, name: string): void {
  if (live !== undefined && typeof live !== "boolean")
    throw new RepriseError("BAD_OPTIONS", `ctx.run(${name}): expected live to be true or false, got ${typeof live}.`);
}

function pureWithoutInput(name: string): RepriseError {
  return new RepriseError(
    "BAD_OPTIONS",
    `ctx.run(${name}): \`pure\` needs the input that the result depends on. Pass it before the function: ctx.run("${name}", input, (op, input) => …, { pure }).`,
  );
}

function runTransaction(
  execution: Execution,
  name: string,
  database: Database<unknown>,
  call: unknown,
): Promise<unknown> {
  checkName(name, "transaction name");
  if (typeof call !== "function")
    throw new RepriseError(
      "BAD_OPTIONS",
      `ctx.tx(${name}): expected a function as the last argument, got ${typeof call}.`,
    );
  const kind = (database as Partial<Database<unknown>> | null | undefined)?.["~kind"];
  if (typeof kind !== "string")
    throw new RepriseError(
      "BAD_OPTIONS",
      `ctx.tx(${name}): expected a database as the second argument, such as \`sqlite\` from "reprise/sqlite", got ${typeof database}.`,
    );
  const { storeKind } = execution.host;
  if (storeKind !== undefined && storeKind !== kind)
    throw new RepriseError(
      "USAGE",
      `ctx.tx(${name}): the function expects ${kind}, but the store of this engine is ${storeKind}. Your SQL runs in the store. Pass \`${storeKind}\`.`,
    );
  return requestOperation(execution, name, undefined, call as OperationRequest["call"], {}, undefined, database);
}

function startChild(
  execution: Execution,
  definition: Definition,
  input: unknown,
  options: ChildOptions = {},
): Child<Definition> {
  if (typeof definition?.name !== "string")
    throw new RepriseError(
      "UNKNOWN_DEFINITION",
      "ctx.child: expected a definition made by workflow(), graph() or flow(), got another value.",
    );
  checkOptionNames(options, ["budget", "deadline", "detached", "id"], "ctx.child");
  if (options.id !== undefined) checkRunId(options.id);
  if (options.deadline !== undefined) checkDeadline(options.deadline, `Child ${definition.name}`);
  checkChildBudget(options.budget, `Child ${definition.name}`);
  const child = requestChild(execution, definition, input, options);
  return Object.assign(child.promise, {
    id: child.id,
    signal: (name: string, value?: unknown) => rejecting(() => signalChild(execution, child, name, value)),
    cancel: () => rejecting(() => cancelChild(execution, child)),
  }) as unknown as Child<Definition>;
}

function continueAsNew(execution: Execution, input: unknown, options: ContinueOptions = {}): Promise<never> {
  if (typeof options !== "object" || options === null)
    throw new RepriseError("BAD_OPTIONS", `ctx.continueAsNew: expected an object of options, got ${typeof options}.`);
  checkOptionNames(options, ["version"], "ctx.continueAsNew");
  return requestContinue(execution, input, checkVersion(options.version, "ctx.continueAsNew"));
}

function timerIdOf(call: "sleep" | "sleepUntil", options: TimerOptions | undefined): string | undefined {
  if (options === undefined) return undefined;
  checkOptionNames(options, ["id"], `ctx.${call}`);
  if (options.id === undefined) return undefined;
  const id = checkName(options.id, `ctx.${call}: timer id`);
  if (isDefaultTimerId(id))
    throw new RepriseError(
      "BAD_NAME",
      `ctx.${call}: expected an id other than \`${id}\`, which timers without an id have. Name what the timer is for, such as \`renewal\`.`,
    );
  return id;
}

/** A synchronous error becomes a rejection, like every other failure of an awaited call. */
function rejecting<T>(call: () => Promise<T>): Promise<T> {
  try {
    return call();
  } catch (error) {
    return rejected(error as Error);
  }
}

// Created on first use: most runs use neither.
function loggerOf(execution: Execution): Required<Logger> {
  return {
    debug: (message, data) => execution.log("debug", message, data),
    info: (message, data) => execution.log("info", message, data),
    warn: (message, data) => execution.log("warn", message, data),
    error: (message, data) => execution.log("error", message, data),
  };
}

function stateOf(execution: Execution): DurableState<Record<string, unknown>> {
  return {
    get: (key) => execution.state.get(key),
    set: (key, value) => setState(execution, checkName(key, "state key"), value),
    clear: (key) => clearState(execution, key === undefined ? undefined : checkName(key, "state key")),
    keys: () => execution.state.keys(),
  };
}

/** Each makes a method of `ctx` for one run. */
const METHODS: Readonly<Record<string, (execution: Execution) => unknown>> = {
  task: (execution: Execution) => (task: AnyTask, input?: unknown, options?: TaskCallOptions) =>
    scheduleTask(execution, task, input, options),
  run:
    (execution: Execution) =>
    (name: string, ...rest: readonly unknown[]) =>
      rejecting(() => runOperation(execution, name, rest)),
  tx: (execution: Execution) => (name: string, database: Database<unknown>, call: unknown) =>
    rejecting(() => runTransaction(execution, name, database, call)),
  child: (execution: Execution) => (definition: Definition, input?: unknown, options?: ChildOptions) =>
    startChild(execution, definition, input, options),
  promise:
    (execution: Execution) =>
    (name: string, options: { key?: string; timeout?: Parameters<typeof toMs>[0]; show?: unknown } = {}) =>
      rejecting(() => {
        checkOptionNames(options, ["key", "show", "timeout"], `ctx.promise(${name})`);
        const { key, timeout, show } = options;
        const timeoutMs = timeout === undefined ? undefined : toMs(timeout, `ctx.promise(${name}): timeout`);
        return requestPromise(execution, name, key, timeoutMs, show);
      }),
  resolve:
    (execution: Execution) =>
    (definition: Definition, runId: string, name: string, value?: unknown, options: PromiseSettleOptions = {}) =>
      rejecting(() => requestSettle(execution, { definition, runId, name, options }, { value })),
  reject:
    (execution: Execution) =>
    (definition: Definition, runId: string, name: string, error: unknown, options: PromiseSettleOptions = {}) =>
      rejecting(() => requestSettle(execution, { definition, runId, name, options }, { error })),
  receive:
    (execution: Execution) =>
    (names: string | readonly string[], options: { timeout?: Parameters<typeof toMs>[0] } = {}) =>
      rejecting(() => {
        checkOptionNames(options, ["timeout"], "ctx.receive");
        const { timeout } = options;
        return requestReceive(
          execution,
          names,
          timeout === undefined ? undefined : toMs(timeout, "ctx.receive: timeout"),
        );
      }),
  sleep: (execution: Execution) => (duration: Parameters<typeof toMs>[0], options?: TimerOptions) =>
    requestTimer(execution, "sleep", toMs(duration, "ctx.sleep"), timerIdOf("sleep", options)),
  sleepUntil: (execution: Execution) => (date: Date, options?: TimerOptions) => {
    const at = date instanceof Date ? date.getTime() : Number.NaN;
    if (!Number.isFinite(at))
      throw new RepriseError("BAD_DURATION", `ctx.sleepUntil: expected a valid Date, got ${String(date)}.`);
    return requestTimer(execution, "sleepUntil", at, timerIdOf("sleepUntil", options));
  },
  onQuery: (execution: Execution) => (name: string, answer: QueryHandler) => onQuery(execution, name, answer),
  onUpdate: (execution: Execution) => (name: string, handler: UpdateHandler) => onUpdate(execution, name, handler),
  send: (execution: Execution) => (destination: string, payload?: unknown) =>
    sendMessage(execution, destination, payload),
  emit: (execution: Execution) => (name: string, chunk: unknown) => emitChunk(execution, name, chunk),
  shield: (execution: Execution) => (call: () => Promise<unknown>) => rejecting(() => execution.shield(call)),
  now: (execution: Execution) => () => execution.now(),
  random: (execution: Execution) => () => {
    refuseInsideStep("Call it before the step, or use Math.random() inside the step.");
    return execution.draws.unit(nodeOfCaller());
  },
  uuid: (execution: Execution) => () => {
    refuseInsideStep("Call it before the step, or use crypto.randomUUID() inside the step.");
    return execution.draws.uuid(nodeOfCaller());
  },
  deterministic: (execution: Execution) => (call: unknown) => callDeterministic(execution, call),
  continueAsNew: (execution: Execution) => (input?: unknown, options?: ContinueOptions) =>
    rejecting(() => continueAsNew(execution, input, options)),
  patched: (execution: Execution) => (patch: string) => checkPatched(execution, checkName(patch, "patch id")),
};

const EXECUTION = Symbol("execution");

interface Target {
  readonly [EXECUTION]: Execution;
}

/** context-object.X1 */
const PROTOTYPE = {
  get runId() {
    return executionOf(this).draws.runId;
  },
  get models() {
    return executionOf(this).draws.models;
  },
  get idempotencyKey() {
    const { id, generation } = executionOf(this).identity;
    return idempotencyKeyOf(id, generation, "");
  },
  get abortSignal() {
    return executionOf(this).cancellation.signal;
  },
  get log() {
    return loggerOf(executionOf(this));
  },
  get state() {
    return stateOf(executionOf(this));
  },
};

for (const [name, make] of Object.entries(METHODS))
  Object.defineProperty(PROTOTYPE, name, {
    enumerable: true,
    get(this: object): unknown {
      const value = make(executionOf(this));
      if (Object.isExtensible(this)) define(this, name, value);
      return value;
    },
    // Code may wrap a method.
    set(this: object, value: unknown) {
      define(this, name, value);
    },
  });

function define(context: object, name: string, value: unknown): void {
  Object.defineProperty(context, name, { value, enumerable: true, configurable: true, writable: true });
}

function executionOf(context: object): Execution {
  return (context as Target)[EXECUTION];
}

export function createContext(execution: Execution): WorkflowContext {
  const context = Object.create(PROTOTYPE) as object;
  Object.defineProperty(context, EXECUTION, { value: execution });
  return context as WorkflowContext;
}
