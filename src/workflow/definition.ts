// Workflow definition: a name, options, an async function.

import { checkName, checkOptionNames, RepriseError } from "../base/index.ts";
import {
  checkBudget,
  checkDeadline,
  checkRetention,
  checkVersion,
  labelOption,
  checkQueueSlot,
  type BudgetCap,
  type DecodedEntry,
  type Definition,
  type InputOfKey,
  type KeyFunction,
  type KeyTakes,
  type QueueSlotOptions,
  type Ports,
  type RetentionMs,
  type Schema,
  type DeliveredMessage,
} from "../kernel/index.ts";
import type { Execution } from "./execution.ts";
import type { Replay, ReplaySource } from "./replay.ts";
import type { Determinism, WorkflowContext, WorkflowOptions } from "./context.ts";

/** A workflow, made by `workflow()`: durable async code. */
export interface Workflow<Name extends string, Input, Output, M = {}> extends Definition<
  Name,
  Input,
  Output,
  M,
  never
> {
  readonly kind: "workflow";
}

/** The internal part of a workflow. `workflowBody` reads it, so editors do not show it. */
export interface WorkflowBody {
  readonly kind: Definition["kind"];
  readonly name: string;
  readonly version: number;
  readonly run: (ctx: WorkflowContext, input: unknown) => Promise<unknown>;
  /** Graphs: runs the execution instead of `run`. */
  readonly drive?: (execution: Execution, input: unknown, from: unknown) => Promise<unknown>;
  /** Restores a position from a checkpoint with the whole state and the entries of the steps since. */
  readonly restore?: (whole: string, steps: readonly DecodedEntry<"StepCommitted">[]) => Restored;
  /** Graphs: the channels of the state, and a check of a value for one of them. */
  readonly channels?: readonly string[];
  readonly checkChannel?: (name: string, value: unknown) => string | undefined;
  /** Graphs and flows: replays a journal by running the nodes again. */
  readonly replay?: (past: ReplaySource) => Promise<Replay>;
  readonly schema: Schema<never, unknown> | undefined;
  readonly ports: Ports;
  readonly determinism: Determinism | undefined;
  readonly slotOptions: QueueSlotOptions | undefined;
  readonly label: string | undefined;
  readonly deadlineMs: number | undefined;
  /** Undefined: that of the engine. */
  readonly retention: RetentionMs | undefined;
  readonly budget: BudgetCap | undefined;
}

export interface Restored {
  readonly position: unknown;
  /** To deliver before anything else. */
  readonly delivered: readonly DeliveredMessage[];
}

const BODY = Symbol.for("reprise.workflow");

export function workflowBody(definition: Definition): WorkflowBody {
  const body = (definition as { [BODY]?: WorkflowBody })[BODY];
  if (body === undefined)
    throw new RepriseError("UNKNOWN_DEFINITION", "Expected a workflow made by workflow(), got another value.");
  return body;
}

export function isWorkflow(value: unknown): value is Workflow<string, any, any, any> {
  return typeof value === "object" && value !== null && BODY in value;
}

type PortKind = Ports[string]["port"];

const PORTS: readonly PortKind[] = ["promise", "query", "signal", "stream", "update"];

/** `kinds`: the port kinds that the definition supports. `because`: why it does not support the others. */
export function checkPorts(what: string, ports: Ports, kinds: readonly PortKind[] = PORTS, because = ""): void {
  if (typeof ports !== "object" || ports === null || Array.isArray(ports))
    throw new RepriseError("BAD_OPTIONS", `${what}: expected an object of ports by name, got ${typeof ports}.`);
  for (const [port, declared] of Object.entries(ports)) {
    checkName(port, `${what}: port name`);
    if (kinds.includes(declared?.port)) continue;
    const wanted = kinds.map((kind) => `${kind}()`).join(" or ");
    const why = PORTS.includes(declared?.port) ? ` but by ${declared.port}(): ${because}` : "";
    throw new RepriseError("BAD_OPTIONS", `${what}: port ${port} is not made by ${wanted}${why || "."}`);
  }
}

/**
 * Defines a workflow: async code whose steps are recorded, so that it continues after a crash where it stopped.
 *
 * @example
 * ```ts
 * import { task, workflow } from "reprise";
 * const greet = task("greet", (_ctx, name: string) => `Hello, ${name}`);
 * const welcome = workflow("welcome", async (ctx, name: string) => {
 *   const text = await ctx.task(greet, name);
 *   await ctx.sleep("1 day");
 *   return ctx.run("send", () => ({ sent: text }));
 * });
 * ```
 */
export function workflow<const Name extends string, Output, Input = void>(
  name: Name,
  run: (ctx: WorkflowContext<{}, Input>, input: Input) => Promise<Output>,
): Workflow<Name, Input, Output>;
export function workflow<
  const Name extends string,
  Output,
  Parsed,
  Input,
  M extends Ports = {},
  State = Record<string, unknown>,
>(
  name: Name,
  options: WorkflowOptions<Input, Parsed, M, State> & { input: Schema<Input, Parsed> },
  run: (ctx: WorkflowContext<M, Input, State>, input: Parsed) => Promise<Output>,
): Workflow<Name, Input, Output, M>;
export function workflow<
  const Name extends string,
  Output,
  Key extends KeyFunction = KeyFunction,
  Input = InputOfKey<Key>,
  M extends Ports = {},
  State = Record<string, unknown>,
>(
  name: Name,
  options: Omit<WorkflowOptions<never, never, M, State>, "input" | "key"> & { input?: never; key?: Key },
  run: (ctx: WorkflowContext<M, Input, State>, input: Input) => Promise<Output> & KeyTakes<Key, Input>,
): Workflow<Name, Input, Output, M>;
export function workflow(name: string, ...rest: readonly unknown[]): Workflow<string, any, any, any> {
  const options = (rest.length === 1 ? {} : rest[0]) as WorkflowOptions<never, unknown, Ports, unknown>;
  const run = rest.at(-1);
  checkName(name, "workflow name");
  if (typeof run !== "function")
    throw new RepriseError(
      "BAD_OPTIONS",
      `Workflow ${name}: expected a function as the last argument, got ${typeof run}.`,
    );
  if (typeof options !== "object" || options === null)
    throw new RepriseError("BAD_OPTIONS", `Workflow ${name}: expected an object of options, got ${typeof options}.`);
  checkOptionNames(
    options,
    ["budget", "deadline", "determinism", "input", "key", "label", "ports", "queue", "retention", "state", "version"],
    `Workflow ${name}`,
  );
  const { determinism } = options;
  if (determinism !== undefined && determinism !== "strict" && determinism !== "per-type")
    throw new RepriseError(
      "BAD_OPTIONS",
      `Workflow ${name}: expected a determinism of "strict" or "per-type", got ${String(determinism)}.`,
    );
  const version = checkVersion(options.version, `Workflow ${name}`) ?? 1;
  if (options.ports !== undefined) checkPorts(`Workflow ${name}`, options.ports);
  const body: WorkflowBody = {
    kind: "workflow",
    name,
    version,
    run: run as WorkflowBody["run"],
    schema: options.input as Schema<never, unknown> | undefined,
    ports: options.ports ?? {},
    determinism,
    slotOptions: checkQueueSlot(options, `Workflow ${name}`),
    label: labelOption(options, `Workflow ${name}`),
    deadlineMs: options.deadline === undefined ? undefined : checkDeadline(options.deadline, `Workflow ${name}`),
    retention: options.retention === undefined ? undefined : checkRetention(options.retention, `Workflow ${name}`),
    budget: options.budget === undefined ? undefined : checkBudget(options.budget, `Workflow ${name}`),
  };
  return Object.freeze({ kind: "workflow", name, [BODY]: body });
}
