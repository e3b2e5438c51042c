// ctx.task: work that any worker may claim, and that the code can cancel.
//
// command-task.K1. A cancel is a command, like that of a timer. It is ignored when the journal has the end of the task, even if
//   the code has not received it yet: the first entry counts (execution.E4).
// command-task.K2. The commit that records the cancel drops the task's item, so no worker starts it any more, and a worker that
//   runs it loses its lease and aborts it. A task with an undo finishes instead (undo.U5).

import { CancelledError, digest, encode, RepriseError } from "../base/index.ts";
import type { AnyTask, Policy } from "../kernel/index.ts";
import { compareInput, isViolation } from "./command-matcher.ts";
import type { ScheduledTask } from "./context.ts";
import { encodeInput, taskCancelledData, taskScheduledData } from "./entry-data.ts";
import { unregistered } from "./execution-host.ts";
import type { Execution } from "./execution.ts";
import { ignore, never, rejected } from "./refusals.ts";
import { callOutside, nodeOfCaller, refuseInsideStep } from "./scope.ts";
import type { StepUndo } from "./undo.ts";

/** A task that was not requested: there is nothing to cancel. */
export function unrequestedTask(promise: Promise<unknown>): ScheduledTask<unknown> {
  return Object.assign(promise, { cancel: ignore });
}

export function requestTask(
  execution: Execution,
  task: AnyTask,
  input: unknown,
  policy: Policy,
  priority: number,
  undo?: StepUndo,
): ScheduledTask<unknown> {
  const { refusal } = execution;
  if (refusal !== undefined) return unrequestedTask(rejected(refusal));
  // Checked before the command gets its index: an index without an entry is a gap.
  const accepted = execution.host.acceptTask(task, input);
  const text = encodeInput(accepted === undefined ? input : accepted.input, execution.limits);
  const given = accepted?.parsed === true ? digest(encode(input)) : undefined;
  const command = execution.issueCommand("Task", "ScheduleTask", { taskType: task.name }, compareInput("task", input));
  if (command === undefined) return unrequestedTask(never());
  if (!command.known) {
    if (accepted === undefined)
      return unrequestedTask(execution.halt(unregistered("UNKNOWN_TASK", execution.body, task.name, command.id)));
    const { index } = command;
    const fields = { index, taskType: task.name, input: text, given, policy };
    const data = taskScheduledData({ ...fields, shielded: execution.isShielded, epoch: execution.epochs.of(index) });
    execution.requests.push({ kind: "task", command: command.id, data, task, priority, slot: accepted.slot });
  }
  const { id } = command;
  const { name } = task;
  const promise = execution.open("Task", id, name, false, undo);
  return Object.assign(promise, { cancel: (reason?: string) => cancelTask(execution, id, name, reason) });
}

function cancelTask(execution: Execution, id: string, name: string, reason: string | undefined): void {
  refuseInsideStep();
  if (reason !== undefined && typeof reason !== "string")
    throw new RepriseError("BAD_OPTIONS", `Task ${name}: cancel expects a text as reason, got ${typeof reason}.`);
  if (execution.stop !== undefined || execution.isUndoing) return;
  const node = execution.nodes === undefined ? undefined : nodeOfCaller();
  const { waits, commands } = execution;
  const wait = waits.get(id);
  if (wait === undefined || wait.closing || node?.isOver === true || execution.undos?.isCanceled(id) === true) return;
  // command-task.K1. A replay has not delivered that end yet.
  if (commands.isClosed(id, waits.survivesCancel(id))) return;
  const isFinishing = wait.undo !== undefined;
  const cancel = commands.issueCancel(id, isFinishing ? "FinishCancelledTask" : "CancelTask", {}, ({ data }) => {
    const { reason: actual } = data as { readonly reason?: string };
    return reason === actual ? undefined : { what: "reason of a cancel", expected: reason, actual };
  });
  if (isViolation(cancel)) return execution.violate(cancel);
  if (!cancel.known)
    execution.requests.push({
      kind: "cancel-task",
      type: isFinishing ? "TaskCancelRequested" : "TaskCancelled",
      command: id,
      data: taskCancelledData(cancel.index, reason),
    });
  // The code of a node also runs without a delivery.
  if (node !== undefined) callOutside(() => execution.host.onNodeRequest?.());
  const error = new CancelledError(`Task ${name} was cancelled${reason === undefined ? "." : `: ${reason}`}`);
  if (!isFinishing) return execution.deliveries.fail(id, error);
  execution.undos?.cancel(id);
  wait.reject(error);
}
