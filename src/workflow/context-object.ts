// Context object: the `ctx` of workflow code. It checks arguments and makes the requests. Its methods need no `this`.

import { checkName, checkOptionNames, checkRunId, digestOf, RepriseError, toMs } from "../base/index.ts";
import {
  checkDeadline,
  checkPolicy,
  checkPriority,
  checkVersion,
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
import { clearState, setState } from "./command-state.ts";
import { emitChunk } from "./emit-chunk.ts";
import { requestTask } from "./command-task.ts";
import { requestTimer, type RequestedTimer } from "./command-timer.ts";
import type {
  Child,
  ChildOptions,
  ContinueOptions,
  DurableState,
  OperationOptions,
  TaskCallOptions,
  Timer,
  WorkflowContext,
} from "./context.ts";
import { unregistered } from "./execution-host.ts";
import type { Execution } from "./execution.ts";
import { requestPromise } from "./promise-ports.ts";
import { never, rejected } from "./refusals.ts";
import { onQuery, type QueryHandler } from "./queries.ts";
import { nodeOfCaller } from "./scope.ts";
import { requestReceive } from "./signals.ts";
import { onUpdate, type UpdateHandler } from "./updates.ts";
import { checkUndo, type StepUndo, type Undo } from "./undo.ts";

const NO_OPTIONS: OperationOptions = {};
const OPERATION_OPTIONS = ["retry", "timeout", "undo"] as const;
const TASK_OPTIONS = ["priority", ...OPERATION_OPTIONS] as const;

type AnyFunction = (...args: never[]) => unknown;

/** The idempotency key of a step: H(run, step path), the same for every attempt of the step and of its node (rules.A2). */
export function idempotencyKeyOf(runId: string, generation: number, path: string): string {
  return digestOf("reprise/idempotency/v1", runId, generation, stableCommandOf(path));
}

function runTask(execution: Execution, task: AnyTask, input: unknown, options: TaskCallOptions = {}): Promise<unknown> {
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
  const undo = undoOf(execution, options.undo, policy, `Task ${task.name}`);
  return undo === "unknown"
    ? never()
    : requestTask(execution, task, input, policy, options.priority ?? body.priority, undo);
}

/** "unknown": the task of the undo is not registered. This stops the run before the step, so there is nothing to undo yet. */
function undoOf(
  execution: Execution,
  how: Undo<any> | undefined,
  policy: Policy,
  what: string,
): StepUndo | "unknown" | undefined {
  if (how === undefined) return undefined;
  checkUndo(how, what);
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
  const options = (rest[hasInput ? 2 : 1] ?? NO_OPTIONS) as OperationOptions;
  if (typeof call !== "function")
    throw new RepriseError("BAD_OPTIONS", `ctx.run(${name}): expected a function, got ${typeof call}.`);
  if (options !== NO_OPTIONS) {
    checkOptionNames(options, OPERATION_OPTIONS, `Operation ${name}`);
    checkPolicy(options, `Operation ${name}`);
  }
  const input = hasInput ? { value: rest[0] } : undefined;
  const undo = undoOf(execution, options.undo, options, `Operation ${name}`);
  if (undo === "unknown") return never();
  return requestOperation(execution, name, input, call as AnyFunction as OperationRequest["call"], options, undo);
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
  checkOptionNames(options, ["deadline", "detached", "id"], "ctx.child");
  if (options.id !== undefined) checkRunId(options.id);
  if (options.deadline !== undefined) checkDeadline(options.deadline, `Child ${definition.name}`);
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

function asTimer(timer: RequestedTimer): Timer {
  return Object.assign(timer.promise, { cancel: () => timer.cancel() });
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
function loggerOf(execution: Execution): Logger {
  return {
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

export function createContext(execution: Execution): WorkflowContext {
  const { id, generation } = execution.identity;
  const context = {
    runId: id,
    get idempotencyKey() {
      return idempotencyKeyOf(id, generation, "");
    },
    get abortSignal() {
      return execution.cancellation.signal;
    },
    get log() {
      return loggerOf(execution);
    },
    task: (task: AnyTask, input?: unknown, options?: TaskCallOptions) =>
      rejecting(() => runTask(execution, task, input, options)),
    run: (name: string, ...rest: readonly unknown[]) => rejecting(() => runOperation(execution, name, rest)),
    tx: (name: string, database: Database<unknown>, call: unknown) =>
      rejecting(() => runTransaction(execution, name, database, call)),
    child: (definition: Definition, input?: unknown, options?: ChildOptions) =>
      startChild(execution, definition, input, options),
    promise: (name: string, options: { timeout?: Parameters<typeof toMs>[0]; show?: unknown } = {}) =>
      rejecting(() => {
        checkOptionNames(options, ["show", "timeout"], `ctx.promise(${name})`);
        const { timeout, show } = options;
        const timeoutMs = timeout === undefined ? undefined : toMs(timeout, `ctx.promise(${name}): timeout`);
        return requestPromise(execution, name, timeoutMs, show);
      }),
    receive: (names: string | readonly string[], options: { timeout?: Parameters<typeof toMs>[0] } = {}) =>
      rejecting(() => {
        checkOptionNames(options, ["timeout"], "ctx.receive");
        const { timeout } = options;
        return requestReceive(
          execution,
          names,
          timeout === undefined ? undefined : toMs(timeout, "ctx.receive: timeout"),
        );
      }),
    sleep: (duration: Parameters<typeof toMs>[0]) =>
      asTimer(requestTimer(execution, "sleep", toMs(duration, "ctx.sleep"))),
    sleepUntil: (date: Date) => {
      const at = date instanceof Date ? date.getTime() : Number.NaN;
      if (!Number.isFinite(at))
        throw new RepriseError("BAD_DURATION", `ctx.sleepUntil: expected a valid Date, got ${String(date)}.`);
      return asTimer(requestTimer(execution, "sleepUntil", at));
    },
    onQuery: (name: string, answer: QueryHandler) => onQuery(execution, name, answer),
    onUpdate: (name: string, handler: UpdateHandler) => onUpdate(execution, name, handler),
    send: (destination: string, payload?: unknown) => sendMessage(execution, destination, payload),
    emit: (name: string, chunk: unknown) => emitChunk(execution, name, chunk),
    shield: (call: () => Promise<unknown>) => rejecting(() => execution.shield(call)),
    now: () => execution.now(),
    random: () => execution.random(),
    uuid: () => execution.uuid(),
    continueAsNew: (input?: unknown, options?: ContinueOptions) =>
      rejecting(() => continueAsNew(execution, input, options)),
    patched: (patch: string) => checkPatched(execution, checkName(patch, "patch id")),
    get state() {
      return stateOf(execution);
    },
  };
  return context as unknown as WorkflowContext;
}
