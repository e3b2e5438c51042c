// Task requests: tools/call that starts a task, and tasks/get, tasks/update and tasks/cancel.
//
// task-requests.Q1. Answering a task's requests needs what the tool `promise_resolve` needs, and canceling it what `run_cancel` needs: the
//   caller that may start a run may not thereby approve what it asks for.

import { problemOf } from "../problem.ts";
import { hasExtension, hasForms, type Revision } from "./revision.ts";
import { RPC_ERROR, RpcRefusal, type Params } from "./rpc.ts";
import { startRun } from "./started-run.ts";
import { readTask, TASKS_EXTENSION, updateTask, type TaskOptions } from "./tasks.ts";
import type { ToolCall } from "./tool.ts";

export interface TaskContext extends ToolCall {
  readonly revision: Revision;
  /** Whether the caller may use the tool. */
  readonly mayUse: (tool: string) => boolean;
}

/** The handle of a task for a run that was just started. */
export async function startTask(definition: string, args: Params, context: TaskContext): Promise<object> {
  const id = await startRun(definition, args, context);
  const {
    result: _result,
    error: _error,
    inputRequests: _requests,
    ...task
  } = (await readTask(id, optionsOf(context), context)) as Params;
  return { ...task, resultType: "task" };
}

/** tasks.T2 */
function optionsOf({ revision, mayUse }: TaskContext): TaskOptions {
  return { answersPromises: hasForms(revision) && mayUse("promise_resolve") };
}

export type TaskMethod = "tasks/get" | "tasks/update" | "tasks/cancel";

export async function answerTask(method: TaskMethod, params: Params, context: TaskContext): Promise<object> {
  if (!hasExtension(context.revision, TASKS_EXTENSION))
    throw new RpcRefusal(RPC_ERROR.capability, `${method} needs the extension ${TASKS_EXTENSION}.`, {
      requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
    });
  const { taskId: id } = params;
  if (typeof id !== "string" || id === "") throw new RpcRefusal(RPC_ERROR.params, "taskId: expected a text.");
  try {
    return await act(method, id, params, context);
  } catch (error) {
    if (error instanceof RpcRefusal) throw error;
    context.signal.throwIfAborted();
    const { status, code, detail } = problemOf(error);
    if (status === 500) throw error;
    throw new RpcRefusal(RPC_ERROR.params, `${code}: ${detail}`, { code });
  }
}

async function act(method: TaskMethod, id: string, params: Params, context: TaskContext): Promise<object> {
  switch (method) {
    case "tasks/get":
      return readTask(id, optionsOf(context), context);
    case "tasks/update":
      checkUse("promise_resolve", method, context);
      await updateTask(id, params["inputResponses"], context);
      return {};
    case "tasks/cancel":
      checkUse("run_cancel", method, context);
      await context.operations.call("cancelRun", context.caller, { params: { id } }, context.signal);
      return {};
  }
}

/** task-requests.Q1 */
function checkUse(tool: string, method: string, { mayUse, caller }: TaskContext): void {
  if (mayUse(tool)) return;
  throw new RpcRefusal(
    RPC_ERROR.params,
    `${method} needs the tool ${tool}, which ${caller.name} may not use: its role is too low, or the server does not allow it.`,
  );
}
