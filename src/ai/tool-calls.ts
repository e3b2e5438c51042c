// Tool calls: the calls of tools as steps of a run, whatever SDK made them.
//
// tool-calls.T1. `run`: a call is one step, `tool <name>`, of its input. A task: the call is that task. `inline`: the function of
//   the tool is workflow code, and what it does through `ctx` is recorded.
// tool-calls.T2. A tool that needs approval is called after a person agreed, with the input that the person edited, if any.
// tool-calls.T3. An error of a call is an answer for the model, except one that must stop the run: the guard's.

import { checkOptionNames, isThenable, RepriseError } from "../base/index.ts";
import { isTask, STEP_TRACE, type AnyTask, type Cost, type Policy, type StepTrace } from "../kernel/index.ts";
import type { DurableContext, OperationContext } from "../workflow/index.ts";
import { approvalKey, deniedText, type Approval } from "./approvals.ts";
import { plainData } from "./plain-data.ts";

/** How the calls of a tool are made. */
export interface ToolHow extends Policy {
  /**
   * `"run"`: each call is a step in this process, recorded with its result. `"inline"`: the function of the tool uses `ctx` itself. A
   * task: any worker executes it, and the limits of its queue hold; the tool needs no function. Default: `"run"`.
   */
  as?: "run" | "inline" | AnyTask;
  /** Whether a person must approve a call; a function decides by the input, and must be deterministic. Default: false. */
  approve?: boolean | ((input: any) => boolean);
  /** What a call costs, in runs with a budget. */
  cost?: Cost;
}

/** What the calls of tools need from their session. */
export interface ToolCalls {
  readonly ctx: DurableContext<any>;
  /** The port of approvals. */
  readonly approve: string | undefined;
  /** tool-calls.T3 */
  readonly stopBy: (error: unknown) => void;
}

/** One call. */
export interface ToolCall {
  readonly input: unknown;
  readonly toolCallId: string;
  /** Without `op` it is called as workflow code. */
  readonly execute: (input: unknown, op: OperationContext | undefined) => unknown;
  /** Checks an input that a person wrote, and parses it. */
  readonly parse: (input: unknown) => Promise<unknown>;
}

export interface ToolAnswer {
  readonly output: unknown;
  readonly isDenied: boolean;
}

/** Refuses options that no call could follow. */
export function checkToolHow(calls: ToolCalls, name: string, how: ToolHow, hasFunction: boolean): void {
  const { as = "run", approve = false } = how;
  checkOptionNames(how, ["approve", "as", "cost", "retry", "timeout"], `Tool ${name}`);
  if (as !== "run" && as !== "inline" && !isTask(as))
    throw new RepriseError("BAD_OPTIONS", `Tool ${name}: expected \`as\` to be "run", "inline" or a task.`);
  if (isTask(as) && how.cost !== undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      `Tool ${name}: \`cost\` counts calls that are steps of the run, and this tool is a task. Give the task ${as.name} a \`cost\`: task("${as.name}", { cost: { reserve, actual } }, …).`,
    );
  const unused =
    as === "inline" ? (["cost", "retry", "timeout"] as const).find((one) => how[one] !== undefined) : undefined;
  if (unused !== undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      `Tool ${name}: \`${unused}\` has no effect, because the function of the tool is workflow code. Set it for the steps of an inline tool: ctx.run(name, call, { ${unused} }).`,
    );
  if (!hasFunction && !isTask(as) && (approve !== false || how.as !== undefined))
    throw new RepriseError("BAD_OPTIONS", `Tool ${name} has no \`execute\`. Add it, or name a task with \`as\`.`);
  if (approve !== false && calls.approve === undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      `Tool ${name} needs approval, but no port for it is named. Declare ports: { approve: approvals() } and pass durable(ctx, { approve: "approve" }).`,
    );
}

export function checkToolNames(names: readonly string[], how: object): void {
  for (const name of Object.keys(how))
    if (!names.includes(name))
      throw new RepriseError("BAD_OPTIONS", `ai.tools: \`how\` names \`${name}\`, which is none of the tools.`);
}

/** tool-calls.T2 */
export async function callTool(calls: ToolCalls, name: string, how: ToolHow, call: ToolCall): Promise<ToolAnswer> {
  const { approve = false } = how;
  try {
    const isAsked = typeof approve === "function" ? approve(call.input) : approve;
    if (!isAsked) return { output: await execute(calls, name, how, call, call.input), isDenied: false };
    const decision = await askForCall(calls, name, call.input, call.toolCallId);
    if (!decision.ok) return { output: deniedText(decision), isDenied: true };
    const input = decision.input === undefined ? call.input : await call.parse(decision.input);
    return { output: await execute(calls, name, how, call, input), isDenied: false };
  } catch (error) {
    if (error instanceof RepriseError && error.code === "NONDETERMINISM") calls.stopBy(error);
    throw error;
  }
}

/** tool-calls.T1 */
function execute({ ctx }: ToolCalls, name: string, how: ToolHow, call: ToolCall, input: unknown): Promise<unknown> {
  const { as = "run", retry, timeout, cost } = how;
  const policy: Policy = { ...(retry && { retry }), ...(timeout !== undefined && { timeout }) };
  if (isTask(as)) return ctx.task(as, plainData(input) as never, policy);
  if (as === "inline") return lastOf(call.execute(input, undefined));
  const paid = cost && { cost: { reserve: cost, actual: () => cost } };
  const options = { ...policy, ...paid, [STEP_TRACE]: traceOf(name, call.toolCallId, input) };
  return ctx.run(
    `tool ${name}`,
    plainData(input),
    // The result is data or the step fails with NOT_DATA; the type of a tool says less.
    async (op: OperationContext, given: unknown) => (await lastOf(call.execute(given, op))) as never,
    options,
  );
}

function traceOf(name: string, toolCallId: string, input: unknown): StepTrace {
  return {
    kind: "execute_tool",
    name,
    attributes: { "gen_ai.tool.name": name, "gen_ai.tool.call.id": toolCallId },
    content: () => ({ "gen_ai.tool.call.arguments": JSON.stringify(input) }),
    resultOf: () => ({}),
    resultContentOf: (result) => ({ "gen_ai.tool.call.result": JSON.stringify(result) ?? "" }),
  };
}

/** A tool may be a generator whose last value is its result. */
async function lastOf(result: unknown): Promise<unknown> {
  if (isThenable(result) || typeof result !== "object" || result === null || !(Symbol.asyncIterator in result))
    return result;
  let last: unknown;
  for await (const value of result as AsyncIterable<unknown>) last = value;
  return last;
}

/** Waits until a person has decided about a call. */
export async function askForCall(
  { ctx, approve }: Pick<ToolCalls, "approve" | "ctx">,
  tool: string,
  input: unknown,
  toolCallId: string,
): Promise<Approval> {
  const show = { tool, input: plainData(input) };
  return (await ctx.promise(approve as never, { key: approvalKey(ctx, toolCallId), show })) as Approval;
}
