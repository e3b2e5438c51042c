// ctx.sleep and ctx.sleepUntil: timers that the code can cancel.
//
// command-timer.I1. The id of a timer belongs to one open timer at a time, so that it says which one a run waits for. The
//   command (`Timer(2)`) identifies the timer: a loop may use its id again once the timer has ended.

import { CancelledError, RepriseError } from "../base/index.ts";
import { isViolation } from "./command-matcher.ts";
import type { Timer } from "./context.ts";
import { timerCancelledData, timerStartedData } from "./entry-data.ts";
import type { Execution } from "./execution.ts";
import { ignore, never, rejected } from "./refusals.ts";

/** `ms`: for `sleep` a duration, for `sleepUntil` a moment. */
export function requestTimer(
  execution: Execution,
  call: "sleep" | "sleepUntil",
  ms: number,
  id: string | undefined,
): Timer {
  const { refusal } = execution;
  if (refusal !== undefined) return unrequestedTimer(rejected(refusal));
  if (id !== undefined) refuseOpenId(execution, id);
  const timerId = id ?? call;
  const until = id !== undefined && call === "sleepUntil" ? true : undefined;
  const command = execution.issueCommand("Timer", "StartTimer", { timerId }, ({ type, data }) => {
    if (type !== "TimerStarted" || timerId !== data.timerId) return undefined;
    if (until !== data.until)
      return {
        what: "kind of timer",
        expected: call,
        actual: data.until ? "sleepUntil" : "sleep",
        differs: "command",
      };
    return ms === data.ms ? undefined : { what: "timer duration", expected: ms, actual: data.ms };
  });
  if (command === undefined) return unrequestedTimer(never());
  if (id !== undefined) (execution.timers ??= new Map()).set(id, command.id);
  if (!command.known) {
    const { index } = command;
    const data = timerStartedData({ index, timerId, ms, shielded: execution.isShielded, until });
    const due = call === "sleep" ? { afterMs: ms } : { at: ms };
    execution.requests.push({ kind: "timer", command: command.id, data, due, since: command.reopened?.at });
  }
  const promise = execution.open("Timer", command.id, timerId, true) as Promise<void>;
  const started = command.id;
  return Object.assign(promise, { cancel: () => cancelTimer(execution, started, timerId) });
}

function unrequestedTimer(promise: Promise<void>): Timer {
  return Object.assign(promise, { cancel: ignore });
}

/** command-timer.I1 */
function refuseOpenId(execution: Execution, id: string): void {
  const open = execution.timers?.get(id);
  if (open === undefined || execution.waits.get(open) === undefined) return;
  throw new RepriseError(
    "USAGE",
    `Timer \`${id}\` (${open}) has not ended yet, so another timer cannot have its id. Await or cancel it first, or give this one another id.`,
  );
}

function cancelTimer(execution: Execution, id: string, timerId: string): void {
  const wait = execution.waits.get(id);
  // It has fired, even if the code has not received that yet (execution.E4).
  if (wait === undefined || wait.closing || execution.stop !== undefined) return;
  const cancel = execution.commands.issueCancel(id, "CancelTimer", { timerId });
  if (isViolation(cancel)) return execution.violate(cancel);
  if (!cancel.known)
    execution.requests.push({ kind: "cancel-timer", command: id, data: timerCancelledData(cancel.index, timerId) });
  execution.deliveries.fail(id, new CancelledError("The timer was cancelled."));
}
