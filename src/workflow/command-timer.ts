// ctx.sleep and ctx.sleepUntil: timers that the code can cancel.

import { CancelledError } from "../base/index.ts";
import { isViolation } from "./command-matcher.ts";
import { timerCancelledData, timerStartedData } from "./entry-data.ts";
import type { Execution } from "./execution.ts";
import { ignore, never, rejected } from "./refusals.ts";

export interface RequestedTimer {
  readonly promise: Promise<void>;
  cancel(): void;
}

export function requestTimer(execution: Execution, timerId: "sleep" | "sleepUntil", ms: number): RequestedTimer {
  const { refusal } = execution;
  if (refusal !== undefined) return { promise: rejected(refusal), cancel: ignore };
  const command = execution.issueCommand("Timer", "StartTimer", { timerId }, ({ type, data }) =>
    type === "TimerStarted" && timerId === data.timerId && ms !== data.ms
      ? { what: "timer duration", expected: ms, actual: data.ms }
      : undefined,
  );
  if (command === undefined) return { promise: never(), cancel: ignore };
  if (!command.known) {
    const data = timerStartedData(command.index, timerId, ms, execution.isShielded);
    const due = timerId === "sleep" ? { afterMs: ms } : { at: ms };
    execution.requests.push({ kind: "timer", command: command.id, data, due });
  }
  const promise = execution.open("Timer", command.id, timerId, true) as Promise<void>;
  return { promise, cancel: () => cancelTimer(execution, command.id, timerId) };
}

function cancelTimer(execution: Execution, id: string, timerId: string): void {
  const wait = execution.waits.get(id);
  // It has fired, even if the code has not received that yet (execution.E4).
  if (wait === undefined || wait.closing || execution.stop !== undefined) return;
  const cancel = execution.commands.issueTimerCancel(id, timerId);
  if (isViolation(cancel)) return execution.violate(cancel);
  if (!cancel.known)
    execution.requests.push({ kind: "cancel-timer", command: id, data: timerCancelledData(cancel.index, timerId) });
  execution.fail(id, new CancelledError("The timer was cancelled."));
}
