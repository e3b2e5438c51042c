// Stubs: functions that replace tasks and operations in tests.

import { RepriseError } from "../base/index.ts";
import {
  isTask,
  task,
  taskBody,
  type AnyTask,
  type Definition,
  type InputOf,
  type OutputOf,
  type Schema,
  type TaskOptions,
} from "../kernel/index.ts";

/** A task or the name of an operation, and the function that replaces it. */
export type Stub = readonly [what: string | AnyTask, run: (input: any) => unknown];

/**
 * Replaces a task, or every operation (`ctx.run`) with a name, by a function of its input.
 *
 * @example
 * ```ts
 * import { task } from "reprise";
 * import { stub } from "reprise/testing";
 * const charge = task("charge", async (_ctx, cents: number) => ({ id: `payment of ${cents}` }));
 * const stubs = [stub(charge, (cents) => ({ id: `test-${cents}` })), stub("print label", () => "label.pdf")];
 * ```
 */
export function stub<T extends AnyTask>(task: T, run: (input: InputOf<T>) => OutputOf<T> | Promise<OutputOf<T>>): Stub;
export function stub(operation: string, run: (input: unknown) => unknown): Stub;
export function stub(what: unknown, run: unknown): Stub {
  if (typeof what !== "string" && !isTask(what))
    throw new RepriseError("BAD_OPTIONS", `stub: expected a task or the name of an operation, got ${typeof what}.`);
  if (typeof run !== "function")
    throw new RepriseError("BAD_OPTIONS", `stub: expected a function to call instead, got ${typeof run}.`);
  return [what, run as (input: unknown) => unknown];
}

/** A task with the same name, policy and schema that calls the stub. */
function stubbedTask(original: AnyTask, run: (input: unknown) => unknown): AnyTask {
  const { policy, schema, priority, slotOptions } = taskBody(original);
  // The schema is optional here; the overloads of task() distinguish calls with a schema.
  const options = {
    ...policy,
    priority,
    ...(schema && { input: schema as Schema<any, any> }),
    ...(slotOptions && { queue: slotOptions.queue }),
    ...(slotOptions?.key && { key: slotOptions.key }),
  } as TaskOptions<any, any> & { input: Schema<any, any> };
  return task(original.name, options, (_ctx, input) => run(input));
}

/** The definitions with every stubbed task replaced; a stub also adds a task that was not among them. */
export function withStubs(
  definitions: readonly (Definition | AnyTask)[],
  stubs: readonly Stub[],
): readonly (Definition | AnyTask)[] {
  const stubbed = new Map<string, AnyTask>();
  for (const [what, run] of stubs) if (typeof what !== "string") stubbed.set(what.name, stubbedTask(what, run));
  return [...definitions.filter((one) => !isTask(one) || !stubbed.has(one.name)), ...stubbed.values()];
}

/** Finds the stub of an operation. */
export function operationStubs(stubs: readonly Stub[]): (name: string) => ((input: unknown) => unknown) | undefined {
  const byName = new Map<string, (input: unknown) => unknown>();
  for (const [what, run] of stubs) if (typeof what === "string") byName.set(what, run);
  return (name) => byName.get(name);
}
