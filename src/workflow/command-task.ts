// ctx.task: work that any worker may claim.

import { digest, encode } from "../base/index.ts";
import type { AnyTask, Policy } from "../kernel/index.ts";
import { compareInput } from "./command-matcher.ts";
import { encodeInput, taskScheduledData } from "./entry-data.ts";
import { unregistered } from "./execution-host.ts";
import type { Execution } from "./execution.ts";
import { never, rejected } from "./refusals.ts";
import type { StepUndo } from "./undo.ts";

export function requestTask(
  execution: Execution,
  task: AnyTask,
  input: unknown,
  policy: Policy,
  priority: number,
  undo?: StepUndo,
): Promise<unknown> {
  const { refusal } = execution;
  if (refusal !== undefined) return rejected(refusal);
  // Checked before the command gets its index: an index without an entry is a gap.
  const accepted = execution.host.acceptTask(task, input);
  const text = encodeInput(accepted === undefined ? input : accepted.input, execution.limits);
  const given = accepted?.parsed === true ? digest(encode(input)) : undefined;
  const command = execution.issueCommand("Task", "ScheduleTask", { taskType: task.name }, compareInput("task", input));
  if (command === undefined) return never();
  if (!command.known) {
    if (accepted === undefined)
      return execution.halt(unregistered("UNKNOWN_TASK", execution.body, task.name, command.id));
    const { index } = command;
    const fields = { index, taskType: task.name, input: text, given, policy };
    const data = taskScheduledData({ ...fields, shielded: execution.isShielded, epoch: execution.epochOf(index) });
    execution.requests.push({ kind: "task", command: command.id, data, task, priority, slot: accepted.slot });
  }
  return execution.open("Task", command.id, task.name, false, undo);
}
